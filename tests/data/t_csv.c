/* t_csv.c - readable tables: layouts, quotes, compression, threads; generated files against their source and against Python's
 * csv module. */
#define _GNU_SOURCE
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/table.h"

static struct table *read_with(const char *path, const struct read_options *o) {
    struct table *t;
    T_OK(table_read(path, o, &t));
    return t;
}

static struct table *read_text(const char *text) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    return read_with(t_file("a.csv", text), &o);
}

TEST(csv_plain_table_has_names_types_and_lines) {
    struct table *t = read_text("time,x,kind\n2011-01-01 00:00,1.5,a\n2011-01-01 01:00,NA,b\n2011-01-01 02:00,-3e2,a\n");
    assert_int_equal(t->nrow, 3);
    assert_int_equal(t->ncol, 3);
    assert_int_equal(t->col[0].type, COL_TIME);
    assert_int_equal(t->col[1].type, COL_NUMBER);
    assert_int_equal(t->col[2].type, COL_CATEGORY);
    assert_true(t->col[1].number[0] == 1.5 && isnan(t->col[1].number[1]) && t->col[1].number[2] == -300);
    assert_int_equal(t->col[1].missing, 1);
    assert_int_equal(t->col[1].first_missing_line, 3);
    assert_string_equal(t->col[1].missing_text, "NA");
    assert_int_equal(t->col[2].nword, 2);
    assert_string_equal(t->col[2].word[t->col[2].code[1]], "b");
    assert_int_equal(table_line(t, 2), 4);
    i32 col;
    T_OK(table_need(t, "x", "--target", &col));
    assert_int_equal(col, 1);
    T_OK(table_need(t, "X", "--target", &col)); /* in another case */
    assert_int_equal(col, 1);
    T_FAILS(table_need(t, "xx", "--target", &col), 102);
    assert_non_null(strstr(err_last()->text, "did you mean \"x\"?"));
    table_free(t);
}

TEST(csv_byte_order_mark_crlf_and_spaces_are_no_content) {
    struct table *t = read_text("\xEF\xBB\xBF" "a , b\r\n 1 ,2 \r\n3, 4\r\n\r\n\r\n");
    assert_int_equal(t->nrow, 2);
    assert_string_equal(t->col[0].name, "a");
    assert_string_equal(t->col[1].name, "b");
    assert_true(t->col[0].number[0] == 1 && t->col[1].number[1] == 4);
    table_free(t);
}

TEST(csv_separators_and_decimal_comma_are_found) {
    static const char *const texts[] = {"a\tb\n1.5\t2\n3\t4\n", "a;b\n1,5;2\n3;4\n", "a|b\n1.5|2\n3|4\n", "a,b\n1.5,2\n3,4\n",
                                        "1,5;2\n3;4\n"};
    static const char seps[] = "\t;|,;";
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct table *t = read_text(texts[i]);
        assert_int_equal(t->sep, seps[i]);
        assert_int_equal(t->ncol, 2);
        assert_int_equal(t->nrow, 2);
        assert_true(t->col[0].number[0] == 1.5 && t->col[1].number[1] == 4);
        table_free(t);
    }
}

/* Whether point or comma is decimal follows from other numbers of the file, or stays ambiguous. */
/* The characters of a text in UTF-16, as a file. */
static const char *utf16_file(const u32 *c, i32 n, bool high_first) {
    static char path[300];
    char bytes[400] = {high_first ? '\xFE' : '\xFF', high_first ? '\xFF' : '\xFE'};
    i32 fill = 2;
    for (i32 i = 0; i < n; i++) {
        const u32 half[2] = {c[i] < 0x10000 ? c[i] : 0xD800 + ((c[i] - 0x10000) >> 10), 0xDC00 + (c[i] & 0x3FF)};
        for (i32 k = 0; k < (c[i] < 0x10000 ? 1 : 2); k++) {
            bytes[fill++] = (char)(high_first ? half[k] >> 8 : half[k] & 0xFF);
            bytes[fill++] = (char)(high_first ? half[k] & 0xFF : half[k] >> 8);
        }
    }
    snprintf(path, sizeof path, "%s/utf16.txt", t_dir());
    T_OK(file_write_all(path, bytes, fill));
    return path;
}

