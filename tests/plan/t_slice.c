/* t_slice.c - cutting rows, the grain rule, the merge tree. */
#include "t.h"

#include "step/planner.h"
#include "plan/slice.h"

static const struct slice whole = {0, 100, 0, 12};

/* The pieces follow each other from the first row to the last, and have all steps. */
static bool covers(const struct slice *piece, i32 n) {
    i32 at = whole.b0;
    for (i32 i = 0; i < n; i++) {
        if (piece[i].b0 != at || piece[i].b1 <= at || piece[i].t1 != whole.t1) return false;
        at = piece[i].b1;
    }
    return at == whole.b1;
}

TEST(slice_cut_count_covers_every_row_once_at_grains) {
    struct slice out[16];
    for (i32 grain = 1; grain < 40; grain += 3)
        for (i32 n = 1; n <= 16; n++) {
            i32 k = slice_cut_count(whole, grain, n, out);
            assert_int_equal(k, imin(n, ceil_div(100, grain)));
            assert_true(covers(out, k));
            for (i32 i = 0; i < k; i++) {
                assert_int_equal(out[i].b0 % grain, 0);
                assert_in_range(ceil_div(out[0].b1 - out[0].b0, grain) - ceil_div(out[i].b1 - out[i].b0, grain), 0, 1);
            }
        }
}

TEST(slice_cut_weight_follows_the_weights_and_skips_zero) {
    struct slice out[4];
    i32 who[4];
    f64 w[4] = {1, 0, 3, 1};
    i32 k = slice_cut_weight(whole, 10, 4, w, out, who);
    assert_int_equal(k, 3);
    assert_int_equal(who[1], 2);
    assert_int_equal(out[0].b1, 20);
    assert_int_equal(out[1].b1, 80);
    assert_true(covers(out, k));
    f64 tail[4] = {1, 1, 0, 0};
    k = slice_cut_weight(whole, 10, 4, tail, out, who);
    assert_int_equal(k, 2);
    assert_true(covers(out, k));
}

TEST(plan_grain_gives_four_to_eight_grains_from_32_rows_on_or_sixteen_alike) {
    static const i32 known[][2] = {{1, 1},  {7, 1},    {8, 2},    {16, 2},   {31, 4},  {32, 8},
                                   {64, 8}, {255, 32}, {256, 16}, {320, 40}, {448, 56}, {512, 32}};
    for (size_t i = 0; i < COUNT(known); i++) assert_int_equal(plan_grain(known[i][0], 0), known[i][1]);
    for (i32 B = 32; B < 5000; B++) {
        const bool many = B >= 256 && B % 128 == 0;
        assert_in_range(ceil_div(B, plan_grain(B, 0)), many ? 16 : 4, many ? 16 : 8);
        assert_int_equal(plan_grain(B, 0) % 8, 0);
    }
}

TEST(slice_grain_gives_sixteen_grains_at_most_and_few_rows_to_each) {
    static const i32 known[][2] = {{1, 1},  {8, 1},  {16, 1}, {17, 2},  {32, 2},
                                   {33, 4}, {48, 4}, {64, 4}, {65, 8}, {128, 8}, {256, 16}};
    for (size_t i = 0; i < COUNT(known); i++) assert_int_equal(slice_grain(known[i][0]), known[i][1]);
    for (i32 B = 1; B < 5000; B++) {
        assert_int_equal(slice_grains(B), ceil_div(B, slice_grain(B)));
        assert_in_range(slice_grains(B), B < 9 ? B : 9, 16);
    }
}

TEST(merge_pairs_add_every_vector_once_into_the_first) {
    struct merge_pair pair[64];
    for (i32 n = 1; n <= 64; n++) {
        f64 v[64];
        for (i32 i = 0; i < n; i++) v[i] = 1;
        assert_int_equal(merge_pairs(n, pair), n - 1);
        for (i32 k = 0; k < n - 1; k++) {
            assert_int_equal(v[pair[k].a], pair[k].b - pair[k].a);
            assert_int_equal(v[pair[k].b], pair[k].end - pair[k].b);
            v[pair[k].a] += v[pair[k].b];
        }
        assert_int_equal(v[0], n);
    }
}

T_MAIN(cmocka_unit_test(slice_cut_count_covers_every_row_once_at_grains),
       cmocka_unit_test(slice_cut_weight_follows_the_weights_and_skips_zero),
       cmocka_unit_test(plan_grain_gives_four_to_eight_grains_from_32_rows_on_or_sixteen_alike),
       cmocka_unit_test(slice_grain_gives_sixteen_grains_at_most_and_few_rows_to_each),
       cmocka_unit_test(merge_pairs_add_every_vector_once_into_the_first))
