/* t_special.c - special functions against libm, closed forms, sums of terms, and each other. */
#include "t.h"

#include <math.h>

#include "base/special.h"

static void near(const char *what, f64 got, f64 want, f64 tolerance) {
    if (fabs(got - want) <= tolerance * fmax(fabs(want), 1e-300)) return;
    print_error("%s: got %.17g want %.17g\n", what, got, want);
    fail();
}

TEST(gamma_function_equals_libm_and_its_recurrence) {
    for (f64 x = 0.03; x < 1e6; x *= 1.37) {
        assert_true(fabs(special_lgamma(x) - lgamma(x)) <= 2e-15 * fmax(10, fabs(lgamma(x))));
        near("digamma(x + 1)", special_digamma(x + 1), special_digamma(x) + 1 / x, 1e-13 * (1 + 1 / x));
    }
    near("digamma(1)", special_digamma(1), -0.57721566490153286061, 1e-14);
}

/* Poisson and negative binomial shares as sums of their terms. */
TEST(incomplete_gamma_and_beta_equal_sums_of_terms) {
    static const f64 means[] = {1e-3, 0.3, 4, 31.7, 900}, sizes[] = {0.2, 1, 7.5, 400};
    for (size_t m = 0; m < COUNT(means); m++) {
        f64 sum = 0, lasts = 0;
        for (i32 k = 0; k < 40 + 2 * means[m]; k++) {
            sum += exp(k * log(means[m]) - means[m] - lgamma(k + 1.0));
            near("poisson", special_gamma_upper(k + 1, means[m]), sum, 1e-11);
            assert_true(fabs(special_gamma_lower(k + 1, means[m]) - (1 - sum)) < 1e-12);
            lasts = sum;
        }
        assert_true(lasts > 0.999);
        for (size_t r = 0; r < COUNT(sizes); r++) {
            const f64 n = sizes[r], p = n / (n + means[m]);
            sum = 0;
            for (i32 k = 0; k < 200; k++) {
                sum += exp(lgamma(k + n) - lgamma(n) - lgamma(k + 1.0) + n * log(p) + k * log1p(-p));
                assert_true(fabs(special_beta(n, k + 1, p) - sum) < 1e-11);
                assert_true(fabs(special_beta(k + 1, n, 1 - p) - (1 - sum)) < 1e-11);
            }
        }
    }
}

TEST(small_tails_keep_their_digits) {
    near("poisson tail", special_gamma_lower(31, 3),
         exp(31 * log(3) - 3 - lgamma(32)) * (1 + 3.0 / 32 * (1 + 3.0 / 33 * (1 + 3.0 / 34 * (1 + 3.0 / 35 * (1 + 3.0 / 36))))),
         1e-5);
    near("normal tail", special_normal_tail(10), 7.61985302416052606597e-24, 1e-12);
    near("normal quantile", special_normal_quantile(1e-10), -6.361340902404056, 1e-13);
    near("normal quantile", special_normal_quantile(0.975), 1.9599639845400538, 1e-13);
}

/* Two degrees of freedom have a closed form; more of them approach the normal distribution. */
TEST(t_distribution_equals_closed_forms_and_inverts) {
    for (f64 t = 0; t < 50; t += 0.37) near("t, 2", special_t_tail(2, t), 1 / (2 + t * t + t * sqrt(2 + t * t)), 1e-12);
    for (f64 t = 0; t < 50; t += 0.37) near("t, 1", special_t_tail(1, t), atan2(1, t) / 3.14159265358979323846, 1e-12);
    for (f64 nu = 2.001; nu < 1e5; nu *= 2.3)
        for (f64 p = 0.5; p > 1e-197; p /= p > 1e-12 ? 3 : 1e5)
            near("t inverse", special_t_tail(nu, special_t_upper(nu, p)), p, 1e-10);
    near("t, many", special_t_upper(1e6, 0.025), 1.9599663519, 1e-8); /* z + (z^3 + z) / (4 nu) */
    for (f64 z = -7; z <= 7; z += 0.21) assert_true(fabs(special_normal_quantile(special_normal_tail(-z)) - z) < 1e-4);
    for (f64 z = -30; z <= 0; z += 0.21) assert_true(fabs(special_normal_quantile(special_normal_tail(-z)) - z) < 1e-12);
}

T_MAIN(cmocka_unit_test(gamma_function_equals_libm_and_its_recurrence),
       cmocka_unit_test(incomplete_gamma_and_beta_equal_sums_of_terms), cmocka_unit_test(small_tails_keep_their_digits),
       cmocka_unit_test(t_distribution_equals_closed_forms_and_inverts))
