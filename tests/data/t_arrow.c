/* t_arrow.c - Arrow tables: the seeds of the fuzzer (made with pyarrow) against the same rows as CSV text, parts of one table,
 * and files that are cut off or changed in any byte. */
#include "tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/flat.h"
#include "data/table.h"

static struct table *read_seed(const char *name, const struct read_options *o) { return table_of_seed("arrow", name, o); }

TEST(arrow_table_is_the_csv_table) {
    static const char *const names[] = {"plain.arrows", "zstd.arrows", "file.arrow", NULL};
    seeds_are_the_csv_table("arrow", names);
}

TEST(arrow_dates_are_days) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t = read_seed("plain.arrows", &o);
    assert_int_equal(t->col[8].type, COL_TIME);
    assert_int_equal(t->col[8].time[2], t->col[0].time[2]);
    table_free(t);
}

TEST(arrow_numbers_as_categories_and_missing_numbers) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.cat = "big,d,b";
    o.more_na = "-9,a";
    struct table *t = read_seed("plain.arrows", &o);
    assert_int_equal(t->col[2].missing, 2);
    assert_int_equal(t->col[7].nword, 1);
    assert_string_equal(t->col[3].word[1], "9223372036854775808");
    assert_string_equal(t->col[6].word[1], "12345678901234567890.50");
    assert_string_equal(t->col[5].word[1], "false");
    table_free(t);
}

TEST(arrow_text_holds_times_and_dictionaries_words) {
    static const char text[] = "ds,w,l\n2011-01-01 00:00+01:00,b,x\n2011-01-01 01:00+01:00,NA,y\n2011-01-01 02:00+01:00,a,\n";
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t = read_seed("words.arrows", &o), *csv;
    T_OK(table_read(t_file("words.csv", text), &o, &csv));
    same_files(t, csv);
    table_free(t);
    table_free(csv);
    o.time_format = "row";
    t = read_seed("words.arrows", &o);
    assert_int_equal(t->col[0].type, COL_CATEGORY);
    table_free(t);
}

TEST(arrow_nested_columns_are_left_out_by_ignore_alone) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    i64 n;
    char *bytes = table_seed("arrow", "nested.arrows", &n);
    T_FAILS(table_read(table_put("nested.arrows", bytes, n), &o, &t), 214);
    assert_non_null(strstr(err_last()->text, "\"v\" is a list"));
    assert_string_equal(err_last()->fix, "--ignore v   or   write it as numbers, text or timestamps");
    mem_free(bytes);
    o.ignore = "v,s";
    t = read_seed("nested.arrows", &o);
    assert_int_equal(t->ncol, 3);
    assert_true(t->col[0].number[2] == 3);
    assert_int_equal(t->col[1].missing, 3);
    assert_int_equal(t->col[2].zone, 7200);
    table_free(t);
}

TEST(arrow_views_are_refused_with_a_remedy) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    i64 n;
    char *bytes = table_seed("arrow", "view.arrows", &n);
    T_FAILS(table_read(table_put("view.arrows", bytes, n), &o, &t), 214);
    assert_non_null(strstr(err_last()->text, "\"w\" is a text view"));
    mem_free(bytes);
}

TEST(arrow_lz4_is_refused_with_a_remedy) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    i64 n;
    char *bytes = table_seed("arrow", "lz4.arrows", &n);
    T_FAILS(table_read(table_put("lz4.arrows", bytes, n), &o, &t), 202);
    assert_non_null(strstr(err_last()->text, "LZ4"));
    assert_non_null(strstr(err_last()->fix, "zstd"));
    mem_free(bytes);
}

/* A folder of two equal parts: twice the rows, and places in the second part. */
TEST(arrow_parts_of_a_folder_are_one_table) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    char dir[300], where[256];
    struct table *t, *one = read_seed("plain.arrows", &o);
    i64 n;
    char *bytes = table_seed("arrow", "plain.arrows", &n);
    snprintf(dir, sizeof dir, "%s/parts", t_dir());
    assert_int_equal(mkdir(dir, 0700), 0);
    table_put("parts/part-00001.arrows", bytes, n);
    table_put("parts/part-00000.arrows", bytes, n);
    table_put("parts/_SUCCESS", "", 0);
    T_OK(table_read(dir, &o, &t));
    assert_int_equal(t->nrow, 2 * one->nrow);
    assert_int_equal(t->col[7].code[5], t->col[7].code[2]);
    table_where(t, 4, &t->col[1], where);
    assert_non_null(strstr(where, "part-00001.arrows:2:2"));
    table_where(t, 2, NULL, where);
    assert_non_null(strstr(where, "part-00000.arrows:3"));
    table_free(t);
    mem_free(bytes);
    bytes = table_seed("arrow", "words.arrows", &n);
    table_put("parts/part-00001.arrows", bytes, n);
    T_FAILS(table_read(dir, &o, &t), 202);
    assert_non_null(strstr(err_last()->text, "3 columns, but"));
    table_put("parts/part-00001.arrows", "", 0);
    T_FAILS(table_read(dir, &o, &t), 202);
    mem_free(bytes);
    table_free(one);
}

