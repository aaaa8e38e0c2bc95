/* t_balance.c - grains for devices of unlike speed: as good as any other way to deal them out, few at a time, none for a small
 * gain; and plans cut so update the same ranges on the same ranks. */
#include "t.h"

#include <math.h>

#include "model/nets.h"
#include "step/balance.h"

enum { ALL = 1000 };

/* The earliest end of `left` grains on devices i.. with one at least each, by trying everything. */
static f64 best_end(i32 n, i32 i, i32 left, const f64 *seconds) {
    f64 best = INFINITY;
    if (i == n - 1) return left * seconds[i];
    for (i32 k = 1; k <= left - (n - 1 - i); k++) {
        const f64 rest = best_end(n, i + 1, left - k, seconds), end = k * seconds[i] > rest ? k * seconds[i] : rest;
        if (end < best) best = end;
    }
    return best;
}

TEST(balance_finds_the_best_of_all_shares) {
    static const f64 speed[][4] = {{1, 1, 1, 1}, {1, 2, 1, 1}, {1, 1.5, 3, 0.7}, {5, 1, 1, 1}, {1, 1.9, 2.1, 40}};
    for (size_t c = 0; c < COUNT(speed); c++)
        for (i32 n = 2; n <= 4; n++)
            for (i32 all = n; all <= 16; all++) {
                i32 grains[4], sum = 0;
                for (i32 i = 0; i < n; i++) grains[i] = all / n + (i < all % n);
                balance_move(n, grains, speed[c], ALL, 0);
                for (i32 i = 0; i < n; i++) {
                    assert_true(grains[i] >= 1);
                    sum += grains[i];
                }
                assert_int_equal(sum, all);
                const f64 end = balance_end(n, grains, speed[c]), best = best_end(n, 0, all, speed[c]);
                if (fabs(end - best) < 1e-12) continue;
                fail_msg("case %d, %d grains on %d devices: %g, best %g", (int)c, all, n, end, best);
            }
}

TEST(balance_moves_a_few_at_a_time_and_none_for_little) {
    const f64 twice[2] = {1, 2}, nearly[2] = {1, 1.1};
    i32 g[2] = {8, 8};
    assert_int_equal(balance_move(2, g, twice, 2, 0.03), 2);
    assert_int_equal(g[0], 10);
    assert_int_equal(balance_move(2, g, twice, 2, 0.03), 1);
    assert_int_equal(g[0], 11);
    assert_int_equal(balance_move(2, g, twice, 2, 0.03), 0);
    assert_true(balance_reached(2, g, twice) > 0.95 && balance_reached(2, g, twice) < 0.98);
    g[0] = g[1] = 4; /* what half the grains can do */
    balance_move(2, g, twice, ALL, 0);
    assert_true(fabs(balance_reached(2, g, twice) - 8 / 1.5 / 6) < 1e-12);
    g[0] = g[1] = 8;
    assert_int_equal(balance_move(2, g, nearly, 2, 0.03), 0);
    const f64 pairs[4] = {1, 1, 2, 2}; /* two end last: one move is no gain */
    i32 four[4] = {4, 4, 4, 4};
    assert_int_equal(balance_move(4, four, pairs, 1, 0.03), 2);
    assert_true(balance_end(4, four, pairs) < 8);
    g[0] = g[1] = 1; /* nothing to give */
    assert_int_equal(balance_move(2, g, twice, 2, 0.03), 0);
}

static struct net net;
static struct machine machine;

static struct plan *plan_of(const char *ranks, i32 B, i32 grains, const char *parallel, const i32 *weight) {
    struct plan *p;
    T_OK(machine_parse(ranks, &machine));
    for (i32 d = 0; weight && d < machine.ndevice; d++) machine.device[d].weight = weight[d];
    struct plan_request q = {.net = &net, .machine = &machine, .B = B, .train = true, .nstate = 2, .grains = grains,
                             .parallel = parallel};
    T_OK(plan_make(&q, &p));
    return p;
}

TEST(balance_is_for_plans_that_share_rows_among_ranks) {
    i32 g[MACHINE_DEVICES];
    nets_short(&net, (struct shape){.T = 5, .I = 3, .H = 40, .w = 5}, CELL_LSTM, "loss_mse");
    const struct {
        const char *ranks, *parallel;
        bool can;
    } cases[] = {{"host*2(cpu*1)", "data_sync", true},
                 {"host*2(cpu*2)", "data_sync:4", true},
                 {"host*2(cpu*2)", "data_sync:2", false},
                 {"host*2(cpu*1)", "pipeline:2", false},
                 {"host*2(cpu*1)", "serial", false},
                 {"host*1(cpu*4)", "data_sync", false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct plan *p = plan_of(cases[i].ranks, 64, 0, cases[i].parallel, NULL);
        assert_int_equal(plan_grains(p, g), cases[i].can);
        plan_free(p);
    }
}

TEST(balance_by_weights_keeps_updates_where_they_are) {
    static const i32 shares[][4] = {{5, 5, 3, 3}, {1, 13, 1, 1}, {7, 2, 3, 4}, {4, 4, 4, 4}};
    i32 g[MACHINE_DEVICES];
    nets_short(&net, (struct shape){.T = 5, .I = 3, .H = 40, .w = 5}, CELL_LSTM, "loss_mse");
    struct plan *even = plan_of("host*2(cpu*2)", 128, 16, "data_sync", NULL);
    assert_int_equal(even->ngrain, 16);
    for (size_t i = 0; i < COUNT(shares); i++) {
        struct plan *p = plan_of("host*2(cpu*2)", 128, 16, even->strategy, shares[i]);
        assert_true(plan_grains(p, g));
        for (i32 d = 0; d < 4; d++) assert_int_equal(g[d], shares[i][d]);
        assert_true(plan_same_updates(even, p));
        plan_free(p);
    }
    struct plan *other = plan_of("host*4(cpu*1)", 128, 16, "data_sync", NULL);
    assert_false(plan_same_updates(even, other));
    plan_free(other);
    plan_free(even);
}

TEST(grains_that_are_wanted_are_about_that_many) {
    static const i32 known[][3] = {{256, 16, 16}, {256, 24, 16}, {64, 16, 4}, {64, 64, 1}, {40, 16, 4}, {7, 16, 1}, {192, 24, 8}};
    for (size_t i = 0; i < COUNT(known); i++) assert_int_equal(plan_grain(known[i][0], known[i][1]), known[i][2]);
    for (i32 B = 1; B < 3000; B++)
        for (i32 n = 1; n <= 256; n *= 2) assert_in_range(ceil_div(B, plan_grain(B, n)), 1, n);
}

T_MAIN(cmocka_unit_test(balance_finds_the_best_of_all_shares),
       cmocka_unit_test(balance_moves_a_few_at_a_time_and_none_for_little),
       cmocka_unit_test(balance_is_for_plans_that_share_rows_among_ranks),
       cmocka_unit_test(balance_by_weights_keeps_updates_where_they_are),
       cmocka_unit_test(grains_that_are_wanted_are_about_that_many))
