/* t_share.c - data for other processes: what is taken equals what was given, field by field; what is refused. */
#include "tables.h"

#include <unistd.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/series_build.h"
#include "data/share.h"

enum { DAYS = 40000, FEW = 500 };

/* Two series that end apart, with a covariate that has gaps, words, and a constant. */
static const char *panel(i32 days) {
    struct str s = {0};
    static const char *const sky[] = {"sun", "rain", "", "snow"};
    str_add(&s, "shop,row,units,price,sky,size\n");
    for (i32 shop = 0; shop < 2; shop++)
        for (i32 t = shop; t < days - 9 * shop; t++) {
            str_addf(&s, "s%d,%d,%d.5,", shop, t, (t * 7 + shop) % 101);
            if (t % 50 != 7) str_addf(&s, "%d", t % 13);
            str_addf(&s, ",%s,%d\n", sky[(t + shop) % 4], 3 + shop);
        }
    T_OK(str_ok(&s));
    const char *path = t_file("panel.csv", s.s);
    str_free(&s);
    return path;
}

static void read_table(const char *path, struct table **t) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.id = "shop";
    o.cat = "sky";
    spill_share(true);
    T_OK(table_read(path, &o, t));
    spill_share(false);
}

static void read_series(i32 days, struct series **s) {
    const struct series_options so = {.id = "shop", .target = "units", .past = "price", .cat = "sky",
                                      .fixed = "size", .gaps = "interpolate", .ignore = "row", .least_rows = -1};
    struct table *t;
    read_table(panel(days), &t);
    spill_share(true);
    T_OK(series_build(t, &so, s));
    spill_share(false);
    table_free(t);
}

static void same_bytes(const void *a, const void *b, i64 n) {
    assert_true(!a == !b);
    if (a) assert_memory_equal(a, b, (size_t)n);
}

static void same_texts(const char *const *a, const char *const *b, i64 n) {
    assert_true(!a == !b);
    for (i64 i = 0; a && i < n; i++) assert_string_equal(a[i], b[i]);
}

static void same_series(const struct series *a, const struct series *b) {
    const i64 cells = a->ncol * a->nrow;
    assert_int_equal(a->nrow, b->nrow);
    assert_int_equal(a->ncol, b->ncol);
    assert_int_equal(a->ncat, b->ncat);
    same_bytes(&a->freq, &b->freq, sizeof a->freq);
    same_texts(a->name, b->name, a->ncol);
    same_texts(a->column, b->column, 1 + a->npast + a->nknown);
    same_texts(a->cat_name, b->cat_name, a->ncat);
    assert_string_equal(a->roles, b->roles);
    assert_string_equal(a->id_columns, b->id_columns);
    assert_string_equal(a->time_columns, b->time_columns);
    same_bytes(a->from, b->from, (i64)sizeof *a->from * a->ntarget);
    same_bytes(a->to, b->to, (i64)sizeof *a->to * a->ntarget);
    same_bytes(a->mean, b->mean, (i64)sizeof *a->mean * a->ncol);
    same_bytes(a->dev, b->dev, (i64)sizeof *a->dev * a->ncol);
    same_bytes(a->v, b->v, (i64)sizeof *a->v * cells);
    same_bytes(a->filled, b->filled, cells);
    same_bytes(a->time, b->time, (i64)sizeof *a->time * a->nrow);
    same_bytes(a->line, b->line, (i64)sizeof *a->line * a->nrow);
    for (i32 k = 0; k < a->ncat; k++) {
        same_bytes(a->code[k], b->code[k], (i64)sizeof **a->code * a->ntarget * a->nrow);
        same_texts(a->word[k], b->word[k], a->nword[k]);
    }
}

static void give(struct series *s, struct share_place *at, int *fd) {
    struct share x;
    share_give(&x);
    series_share(&x, s);
    T_OK(share_publish(&x, at, fd));
    assert_true(at->fd >= 0);
}

/* A series of so many days, and what a rank takes of it. */
static void hand_over(i32 days, struct series **given, struct series **taken) {
    struct share_place at;
    struct share x;
    int fd;
    read_series(days, given);
    give(*given, &at, &fd);
    T_OK(mem_new((void **)taken, 1, sizeof **taken));
    T_OK(share_open(&x, &at));
    series_share(&x, *taken);
    T_OK(share_close(&x));
    close(fd);
}

