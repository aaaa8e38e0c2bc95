/* t_metrics.c - the scores against their formulas written out, in both units, with missing targets, quantiles and merging. */
#include "bases/tiny.h"
#include "train/metrics.h"

static void near(const char *what, f64 got, f64 want) {
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) fail_msg("%s: %.12g, expected %.12g", what, got, want);
}

/* Two columns, four steps, one missing target. */
static const f32 y[2][4] = {{1, 2, NAN, -1}, {0.5F, 0.25F, 2, 3}};
static const f32 f[2][4] = {{1.5F, 1, 7, -1}, {0.5F, 1, 1, 2}};
static const f64 mean[2] = {10, -3}, dev[2] = {2, 4};

static struct metrics *filled(struct series *s, const f64 *q, i32 nq, const f32 *qf) {
    struct metrics *m;
    s->mean[0] = mean[0], s->mean[1] = mean[1], s->dev[0] = dev[0], s->dev[1] = dev[1];
    T_OK(metrics_new(s, 2, 4, q, nq, &m));
    for (i32 c = 0; c < 2; c++) metrics_add(m, c, y[c], f[c], qf);
    return m;
}

TEST(score_follows_formulas_original_and_scaled) {
    struct series *s = tiny_series(1, 2, 1);
    struct metrics *m = filled(s, NULL, 0, NULL);
    for (i32 original = 0; original < 2; original++) {
        struct score got;
        f64 n = 0, ee = 0, ae = 0, ay = 0, sm = 0, sy = 0, rest = 0, mase = 0;
        for (i32 pass = 0; pass < 2; pass++)
            for (i32 c = 0; c < 2; c++)
                for (i32 h = 0; h < 4; h++) {
                    f64 a = (f64)y[c][h], b = (f64)f[c][h];
                    if (isnan(a)) continue;
                    if (original) a = a * dev[c] + mean[c], b = b * dev[c] + mean[c];
                    if (pass) {
                        rest += (a - sy / n) * (a - sy / n);
                        continue;
                    }
                    n += 1, ee += (a - b) * (a - b), ae += fabs(a - b), ay += fabs(a), sy += a;
                    sm += a == b ? 0 : fabs(a - b) / (fabs(a) + fabs(b));
                }
        metrics_set_scale(m, 0, 2);
        metrics_set_scale(m, 1, 5);
        metrics_score(m, -1, -1, original, &got);
        mase = ((0.5 + 1 + 0) * 2 / 3 / 2 + (0 + 0.75 + 1 + 1) * 4 / 4 / 5) / 2;
        assert_int_equal(got.n, 7);
        near("mse", got.mse, ee / n);
        near("mae", got.mae, ae / n);
        near("rmse", got.rmse, sqrt(ee / n));
        near("nd", got.nd, ae / ay);
        near("smape", got.smape, 200 * sm / n);
        near("rse", got.rse, sqrt(ee / rest));
        near("mase", got.mase, mase);
        assert_true(isnan(got.wql));
    }
    metrics_free(m);
    tiny_free(s);
}

TEST(score_of_one_step_and_column_counts_only_those) {
    struct series *s = tiny_series(1, 2, 1);
    struct metrics *m = filled(s, NULL, 0, NULL);
    struct score got;
    metrics_score(m, 1, 0, false, &got);
    assert_int_equal(got.n, 1);
    near("mae", got.mae, 1);
    metrics_score(m, 2, 0, false, &got);
    assert_int_equal(got.n, 0);
    metrics_score(m, -1, 1, true, &got);
    near("mae", got.mae, 4 * 2.75 / 4);
    metrics_free(m);
    tiny_free(s);
}

TEST(correlation_of_a_shifted_copy_is_one) {
    struct series *s = tiny_series(1, 1, 1);
    struct metrics *m;
    struct score got;
    T_OK(metrics_new(s, 1, 2, NULL, 0, &m));
    for (i32 i = 0; i < 9; i++) {
        f32 a[2] = {(f32)(i * i), (f32)-i}, b[2] = {(f32)(3 * i * i + 4), (f32)i};
        metrics_add(m, 0, a, b, NULL);
    }
    metrics_score(m, 0, -1, true, &got);
    near("corr", got.corr, 1);
    metrics_score(m, 1, -1, true, &got);
    near("corr", got.corr, -1);
    metrics_free(m);
    tiny_free(s);
}

TEST(quantiles_give_pinball_and_coverage) {
    const f64 q[3] = {0.1, 0.5, 0.9};
    const f32 qf[4 * 3] = {-1, 0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1};
    struct series *s = tiny_series(1, 2, 1);
    struct metrics *m = filled(s, q, 3, qf), *none;
    struct score got;
    f64 pin = 0, inside = 0, ay = 0;
    for (i32 c = 0; c < 2; c++)
        for (i32 h = 0; h < 4; h++) {
            f64 a = (f64)y[c][h];
            if (isnan(a)) continue;
            for (i32 k = 0; k < 3; k++) {
                f64 d = a - (f64)qf[k];
                pin += dmax(q[k] * d, (q[k] - 1) * d) * dev[c];
            }
            inside += a >= -1 && a <= 1;
            ay += fabs(a * dev[c] + mean[c]);
        }
    metrics_score(m, -1, -1, true, &got);
    near("wql", got.wql, 2 * pin / 3 / ay);
    near("pinball", got.pinball, pin / 3 / 7);
    near("coverage", got.coverage[0], inside / 7);
    near("below the lowest", got.below[0], 1.0 / 7);
    T_OK(metrics_new(s, 2, 4, q, 3, &none));
    metrics_score(none, -1, -1, true, &got);
    assert_int_equal(got.n, 0);
    metrics_free(m);
    metrics_free(none);
    tiny_free(s);
}

