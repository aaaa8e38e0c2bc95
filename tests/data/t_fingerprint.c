/* t_fingerprint.c - the fingerprint of a series: equal reads are equal, every change is found, named, and judged. */
#include "t.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/fingerprint.h"
#include "data/series_build.h"

enum { ROWS = 100 };
static const struct split parts = {.train = 60, .validation = 80, .test = ROWS};

/* A file with one record a line; `without` is left out, cell (row, column) becomes `text` (column 1 = a; row -1 = the header). */
struct edit {
    i32 rows, without, row, column;
    const char *text;
    bool timeless;
};

static void put_row(struct str *s, const struct edit *e, i32 i) {
    char cell[5][40];
    static const i32 days[] = {31, 29, 31, 30};
    i32 month = 0, day = i;
    while (day >= days[month]) day -= days[month++];
    snprintf(cell[0], 40, "2024-%02d-%02d", 1 + month, 1 + day);
    snprintf(cell[1], 40, "%d", 5 + i * 37 % 11);
    snprintf(cell[2], 40, "%d", i * 53 % 17);
    snprintf(cell[3], 40, "%d", i * 29 % 5);
    snprintf(cell[4], 40, "%s", i % 3 ? "calm" : "wild");
    if (i < 0) {
        static const char *const names[] = {"time", "a", "past", "ahead", "kind"};
        for (i32 k = 0; k < 5; k++) snprintf(cell[k], 40, "%s", names[k]);
    }
    if (e->text && e->row == i) snprintf(cell[e->column], 40, "%s", e->text);
    for (i32 k = e->timeless; k < 5; k++) str_addf(s, "%s%s", cell[k], k < 4 ? "," : "\n");
}

static struct series *read_with(const struct edit *e, const char *target) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    const struct series_options so = {.target = target, .past = "past", .known = "ahead", .cat = "kind", .gaps = "mask",
                                      .freq = e->timeless ? NULL : "1d"};
    struct str text = {0};
    struct table *t;
    struct series *s;
    for (i32 i = -1; i < e->rows; i++)
        if (i < 0 || i != e->without) put_row(&text, e, i);
    T_OK(table_read(t_file("a.csv", text.s), &o, &t));
    T_OK(series_build(t, &so, &s));
    table_free(t);
    str_free(&text);
    return s;
}

/* The fingerprint of the unchanged file, written and read back. */
static struct fingerprint before(bool timeless) {
    const struct edit none = {.rows = ROWS, .without = -1, .timeless = timeless};
    struct series *s = read_with(&none, "a");
    struct fingerprint made, back;
    struct str text = {0};
    struct js *o, *again;
    T_OK(fingerprint_make(s, &parts, &made));
    o = fingerprint_json(&made);
    T_OK(js_text(o, &text, 0));
    T_OK(js_parse(text.s, text.len, "data.json", &again));
    T_OK(fingerprint_read(again, &back));
    assert_int_equal(back.rows, ROWS);
    assert_int_equal(back.nblock, made.nblock);
    assert_int_equal(back.ncolumn, timeless ? 4 : 5);
    fingerprint_free(&made);
    series_free(s);
    js_free(o);
    js_free(again);
    str_free(&text);
    return back;
}

static struct data_change change(struct edit e) {
    struct fingerprint was = before(e.timeless);
    struct series *s = read_with(&e, e.text && e.row < 0 && e.column == 1 ? e.text : "a");
    struct data_change c;
    T_OK(fingerprint_compare(&was, s, &c));
    assert_int_equal(c.why != NULL, c.verdict == DATA_LOST);
    assert_int_equal(c.text[0] != 0, c.verdict != DATA_SAME);
    fingerprint_free(&was);
    series_free(s);
    return c;
}

static void says(const struct data_change *c, const char *part) {
    if (!strstr(c->text, part)) fail_msg("\"%s\" does not say \"%s\"", c->text, part);
}

TEST(fingerprint_of_the_same_file_is_the_same) {
    const struct data_change c = change((struct edit){.rows = ROWS, .without = -1});
    assert_int_equal(c.verdict, DATA_SAME);
    assert_int_equal(c.split.validation, parts.validation);
    assert_int_equal(change((struct edit){.rows = ROWS, .without = -1, .timeless = true}).verdict, DATA_SAME);
}

