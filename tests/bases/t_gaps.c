/* t_gaps.c - cells that --gaps interpolate made up: never scored, never learnt, and no line leads from an origin into the
 * future. */
#include "base/rng.h"
#include "data/series_build.h"
#include "data/window.h"
#include "tiny.h"
#include "bases/base.h"
#include "train/metrics.h"

enum { N = 1200, H = 6, L = 14 };

/* A random walk, plus a wave of 12 rows; `gone` percent of the rows missing.  With `later`, rows from `from` on are others. */
static void walk(f64 *v, i32 gone, i64 from, f64 later) {
    f64 level = 0;
    for (i64 i = 0; i < N; i++) {
        level += rng_normal(7, RNG_TEST, 0, (u64)i);
        bool missing = rng_uniform(7, RNG_TEST, 1, (u64)i) * 100 < (f32)gone && i > 0;
        v[i] = missing ? NAN : level + sin(2 * M_PI * (f64)i / 12) + (i >= from ? later : 0);
    }
}

static struct series *made(i32 gone, i64 from, f64 later, const char *gaps) {
    static f64 v[2 * N];
    const char *names[] = {"y", "past"};
    struct series_options o = {.target = "y", .past = "past", .gaps = gaps};
    struct series *s;
    walk(v, gone, from, later);
    memcpy(v + N, v, sizeof(f64) * N);
    T_OK(series_wrap(v, N, 2, names, 0, 3600, &o, &s));
    return s;
}

/* Mean squared error of `last` one row ahead. */
static f64 score_last(const struct series *s, i64 *n) {
    struct metrics *m;
    struct base *b;
    struct score score;
    T_OK(metrics_new(s, 1, 1, NULL, 0, &m));
    T_OK(base_naive(0, &b));
    for (i64 o = 1; o < N; o++) {
        f32 f, y = series_target(s, 0, o);
        base_predict(b, s, 0, o, 1, &f);
        metrics_add(m, 0, &y, &f, NULL);
    }
    metrics_score(m, -1, -1, true, &score);
    *n = score.n;
    base_free(b);
    metrics_free(m);
    return score.mse;
}

TEST(interpolation_scores_no_better_than_missing_cells) {
    struct series *mask = made(50, N, 0, "mask"), *line = made(50, N, 0, "interpolate");
    i64 n, same;
    f64 honest = score_last(mask, &n), got = score_last(line, &same), easy = 0;
    assert_int_equal(n, same);
    if (!(fabs(got - honest) <= 1e-9 * honest)) fail_msg("mse %g of lines, %g of missing cells", got, honest);
    for (i64 i = 1; i < line->nrow; i++) easy += pow((f64)line->v[i] - (f64)line->v[i - 1], 2) / (f64)(line->nrow - 1);
    assert_true(easy < 0.8 * honest); /* what it would be if lines were seen and scored */
    assert_true(mase_scale(line, 0, 1, N) == mase_scale(mask, 0, 1, N));
    T_OK(series_scale(line, 800));
    T_OK(series_scale(mask, 800));
    assert_true(line->mean[0] == mask->mean[0] && line->dev[0] == mask->dev[0]);
    series_free(mask);
    series_free(line);
}

static const char *const TEXTS[] = {"last",       "season(12)", "season(7)", "growth(12)",    "ratio(12)", "average(12)",
                                    "drift",      "mean",       "ses(0.3)",  "theta(12,0.2)", "0.25*last + 0.75*season(12)"};

/* Forecasts and inputs of an origin from two series. */
static void same_at(const struct base *b, const struct series *s, const struct series *other, i64 o) {
    struct window_shape p = {.context = L, .horizon = H, .seg = L, .nseg = 1, .out_seg = H, .nout = 1, .mask = true};
    f32 a[H], z[H], x[2][64] = {{0}}, shift[2], div[2];
    base_predict(b, s, 0, o, H, a);
    base_predict(b, other, 0, o, H, z);
    if (memcmp(a, z, sizeof a)) fail_msg("row %lld: a base looks ahead, %g and %g", (long long)o, (f64)a[0], (f64)z[0]);
    for (i32 k = WSCALE_NONE; k <= WSCALE_MEAN; k++) {
        p.scale = (enum window_scale)k;
        for (i32 i = 0; i < 2; i++) {
            const struct series *t = i ? other : s;
            window_scale_of(&p, t, o, 0, &shift[i], &div[i]);
            window_fill_x(&p, t, o, 0, shift[i], div[i], (struct window_dst){.p = x[i], .ld = 64, .B = 1}, 0);
        }
        if (shift[0] != shift[1] || div[0] != div[1] || memcmp(x[0], x[1], sizeof x[0]))
            fail_msg("row %lld: a window looks ahead", (long long)o);
    }
}