TEST(nan_forecast_is_seen_missing_target_is_not) {
    struct series *s = tiny_series(1, 1, 1);
    struct metrics *m;
    struct score got;
    T_OK(metrics_new(s, 1, 2, NULL, 0, &m));
    metrics_add(m, 0, (f32[]){NAN, 1}, (f32[]){NAN, 1}, NULL);
    metrics_score(m, -1, -1, true, &got);
    near("mse", got.mse, 0);
    metrics_add(m, 0, (f32[]){1, 1}, (f32[]){NAN, 1}, NULL);
    metrics_score(m, -1, -1, true, &got);
    assert_true(isnan(got.mse) && isnan(got.mae) && isnan(got.smape));
    metrics_free(m);
    tiny_free(s);
}

TEST(rse_keeps_its_digits_far_from_zero) {
    struct series *s = tiny_series(1, 2, 1);
    struct score near_zero, far;
    for (i32 k = 0; k < 2; k++) {
        struct metrics *m;
        s->mean[0] = s->mean[1] = k ? 1e9 : 0;
        T_OK(metrics_new(s, 2, 4, NULL, 0, &m));
        for (i32 c = 0; c < 2; c++) metrics_add(m, c, y[c], f[c], NULL);
        metrics_score(m, -1, -1, true, k ? &far : &near_zero);
        metrics_free(m);
    }
    assert_true(fabs(far.rse - near_zero.rse) < 1e-6); /* 1e9 itself holds seven decimals */
    tiny_free(s);
}

/* Four zeros, measured against a mean of 4.2 and a deviation of 3.6: back in original units they are 1e-7 or so. */
TEST(a_part_of_zeros_has_no_shares_of_its_size) {
    const f32 zero = (f32)(-4.2 / 3.6), zeros[4] = {zero, zero, zero, zero}, off[4] = {zero, zero, zero, 0};
    struct series *s = tiny_series(1, 2, 1);
    struct metrics *m;
    struct score got;
    s->mean[0] = 4.2, s->dev[0] = 3.6;
    T_OK(metrics_new(s, 1, 4, NULL, 0, &m));
    metrics_add(m, 0, zeros, zeros, NULL);
    metrics_score(m, -1, 0, true, &got);
    assert_true(isnan(got.nd) && got.smape == 0 && got.mae == 0);
    metrics_add(m, 0, zeros, off, NULL);
    metrics_score(m, -1, 0, true, &got);
    assert_true(isnan(got.nd));
    assert_true(fabs(got.smape - 200. / 8) < 1e-5);
    metrics_free(m);
    tiny_free(s);
}

TEST(mase_scale_skips_missing_pairs_and_refuses_constants) {
    struct series *s = tiny_series(6, 1, 2);
    const f32 v[6] = {1, 2, 4, NAN, 5, 9};
    memcpy(s->v, v, sizeof v);
    s->dev[0] = 10;
    near("m = 2", mase_scale(s, 0, 2, 6), 10 * (3 + 1) / 2.0);
    near("m = 1", mase_scale(s, 0, 1, 5), 10 * (1 + 2) / 2.0);
    assert_true(isnan(mase_scale(s, 0, 1, 1)));
    tiny_free(s);
}

TEST(metrics_give_back_all_memory_when_any_is_refused) {
    struct series *s = tiny_series(1, 2, 1);
    const f64 q[2] = {0.1, 0.9};
    i64 live = mem_stats().live;
    for (i64 n = 1; n <= 2; n++) {
        struct metrics *m;
        mem_fail_nth(n);
        T_FAILS(metrics_new(s, 2, 4, q, 2, &m), E601);
        mem_fail_nth(0);
        assert_int_equal(mem_stats().live, live);
    }
    tiny_free(s);
}

T_MAIN(cmocka_unit_test(score_follows_formulas_original_and_scaled),
       cmocka_unit_test(score_of_one_step_and_column_counts_only_those),
       cmocka_unit_test(correlation_of_a_shifted_copy_is_one), cmocka_unit_test(quantiles_give_pinball_and_coverage),
       cmocka_unit_test(nan_forecast_is_seen_missing_target_is_not),
       cmocka_unit_test(rse_keeps_its_digits_far_from_zero),
       cmocka_unit_test(a_part_of_zeros_has_no_shares_of_its_size),
       cmocka_unit_test(mase_scale_skips_missing_pairs_and_refuses_constants),
       cmocka_unit_test(metrics_give_back_all_memory_when_any_is_refused))
