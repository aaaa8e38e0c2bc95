/* t_simulate.c - plans with times that were put in by hand take exactly the seconds that were worked out by hand. */
#include "t.h"

#include "base/mem.h"
#include "model/layer.h"
#include "step/planner.h"
#include "step/simulate.h"
#include "toy.h"

enum { SLICES = 4, STEPS = 50 };

static struct net net;
static struct machine machine;
static struct costs costs;
static struct walks walks;

static struct plan *planned(i32 B, const char *on, const char *parallel, i32 slices) {
    struct plan *p;
    T_OK(machine_parse(on, &machine));
    const struct plan_request q = {
        .net = &net, .machine = &machine, .B = B, .train = true, .nstate = 1, .parallel = parallel, .slices = slices};
    T_OK(plan_make(&q, &p));
    costs = (struct costs){0};
    memset(&walks, 0, sizeof walks);
    return p;
}

static struct cost kind_of(enum task_kind kind, i32 op, i32 rows) {
    const bool layer = kind == TASK_FWD || kind == TASK_BWD || kind == TASK_PREP;
    const u64 shape = layer ? costs_shape(&net, op, 1) : kind == TASK_UPDATE; /* one vector of optimiser state */
    return (struct cost){.kind = (u8)kind, .shape = shape, .size = imax(1, rows)};
}

static f64 get(enum task_kind kind, i32 op, i32 rows) {
    const struct cost like = kind_of(kind, op, rows);
    return costs_get(&costs, &like);
}

/* Of an op; of an element of theta, if it has no rows. */
static void put(enum task_kind kind, i32 op, i32 rows, f64 seconds) {
    struct cost c = kind_of(kind, op, rows);
    c.seconds = seconds;
    costs_put(&costs, c);
}

static void put_sums(f64 merge, f64 norm, f64 update, f64 zero) {
    put(TASK_MERGE, 0, 0, merge), put(TASK_NORM, 0, 0, norm), put(TASK_UPDATE, 0, 0, update), put(TASK_ZERO, 0, 0, zero);
}

static f64 simulated(struct plan *p, u32 guesses) {
    u32 guessed;
    T_OK(plan_simulate(p, &net, &costs, &walks, &guessed));
    assert_int_equal(guessed, guesses);
    return p->predicted;
}

static void seconds_are(f64 got, f64 want) {
    if (fabs(got - want) > 1e-12 * want) fail_msg("%.12g s, %.12g were worked out", got, want);
}

/* x [3][4][20] -> a, b, c, loss: one device does all, one after another.  4 grains: 3 merges of all of theta. */
TEST(a_serial_plan_takes_the_sum_of_its_tasks) {
    toy_net(&net);
    struct plan *p = planned(4, "cpu*1", "serial", 0);
    const f64 unit = 0x1p-20, theta = (f64)net.ntheta;
    f64 steps = 0;
    for (i32 l = 0; l < 4; l++) {
        put(TASK_FWD, l, 4, 0.25 * (l + 1));
        put(TASK_BWD, l, 4, 0.5 * (l + 1));
        steps += 0.75 * (l + 1) * TOY_T;
    }
    put(TASK_PREP, 0, 0, 0.125), put(TASK_PREP, 2, 0, 0.0625);
    put_sums(unit, 2 * unit, 4 * unit, 8 * unit);
    seconds_are(simulated(p, 0), steps + 0.1875 + theta * unit * (3 * 1 + 2 + 4 + 4 * 8));
    plan_free(p);
}

/* 5 rows of 5 grains: 3 and 2.  A step of 3 rows lies halfway between those of 2 and 4 that were measured: 0.5 s.
 *
 *     device 0   prep a 0.25 | 4 forward 4 x 3 x 0.5 | zero 3 | 4 backward 6 | merge 0 1
 *     device 1   prep c 0.25 | half of that                        waits     | merge 2 3, 0 2, 0 4 | norm | update     */
