/* t_vec.c - sigmoid, tanh and friends of every instruction set: error bounds over the whole range, saturation, NaN, tails. */
#define _GNU_SOURCE
#include "t.h"

#include "base/mem.h"
#include "base/rng.h"
#include "kern/kern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 16 };
static f32 in_[N + 64], out_[N + 64];

#define EACH_ARCH(k)                                   \
    for (enum kern_arch a_ = 0; a_ < KERN_NARCH; a_++) \
        for (const struct kern *k = kern_get(a_); k; k = NULL)

/* Worst error over [lo, hi], relative to the value or absolute. */
static f64 worst(void (*f)(i64, f32 *, const f32 *), f64 (*exact)(f64), f64 lo, f64 hi, bool relative) {
    f64 most = 0;
    for (i32 j = 0; j < N; j++) in_[j] = (f32)(lo + (hi - lo) * j / (N - 1));
    f(N, out_, in_);
    for (i32 j = 0; j < N; j++) {
        const f64 want = exact((f64)in_[j]), d = fabs((f64)out_[j] - want);
        most = fmax(most, relative && want != 0 ? d / fabs(want) : d);
    }
    return most;
}

static f64 sigmoid1(f64 x) { return 1 / (1 + exp(-x)); }

/* For large x the error grows like that of x log2(e): 2e-7 + 5e-8 |x| relative. */
TEST(sigmoid_is_within_4e_7_of_its_value) {
    EACH_ARCH(k) {
        assert_true(worst(k->sigmoid, sigmoid1, -4, 4, true) < 4e-7);
        assert_true(worst(k->sigmoid, sigmoid1, -20, 80, true) < 1.2e-6);
        assert_true(worst(k->sigmoid, sigmoid1, -80, 80, true) < 4.2e-6);
        assert_true(worst(k->sigmoid, sigmoid1, -80, 80, false) < 2e-7);
    }
}

TEST(tanh_is_within_5e_7_of_its_value) {
    EACH_ARCH(k) {
        assert_true(worst(k->tanh, tanh, -12, 12, true) < 5e-7);
        assert_true(worst(k->tanh, tanh, -0.01, 0.01, true) < 5e-7);
        assert_true(worst(k->tanh, tanh, -100, 100, false) < 5e-7);
    }
}

TEST(activations_saturate_exactly_and_stay_in_range) {
    const f32 big[] = {20, 50, 100, 1000, 3e38f, INFINITY};
    EACH_ARCH(k) {
        for (size_t j = 0; j < COUNT(big); j++) {
            f32 v[2] = {big[j], -big[j]}, r[2];
            k->tanh(2, r, v);
            assert_true(r[0] == 1 && r[1] == -1);
            k->sigmoid(2, r, v);
            assert_true(r[0] == 1 && r[1] >= 0 && r[1] < 1e-8f);
        }
        f32 v[1] = {-100}, r[1];
        k->sigmoid(1, r, v);
        assert_true(r[0] >= 0 && r[0] < 1.2e-38f);
        worst(k->tanh, tanh, 7, 10, true);
        for (i32 j = 0; j < N; j++) assert_true(fabsf(out_[j]) <= 1);
        worst(k->tanh, tanh, -0.5, 0.5, true);
        for (i32 j = 0; j < N; j++) assert_true(out_[j] == 0 || signbit(out_[j]) == signbit(in_[j]));
        worst(k->sigmoid, sigmoid1, -30, 30, true);
        for (i32 j = 0; j < N; j++) assert_true(out_[j] >= 0 && out_[j] <= 1);
    }
}

TEST(activations_pass_nan_on) {
    EACH_ARCH(k) {
        f32 v[3] = {NAN, 0, -NAN}, r[3];
        k->tanh(3, r, v);
        assert_true(isnan(r[0]) && r[1] == 0 && isnan(r[2]));
        k->sigmoid(3, r, v);
        assert_true(isnan(r[0]) && r[1] == 0.5f && isnan(r[2]));
    }
}

TEST(vectors_touch_n_elements_at_any_alignment) {
    for (i32 j = 0; j < 200; j++) in_[j] = (f32)j / 50 - 2;
    EACH_ARCH(k) {
        for (i32 n = 0; n < 70; n++) {
            const i32 at = n % 5;
            for (i32 j = 0; j < 100; j++) out_[j] = 3;
            k->add(n, out_ + at, in_ + 1);
            for (i32 j = 0; j < 100; j++) assert_true(out_[j] == (j >= at && j < at + n ? 3 + in_[1 + j - at] : 3));
            k->tanh(n, out_ + at, in_ + 1);
            for (i32 j = 0; j < 100; j++)
                assert_true(j >= at && j < at + n ? fabsf(out_[j] - tanhf(in_[1 + j - at])) < 1e-6f : out_[j] == 3);
            k->sigmoid(n, out_ + at, out_ + at); /* in place */
            for (i32 j = 0; j < 100; j++) assert_true(j >= at && j < at + n ? out_[j] < 1 : out_[j] == 3);
        }
    }
}

TEST(sumsq_gives_the_same_bits_on_every_set) {
    for (i32 n = 0; n < 300; n++) {
        for (i32 j = 0; j < n; j++) in_[j] = rng_uniform(5, RNG_TEST, (u32)n, (u64)j) - 0.5f;
        f64 plain = 0;
        for (i32 j = 0; j < n; j++) plain += (f64)in_[j] * (f64)in_[j];
        const f64 ref = kern_get(KERN_REF)->sumsq(n, in_);
        assert_true(fabs(ref - plain) <= 1e-13 * plain);
        EACH_ARCH(k) {
            const f64 got = k->sumsq(n, in_);
            assert_memory_equal(&got, &ref, sizeof got);
        }
    }
}

TEST(fma_rate_is_plausible) {
    EACH_ARCH(k) {
        const f64 rate = k->fma_rate(20000);
        assert_true(rate > (t_few() ? 0 : 0.05) && rate < 2000);
    }
}

TEST(kern_table_names_and_choice) {
    assert_string_equal(kern_arch_name(KERN_AVX512), "avx512");
    assert_non_null(kern_get(KERN_REF));
    assert_non_null(kern_get(KERN_BASE));
    EACH_ARCH(k) { assert_true(k->arch == a_ && strcmp(k->name, kern_arch_name(a_)) == 0); }
    const char *demand = getenv("STRETTO_ISA");
    if (demand && *demand && kern_init() == 0) assert_string_equal(kern_best()->name, demand);
    if (!demand) T_OK(kern_init());
}

T_MAIN(cmocka_unit_test(sigmoid_is_within_4e_7_of_its_value), cmocka_unit_test(tanh_is_within_5e_7_of_its_value),
       cmocka_unit_test(activations_saturate_exactly_and_stay_in_range), cmocka_unit_test(activations_pass_nan_on),
       cmocka_unit_test(vectors_touch_n_elements_at_any_alignment), cmocka_unit_test(sumsq_gives_the_same_bits_on_every_set),
       cmocka_unit_test(fma_rate_is_plausible), cmocka_unit_test(kern_table_names_and_choice))
