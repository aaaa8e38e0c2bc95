/* t_check.c - the findings of `stretto check`. */
#include "t.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/check.h"

static void check(const char *path, struct series_options so, struct findings *f) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    o.time = so.time;
    T_OK(table_read(path, &o, &t));
    T_OK(check_table(t, &so, f, NULL));
    table_free(t);
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

TEST(check_bike_finds_gaps_leak_and_suspicious_cells) {
    struct findings f;
    i64 before = mem_stats().live;
    check(t_shared("data/bike_sharing/hour.csv"), (struct series_options){.time = "dteday,hr", .target = "cnt"}, &f);
    assert_int_equal(f.n, 3);
    assert_int_equal(f.item[0].r.code, 210);
    assert_false(f.item[0].warning);
    assert_int_equal(f.item[1].r.code, 34);
    assert_true(f.item[1].warning);
    assert_string_equal(f.item[1].r.text,
                        "casual + registered = cnt in 17379 of 17379 rows: as inputs of the same hour they leak the target");
    assert_string_equal(f.item[1].r.fix, "--past casual,registered   or   --ignore casual,registered");
    assert_int_equal(f.item[2].r.code, 31);
    has(f.item[2].r.text, "hum: 22 cells of exactly 0, all rows of 2011-03-10 (lines 1553-1574)");
    has(f.item[2].r.text, "atemp: 0.2424 in all 24 rows of 2012-08-17");
    assert_int_equal(mem_stats().live, before);
    check(t_shared("data/bike_sharing/hour.csv"),
          (struct series_options){.time = "dteday,hr", .target = "cnt", .past = "casual,registered", .gaps = "mask"}, &f);
    for (i32 i = 0; i < f.n; i++) assert_int_not_equal(f.item[i].r.code, 34);
}

TEST(check_collects_several_errors) {
    struct findings f;
    check(t_file("m.csv", "t,y,z,copy\n2011-01-01,1,NA,1\n2011-01-02,2,1,2\n2011-01-04,inf,1,inf\n2011-01-05,4,1,4\n"),
          (struct series_options){.target = "y,z"}, &f);
    i32 codes[4] = {0};
    for (i32 i = 0; i < f.n && i < 4; i++) codes[i] = f.item[i].r.code;
    assert_int_equal(codes[0], 210);
    assert_int_equal(codes[1], 208);
    assert_int_equal(codes[2], 207);
    assert_int_equal(codes[3], 212);
}

TEST(check_says_which_numbers_can_be_read_in_two_ways) {
    struct findings f;
    check(t_file("w.csv", "t,y\n2011-01-01,1.021\n2011-01-02,12.480\n2011-01-03,2.110\n"), (struct series_options){0}, &f);
    assert_int_equal(f.n, 1);
    assert_true(f.item[0].warning && f.item[0].r.code == 35);
    has(f.item[0].r.text, "column \"y\": 1.021 is read as a fraction, and could be a number in the thousands");
    has(f.item[0].r.fix, "--decimal comma");
}

TEST(check_clean_file_has_no_findings) {
    struct findings f;
    check(t_shared("data/univariate/airline-passengers.csv"), (struct series_options){0}, &f);
    assert_int_equal(f.n, 0);
    struct series *s = NULL;
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    struct series_options so = {0};
    T_OK(table_read(t_shared("data/univariate/airline-passengers.csv"), &o, &t));
    T_OK(check_table(t, &so, &f, &s));
    assert_non_null(s);
    series_free(s);
    table_free(t);
}

TEST(check_finds_equal_columns_and_differences) {
    struct findings f;
    char text[4000] = "y,same,a,b\n", row[80];
    for (i32 i = 0; i < 50; i++) {
        snprintf(row, sizeof row, "%d,%d,%d,%d\n", i * i % 17 + i, i * i % 17 + i, i * i % 17 + 3 * i, 2 * i);
        strcat(text, row);
    }
    check(t_file("d.csv", text), (struct series_options){.target = "y"}, &f);
    assert_int_equal(f.n, 2);
    has(f.item[0].r.text, "same = y in 50 of 50 rows: as input of the same row it leaks the target");
    has(f.item[1].r.text, "a - b = y in 50 of 50 rows");
}

TEST(check_advice_names_columns_as_lists_read_them) {
    struct findings f;
    char text[4000] = "y,\"one, two\",\"it's\",b\n", row[80];
    for (i32 i = 0; i < 50; i++) {
        snprintf(row, sizeof row, "%d,%d,%d,%d\n", i * i % 17 + i, i * i % 17 + i, i * i % 17 + 3 * i, 2 * i);
        strcat(text, row);
    }
    check(t_file("e.csv", text), (struct series_options){.target = "y"}, &f);
    assert_int_equal(f.n, 2);
    assert_string_equal(f.item[0].r.text, "one, two = y in 50 of 50 rows: as input of the same row it leaks the target");
    assert_string_equal(f.item[0].r.fix, "--past 'one\\, two'   or   --ignore 'one\\, two'");
    has(f.item[1].r.text, "it's - b = y in 50 of 50 rows: as inputs of the same row they leak the target");
    assert_string_equal(f.item[1].r.fix, "--past 'it'\\''s,b'   or   --ignore 'it'\\''s,b'");
    check(t_file("e.csv", text), (struct series_options){.target = "y", .past = "one\\, two,it's,b"}, &f);
    assert_int_equal(f.n, 0);
}

T_MAIN(cmocka_unit_test(check_bike_finds_gaps_leak_and_suspicious_cells), cmocka_unit_test(check_collects_several_errors),
       cmocka_unit_test(check_clean_file_has_no_findings),
       cmocka_unit_test(check_says_which_numbers_can_be_read_in_two_ways),
       cmocka_unit_test(check_finds_equal_columns_and_differences),
       cmocka_unit_test(check_advice_names_columns_as_lists_read_them))
