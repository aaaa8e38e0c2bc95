/* t_family.c - losses of distributions: gradients of whole nets against the f64 twin, derivatives against differences, and the
 * scores and values that quantiles are made of. */
#include "grad.h"
#include "base/special.h"
#include "model/loss/family.h"

static const char *const losses[] = {"loss_normal", "loss_student_t", "loss_negative_binomial", "loss_poisson"};
static const char *const names[] = {"normal", "student_t", "negative_binomial", "poisson"};

/* Counts from 0 on as targets. */
static void counts(struct rig *g) {
    const struct op *loss = &g->n->op[g->n->nop - 1];
    const struct buf *y = &g->n->buf[loss->spec.in[1]];
    for (i64 i = 0; i < (i64)y->T * g->r.B * round_up(y->F, LANES); i++) {
        f32 *v = &g->buf[loss->spec.in[1]][i];
        *v = floorf(4 * fabsf(*v));
    }
}

static const struct shape shapes[] = {
    {1, 1, 1, 1, 1, 1, 1, 0, 0}, {5, 2, 3, 4, 3, 2, 5, 3, 0}, {7, 4, 2, 17, 16, 3, 17, 2, 2}, {3, 8, 4, 3, 17, 2, 3, 5, 1}};

TEST(gradient_of_a_net_equals_twin_every_family_and_shape) {
    for (u32 f = 0; f < COUNT(losses); f++)
        for (u32 s = 0; s < COUNT(shapes); s++)
            for (i32 deep = 0; deep < 2; deep++) {
                struct net n;
                if (deep)
                    nets_short(&n, shapes[s], CELL_GRU, losses[f]);
                else
                    nets_long(&n, shapes[s], CELL_LSTM, losses[f], 0);
                grad_check(&n, kern_best(), shapes[s].B, shapes[s].grain, family_find(names[f])->counts ? counts : NULL, 1e-5);
            }
}

static const f64 extremes[] = {-40, -6, -0.7, 0, 1.3, 8};

/* Derivatives at raw outputs that no net begins with: they must stay finite, and right where differences can tell. */
TEST(derivatives_equal_differences_and_stay_finite) {
    for (u32 k = 0; k < COUNT(names); k++) {
        const struct family *f = family_find(names[k]);
        for (u32 i = 0; i < COUNT(extremes); i++)
            for (u32 j = 0; j < COUNT(extremes); j++)
                for (f64 y = 0; y < 2000; y = 3 * y + 1) {
                    f64 raw[FAMILY_PARAMS] = {extremes[i] / 4, extremes[j], extremes[(i + j) % COUNT(extremes)]},
                        d[FAMILY_PARAMS];
                    const f64 base = 0.4, at = f->nll(raw, base, y, d);
                    assert_true(isfinite(at));
                    for (i32 p = 0; p < f->nparam; p++) {
                        const f64 step = 1e-5, keep = raw[p];
                        f64 none[FAMILY_PARAMS];
                        assert_true(isfinite(d[p]));
                        raw[p] = keep + step;
                        const f64 up = f->nll(raw, base, y, none);
                        raw[p] = keep - step;
                        const f64 slope = (up - f->nll(raw, base, y, none)) / (2 * step);
                        raw[p] = keep;
                        const f64 noise = 1e-8 + 1e-10 * fabs(at) + 1e-5 * fabs(d[p]); /* of the difference */
                        if (fabs(slope - d[p]) > noise * 10) print_error("%s: %g %g\n", names[k], slope, d[p]);
                        assert_true(fabs(slope - d[p]) <= noise * 10);
                    }
                }
    }
}

TEST(shares_of_counts_sum_to_one) {
    for (u32 k = 2; k < COUNT(names); k++)
        for (f64 base = -2; base < 5; base += 1.1) {
            const f64 raw[FAMILY_PARAMS] = {0.1, -1.5};
            f64 d[FAMILY_PARAMS], sum = 0, mean = 0;
            for (i32 y = 0; y < 4000; y++) {
                const f64 share = exp(-family_find(names[k])->nll(raw, base, y, d));
                sum += share, mean += y * share;
            }
            assert_true(fabs(sum - 1) < 1e-9);
            assert_true(fabs(mean - exp(base + 0.1)) < 1e-7 * (1 + mean));
        }
}

/* value() is the quantile function: it inverts score(), and rises. */
TEST(value_inverts_score_and_rises) {
    for (u32 k = 0; k < COUNT(names); k++) {
        const struct family *f = family_find(names[k]);
        for (u32 i = 0; i < COUNT(extremes); i++) {
            const f64 raw[FAMILY_PARAMS] = {0.3, fmax(-5, extremes[i]), extremes[(i + 2) % COUNT(extremes)]};
            f64 before = -INFINITY;
            for (f64 z = -24; z <= 24; z += z < -6 || z >= 6 ? 1 : 0.125) {
                const f64 v = f->value(raw, 1.5, z);
                assert_true(v >= before);
                assert_true(f->counts ? v >= 0 && v == floor(v) : v > before);
                if (!f->counts)
                    assert_true(fabs(f->score(raw, 1.5, v, 0.5) - z) < 1e-6 * (1 + fabs(z)));
                else
                    assert_true(f->score(raw, 1.5, v, 0) <= z + 1e-6 && f->score(raw, 1.5, v, 1) >= z - 1e-6);
                before = v;
            }
        }
    }
}

/* The median of a large Poisson count is its mean; a rare one is nearly always 0. */
TEST(counts_have_known_quantiles) {
    const f64 none[FAMILY_PARAMS] = {0, -9};
    for (u32 k = 2; k < COUNT(names); k++) {
        const struct family *f = family_find(names[k]);
        assert_true(fabs(f->value(none, log(1e4), 0) - 1e4) <= 1 + 100 * (k == 2));
        assert_true(f->value(none, log(0.01), 2) == 0 && f->value(none, log(0.01), 2.4) == 1);
        assert_true(f->value(none, 80, 0) > 1e12); /* limited, not infinite */
    }
    assert_true(family_find("poisson")->value(none, log(3), special_normal_quantile(0.9)) == 5);
    assert_true(family_find("mse") == NULL);
}

T_MAIN(cmocka_unit_test(gradient_of_a_net_equals_twin_every_family_and_shape),
       cmocka_unit_test(derivatives_equal_differences_and_stay_finite), cmocka_unit_test(shares_of_counts_sum_to_one),
       cmocka_unit_test(value_inverts_score_and_rises), cmocka_unit_test(counts_have_known_quantiles))