TEST(forecasts_do_not_see_where_a_line_ends) {
    struct series *s = made(50, N, 0, "interpolate");
    struct base_spec spec = {.L = L, .H = 1, .ncol = 1, .train = 250, .valid = 330};
    for (i64 o = 400; o < 460; o += 3) {
        struct series *other = made(50, o, 1e3, "interpolate");
        for (i32 k = 0; k <= (i32)COUNT(TEXTS); k++) {
            struct base *b;
            if (k < (i32)COUNT(TEXTS)) T_OK(base_read(TEXTS[k], NULL, 0, &b));
            else T_OK(base_ridge(s, &spec, &b));
            same_at(b, s, other, o);
            base_free(b);
        }
        series_free(other);
    }
    series_free(s);
}

TEST(ridge_is_fitted_on_observed_cells) {
    struct series *mask = made(20, N, 0, "mask"), *line = made(20, N, 0, "interpolate");
    struct base_spec spec = {.L = L, .H = 2, .ncol = 1, .train = 800, .valid = 1000};
    struct base *a, *b;
    i32 col[40] = {0};
    i64 origin[40];
    f32 single[H], bulk[40 * H];
    T_OK(base_ridge(mask, &spec, &a));
    T_OK(base_ridge(line, &spec, &b));
    assert_memory_equal(a->ridge->w, b->ridge->w, sizeof(f32) * (size_t)(ridge_rows(a->ridge) * a->ridge->Hp));
    for (i64 i = 0; i < 40; i++) origin[i] = 1000 + 3 * i;
    T_OK(base_predict_rows(b, line, 40, col, origin, H, bulk, H, kern_best()));
    for (i32 i = 0; i < 40; i++) {
        base_predict(a, mask, 0, origin[i], H, single);
        t_near("mask alone, lines in bulk", bulk + i * H, single, H, 1e-5);
    }
    base_free(a);
    base_free(b);
    series_free(mask);
    series_free(line);
}

TEST(choice_and_mix_measure_observed_cells_only) {
    struct series *line = made(20, N, 0, "interpolate"), *other = made(20, N, 0, "interpolate");
    struct base_spec p = {.L = L, .H = 2, .ncol = 1, .season = 12, .train = 800};
    struct mix t1, t2;
    struct base *a, *b;
    T_OK(base_mix(line, &p, &t1, &a));
    /* the truth at a made-up cell is not looked at: breaking the lines behind the last origin's past changes no error of `last`
     */
    for (i64 i = 321; i < 800; i++)
        if (series_filled(other, 0, i)) other->v[i] = 1e6F;
    T_OK(base_mix(other, &p, &t2, &b));
    f64 e1 = NAN, e2 = NAN;
    for (i32 i = 0; i < t1.nrow; i++)
        if (t1.row[i].part.kind == BASE_RIDGE) e1 = t1.row[i].mae;
    for (i32 i = 0; i < t2.nrow; i++)
        if (t2.row[i].part.kind == BASE_RIDGE) e2 = t2.row[i].mae;
    assert_true(e1 > 0 && e1 == e2); /* the ridge sees observed cells only, and is measured on them */
    base_free(a);
    base_free(b);
    series_free(line);
    series_free(other);
}

T_MAIN(cmocka_unit_test(interpolation_scores_no_better_than_missing_cells),
       cmocka_unit_test(forecasts_do_not_see_where_a_line_ends), cmocka_unit_test(ridge_is_fitted_on_observed_cells),
       cmocka_unit_test(choice_and_mix_measure_observed_cells_only))
