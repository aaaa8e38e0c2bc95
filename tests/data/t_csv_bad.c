/* t_csv_bad.c - unreadable files: code, place, count and fix of each error. */
#define _GNU_SOURCE
#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/table.h"

static const struct err_record *refused(const char *path, const struct read_options *o, int code) {
    struct table *t;
    i64 before = mem_stats().live;
    T_FAILS(table_read(path, o, &t), code);
    assert_null(t);
    assert_int_equal(mem_stats().live, before); /* no leak */
    return err_last();
}

static const struct err_record *refused_text(const char *text, int code) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    return refused(t_file("bad.csv", text), &o, code);
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    if (n < m || strcmp(text + n - m, end) != 0) fail_msg("\"%s\" does not end with \"%s\"", text, end);
}

TEST(bad_ragged_row_names_line_fields_and_the_comma) {
    struct str b = {0};
    str_add(&b, "unique_id,timestamp,value\n");
    for (i32 i = 0; i < 8000; i++)
        str_addf(&b, "NORTH_C,2021-07-%02d %02d:00:00,%s\n", 1 + i / 24 % 28, i % 24, i == 4125 ? "22991,67" : "22991.67");
    struct read_options o = READ_OPTIONS_DEFAULT;
    for (o.threads = 1; o.threads < 4; o.threads++) {
        const struct err_record *r = refused(t_file("load.csv", b.s), &o, 203);
        ends_with(r->where, "load.csv:4127");
        has(r->text, "4 fields, the header has 3: NORTH_C | 2021-07-");
        has(r->text, " | 22991 | 67\na decimal comma? 1 such line in 8001");
        has(r->fix, "repair line 4127");
    }
    str_free(&b);
    const struct err_record *r = refused_text("a,b\n1,2\n3\n4,5\n6\n", 203);
    has(r->text, "1 field, the header has 2: 3\n2 such lines in 5");
    has(r->fix, "3, 5");
}

TEST(bad_number_names_cell_and_count) {
    const struct err_record *r = refused_text("a,b\n1,2\nx7,3\n4,5\n6,7\nx8,9\n1,1\n", 204);
    ends_with(r->where, "bad.csv:3:1");
    has(r->text, "\"x7\" in column \"a\" is not a number\n2 such cells: lines 3, 6");
    has(r->fix, "--na x7 ");
    has(r->fix, "--ignore a");
    r = refused_text("a,b\n1,2\n\"$(rm x), 1\",3\n4,5\n6,7\n8,9\n1,1\n", 204);
    has(r->fix, "--na '$(rm x)\\, 1' "); /* pasting the fix must not execute text of the file */
}

TEST(bad_message_is_the_same_for_any_number_of_threads) {
    struct str b = {0};
    str_add(&b, "a,b,c\n");
    for (i32 i = 0; i < 4000; i++)
        str_addf(&b, "%s,%s,%d%s\n", i % 3 ? "1" : "bad", i % 7 ? "2" : "worse", i, i % 500 == 499 ? ",xx" : "");
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.chunk = 300;
    char text[1024], fix[768];
    for (i32 kind = 0; kind < 2; kind++) { /* ragged rows behind many bad cells; then bad cells alone */
        for (o.threads = 1; o.threads < 5; o.threads++) {
            const struct err_record *r = refused(t_file("many.csv", b.s), &o, kind ? 204 : 203);
            if (o.threads > 1) assert_string_equal(r->text, text);
            if (o.threads > 1) assert_string_equal(r->fix, fix);
            snprintf(text, sizeof text, "%s", r->text);
            snprintf(fix, sizeof fix, "%s", r->fix);
        }
        for (char *p = b.s; (p = strstr(p, ",xx"));) memset(p, ' ', 3);
    }
    str_free(&b);
}