TEST(two_devices_wait_for_the_slower_one) {
    toy_net(&net);
    struct plan *p = planned(5, "cpu*2", "data_sync:2", 0);
    const f64 unit = 0x1p-12, theta = (f64)net.ntheta;
    for (i32 l = 0; l < 4; l++)
        for (i32 kind = TASK_FWD; kind <= TASK_BWD; kind++) put(kind, l, 2, 0.25), put(kind, l, 4, 0.75);
    put(TASK_PREP, 0, 0, 0.25), put(TASK_PREP, 2, 0, 0.25);
    put_sums(unit, unit, 2 * unit, 0.5 * unit);
    seconds_are(simulated(p, 0), 0.25 + 8 * TOY_T * 0.5 + theta * unit * (3 * 0.5 + 3 + 1 + 2) + PLAN_SYNC_S);
    plan_free(p);
}

static void sliced_net(void) {
    net_init(&net);
    i32 x, after, op;
    T_OK(net_input(&net, "x", STEPS, 3, false, &x));
    T_OK(net_input(&net, "after", 1, 1, true, &after));
    struct op_spec s = net_spec("recurrent", "lstm", x), loss;
    s.hidden = 20, s.in[3] = after;
    T_OK(net_op(&net, &s, &op));
    loss = net_spec("loss_mse", "loss", net.op[op].out);
    T_OK(net_input(&net, "target", STEPS, 20, false, &loss.in[1]));
    T_OK(net_op(&net, &loss, NULL));
    T_OK(net_check(&net));
}

/* Forward two rounds, backward one; a step of 1, 2, 4 slices side by side takes 2/16, 3/16, 5/16 s, backward twice that. */
static const i32 ran[2][SLICES] = {{STEPS, STEPS, STEPS, STEPS}, {0, 8, 24, 16}};

static struct plan *sliced(const char *on, bool four) {
    sliced_net();
    struct plan *p = planned(SLICES, on, "time", SLICES);
    for (i32 kind = TASK_FWD; kind <= TASK_BWD; kind++) {
        const f64 unit = kind == TASK_FWD ? 0.0625 : 0.125;
        put(kind, 0, 1, 2 * unit), put(kind, 0, 2, 3 * unit), put(kind, 1, 4, 0);
        if (four) put(kind, 0, 4, 5 * unit);
    }
    put(TASK_PREP, 0, 0, 0), put(TASK_PREP, 1, 0, 0);
    put_sums(0, 0, 0, 0);
    walks.op[0][0] = (struct walk){.nslice = SLICES, .rounds = 2, .kept = 2, .ran = ran[0]};
    walks.op[0][1] = (struct walk){.nslice = SLICES, .rounds = 1, .kept = 1, .ran = ran[0]};
    return p;
}

static f64 chain_cost(const struct plan *p, enum task_kind kind) {
    f64 cost = -1;
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].kind == kind && p->task[i].op == 0) {
            if (cost >= 0) assert_true((f64)p->task[i].cost == cost); /* members are at it together */
            cost = (f64)p->task[i].cost;
        }
    return cost;
}

/*     round 1   both   50 steps of 2 slices              9.375
 *     round 2   0      8 of slice 1                      1
 *               1      16 of both, 8 of slice 2          3 + 1 */
TEST(two_members_wait_for_each_other_every_round) {
    struct plan *p = sliced("cpu*2", false);
    const f64 took = simulated(p, 0);
    assert_true(chain_cost(p, TASK_FWD) == (f64)(f32)(9.375 + 4 + 4 * PLAN_SYNC_S));
    assert_true(chain_cost(p, TASK_BWD) == (f64)(f32)(18.75 + 2 * PLAN_SYNC_S));
    assert_in_range((uintmax_t)(1e6 * (took - 13.375 - 18.75)), 1, 20); /* microseconds of waiting */
    plan_free(p);
}

/* 50 steps of 4; 8 of 3 (a quarter of a second, between 2 and 4), 8 of 2, 8 of 1. */
TEST(one_device_walks_all_slices_side_by_side) {
    struct plan *p = sliced("cpu*1", true);
    seconds_are(simulated(p, 0), 15.625 + 2 + 1.5 + 1 + 31.25);
    plan_free(p);
}

TEST(rounds_that_are_not_kept_are_like_the_last_one) {
    struct plan *p = sliced("cpu*1", true);
    walks.op[0][0].rounds = 4;
    seconds_are(simulated(p, 0), 15.625 + 3 * 4.5 + 31.25);
    plan_free(p);
}