TEST(series_is_taken_as_it_was_given) {
    const i64 live = mem_stats().live;
    struct series *given, *taken;
    hand_over(DAYS, &given, &taken);
    assert_true(given->panel && given->filled && given->ncat == 1 && given->nstatic == 1);
    same_series(given, taken);
    assert_true(taken->v_borrowed && taken->code_borrowed && !given->v_borrowed && !given->code_borrowed);
    assert_ptr_not_equal(taken->v, given->v);
    given->v[5] = 77; /* the same memory */
    assert_true(taken->v[5] == 77);
    series_free(given);
    assert_true(taken->v[5] == 77);
    series_free(taken);
    assert_int_equal(mem_stats().live, live);
}

/* Small arrays are copied: they are the taker's own. */
TEST(series_that_is_small_is_copied) {
    struct series *given, *taken;
    hand_over(FEW, &given, &taken);
    same_series(given, taken);
    assert_true(!taken->v_borrowed && !taken->code_borrowed);
    T_OK(series_scale(taken, FEW / 2));
    T_OK(series_scale(given, FEW / 2));
    same_series(given, taken);
    series_free(given);
    series_free(taken);
}

/* The owner scales; a rank that borrows computes the same scale and leaves the values as they are. */
TEST(scale_of_a_borrowed_series_is_computed_only) {
    struct series *given, *taken;
    hand_over(DAYS, &given, &taken);
    const f32 before = given->v[100];
    T_OK(series_scale(taken, DAYS / 2));
    assert_true(given->v[100] == before);
    T_OK(series_scale(given, DAYS / 2));
    assert_true(given->v[100] != before);
    same_series(given, taken);
    series_free(given);
    series_free(taken);
}

TEST(table_is_taken_as_it_was_given) {
    const i64 live = mem_stats().live;
    struct table *given, *taken;
    struct share_place at;
    struct share x;
    int fd;
    read_table(panel(DAYS), &given);
    assert_true(table_shares(given));
    share_give(&x);
    table_share(&x, given);
    T_OK(share_publish(&x, &at, &fd));
    T_OK(mem_new((void **)&taken, 1, sizeof *taken));
    T_OK(share_open(&x, &at));
    table_share(&x, taken);
    T_OK(share_close(&x));
    close(fd);
    same_files(given, taken);
    assert_int_equal(table_find(taken, "price"), 3);
    table_free(given);
    assert_true(taken->col[1].number[5] == 5);
    table_free(taken);
    assert_int_equal(mem_stats().live, live);
}

TEST(place_of_something_else_is_refused) {
    struct series *given;
    struct share_place at, other;
    struct share x;
    int fd;
    read_series(DAYS, &given);
    give(given, &at, &fd);
    other = at;
    other.token++;
    T_FAILS(share_open(&x, &other), E701);
    other = at;
    other.bytes--;
    T_FAILS(share_open(&x, &other), E701);
    close(fd);
    T_FAILS(share_open(&x, &at), E701);
    series_free(given);
}

/* A process of another build: each prefix of the fields fails in order and leaves nothing behind. */
TEST(fields_that_end_early_are_refused) {
    struct series *given, *taken;
    struct share_place at;
    struct share x;
    int fd;
    read_series(DAYS, &given);
    give(given, &at, &fd);
    const i64 live = mem_stats().live;
    for (i64 cut = 1; cut < at.bytes - 16; cut += 1 + cut / 9) {
        T_OK(mem_new((void **)&taken, 1, sizeof *taken));
        T_OK(share_open(&x, &at));
        x.end -= cut;
        series_share(&x, taken);
        T_FAILS(share_close(&x), E701);
        series_free(taken);
        assert_int_equal(mem_stats().live, live);
    }
    T_OK(share_open(&x, &at));
    T_FAILS(share_close(&x), E1); /* nothing was taken */
    close(fd);
    series_free(given);
}

T_MAIN(cmocka_unit_test(series_is_taken_as_it_was_given), cmocka_unit_test(series_that_is_small_is_copied),
       cmocka_unit_test(scale_of_a_borrowed_series_is_computed_only),
       cmocka_unit_test(table_is_taken_as_it_was_given), cmocka_unit_test(place_of_something_else_is_refused),
       cmocka_unit_test(fields_that_end_early_are_refused))