TEST(bad_time_names_cell_and_format) {
    const struct err_record *r = refused_text("t,b\n2011-01-01,2\n2011-01-02,2\n2011-02-30,3\n", 205);
    ends_with(r->where, "bad.csv:4:1");
    has(r->text, "\"2011-02-30\" in time column \"t\"");
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.time = "t";
    r = refused(t_file("time.csv", "t,b\n1-01,2\n1-02,3\n"), &o, 205);
    ends_with(r->where, "time.csv:2:1");
    has(r->text, "\"1-01\" in time column \"t\"");
    has(r->fix, "--time-format row");
    r = refused(t_file("time.csv", "t,b\n01/02/2011,2\n02/02/2011,3\n"), &o, 205);
    has(r->text, "day or month first?");
    has(r->fix, "%d/%m/%Y");
    struct str b = {0};
    str_add(&b, "t,b\n");
    for (i32 i = 0; i < 1500; i++) str_addf(&b, "%s,%d\n", i == 1400 ? "" : i == 1300 ? "2011-02-30" : "2011-02-03", i);
    r = refused(t_file("time.csv", b.s), &o, 205);
    ends_with(r->where, "time.csv:1302:1");
    has(r->text, "2 such cells: lines 1302, 1402");
    str_free(&b);
}

TEST(bad_empty_and_header_only_files) {
    has(refused_text("", 201)->text, "empty");
    has(refused_text("\n\n\r\n", 201)->text, "empty");
    has(refused_text("a,b\n", 201)->text, "header only");
    has(refused_text("a,b", 201)->text, "header only");
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.header = 1;
    has(refused(t_file("h.csv", "1,2\n"), &o, 201)->text, "header only");
}

static const char *binary(const char *bytes, size_t n) {
    static char path[300];
    snprintf(path, sizeof path, "%s/binary.csv", t_dir());
    T_OK(file_write_all(path, bytes, (i64)n));
    return path;
}

TEST(bad_utf16_is_told_with_its_line) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    static const struct {
        const char *bytes;
        size_t n;
        const char *text, *where;
    } cases[] = {{"\xFF\xFE" "a\0\n\0" "1\0\n\0" "2", 11, "ends within a character", ":3"},
                 {"\xFF\xFE" "a\0\n\0" "\x3D\xD8\n\0", 10, "half a pair", ":2"},      /* the first half alone */
                 {"\xFE\xFF" "\0a\0\n" "\xDE\0\0\n", 10, "half a pair", ":2"},        /* the second */
                 {"\xFF\xFE" "a\0\n\0" "\x3D\xD8", 8, "half a pair", ":2"},             /* and the end */
                 {"\xFF\xFE" "a\0\n\0" "1\0\0\0\n\0", 12, "binary", ""},
                 {"\xFF\xFE" "a\0,\0b\0\n\0" "1\0\n\0", 14, "1 field", ":2"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const i32 code = strstr(cases[i].text, "field") ? 203 : 202;
        const struct err_record *r = refused(binary(cases[i].bytes, cases[i].n), &o, code);
        has(r->text, cases[i].text);
        ends_with(r->where, cases[i].where);
    }
    refused(binary("\xFF\xFE", 2), &o, 201);
}

TEST(bad_bytes_are_no_text_table) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    has(refused(binary("a\0,\0b\0\n\0" "1\0,\0" "2\0\n\0", 16), &o, 202)->fix, "UTF-16LE");
    has(refused(binary("\0a\0,\0b\0\n\0" "1\0,\0" "2\0\n", 16), &o, 202)->fix, "UTF-16BE");
    has(refused(binary("PAR1xxxxxxx", 11), &o, 202)->text, "Parquet");
    has(refused(binary("a,b\n1,\0\n2,3\n", 12), &o, 202)->text, "binary");
    has(refused(binary("a,b\r1,2\r3,4\r", 12), &o, 202)->fix, "tr ");
    const struct err_record *r = refused(binary("name,b\nx,1\nM\xFCller,2\n", 20), &o, 202);
    ends_with(r->where, ":3");
    has(r->text, "byte 0xFC (the 2. of the line) is not UTF-8");
    has(r->fix, "iconv -f LATIN1");
    char empty[300];
    snprintf(empty, sizeof empty, "%s/empty", t_dir());
    assert_int_equal(mkdir(empty, 0700), 0);
    has(refused(empty, &o, 202)->text, "directory");
    has(refused("/no/such/file.csv", &o, 701)->text, "cannot read");
    char zeros[600];
    memset(zeros, 'x', sizeof zeros);
    struct str b = {0};
    str_add(&b, "a\n");
    for (i32 i = 0; i < 3000; i++) str_addn(&b, "12345678901234567890123456789012345678901234567890\n", 51);
    for (i32 i = 0; i < 30000; i++) str_addn(&b, "12345678901234567890123456789012345678901234567890\n", 51);
    b.s[1400000] = 0; /* beyond the head */
    has(refused(binary(b.s, b.len), &o, 202)->text, "zero byte");
    str_free(&b);
}

