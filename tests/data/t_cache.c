/* t_cache.c - table cache files; sample series. */
#define _GNU_SOURCE /* memmem */
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

/* Bytes of the file, with room for a few more; the caller frees them. */
static char *load_cache(i64 *n) {
    char *bytes, *copy;
    T_OK(file_load(cache_path(), 1 << 20, &bytes, n));
    copy = mem_alloc((size_t)*n + 64);
    memcpy(copy, bytes, (size_t)*n);
    mem_free(bytes);
    return copy;
}

/* As file_write_all, without the sync to the disk. */
static void put_file(const char *path, const char *bytes, i64 n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, (size_t)n, f), n);
    assert_int_equal(fclose(f), 0);
}

TEST(cache_says_that_its_source_has_changed) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    char *longer = mem_alloc(sizeof text + 16), *same = mem_strdup(text);
    write_cache();
    T_OK(table_read(cache_path(), &o, &t));
    assert_null(t->doubt);
    table_free(t);
    t_file("a.csv", text); /* written again, with another time and the same contents */
    T_OK(table_read(cache_path(), &o, &t));
    assert_null(t->doubt);
    table_free(t);
    same[strlen(same) - 2] ^= 1; /* of the same size */
    snprintf(longer, sizeof text + 16, "%s#", text);
    for (i32 k = 0; k < 2; k++) {
        t_file("a.csv", k ? longer : same);
        T_OK(table_read(cache_path(), &o, &t));
        assert_non_null(strstr(t->doubt, "has changed since"));
        assert_non_null(strstr(t->doubt_fix, "stretto cache /"));
        assert_int_equal(t->doubt_code, 36);
        table_free(t);
    }
    mem_free(longer);
    mem_free(same);
}

TEST(cache_damaged_anywhere_is_refused) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    char path[300];
    i64 n;
    write_cache();
    char *bytes = load_cache(&n);
    snprintf(path, sizeof path, "%s/b.bin", t_dir());
    const i64 before = mem_stats().live;
    for (i64 cut = 0; cut < n; cut += cut < 20 ? 1 : 13) {
        struct table *t;
        put_file(path, bytes, cut);
        assert_true(table_read(path, &o, &t) < 0);
    }
    for (i64 at = 0; at < n; at++) {
        struct table *t;
        const char was = bytes[at];
        bytes[at] ^= (char)(1 << at % 8);
        put_file(path, bytes, n);
        T_FAILS(table_read(path, &o, &t), 202);
        if (at >= 7) /* before that it is no cache file */
            assert_string_equal(err_last()->fix, "stretto cache DATA -o FILE   (make it again)");
        bytes[at] = was;
    }
    struct table *t;
    bytes[n] = 0;
    put_file(path, bytes, n + 1);
    T_FAILS(table_read(path, &o, &t), 202);
    assert_true(mem_stats().live <= before);
    mem_free(bytes);
}

/* The hash at the end, as cache.c makes it, so that the checks behind it are reached. */
static void sign(char *bytes, i64 n) {
    u64 h[4] = {1, 2, 3, 4}, w[4], all = 0;
    for (i64 i = 0; i < n; i += 32) {
        memcpy(w, bytes + i, sizeof w);
        for (i32 k = 0; k < 4; k++) {
            h[k] = (h[k] ^ w[k]) * 0x9E3779B97F4A7C15u;
            h[k] ^= h[k] >> 29;
        }
    }
    all = h[0];
    for (i32 k = 1; k < 4; k++) {
        all = (all ^ h[k]) * 0x9E3779B97F4A7C15u;
        all ^= all >> 29;
    }
    all ^= (u64)n;
    memcpy(bytes + n, &all, sizeof all);
}

/* Numbers of the header that do not fit, under a hash that does. */
TEST(cache_with_a_forged_header_is_refused) {
    static const struct {
        const char *text, *forged;
    } list[] = {
        {"\"at\": 64", "\"at\": 72"},         {"\"rows\": 3", "\"rows\": 9"},     {"\"type\": \"time\"", "\"type\": \"tome\""},
        {"[\"a\", \"b\"]", "[\"a+++++\"]"}, {"\"columns\"", "\"volumns\""}, {"\"bytes\":", "\"bites\":"},
    };
    struct read_options o = READ_OPTIONS_DEFAULT;
    i64 n;
    u64 head;
    write_cache();
    char *bytes = load_cache(&n);
    memcpy(&head, bytes + 8, sizeof head);
    const i64 before = mem_stats().live;
    for (size_t i = 0; i < COUNT(list); i++) {
        char *copy = mem_alloc((size_t)n);
        memcpy(copy, bytes, (size_t)n);
        struct table *t;
        char *at = memmem(copy + 16, (size_t)head, list[i].text, strlen(list[i].text));
        if (!at) fail_msg("the header has no %s", list[i].text);
        assert_int_equal(strlen(list[i].text), strlen(list[i].forged));
        memcpy(at, list[i].forged, strlen(list[i].forged));
        sign(copy, n - 8);
        put_file(cache_path(), copy, n);
        T_FAILS(table_read(cache_path(), &o, &t), 202);
        if (strstr(err_last()->text, "its hash")) fail_msg("%s is seen by the hash alone", list[i].forged);
        mem_free(copy);
    }
    head -= 32; /* columns would begin at no multiple of 64 */
    memcpy(bytes + 8, &head, sizeof head);
    sign(bytes, n - 8);
    put_file(cache_path(), bytes, n);
    struct table *t;
    T_FAILS(table_read(cache_path(), &o, &t), 202);
    assert_non_null(strstr(err_last()->text, "columns do not begin"));
    assert_true(mem_stats().live <= before);
    mem_free(bytes);
}

TEST(samples_are_reproducible_and_readable) {
    static const char *const names[] = {"airline", "tides", "mackey-glass", "panel", "shops", "integrator", "long-memory"};
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
        const i64 ahead = strcmp(names[i], "shops") ? 0 : 12 * 28; /* units are not known yet */
        i64 missing = 0;
        for (i32 k = 0; k < t->ncol; k++) missing += t->col[k].missing;
        assert_int_equal(missing, ahead);
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

T_MAIN(cmocka_unit_test(cache_gives_back_the_table), cmocka_unit_test(cache_says_that_its_source_has_changed),
       cmocka_unit_test(cache_damaged_anywhere_is_refused),
       cmocka_unit_test(cache_with_a_forged_header_is_refused),
       cmocka_unit_test(samples_are_reproducible_and_readable), cmocka_unit_test(sample_airline_is_the_textbook_series))