static void must_end(const char *path, const struct read_options *o, i64 before) {
    struct table *t;
    err_clear();
    const err e = table_read(path, o, &t);
    if (e < 0) assert_true(err_last()->text[0] != 0);
    table_free(t);
    assert_int_equal(mem_stats().live, before);
}

/* Every prefix, and every byte changed: a table, or one error; no memory is lost. */
TEST(arrow_damage_ends_in_one_error) {
    static const char *const names[] = {"plain.arrows", "zstd.arrows", "words.arrows", "nested.arrows"};
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.ignore = "v,s";
    for (size_t k = 0; k < COUNT(names); k++) {
        i64 n;
        char *bytes = table_seed("arrow", names[k], &n);
        const i64 before = mem_stats().live, step = t_few() ? 37 : 3;
        o.ignore = k == 3 ? "v,s" : NULL;
        for (i64 i = 0; i < n; i += step) must_end(table_put("cut.arrows", bytes, i), &o, before);
        for (i64 i = 8; i < n; i += step) {
            bytes[i] = (char)(bytes[i] ^ 0x81);
            must_end(table_put("changed.arrows", bytes, n), &o, before);
            bytes[i] = (char)(bytes[i] ^ 0x81);
        }
        mem_free(bytes);
    }
}

TEST(arrow_empty_and_cut_files_say_so) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    i64 n;
    char *bytes = table_seed("arrow", "plain.arrows", &n);
    T_FAILS(table_read(table_put("cut.arrows", bytes, n - 300), &o, &t), 202);
    assert_non_null(strstr(err_last()->text, "cut off"));
    o.rows = true;
    T_FAILS(table_read(table_put("whole.arrows", bytes, n), &o, &t), 106);
    mem_free(bytes);
}

TEST(arrow_refused_memory_is_said_and_given_back) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    i64 n;
    char *bytes = table_seed("arrow", "words.arrows", &n);
    const char *path = table_put("words.arrows", bytes, n);
    const i64 before = mem_stats().live;
    i32 failed = 0;
    for (err e = -E601; e < 0; failed++) {
        struct table *t;
        mem_fail_nth(failed + 1);
        e = table_read(path, &o, &t);
        mem_fail_nth(0);
        table_free(t);
        assert_true(e == 0 || e == -E601);
        assert_int_equal(mem_stats().live, before);
    }
    assert_true(failed > 10);
    mem_free(bytes);
}

TEST(flat_refuses_offsets_outside) {
    static const u8 bytes[] = {12, 0, 0, 0, 6, 0, 8, 0, 4, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0}; /* root, vtable at 4, table at 12 */
    struct flat f = {bytes, sizeof bytes, false};
    struct flat_table t, child;
    i64 at, n;
    assert_true(flat_root(&f, &t));
    assert_int_equal(flat_number(&t, 0, 4, 7), 1);
    assert_int_equal(flat_number(&t, 1, 4, 7), 7);
    assert_false(flat_child(&t, 3, &child));
    assert_false(flat_vector(&t, 1, 4, &at, &n));
    assert_false(f.bad);
    assert_int_equal(flat_number(&t, 0, 8, 7), 7); /* longer than the table */
    assert_true(f.bad);
    f = (struct flat){bytes, 18, false};
    assert_false(flat_root(&f, &t));
    assert_true(f.bad);
}

T_MAIN(cmocka_unit_test(arrow_table_is_the_csv_table), cmocka_unit_test(arrow_dates_are_days),
       cmocka_unit_test(arrow_numbers_as_categories_and_missing_numbers),
       cmocka_unit_test(arrow_text_holds_times_and_dictionaries_words),
       cmocka_unit_test(arrow_nested_columns_are_left_out_by_ignore_alone), cmocka_unit_test(arrow_lz4_is_refused_with_a_remedy),
       cmocka_unit_test(arrow_views_are_refused_with_a_remedy),
       cmocka_unit_test(arrow_parts_of_a_folder_are_one_table), cmocka_unit_test(arrow_damage_ends_in_one_error),
       cmocka_unit_test(arrow_empty_and_cut_files_say_so),
       cmocka_unit_test(arrow_refused_memory_is_said_and_given_back), cmocka_unit_test(flat_refuses_offsets_outside))
