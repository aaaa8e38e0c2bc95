/* t_panel.c - panels: rows by series and time, the axis that series share, covariates of each series, gaps, duplicates. */
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/check.h"
#include "data/series_build.h"
#include "data/window.h"

static err build(const char *text, struct series_options so, struct series **s) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    *s = NULL;
    o.id = so.id;
    o.time = so.time;
    TRY(table_read(t_file("panel.csv", text), &o, &t));
    err e = series_build(t, &so, s);
    table_free(t);
    return e;
}

/* id, target, least_rows, and other members */
#define OPTIONS(ID, TARGET, LEAST, ...) ((struct series_options){.id = ID, .target = TARGET, .least_rows = LEAST, __VA_ARGS__})
#define SO(...) OPTIONS("id", "y", -1, __VA_ARGS__)

static struct series *built(const char *text, struct series_options so) {
    struct series *s;
    T_OK(build(text, so, &s));
    return s;
}

static const char *refused(const char *text, struct series_options so, int code) {
    struct series *s;
    const i64 before = mem_stats().live;
    T_FAILS(build(text, so, &s), code);
    assert_null(s);
    assert_int_equal(mem_stats().live, before);
    return err_last()->text;
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* B begins a day later than A and ends a day later; their rows alternate, and B's are not in order. */
static const char two[] = "id,t,y,price,size\n"
                          "A,2024-01-01,1,10,5\nB,2024-01-03,23,30,7\nA,2024-01-02,2,11,5\nB,2024-01-02,22,31,7\n"
                          "A,2024-01-03,3,12,5\nB,2024-01-04,24,32,7\n";

TEST(panel_series_share_an_axis) {
    struct series *s = built(two, SO(.past = ""));
    assert_true(s->panel);
    assert_int_equal(s->ntarget, 2);
    assert_int_equal(s->nrow, 4);
    assert_string_equal(s->name[1], "B");
    const f32 a[] = {1, 2, 3}, b[] = {22, 23, 24};
    for (i32 i = 0; i < 3; i++) assert_true(series_col(s, 0)[i] == a[i] && series_col(s, 1)[i + 1] == b[i]);
    assert_true(isnan(series_col(s, 0)[3]) && isnan(series_col(s, 1)[0]));
    assert_int_equal(s->from[0], 0);
    assert_int_equal(s->to[0], 3);
    assert_int_equal(s->from[1], 1);
    assert_int_equal(s->to[1], 4);
    series_free(s);
}

TEST(panel_series_have_covariates_of_their_own) {
    struct series *s = built(two, SO(.known = "price", .fixed = "size"));
    assert_int_equal(s->nknown, 2);
    assert_int_equal(s->nstatic, 1);
    assert_int_equal(s->ncol, 6);
    assert_true(series_raw(s, series_ahead_of(s, 0, 0), 1) == 11 && series_raw(s, series_ahead_of(s, 0, 1), 1) == 31);
    assert_true(series_raw(s, series_ahead_of(s, 1, 1), 2) == 7);
    T_OK(series_scale(s, 3));
    assert_true(fabs(series_raw(s, series_ahead_of(s, 1, 0), 0) - 5) < 1e-6);
    assert_true(fabs((f64)series_col(s, series_ahead_of(s, 1, 0))[0] + 1) < 1e-6); /* one scale for both: -1 and 1 */
    const struct window_shape p = {.context = 2, .horizon = 1, .seg = 1, .nseg = 2, .out_seg = 1, .nout = 1};
    f32 x[2 * 3], k[2];
    window_fill_x(&p, s, 3, 1, 0, 1, (struct window_dst){.p = x, .ld = 3, .B = 1}, 0);
    assert_true(x[1] == series_col(s, series_ahead_of(s, 0, 1))[1]); /* the price of B, not of A */
    window_fill_future(&p, s, 3, 1, (struct window_dst){.p = k, .ld = 2, .B = 1}, 0);
    assert_true(k[0] == series_col(s, series_ahead_of(s, 0, 1))[3]);
    series_free(s);
}

TEST(panel_names_come_from_several_columns_and_keep_zeros) {
    struct series *s = built("id,shop,t,y\n007,x,2024-01-01,1\n007,y,2024-01-01,2\n007,x,2024-01-02,3\n007,y,2024-01-02,4\n",
                             OPTIONS("id,shop", "y", -1, .gaps = ""));
    assert_string_equal(s->name[0], "007/x");
    assert_string_equal(s->name[1], "007/y");
    series_free(s);
}

static const char hole[] = "id,t,y\nA,2024-01-01,1\nA,2024-01-02,2\nA,2024-01-03,3\nA,2024-01-04,4\n"
                           "B,2024-01-01,5\nB,2024-01-02,6\nB,2024-01-04,8\n";

TEST(panel_gaps_inside_a_series_are_refused_or_filled) {
    has(refused(hole, SO(.gaps = ""), 210), "series \"B\" lacks 1");
    struct series *s = built(hole, SO(.gaps = "mask"));
    assert_true(isnan(series_col(s, 1)[2]));
    series_free(s);
    s = built(hole, SO(.gaps = "zero"));
    assert_true(series_raw(s, 1, 2) == 0);
    series_free(s);
    s = built(hole, SO(.gaps = "interpolate"));
    assert_true(series_raw(s, 1, 2) == 7 && series_filled(s, 1, 2));
    series_free(s);
}

/* Zero is what an absent row means inside of a series only. */
TEST(panel_zero_stays_inside_the_series) {
    struct series *s = built(two, SO(.gaps = "zero"));
    assert_true(isnan(series_col(s, 0)[3]) && isnan(series_col(s, 1)[0]));
    series_free(s);
}

TEST(panel_duplicates_follow_dups) {
    static const char twice[] = "id,t,y\nA,2024-01-01,1\nB,2024-01-01,5\nA,2024-01-01,3\nB,2024-01-02,6\nA,2024-01-02,4\n";
    has(refused(twice, SO(.dups = ""), 211), "in series \"A\": line 2");
    const char *how[] = {"mean", "first", "last"};
    const f64 want[] = {2, 1, 3};
    for (i32 k = 0; k < 3; k++) {
        struct series *s = built(twice, SO(.dups = how[k]));
        assert_true(series_raw(s, 0, 0) == want[k] && series_raw(s, 1, 0) == 5);
        assert_int_equal(s->merged, 1);
        series_free(s);
    }
}

TEST(panel_short_series_are_refused_or_left_out) {
    static const char single[] = "id,t,y\nA,2024-01-01,1\nB,2024-01-01,5\nA,2024-01-02,3\n";
    has(refused(single, SO(.gaps = ""), 301), "series \"B\" has one row");
    struct series *s = built(single, OPTIONS("id", "y", 2, .gaps = ""));
    assert_int_equal(s->ntarget, 1);
    series_free(s);
    refused(single, OPTIONS("id", "y", 3, .gaps = ""), 301);
}

TEST(panel_refuses_two_frequencies) {
    char text[2000] = "id,t,y\n";
    for (i32 i = 1; i <= 9; i++) sprintf(text + strlen(text), "A,2024-01-%02d,%d\n", i, i);
    for (i32 i = 1; i <= 9; i += 2) sprintf(text + strlen(text), "B,2024-01-%02d,%d\n", i, i);
    has(refused(text, SO(.gaps = ""), 210), "series \"B\" has a row every 2 steps");
}

TEST(panel_refuses_what_names_no_series) {
    has(refused("id,t,y\nA,2024-01-01,1\n,2024-01-02,2\n", SO(.gaps = ""), 205), "given by --id is empty");
    has(refused(two, OPTIONS("id", "y,price", -1, .gaps = ""), 106), "one target");
    has(refused(two, OPTIONS("id", "id", -1, .gaps = ""), 106), "cannot be --id and --target");
    refused(two, ((struct series_options){.target = "y", .fixed = "size"}), 106);
}

/* `check` goes on after a problem, but not with rows that have no place. */
TEST(panel_problems_are_collected) {
    const struct series_options so = SO(.gaps = "");
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct findings found = {0};
    struct series *s = NULL;
    struct table *t;
    o.id = "id";
    T_OK(table_read(t_file("panel.csv", "id,t,y\nA,2024-01-01,1\n,2024-01-02,2\nA,2024-01-03,3\n"), &o, &t));
    T_OK(series_inspect(t, &so, &found, &s));
    assert_null(s);
    assert_int_equal(found.n, 1);
    assert_int_equal(found.item[0].r.code, 205);
    table_free(t);
}

/* Without times the rows of a series follow each other from its start. */
TEST(panel_without_times_counts_rows) {
    struct series *s = built("id,y\nA,1\nB,5\nA,2\nB,6\nA,3\n", SO(.time_format = "row"));
    assert_int_equal(s->nrow, 3);
    assert_true(series_raw(s, 1, 1) == 6 && isnan(series_col(s, 1)[2]));
    series_free(s);
}

TEST(panel_constant_series_keep_their_place) {
    struct series *s = built("id,t,y\nA,2024-01-01,0\nA,2024-01-02,0\nB,2024-01-01,1\nB,2024-01-02,2\n", SO(.gaps = ""));
    T_OK(series_scale(s, 2));
    assert_true(s->dev[0] == 1 && series_col(s, 0)[1] == 0);
    series_free(s);
}

T_MAIN(cmocka_unit_test(panel_series_share_an_axis),
       cmocka_unit_test(panel_series_have_covariates_of_their_own),
       cmocka_unit_test(panel_names_come_from_several_columns_and_keep_zeros),
       cmocka_unit_test(panel_gaps_inside_a_series_are_refused_or_filled),
       cmocka_unit_test(panel_zero_stays_inside_the_series),
       cmocka_unit_test(panel_duplicates_follow_dups),
       cmocka_unit_test(panel_short_series_are_refused_or_left_out),
       cmocka_unit_test(panel_refuses_two_frequencies),
       cmocka_unit_test(panel_refuses_what_names_no_series),
       cmocka_unit_test(panel_problems_are_collected),
       cmocka_unit_test(panel_without_times_counts_rows),
       cmocka_unit_test(panel_constant_series_keep_their_place))