TEST(what_was_not_measured_keeps_the_cost_model) {
    struct plan *p = sliced("cpu*2", false);
    const f64 model = p->predicted;
    costs.n = 0;
    assert_true(simulated(p, p->ntask) == model);
    put(TASK_FWD, 0, 2, 1);
    walks.op[0][0].rounds = 0; /* its rounds are not known */
    assert_true(simulated(p, p->ntask) == model);
    walks.op[0][0].rounds = 2;
    assert_true(simulated(p, p->ntask - 2) > 50);
    walks.op[0][0].nslice = SLICES - 1;
    u32 guessed;
    T_FAILS(plan_simulate(p, &net, &costs, &walks, &guessed), E1);
    plan_free(p);
}

/* What put in by hand comes out again: the whole forward chain took 20.125 s, and steps of 1 and 2 slices are known. */
TEST(costs_are_learnt_from_a_step_on_one_device) {
    struct plan *p = sliced("cpu*1", false);
    f64 *seconds = mem_alloc(p->ntask * sizeof *seconds), sum = 0;
    i32 merges = 0;
    assert_non_null(seconds);
    costs.n = 2; /* steps of the chain forward alone */
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        const bool again = t->kind == TASK_MERGE && merges++ > 0; /* seen as one with the first */
        seconds[i] = again ? 0 : t->op == 0 && t->kind == TASK_FWD ? 20.125 : 0.5;
        sum += seconds[i];
    }
    assert_int_equal(merges, 3);
    T_OK(costs_learn_walks(&costs, p, &net, &walks, seconds));
    seconds_are(get(TASK_FWD, 0, 4), 0.3125);
    seconds_are(get(TASK_FWD, 0, 3), 0.25);
    seconds_are(get(TASK_FWD, 0, 8), 0.625);
    seconds_are(get(TASK_MERGE, 0, 0), 0.5 / (3 * (f64)net.ntheta));
    const f64 got = simulated(p, 0);
    if (fabs(got - sum) > 1e-6 * sum) fail_msg("%.9g s where the tasks took %.9g", got, sum);
    mem_free(seconds);
    plan_free(p);
}

/* Both members' rows, done by one worker: 50 + 50 + 16 steps of 2 slices, 8 + 8 of 1, which is known: 21.75 + 2 s. */
TEST(costs_are_learnt_from_members_on_one_worker) {
    struct plan *p = sliced("cpu*2", false);
    f64 seconds[64] = {0};
    assert_in_range(p->ntask, 1, COUNT(seconds));
    costs.n = 1;
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].kind == TASK_FWD && p->task[i].op == 0 && p->task[i].member == 0) seconds[i] = 23.75;
    T_OK(costs_learn_walks(&costs, p, &net, &walks, seconds));
    assert_int_equal(costs.n, 2);
    seconds_are(get(TASK_FWD, 0, 2), 0.1875);
    plan_free(p);
}

TEST(costs_stay_and_are_limited) {
    costs.n = 0;
    put(TASK_FWD, 0, 1, 1), put(TASK_FWD, 0, 1, 2);
    assert_true(get(TASK_FWD, 0, 1) == 1);
    assert_true(get(TASK_BWD, 0, 1) == -1);
    for (i32 rows = 2; rows <= COSTS_MAX; rows++) put(TASK_FWD, 0, rows, 1);
    put(TASK_FWD, 0, COSTS_MAX + 1, 2); /* does not fit */
    assert_int_equal(costs.n, COSTS_MAX);
    assert_true(get(TASK_FWD, 0, COSTS_MAX + 1) > 1 && get(TASK_FWD, 0, COSTS_MAX + 1) < 2);
}

T_MAIN(cmocka_unit_test(a_serial_plan_takes_the_sum_of_its_tasks), cmocka_unit_test(two_devices_wait_for_the_slower_one),
       cmocka_unit_test(two_members_wait_for_each_other_every_round), cmocka_unit_test(one_device_walks_all_slices_side_by_side),
       cmocka_unit_test(rounds_that_are_not_kept_are_like_the_last_one),
       cmocka_unit_test(what_was_not_measured_keeps_the_cost_model), cmocka_unit_test(costs_are_learnt_from_a_step_on_one_device),
       cmocka_unit_test(costs_are_learnt_from_members_on_one_worker), cmocka_unit_test(costs_stay_and_are_limited))