TEST(fingerprint_sees_a_change_of_every_cell) {
    static const char *const text[] = {NULL, "99", "98", "97", "windy"};
    for (i32 row = 0; row < ROWS; row += 7)
        for (i32 column = 1; column < 5; column++)
            for (i32 missing = 0; missing < 2; missing++) {
                const char *cell = missing ? "" : text[column];
                struct data_change c = change((struct edit){ROWS, .without = -1, .row = row, .column = column, .text = cell});
                assert_int_equal(c.verdict, DATA_CHANGED);
                assert_int_equal(row + 2, c.line);
                says(&c, row < 60 ? "training part" : row < 80 ? "validation part" : "test part");
            }
}

TEST(fingerprint_names_column_line_and_value) {
    const struct data_change c = change((struct edit){.rows = ROWS, .without = -1, .row = 20, .column = 2, .text = "30"});
    assert_string_equal(c.text, "the value of column \"past\" is not as it was when the run began, in line 22 "
                                "(2024-01-21, training part): 6, now 30");
    const struct data_change m = change((struct edit){.rows = ROWS, .without = -1, .row = 99, .column = 1, .text = "?"});
    says(&m, "in line 101 (2024-04-09, test part): ");
    says(&m, ", now missing");
}

/* A long series, rows of a block: two. */
TEST(fingerprint_of_a_long_series_names_rows_and_means) {
    enum { LONG = 40000 };
    const char *name = "y";
    f64 mean = 0;
    struct series s = {.nrow = LONG, .ntarget = 1, .ncol = 1, .name = &name, .mean = &mean};
    struct fingerprint f;
    struct data_change c;
    s.v = mem_alloc(sizeof(f32) * LONG);
    assert_non_null(s.v);
    for (i32 i = 0; i < LONG; i++) s.v[i] = (f32)(i % 10);
    T_OK(fingerprint_make(&s, &(struct split){20000, 30000, LONG}, &f));
    assert_int_equal(f.step, 2);
    s.v[25] = 8;
    T_OK(fingerprint_compare(&f, &s, &c));
    assert_string_equal(c.text, "the values of column \"y\" are not as they were when the run began, in rows 24 to 25 "
                                "(training part): mean 4.5, now 6");
    s.v[24] = NAN;
    T_OK(fingerprint_compare(&f, &s, &c));
    says(&c, "(training part): 0 missing, now 1, mean 4.5, now 8");
    fingerprint_free(&f);
    mem_free(s.v);
}

TEST(fingerprint_keeps_the_split_of_a_longer_file) {
    const struct data_change c = change((struct edit){.rows = ROWS + 3, .without = -1});
    assert_int_equal(c.verdict, DATA_BEYOND);
    assert_string_equal(c.text, "there were 100 rows up to 2024-04-09 when the run began, there are 103 up to 2024-04-12: 3 "
                                "more, lines 102 to 104");
    assert_int_equal(c.line, 102);
    assert_memory_equal(&c.split, &parts, sizeof parts);
}

TEST(fingerprint_of_a_cut_file_is_judged_by_its_part) {
    const struct data_change test = change((struct edit){.rows = 95, .without = -1});
    assert_int_equal(test.verdict, DATA_CHANGED);
    assert_int_equal(test.split.test, 95);
    says(&test, "there are 95 up to 2024-04-04: 5 fewer");
    for (i32 rows = 79; rows > 20; rows -= 9) {
        const struct data_change c = change((struct edit){.rows = rows, .without = -1});
        assert_int_equal(c.verdict, DATA_LOST);
        assert_non_null(strstr(c.why, "the test part would move"));
    }
}

TEST(fingerprint_without_the_first_row_is_lost) {
    const struct data_change c = change((struct edit){.rows = ROWS, .without = 0});
    assert_int_equal(c.verdict, DATA_LOST);
    says(&c, "the time is not as it was");
    says(&c, "the training part began at 2024-01-01, now at 2024-01-02");
}

TEST(fingerprint_without_times_is_lost_when_rows_move) {
    assert_int_equal(change((struct edit){.rows = ROWS, .without = 40, .timeless = true}).verdict, DATA_LOST);
    assert_int_equal(change((struct edit){.rows = ROWS, .without = 90, .timeless = true}).verdict, DATA_CHANGED);
    assert_int_equal(change((struct edit){.rows = ROWS + 1, .without = -1, .timeless = true}).verdict, DATA_BEYOND);
}