TEST(csv_utf16_is_read_as_utf8) {
    static const u32 text[] = {0xE4, '\t', 0x20AC, '\t', 'x', '\r', '\n', '1', '.', '5', '\t', 0x1F600, '\t', '7', '\r', '\n',
                               '2', '.', '5', '\t', 0x10FFFF, '\t', '8', '\r', '\n'};
    for (i32 k = 0; k < 2; k++) {
        struct read_options o = READ_OPTIONS_DEFAULT;
        struct table *t = read_with(utf16_file(text, COUNT(text), k), &o);
        assert_true(t->nrow == 2 && t->ncol == 3 && t->sep == '\t');
        assert_string_equal(t->col[0].name, "\xC3\xA4");
        assert_string_equal(t->col[1].name, "\xE2\x82\xAC");
        assert_string_equal(t->col[1].word[0], "\xF0\x9F\x98\x80");
        assert_string_equal(t->col[1].word[1], "\xF4\x8F\xBF\xBF");
        assert_true(t->col[0].number[1] == 2.5 && t->col[2].number[1] == 8 && table_line(t, 1) == 3);
        table_free(t);
    }
}

TEST(csv_groups_of_digits_are_codes_where_they_are_no_thousands) {
    static const struct {
        const char *text;
        bool number, doubt;
    } cases[] = {{"a,b\n12 480,1\n1 021,2\n998,3\n", true, false},
                 {"a,b\n555 123,1\n123 456,2\n", true, true},             /* nobody tells */
                 {"a,b\n+49 170 123,1\n+49 171 456,2\n", true, true},
                 {"a,b\n555 123,1\n12 480,2\n", true, false},             /* no code has two lengths */
                 {"a,b\n555 123,1\n998,2\n", true, false},
                 {"a,b\n555 123,1\n555 1234,2\n12 480,3\n", false, false}, /* one cell is enough */
                 {"a,b\n555 12,1\n555 13,2\n", false, false},
                 {"a,b\n0171 123 456,1\n171 123 456,2\n171 123 456,3\n", false, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table *t = read_text(cases[i].text);
        if ((t->col[0].type == COL_NUMBER) != cases[i].number || (t->doubt != NULL) != cases[i].doubt)
            fail_msg("%s: type %d, doubt %s", cases[i].text, t->col[0].type, t->doubt ? t->doubt : "none");
        table_free(t);
    }
    struct table *t = read_text(cases[1].text);
    assert_string_equal(t->doubt,
                        "column \"a\": 555 123 is read as a number with a space between thousands, and could be a code");
    assert_string_equal(t->doubt_fix, "--cat a   (it is a code)   or   --decimal point   (it is a number)");
    table_free(t);
    struct read_options o = READ_OPTIONS_DEFAULT;
    for (i32 k = 0; k < 2; k++) { /* either option settles it */
        o.decimal = k ? '.' : 0;
        o.cat = k ? NULL : "a";
        t = read_with(t_file("k.csv", cases[1].text), &o);
        assert_true(!t->doubt && (t->col[0].type == COL_NUMBER) == (k == 1));
        table_free(t);
    }
}

TEST(csv_marks_between_thousands_are_known_where_the_file_tells) {
    static const struct {
        const char *text;
        f64 first;
        i64 grouped;
        bool doubt;
    } cases[] = {{"a;b\n1.021;x\n998;y\n", 1021, 1, false},                /* 998 beside it */
                 {"a;b\n1.021;x\n1.021.300;y\n", 1021, 2, false},
                 {"a;b\n1.021;7\n12.480;1,5\n", 1021, 2, false},           /* a decimal comma somewhere */
                 {"a;b\n1.021,50;7\n998,25;1\n", 1021.5, 1, false},
                 {"a,b\n\"1.021,50\",7\n\"998,25\",1\n", 1021.5, 1, false},
                 {"a,b\n\"1,021.50\",7\n998.25,1\n", 1021.5, 1, false},
                 {"a,b\n\"1,021\",7\n998,1\n", 1021, 1, false},
                 {"a,b\n\"1,021,300\",7\n\"12,480\",1\n", 1021300, 2, false},
                 {"a;b\n1'021.5;7\n998.25;1\n", 1021.5, 1, false},
                 {"a;b\n1 021,5;7\n998,25;1\n", 1021.5, 1, false},
                 {"a;b\n-12\xE2\x80\xAF" "480,5;7\n998,25;1\n", -12480.5, 1, false},
                 {"a;b\n1.021;x\n12.480;y\n", 1.021, 0, true},             /* nobody tells */
                 {"a,b\n1.021,x\n2.200,y\n", 1.021, 0, true},
                 {"a;b\n1.021;0.5\n998;1.25\n", 1.021, 0, true},           /* two columns disagree */
                 {"a,b\n1.021,0.5\n2.200,y\n", 1.021, 0, false},           /* the file has decimal points */
                 {"a,b\n1.021,x\n0.220,y\n", 1.021, 0, false},
                 {"a,b\n1.021,x\n1021,y\n12,z\n998,z\n", 1.021, 0, false}, /* 1021 has no mark */
                 {"a,b\n1.021e2,x\n998,y\n", 102.1, 0, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table *t = read_text(cases[i].text);
        if (t->col[0].type != COL_NUMBER || t->col[0].number[0] != cases[i].first || t->grouped != cases[i].grouped ||
            (t->doubt != NULL) != cases[i].doubt)
            fail_msg("%s: type %d, %g, %lld grouped, doubt %s", cases[i].text, t->col[0].type,
                     t->col[0].type == COL_NUMBER ? t->col[0].number[0] : 0, (long long)t->grouped, t->doubt ? t->doubt : "none");
        table_free(t);
    }
    struct table *t = read_text("a;b\n1.021;x\n12.480;y\n");
    assert_string_equal(t->doubt, "column \"a\": 1.021 is read as a fraction, and could be a number in the thousands");
    table_free(t);
    struct read_options o = READ_OPTIONS_DEFAULT;
    for (i32 k = 0; k < 2; k++) { /* said by --decimal */
        o.decimal = k ? '.' : ',';
        t = read_with(t_file("k.csv", "a;b\n1.021;x\n12.480;y\n"), &o);
        assert_true(t->col[0].number[1] == (k ? 12.48 : 12480) && !t->doubt && t->grouped == (k ? 0 : 2));
        table_free(t);
    }
    /* groups that are none */
    t = read_text("a;b;c;d\n1.02.300;1,5;0.021.300;1.021,300.4\n1.02.300;2;0.021.300;1.021,300.4\n");
    assert_true(t->col[0].type == COL_CATEGORY && t->col[2].type == COL_CATEGORY && t->col[3].type == COL_CATEGORY);
    table_free(t);
}

TEST(csv_month_words_are_times_below_a_header_and_names_in_it) {
    struct table *t = read_text("when,y\nJan 2024,1\nFeb 2024,2\n");
    assert_true(t->has_header && t->col[0].type == COL_TIME && t->nrow == 2);
    table_free(t);
    t = read_text("Jan 2024,1\nFeb 2024,2\n");
    assert_true(!t->has_header && t->col[0].type == COL_TIME && t->nrow == 2);
    table_free(t);
    t = read_text("Jan 2024,Feb 2024\n1,2\n3,4\n");
    assert_true(t->has_header && t->col[0].type == COL_NUMBER && t->nrow == 2);
    table_free(t);
    t = read_text("when,y\n\"March 1, 2024\",1\n\"March 2, 2024\",2\n");
    assert_true(t->col[0].type == COL_TIME && t->col[0].time[1] - t->col[0].time[0] == 86400);
    table_free(t);
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.time_format = "%d.%m.%y";
    t = read_with(t_file("y.csv", "y,when\n1,31.12.23\n2,01.01.24\n"), &o); /* no --time is needed */
    assert_true(t->col[1].type == COL_TIME && t->col[1].time[1] - t->col[1].time[0] == 86400);
    table_free(t);
}

TEST(csv_header_is_found_or_missed) {
    static const struct {
        const char *text;
        bool header;
    } cases[] = {{"a,b\n1,2\n", true},
                 {"1,2\n3,4\n", false},
                 {"5.1,x\n4.9,x\n", false},
                 {"date,1,2\n2011-01-01,3,4\n", true},
                 {"name,town\nx,y\n", true},
                 {"2011-01-01,5\n2011-01-02,6\n", false},
                 {"Letter,1,2,3\nT,2,8,3\nI,5,12,3\n", true},
                 {"v\n1\n2\n", true},
                 {"1\n2\n", false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table *t = read_text(cases[i].text);
        if (t->has_header != cases[i].header) fail_msg("%s: header %d", cases[i].text, t->has_header);
        if (!cases[i].header) assert_string_equal(t->col[t->ncol - 1].name, t->ncol == 2 ? "2" : "1");
        table_free(t);
    }
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.header = 0;
    o.cat = "1,last";
    struct table *t = read_with(t_file("h.csv", "a,b\nc,d\n"), &o);
    assert_int_equal(t->nrow, 2);
    table_free(t);
}

TEST(csv_quotes_follow_rfc_4180) {
    struct table *t =
        read_text("\"na\"\"me\",note\n\"x, y\",\"two\nlines\"\n\"say \"\"hi\"\"\",\"\"\n5\" pipe,ab\"c\"d\n\"q\"tail,z\n");
    assert_string_equal(t->col[0].name, "na\"me");
    assert_int_equal(t->nrow, 4);
    const struct column *a = &t->col[0], *b = &t->col[1];
    assert_string_equal(a->word[a->code[0]], "x, y");
    assert_string_equal(b->word[b->code[0]], "two\nlines");
    assert_string_equal(a->word[a->code[1]], "say \"hi\"");
    assert_int_equal(b->code[1], -1);
    assert_string_equal(a->word[a->code[2]], "5\" pipe");
    assert_string_equal(b->word[b->code[2]], "ab\"c\"d");
    assert_string_equal(a->word[a->code[3]], "qtail");
    assert_int_equal(table_line(t, 1), 4); /* the quoted line feed counts */
    table_free(t);
}

TEST(csv_last_line_needs_no_line_feed_and_blank_lines_are_no_rows) {
    struct table *t = read_text("a,b\n1,2\n\n\r\n3,4");
    assert_int_equal(t->nrow, 2);
    assert_int_equal(table_line(t, 0), 2);
    assert_int_equal(table_line(t, 1), 5);
    table_free(t);
}

TEST(csv_missing_words_may_be_numbers) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.na = "none,-999";
    struct table *t = read_with(t_file("na.csv", "a,b\n1,none\n-999,2\n-999.0,3\n4,-9990\n"), &o);
    assert_int_equal(t->col[0].missing, 2);
    assert_int_equal(t->col[1].missing, 1);
    assert_true(t->col[1].number[3] == -9990);
    table_free(t);
}

TEST(csv_roles_change_types) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.cat = "b";
    o.ignore = "c";
    o.time = "y";
    struct table *t = read_with(t_file("r.csv", "y,b,c\n1999,7,zzz\n2000,8,1\n2001,7,2\n"), &o);
    assert_int_equal(t->ncol, 2);
    assert_int_equal(t->col[0].type, COL_TIME);
    assert_int_equal(t->col[1].type, COL_CATEGORY);
    assert_string_equal(t->col[1].word[1], "8");
    assert_int_equal(table_find(t, "c"), -1);
    table_free(t);
    o.ignore = "q";
    T_FAILS(table_read(t_file("r.csv", "y,b,c\n1999,7,zzz\n"), &o, &t), 102);
}

TEST(csv_late_words_make_a_text_column) {
    struct str b = {0};
    str_add(&b, "a,b\n");
    for (i32 i = 0; i < 3000; i++) str_addf(&b, "%d,%s%d\n", i, i < 1200 ? "" : "w", i % 5);
    struct table *t = read_text(str_text(&b));
    assert_int_equal(t->col[1].type, COL_CATEGORY);
    assert_int_equal(t->col[1].nword, 10);
    assert_string_equal(t->col[1].word[0], "0");
    table_free(t);
    str_free(&b);
}

TEST(csv_packed_files_equal_the_plain_one) {
    const char *text = "a,b\n1,x\n2,y\n3,x\n";
    char path[300], command[1600];
    snprintf(path, sizeof path, "%s", t_file("p.csv", text));
    snprintf(command, sizeof command,
             "gzip -kf '%s' && (gzip -c '%s' >> '%s.gz') && (! command -v zstd >/dev/null || zstd -qf '%s')", path, path, path,
             path);
    if (system(command) != 0) skip();
    static const char *const ends[] = {".gz", ".zst"};
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.header = 1;
    for (size_t i = 0; i < COUNT(ends); i++) {
        char packed[320];
        snprintf(packed, sizeof packed, "%s%s", path, ends[i]);
        FILE *f = fopen(packed, "r");
        if (!f) continue;
        fclose(f);
        struct table *t;
        o.na = i == 0 ? "NA,a" : "NA"; /* the second member repeats the header: a bad cell unless it is missing */
        T_OK(table_read(packed, &o, &t));
        assert_int_equal(t->nrow, i == 0 ? 7 : 3);
        assert_true(t->col[0].number[2] == 3);
        table_free(t);
    }
    snprintf(command, sizeof command, "head -c 30 '%s.gz' > '%s.cut.gz'", path, path);
    if (system(command) != 0) skip();
    snprintf(command, sizeof command, "%s.cut.gz", path);
    struct table *t;
    T_FAILS(table_read(command, &o, &t), 202);
}

/* A table of random cells with everything that makes chunks hard to cut: quotes, line feeds within quotes, long cells, CRLF. */
struct made {
    struct str text;
    char **cell;
    i64 rows;
};
enum { MADE_COLS = 3 };

static u32 dice(u64 i, u32 sides) {
    u32 w[4];
    rng_words(3, RNG_TEST, 9, i, w);
    return w[0] % sides;
}

static void make_cell(struct str *cell, struct str *text, u64 *k) {
    static const char *const parts[] = {"a", "bc", ",", "\n", "\"", " ", "x1", "\xC3\xA4", "long long long text", "\r\n"};
    u32 n = 1 + dice(++*k, 5);
    cell->len = 0;
    str_addn(cell, "z", dice(++*k, 3) > 0); /* most cells begin with a letter, so that trimming has no say */
    for (u32 i = 0; i < n; i++) {
        u32 kinds = dice(++*k, 3) ? 3 : COUNT(parts);
        str_add(cell, parts[dice(++*k, kinds)]);
    }
    bool must = strpbrk(cell->s, ",\n\r\"") || cell->s[0] == ' ' || cell->s[cell->len - 1] == ' ';
    if (!must && dice(++*k, 4)) {
        str_add(text, cell->s);
        return;
    }
    str_add(text, "\"");
    for (const char *p = cell->s; *p; p++) {
        if (*p == '"') str_add(text, "\"");
        str_addn(text, p, 1);
    }
    str_add(text, "\"");
}

static void make_table(struct made *m, i64 bytes) {
    u64 k = 0;
    struct str cell = {0};
    i64 cap = bytes / 4;
    m->cell = mem_alloc((size_t)cap * MADE_COLS * sizeof *m->cell);
    str_add(&m->text, "p,q,r\n");
    while ((i64)m->text.len < bytes && m->rows < cap) {
        for (i32 c = 0; c < MADE_COLS; c++) {
            if (c) str_add(&m->text, ",");
            make_cell(&cell, &m->text, &k);
            m->cell[m->rows * MADE_COLS + c] = mem_strdup(cell.s);
        }
        str_add(&m->text, dice(++k, 5) ? "\n" : "\r\n");
        if (!dice(++k, 50)) str_add(&m->text, "\n");
        m->rows++;
    }
    str_free(&cell);
}

static void made_free(struct made *m) {
    for (i64 i = 0; i < m->rows * MADE_COLS; i++) mem_free(m->cell[i]);
    mem_free(m->cell);
    str_free(&m->text);
}

static void equals_made(const struct table *t, const struct made *m) {
    assert_int_equal(t->nrow, m->rows);
    assert_int_equal(t->ncol, MADE_COLS);
    for (i64 r = 0; r < t->nrow; r++)
        for (i32 c = 0; c < MADE_COLS; c++) {
            const struct column *col = &t->col[c];
            if (strcmp(col->word[col->code[r]], m->cell[r * MADE_COLS + c]) != 0)
                fail_msg("row %lld column %d: \"%s\", want \"%s\"", (long long)r, c, col->word[col->code[r]],
                         m->cell[r * MADE_COLS + c]);
        }
}

TEST(csv_generated_quotes_across_chunks_are_read_back_by_any_number_of_threads) {
    struct made m = {0};
    make_table(&m, 1400000);
    const char *path = t_file("made.csv", m.text.s);
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.na = "";
    o.cat = "p,q,r";
    struct table *first = NULL;
    for (i32 threads = 1; threads <= 4; threads++) {
        o.threads = threads;
        o.chunk = threads == 3 ? 777 : threads == 4 ? 64 : 0; /* splits everywhere, also inside quotes */
        struct table *t = read_with(path, &o);
        equals_made(t, &m);
        for (i32 c = 0; first && c < MADE_COLS; c++) { /* the same numbers for the same words, the same lines */
            assert_int_equal(t->col[c].nword, first->col[c].nword);
            assert_memory_equal(t->col[c].code, first->col[c].code, (size_t)t->nrow * sizeof(i32));
        }
        if (first) assert_memory_equal(t->line, first->line, (size_t)t->nrow * sizeof(i64));
        if (first) table_free(t);
        else first = t;
    }
    i64 line = 1, row = 0; /* the line of each row, counted by hand on the text */
    bool inside = false, fresh = true;
    for (const char *p = m.text.s; *p; p++) {
        if (fresh && *p != '\n' && !(*p == '\r' && p[1] == '\n')) {
            if (line > 1) assert_int_equal(first->line[row++], line);
            fresh = false;
        }
        if (*p == '"') inside = !inside;
        if (*p != '\n') continue;
        line++;
        if (!inside) fresh = true;
    }
    assert_int_equal(row, m.rows);
    table_free(first);
    made_free(&m);
}

TEST(csv_numbers_are_the_same_bits_for_any_number_of_threads) {
    struct str b = {0};
    str_add(&b, "a,b,c\n");
    for (u64 i = 0; i < 60000; i++)
        str_addf(&b, "%.17g,%.6f,%s\n", rng_normal(1, RNG_TEST, 1, i) * 1e5, rng_normal(1, RNG_TEST, 2, i),
                 i % 97 ? "3.25" : "NA");
    const char *path = t_file("n.csv", b.s);
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *one = read_with(path, &o);
    assert_int_equal(one->nrow, 60000);
    for (u64 i = 0; i < 60000; i += 7) assert_true(one->col[0].number[i] == rng_normal(1, RNG_TEST, 1, i) * 1e5);
    for (o.threads = 2; o.threads < 5; o.threads++) {
        struct table *t = read_with(path, &o);
        for (i32 c = 0; c < 3; c++) {
            assert_memory_equal(t->col[c].number, one->col[c].number, 60000 * sizeof(f64));
            assert_int_equal(t->col[c].missing, one->col[c].missing);
            assert_int_equal(t->col[c].first_missing_line, one->col[c].first_missing_line);
        }
        table_free(t);
    }
    table_free(one);
    str_free(&b);
}

/* Large plain files are read in one pass; anything unexpected found late falls back to the two passes. */
TEST(csv_large_file_with_a_late_surprise_is_read_all_the_same) {
    static const char *const surprise[] = {"5,plain\n", "5,\"quo\nted\"\n", "\n5,plain\n", "5,M\xC3\xBCller\n"};
    for (size_t k = 0; k < COUNT(surprise); k++) {
        struct str b = {0};
        str_add(&b, "a,w\n");
        for (i32 i = 0; i < 90000; i++) str_addf(&b, "%d.123456789012345,word%d\n", i, i % 7);
        str_add(&b, surprise[k]);
        for (i32 i = 0; i < 300000; i++) str_add(&b, "1,x\n"); /* more rows than estimated from samples */
        struct read_options o = READ_OPTIONS_DEFAULT;
        const char *path = t_file("late.csv", b.s);
        for (o.threads = 1; o.threads < 4; o.threads++) {
            struct table *t = read_with(path, &o);
            assert_int_equal(t->nrow, 390001);
            assert_true(t->col[0].number[89999] == 89999.123456789012345 && t->col[0].number[90000] == 5 &&
                        t->col[0].number[390000] == 1);
            assert_int_equal(t->col[1].nword, 9);
            assert_string_equal(t->col[1].word[8], "x");
            assert_int_equal(table_line(t, 390000), 390002 + (k == 1 || k == 2));
            table_free(t);
        }
        str_free(&b);
    }
}

TEST(csv_generated_files_mean_the_same_to_python) {
    if (system("python3 -c 'import csv' 2>/dev/null") != 0) {
        print_message("skipped: python3 is not here\n");
        skip();
    }
    struct made m = {0};
    make_table(&m, 200000);
    char path[300], command[1200];
    snprintf(path, sizeof path, "%s", t_file("py.csv", m.text.s));
    snprintf(command, sizeof command,
             "python3 -c \"import csv,sys; rows=[r for r in csv.reader(open(sys.argv[1],newline='',encoding='utf-8')) if r]; "
             "open(sys.argv[1]+'.out','wb').write(b''.join(c.encode()+bytes(1) for r in rows[1:] for c in r))\" '%s'", path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s.out", path);
    FILE *f = fopen(command, "rb");
    assert_non_null(f);
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.na = "";
    o.cat = "p,q,r";
    struct table *t = read_with(path, &o);
    char word[4096];
    for (i64 r = 0; r < t->nrow; r++)
        for (i32 c = 0; c < MADE_COLS; c++) {
            size_t n = 0;
            for (int b; (b = fgetc(f)) > 0;) word[n++] = (char)b;
            word[n] = 0;
            assert_string_equal(t->col[c].word[t->col[c].code[r]], word);
        }
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    table_free(t);
    made_free(&m);
}

TEST(csv_shared_files_have_their_known_shapes) {
    static const struct {
        const char *file;
        i64 rows;
        i32 cols;
        bool header;
    } files[] = {{"data/ett/ETTh1.csv", 17420, 8, true},
                 {"data/bike_sharing/hour.csv", 17379, 17, true},
                 {"data/beijing_pm25/pollution.csv", 43824, 13, true},
                 {"data/ili/ILINet.csv", 1301, 12, true},
                 {"data/ercot/ercot_multiple_ts.csv", 8000, 3, true},
                 {"data/exchange_rate/exchange_rate.txt.gz", 7588, 8, false},
                 {"data/tabular/letter-recognition.data", 20000, 17, true},
                 {"data/tabular/iris.csv", 150, 5, false},
                 {"data/tabular/wine.csv", 178, 14, false},
                 {"data/tabular/phoneme.csv", 5404, 6, false},
                 {"data/tabular/winequality-white.csv", 4898, 12, false}};
    struct read_options o = READ_OPTIONS_DEFAULT;
    for (size_t i = 0; i < COUNT(files); i++) {
        struct table *t = read_with(t_shared(files[i].file), &o);
        if (t->nrow != files[i].rows || t->ncol != files[i].cols || t->has_header != files[i].header)
            fail_msg("%s: %lld x %d, header %d", files[i].file, (long long)t->nrow, t->ncol, t->has_header);
        table_free(t);
    }
    struct table *ili = read_with(t_shared("data/ili/ILINet.csv"), &o);
    assert_int_equal(ili->col[table_find(ili, "AGE 25-49")].missing, 529);
    assert_int_equal(ili->col[table_find(ili, "AGE 50-64")].missing, 529);
    assert_int_equal(ili->col[table_find(ili, "AGE 25-64")].missing, 677);
    table_free(ili);
}

T_MAIN(cmocka_unit_test(csv_plain_table_has_names_types_and_lines),
       cmocka_unit_test(csv_byte_order_mark_crlf_and_spaces_are_no_content),
       cmocka_unit_test(csv_separators_and_decimal_comma_are_found), cmocka_unit_test(csv_header_is_found_or_missed),
       cmocka_unit_test(csv_utf16_is_read_as_utf8),
       cmocka_unit_test(csv_groups_of_digits_are_codes_where_they_are_no_thousands),
       cmocka_unit_test(csv_marks_between_thousands_are_known_where_the_file_tells),
       cmocka_unit_test(csv_month_words_are_times_below_a_header_and_names_in_it),
       cmocka_unit_test(csv_quotes_follow_rfc_4180),
       cmocka_unit_test(csv_last_line_needs_no_line_feed_and_blank_lines_are_no_rows),
       cmocka_unit_test(csv_missing_words_may_be_numbers), cmocka_unit_test(csv_roles_change_types),
       cmocka_unit_test(csv_late_words_make_a_text_column), cmocka_unit_test(csv_packed_files_equal_the_plain_one),
       cmocka_unit_test(csv_generated_quotes_across_chunks_are_read_back_by_any_number_of_threads),
       cmocka_unit_test(csv_numbers_are_the_same_bits_for_any_number_of_threads),
       cmocka_unit_test(csv_large_file_with_a_late_surprise_is_read_all_the_same),
       cmocka_unit_test(csv_generated_files_mean_the_same_to_python),
       cmocka_unit_test(csv_shared_files_have_their_known_shapes))
