/* t_overlap.c - how many independent errors the errors of overlapping windows are worth. */
#include <math.h>
#include <string.h>

#include "learn/forecast/overlap.h"
#include "t.h"

enum { H = 16, N = 4000 };

static f32 noise_at(u64 *state) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (f32)((f64)(*state >> 40) / (1 << 24) - 0.5);
}

/* Errors of the last value of a random walk (walk), or of the mean of white noise; about `level`. */
static void errors(bool walk, f32 level, f32 *r) {
    static f32 x[N + H];
    u64 state = 7;
    for (i32 i = 0; i < N + H; i++) x[i] = noise_at(&state) + (walk && i > 0 ? x[i - 1] : 0);
    for (i32 k = 0; k < H; k++)
        for (i32 i = 0; i < N; i++) r[k * N + i] = level + (walk ? x[i + k] - (i > 0 ? x[i - 1] : 0) : x[i + k]);
}

static f64 time_of(const f32 *r, i64 border, i64 stride, i32 step) {
    struct overlap o;
    T_OK(overlap_new(H, N, border, stride, &o));
    overlap_add(&o, r);
    const f64 time = overlap_time(&o, step);
    overlap_free(&o);
    return time;
}

static f32 r[H * N];

TEST(white_noise_is_worth_all_of_it) {
    errors(false, 0, r);
    for (i32 k = 0; k < H; k += 5) assert_true(time_of(r, 0, 1, k) < 1.2);
}

/* Errors k steps ahead of a random walk share k - l of k steps with those l origins later: the sum is k. */
TEST(errors_of_a_walk_overlap_for_the_steps_ahead) {
    errors(true, 0, r);
    const f64 first = time_of(r, 0, 1, 1), last = time_of(r, 0, 1, H - 1);
    if (!(first > 1 && first < 3 && last > 12 && last < 18)) fail_msg("%g and %g", first, last);
}

/* An error on one side of the forecast is one event, however long it lasts; a gap between two parts ends it. */
TEST(errors_on_one_side_are_one_event) {
    errors(false, 3, r);
    assert_true(time_of(r, 0, 1, 0) > 2 * H);
    assert_true(time_of(r, 0, 2 * H, 0) < 3.5); /* origins so far apart have one neighbour each */
}

TEST(missing_errors_and_zeros_are_worth_themselves) {
    memset(r, 0, sizeof r);
    assert_true(time_of(r, 0, 1, 3) == 1);
    for (i32 i = 0; i < H * N; i++) r[i] = NAN;
    assert_true(time_of(r, N / 2, 1, 3) == 1);
}

/* Four origins, two of them in each part: one pair a part. */
TEST(pairs_lie_within_a_part) {
    struct overlap o;
    for (i32 i = 0; i < 4; i++) r[i] = i < 2 ? 1 : -1;
    T_OK(overlap_new(1, 4, 2, 1, &o));
    overlap_add(&o, r);
    assert_true(o.lags == 2 && o.pairs[7 * 3 + 1] == 0 && o.pairs[1] == 2 && o.pairs[2] == 0);
    overlap_free(&o);
}

T_MAIN(cmocka_unit_test(white_noise_is_worth_all_of_it), cmocka_unit_test(errors_of_a_walk_overlap_for_the_steps_ahead),
       cmocka_unit_test(errors_on_one_side_are_one_event), cmocka_unit_test(missing_errors_and_zeros_are_worth_themselves),
       cmocka_unit_test(pairs_lie_within_a_part))