TEST(fingerprint_takes_a_new_name_and_no_other_column) {
    const struct data_change name = change((struct edit){.rows = ROWS, .without = -1, .row = -1, .column = 1, .text = "b"});
    assert_int_equal(name.verdict, DATA_CHANGED);
    assert_string_equal(name.text, "column \"b\" was called \"a\" when the run began");
    struct fingerprint was = before(false);
    struct data_change c;
    const struct edit none = {.rows = ROWS, .without = -1};
    struct series *s = read_with(&none, "a");
    s->ncat = 0; /* a column fewer */
    T_OK(fingerprint_compare(&was, s, &c));
    assert_int_equal(c.verdict, DATA_LOST);
    says(&c, "the run began with 5 columns, there are 4");
    s->ncat = 1;
    s->npast = 0;
    s->nknown = 2; /* another role */
    T_OK(fingerprint_compare(&was, s, &c));
    assert_int_equal(c.verdict, DATA_LOST);
    says(&c, "column 3 was \"past\" (past), is \"past\" (known)");
    fingerprint_free(&was);
    series_free(s);
}

/* A long series has longer blocks, so that the file stays small. */
TEST(fingerprint_has_a_bounded_number_of_blocks) {
    struct edit e = {.rows = 40, .without = -1};
    struct series *s = read_with(&e, "a"), one = {.nrow = 3000000, .ntarget = 1, .ncol = 1, .name = s->name, .mean = s->mean};
    struct fingerprint f;
    one.v = mem_alloc(sizeof(f32) * (size_t)one.nrow);
    assert_non_null(one.v);
    T_OK(fingerprint_make(&one, &(struct split){1000000, 2000000, 3000000}, &f));
    assert_in_range(f.nblock, 1 << 14, 1 << 15);
    fingerprint_free(&f);
    mem_free(one.v);
    series_free(s);
}

TEST(fingerprint_refuses_what_is_none) {
    static const struct {
        const char *text;
        i32 code;
    } list[] = {
        {"{}", 901},
        {"[]", 901},
        {"{\"stretto.fingerprint\":2}", 902},
        {"{\"stretto.fingerprint\":1,\"rows_of_block\":0,\"columns\":[1]}", 901},
        {"{\"stretto.fingerprint\":1,\"rows_of_block\":9000000000000000000,\"columns\":[1]}", 901},
        {"{\"stretto.fingerprint\":1,\"rows_of_block\":16,\"columns\":[1],\"parts\":[{\"rows\":-1}]}", 901},
        {"{\"stretto.fingerprint\":1,\"rows_of_block\":1,\"columns\":[{}],\"parts\":[{\"rows\":1000000000000000000},"
         "{\"rows\":1000000000000000000},{\"rows\":0},{\"rows\":0}]}", 901},
        {"{\"stretto.fingerprint\":1,\"rows_of_block\":16,\"columns\":[{\"blocks\":[]}],\"parts\":[{\"rows\":1},{\"rows\":0},"
         "{\"rows\":0},{\"rows\":0}]}", 901},
    };
    for (size_t i = 0; i < COUNT(list); i++) {
        struct fingerprint f;
        struct js *o;
        T_OK(js_parse(list[i].text, strlen(list[i].text), "data.json", &o));
        T_FAILS(fingerprint_read(o, &f), list[i].code);
        js_free(o);
    }
}

T_MAIN(cmocka_unit_test(fingerprint_of_the_same_file_is_the_same), cmocka_unit_test(fingerprint_sees_a_change_of_every_cell),
       cmocka_unit_test(fingerprint_names_column_line_and_value),
       cmocka_unit_test(fingerprint_of_a_long_series_names_rows_and_means),
       cmocka_unit_test(fingerprint_keeps_the_split_of_a_longer_file),
       cmocka_unit_test(fingerprint_of_a_cut_file_is_judged_by_its_part),
       cmocka_unit_test(fingerprint_without_the_first_row_is_lost),
       cmocka_unit_test(fingerprint_without_times_is_lost_when_rows_move),
       cmocka_unit_test(fingerprint_takes_a_new_name_and_no_other_column),
       cmocka_unit_test(fingerprint_has_a_bounded_number_of_blocks), cmocka_unit_test(fingerprint_refuses_what_is_none))
