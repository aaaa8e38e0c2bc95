/* t_pick.c - a few targets of a series as a series of their own: covariates and categories go with them; columns can be turned
 * and restored. */
#include <string.h>

#include "data/series_pick.h"
#include "t.h"

enum { ROWS = 6, TARGETS = 3, COLUMNS = 3 * TARGETS };

static f32 values[COLUMNS * ROWS];
static i32 codes[TARGETS * ROWS], *code[1] = {codes};
static f64 means[COLUMNS], devs[COLUMNS];
static i64 from[TARGETS] = {0, 1, 2}, to[TARGETS] = {6, 5, 6};
static const char *names[COLUMNS] = {"a", "b", "c", "a past", "b past", "c past", "a known", "b known", "c known"};
static const char *columns[3] = {"y", "load", "price"}, *categories[1] = {"kind"};

/* A panel of three series with a past covariate, a known one and a category: cell (column, row) is 10 column + row. */
static struct series panel(void) {
    for (i32 c = 0; c < COLUMNS; c++) {
        means[c] = c;
        devs[c] = c + 1;
        for (i32 i = 0; i < ROWS; i++) values[c * ROWS + i] = (f32)(10 * c + i);
    }
    for (i32 i = 0; i < TARGETS * ROWS; i++) codes[i] = i;
    return (struct series){.nrow = ROWS,
                           .ncol = COLUMNS,
                           .ntarget = TARGETS,
                           .npast = 1,
                           .nknown = 1,
                           .panel = true,
                           .column = columns,
                           .from = from,
                           .to = to,
                           .name = names,
                           .v = values,
                           .ncat = 1,
                           .code = code,
                           .cat_name = categories,
                           .mean = means,
                           .dev = devs};
}

TEST(picked_series_keep_their_covariates) {
    struct series s = panel(), one;
    struct arena a = {0};
    const i32 target[2] = {2, 1};
    T_OK(series_pick(&s, target, 2, &a, &one));
    assert_int_equal(one.ncol, 6);
    const i32 was[6] = {2, 1, 5, 4, 8, 7}; /* targets, past, known */
    for (i32 c = 0; c < 6; c++) {
        assert_string_equal(one.name[c], names[was[c]]);
        assert_true(series_raw(&one, c, 3) == series_raw(&s, was[c], 3));
    }
    assert_int_equal(series_past_of(&one, 0, 1), 3);
    assert_true(series_raw(&one, series_ahead_of(&one, 0, 1), 0) == series_raw(&s, series_ahead_of(&s, 0, 1), 0));
    assert_int_equal(one.of_model[0], 2);
    assert_int_equal(one.from[0], 2);
    assert_int_equal(one.to[1], 5);
    assert_int_equal(series_code(&one, 0, 0, 4), 2 * ROWS + 4);
    arena_free(&a);
}

TEST(turned_columns_come_from_another_time_and_series) {
    struct series s = panel(), all;
    struct arena a = {0};
    struct series_kept kept;
    const i32 target[3] = {0, 1, 2};
    T_OK(series_pick(&s, target, 3, &a, &all));
    assert_int_equal(series_covariates(&all), 3);
    assert_string_equal(series_covariate_name(&all, 1), "price");
    assert_string_equal(series_covariate_name(&all, 2), "kind");
    T_OK(series_keep(&all, 1, &a, &kept));
    series_turn(&all, 1, &kept, 1, 5, 3, 1); /* rows 1..4, three later in a circle, of the next series */
    const f32 *v = series_col(&all, series_ahead_of(&all, 0, 0));
    const f32 want[ROWS] = {60, 74, 71, 72, 73, 65};
    assert_memory_equal(v, want, sizeof want);
    series_restore(&all, 1, &kept);
    assert_memory_equal(all.v, values, sizeof values);
    T_OK(series_keep(&all, 2, &a, &kept));
    series_turn(&all, 2, &kept, 0, ROWS, 1, 2);
    assert_int_equal(series_code(&all, 0, 2, 5), 1 * ROWS + 0); /* of the series after the next one, in a circle */
    series_restore(&all, 2, &kept);
    assert_memory_equal(all.code[0], codes, sizeof codes);
    assert_memory_equal(s.v, values, sizeof values); /* the original is not touched */
    arena_free(&a);
}

/* Covariates of a series that is no panel belong to all targets. */
TEST(picked_columns_share_the_covariates) {
    struct series s = panel(), one;
    struct arena a = {0};
    const i32 target[1] = {1};
    s.panel = false;
    s.ncol = 5;
    s.from = s.to = NULL;
    T_OK(series_pick(&s, target, 1, &a, &one));
    assert_int_equal(one.ncol, 3);
    assert_string_equal(one.name[0], "b");
    assert_true(series_raw(&one, 2, 1) == series_raw(&s, 4, 1));
    assert_string_equal(series_covariate_name(&one, 0), names[3]);
    assert_null(one.from);
    arena_free(&a);
}

T_MAIN(cmocka_unit_test(picked_series_keep_their_covariates), cmocka_unit_test(turned_columns_come_from_another_time_and_series),
       cmocka_unit_test(picked_columns_share_the_covariates))
