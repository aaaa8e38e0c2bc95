/* t_cache.c - table cache files; sample series. */
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/sample.h"
#include "data/series_build.h"
#include "data/table.h"

static const char text[] = "time,x,kind,note\n2011-01-01,1.5,a,\"two\nlines\"\n2011-01-02,NA,b,q\n2011-01-03,7,,q\n";

static char *cache_path(void) {
    static char path[300];
    snprintf(path, sizeof path, "%s/a.bin", t_dir());
    return path;
}

static void write_cache(void) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    T_OK(table_read(t_file("a.csv", text), &o, &t));
    T_OK(table_write_cache(t, cache_path()));
    table_free(t);
}

TEST(cache_gives_back_the_table) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *a, *b;
    write_cache();
    i64 before = mem_stats().live;
    T_OK(table_read(t_file("a.csv", text), &o, &a));
    T_OK(table_read(cache_path(), &o, &b));
    assert_int_equal(a->nrow, b->nrow);
    assert_int_equal(a->ncol, b->ncol);
    for (i32 c = 0; c < a->ncol; c++) {
        assert_string_equal(a->col[c].name, b->col[c].name);
        assert_int_equal(a->col[c].type, b->col[c].type);
        assert_int_equal(a->col[c].missing, b->col[c].missing);
        assert_int_equal(a->col[c].field, b->col[c].field);
        for (i64 i = 0; i < a->nrow; i++) {
            assert_int_equal(table_line(a, i), table_line(b, i));
            if (a->col[c].code) assert_int_equal(a->col[c].code[i], b->col[c].code[i]);
            if (a->col[c].time) assert_int_equal(a->col[c].time[i], b->col[c].time[i]);
            if (a->col[c].number) assert_memory_equal(&a->col[c].number[i], &b->col[c].number[i], sizeof(f64));
        }
    }
    assert_string_equal(b->col[3].word[0], "two\nlines");
    table_free(a);
    table_free(b);
    assert_int_equal(mem_stats().live, before);
}

TEST(cache_damaged_anywhere_is_refused) {
    write_cache();
    char *bytes;
    i64 n;
    struct read_options o = READ_OPTIONS_DEFAULT;
    T_OK(file_load(cache_path(), 1 << 20, &bytes, &n));
    char path[300];
    snprintf(path, sizeof path, "%s/b.bin", t_dir());
    i64 before = mem_stats().live;
    for (i64 cut = 20; cut < n; cut += 61) {
        struct table *t;
        T_OK(file_write_all(path, bytes, cut));
        assert_true(table_read(path, &o, &t) < 0);
    }
    i64 padding = 0;
    for (i64 at = 8; at < n; at += 7) {
        struct table *t;
        bytes[at] ^= 0x21;
        T_OK(file_write_all(path, bytes, n));
        if (table_read(path, &o, &t) >=
            0) { /* a harmless place: a name, the padding of the last column, a number of the header */
            padding++;
            table_free(t);
        }
        bytes[at] ^= 0x21;
    }
    assert_in_range(padding, 0, n / 7 / 2);
    mem_free(bytes);
    assert_true(mem_stats().live <= before);
}

/* One blank more in the header: all of it fits, and no column begins where its numbers can be read. */
TEST(cache_columns_out_of_line_are_refused) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    char *bytes, moved[8192];
    i64 n;
    u64 head;
    write_cache();
    T_OK(file_load(cache_path(), sizeof moved - 1, &bytes, &n));
    memcpy(&head, bytes + 8, sizeof head);
    memcpy(moved, bytes, (size_t)(16 + head));
    moved[16 + head] = ' ';
    memcpy(moved + 17 + head, bytes + 16 + head, (size_t)n - 16 - head);
    head++;
    memcpy(moved + 8, &head, sizeof head);
    T_OK(file_write_all(cache_path(), moved, n + 1));
    T_FAILS(table_read(cache_path(), &o, &t), 202);
    mem_free(bytes);
}

TEST(samples_are_reproducible_and_readable) {
    static const char *const names[] = {"airline", "tides", "mackey-glass", "panel", "integrator", "long-memory"};
    for (size_t i = 0; i < COUNT(names); i++) {
        struct str a = {0}, b = {0}, c = {0};
        T_OK(sample_write(names[i], 0, 1, &a));
        T_OK(sample_write(names[i], 0, 1, &b));
        T_OK(sample_write(names[i], 0, 2, &c));
        assert_string_equal(a.s, b.s);
        if (i) assert_string_not_equal(a.s, c.s);
        struct read_options o = READ_OPTIONS_DEFAULT;
        struct table *t;
        T_OK(table_read(t_file("sample.csv", a.s), &o, &t));
        for (i32 k = 0; k < t->ncol; k++) assert_int_equal(t->col[k].missing, 0);
        assert_non_null(strstr(sample_list(), names[i]));
        table_free(t);
        str_free(&a);
        str_free(&b);
        str_free(&c);
    }
    struct str a = {0};
    T_FAILS(sample_write("tide", 0, 1, &a), 103);
    assert_non_null(strstr(err_last()->fix, "stretto sample tides"));
    str_free(&a);
}

TEST(sample_airline_is_the_textbook_series) {
    const char *path = t_shared("data/univariate/airline-passengers.csv");
    struct str a = {0};
    char *bytes;
    i64 n;
    T_OK(sample_write("airline", 0, 1, &a));
    T_OK(file_load(path, 1 << 20, &bytes, &n));
    char *p = bytes, *q = bytes; /* the shared file has quotes */
    for (; *p; p++)
        if (*p != '"' && *p != '\r') *q++ = *p;
    *q = 0;
    if (q > bytes && q[-1] != '\n') a.s[--a.len] = 0;
    assert_string_equal(a.s, bytes);
    mem_free(bytes);
    str_free(&a);
}

T_MAIN(cmocka_unit_test(cache_gives_back_the_table), cmocka_unit_test(cache_damaged_anywhere_is_refused),
       cmocka_unit_test(cache_columns_out_of_line_are_refused),
       cmocka_unit_test(samples_are_reproducible_and_readable), cmocka_unit_test(sample_airline_is_the_textbook_series))