TEST(bad_quote_that_never_ends) {
    const struct err_record *r = refused_text("a,b\n1,x\n2,\"y\n3,z\n", 206);
    ends_with(r->where, "bad.csv:3");
    struct str b = {0};
    str_add(&b, "a,b\n");
    for (i32 i = 0; i < 100000; i++) str_addf(&b, i == 77 ? "%d,\"open\n" : "%d,closed and long enough\n", i);
    struct read_options o = READ_OPTIONS_DEFAULT;
    for (o.threads = 1; o.threads < 4; o.threads++) ends_with(refused(t_file("open.csv", b.s), &o, 206)->where, "open.csv:79");
    str_free(&b);
}

TEST(bad_file_that_shrinks_is_noticed) {
    struct file_in f;
    const char *path = t_file("shrink.csv", "a,b\n1,2\n3,4\n5,6\n");
    char buf[32];
    T_OK(file_open(path, &f));
    assert_int_equal(truncate(path, 6), 0);
    T_FAILS(file_read_at(&f, 0, buf, f.size), 213);
    has(err_last()->text, "had 16 bytes");
    file_close(&f);
}

TEST(bad_unknown_columns_in_flags) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.time = "dat";
    const struct err_record *r = refused(t_file("c.csv", "date,OT\n2011-01-01,1\n"), &o, 102);
    has(r->text, "has no column \"dat\" (given by --time)\ncolumns: date, OT   did you mean \"date\"?");
}

TEST(bad_memory_at_any_allocation_is_an_error) {
    struct str b = {0};
    str_add(&b, "t,x,w,q\n");
    for (i32 i = 0; i < 300; i++) str_addf(&b, "2011-01-%02d,%d,w%d,\"a\"\"%d\"\n", i % 28 + 1, i, i, i % 90);
    const char *path = t_file("mem.csv", b.s);
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.threads = 2;
    bool done = false;
    i64 before = mem_stats().live;
    for (i64 n = 1; !done && n < 2000; n++) {
        struct table *t;
        mem_fail_nth(n);
        err e = table_read(path, &o, &t);
        done = e >= 0;
        mem_fail_nth(0);
        if (e < 0) assert_int_equal(e, -601);
        table_free(t);
        assert_int_equal(mem_stats().live, before);
    }
    assert_true(done);
    str_free(&b);
}

T_MAIN(cmocka_unit_test(bad_ragged_row_names_line_fields_and_the_comma), cmocka_unit_test(bad_number_names_cell_and_count),
       cmocka_unit_test(bad_message_is_the_same_for_any_number_of_threads),
       cmocka_unit_test(bad_time_names_cell_and_format), cmocka_unit_test(bad_empty_and_header_only_files),
       cmocka_unit_test(bad_utf16_is_told_with_its_line),
       cmocka_unit_test(bad_bytes_are_no_text_table), cmocka_unit_test(bad_quote_that_never_ends),
       cmocka_unit_test(bad_file_that_shrinks_is_noticed), cmocka_unit_test(bad_unknown_columns_in_flags),
       cmocka_unit_test(bad_memory_at_any_allocation_is_an_error))
