/* t_costs.c - measured costs: sizes in between, busy workers, teams, chunks, and a plan whose every task was measured. */
#include "t.h"

#include "base/mem.h"
#include "model/nets.h"
#include "step/costs.h"
#include "step/planner.h"
#include "toy.h"

static struct net net;
static struct machine machine;
static struct costs costs;

static struct plan *planned(i32 B, const char *on, const char *parallel, const struct costs *known) {
    struct plan *p;
    T_OK(machine_parse(on, &machine));
    const struct plan_request q = {
        .net = &net, .machine = &machine, .B = B, .train = true, .nstate = 1, .parallel = parallel, .costs = known};
    T_OK(plan_make(&q, &p));
    return p;
}

static void put(struct cost c) { costs_put(&costs, c); }

static f64 get(struct cost like) { return costs_get(&costs, &like); }

static void is(f64 got, f64 want) {
    if (fabs(got - want) > 1e-6 * want) fail_msg("%.12g s, expected %.12g", got, want);
}

TEST(between_two_sizes_costs_are_linear) {
    costs.n = 0;
    put((struct cost){.kind = TASK_FWD, .shape = 7, .size = 4, .seconds = 10});
    put((struct cost){.kind = TASK_FWD, .shape = 7, .size = 8, .seconds = 14});
    is(get((struct cost){.kind = TASK_FWD, .shape = 7, .size = 6}), 12);
    is(get((struct cost){.kind = TASK_FWD, .shape = 7, .size = 2}), 5);
    is(get((struct cost){.kind = TASK_FWD, .shape = 7, .size = 16}), 28);
    assert_true(get((struct cost){.kind = TASK_BWD, .shape = 7, .size = 6}) == -1);
    assert_true(get((struct cost){.kind = TASK_FWD, .shape = 8, .size = 6}) == -1);
    assert_true(get((struct cost){.kind = TASK_FWD, .shape = 7, .members = 2, .size = 4}) == -1);
}

/* Busy workers take 1.5 times as long with 4 rows: assumed of 8 rows, too, until those are measured. */
TEST(busy_workers_are_slower_by_what_was_measured_nearby) {
    costs.n = 0;
    put((struct cost){.kind = TASK_FWD, .size = 4, .seconds = 10});
    put((struct cost){.kind = TASK_FWD, .size = 8, .seconds = 14});
    is(get((struct cost){.kind = TASK_FWD, .busy = true, .size = 8}), 14);
    put((struct cost){.kind = TASK_FWD, .busy = true, .size = 4, .seconds = 15});
    is(get((struct cost){.kind = TASK_FWD, .busy = true, .size = 4}), 15);
    is(get((struct cost){.kind = TASK_FWD, .busy = true, .size = 8}), 21);
    put((struct cost){.kind = TASK_FWD, .busy = true, .size = 8, .seconds = 18});
    is(get((struct cost){.kind = TASK_FWD, .busy = true, .size = 8}), 18);
}

/* Second k of task k comes back, and the step is their sum where one device runs them all. */
TEST(a_plan_whose_tasks_were_measured_takes_their_seconds) {
    toy_net(&net);
    costs.n = 0;
    struct plan *p = planned(4, "cpu*1", "serial", NULL);
    f64 *seconds = mem_alloc(p->ntask * sizeof *seconds), sum = 0;
    assert_non_null(seconds);
    for (u32 i = 0; i < p->ntask; i++) sum += seconds[i] = p->task[i].kind == TASK_MERGE ? 5 : 1 + i;
    T_OK(costs_learn(&costs, p, &net, seconds, false));
    put((struct cost){.kind = COST_TASK, .members = 1, .size = 1, .seconds = 0.5});
    put((struct cost){.kind = COST_AROUND, .members = 1, .size = 1, .seconds = 100});
    struct plan *again = planned(4, "cpu*1", "serial", &costs);
    assert_int_equal(again->ntask, p->ntask);
    for (u32 i = 0; i < p->ntask; i++) is((f64)again->task[i].cost, seconds[i] + 0.5);
    is(again->predicted, sum + 0.5 * p->ntask + 100);
    mem_free(seconds);
    plan_free(again);
    plan_free(p);
}

/* Workers of two devices wait as was measured with two; messages take as long as was measured between ranks. */
TEST(waits_and_links_are_those_measured) {
    toy_net(&net);
    costs.n = 0;
    put((struct cost){.kind = COST_SEEN, .members = 2, .size = 1, .seconds = 3});
    put((struct cost){.kind = COST_WAKE, .members = 2, .size = 1, .seconds = 4});
    put((struct cost){.kind = COST_LATENCY, .size = 1, .seconds = 5e-6});
    put((struct cost){.kind = COST_BYTE, .size = 1, .seconds = 1e-10});
    struct plan *p = planned(4, "cpu*2", "data:2", &costs);
    is(p->waits.seen, 3);
    is(p->waits.wake, 4);
    is(p->link_us, 5);
    is(p->link_gbytes, 10);
    plan_free(p);
    p = planned(4, "cpu*1", "serial", &costs);
    is(p->waits.seen, PLAN_SYNC_S);
    plan_free(p);
}

/* A member that was not measured has its share of what the task takes alone; a team that was measured takes that. */
TEST(a_member_has_its_share) {
    toy_team_net(&net);
    costs.n = 0;
    struct plan *p = planned(1, "cpu*3", "unit:3", NULL);
    const struct task *t = p->task;
    while (t->members < 3) t++;
    struct cost whole = costs_key(p, &net, t);
    whole.members = 0;
    whole.seconds = 9;
    put(whole);
    plan_cost(p, &net, &machine, &costs);
    const f64 share = (f64)t->cost;
    assert_true(share >= 3 * TOY_T && share < 9.01 * TOY_T);
    whole.members = 3;
    whole.seconds = 20;
    put(whole);
    plan_cost(p, &net, &machine, &costs);
    assert_true((f64)t->cost >= 20 * TOY_T && (f64)t->cost < 20.01 * TOY_T);
    plan_free(p);
}

/* A rank that has half of its processor takes twice as long as rank 0, from which the costs are: a second a row. */
TEST(a_device_with_half_a_core_takes_twice_as_long) {
    toy_net(&net);
    costs.n = 0;
    struct plan *p = planned(4, "host*2(cpu) shares=1,0.5", "data:2", NULL);
    f64 *seconds = mem_alloc(p->ntask * sizeof *seconds), cost[2] = {0};
    assert_non_null(seconds);
    for (u32 i = 0; i < p->ntask; i++) /* what is said of rank 1 is not read */
        seconds[i] = p->task[i].device == 0 ? p->task[i].box.b1 - p->task[i].box.b0 : 100;
    T_OK(costs_learn(&costs, p, &net, seconds, false));
    plan_cost(p, &net, &machine, &costs);
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (t->kind == TASK_FWD && t->op == 0) cost[t->device] = (f64)t->cost / (t->box.b1 - t->box.b0);
    }
    assert_true(fabs(cost[0] - 1) < 1e-3 && fabs(cost[1] - 2) < 1e-3);
    mem_free(seconds);
    plan_free(p);
}

/* Ranks of one host copy the ranges that the others have updated, at 1 ns a byte and 1 s a message; between hosts these go while
 * the next step is computed. */
TEST(ranks_of_a_host_fetch_each_others_weights) {
    toy_net(&net);
    costs.n = 0;
    put((struct cost){.kind = COST_LATENCY, .size = 1, .seconds = 1});
    put((struct cost){.kind = COST_BYTE, .size = 1, .seconds = 1e-9});
    costs.ranks = 2;
    struct plan *p = planned(4, "host*2(cpu)", "data:2", &costs);
    f64 want[2] = {0};
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].kind == TASK_UPDATE) want[1 - p->task[i].device] += 1 + 4e-9 * (f64)(p->task[i].hi - p->task[i].lo);
    assert_true(want[0] + want[1] > 0);
    is(p->waits.fetch, dmax(want[0], want[1]));
    const f64 with = p->predicted;
    costs.ranks = 1;
    plan_cost(p, &net, &machine, &costs);
    assert_true(p->waits.fetch == 0 && p->predicted < with);
    plan_free(p);
    costs.ranks = 0;
}

TEST(corrected_costs_replace_those_of_the_same_work) {
    static struct costs now;
    costs.n = now.n = 0;
    put((struct cost){.kind = TASK_FWD, .size = 4, .seconds = 10});
    put((struct cost){.kind = TASK_FWD, .size = 8, .seconds = 14});
    costs_put(&now, (struct cost){.kind = TASK_FWD, .size = 8, .seconds = 7});
    costs_put(&now, (struct cost){.kind = TASK_BWD, .size = 8, .seconds = 3});
    costs_correct(&costs, &now);
    assert_int_equal(costs.n, 3);
    is(get((struct cost){.kind = TASK_FWD, .size = 4}), 10);
    is(get((struct cost){.kind = TASK_FWD, .size = 8}), 7);
    is(get((struct cost){.kind = TASK_BWD, .size = 8}), 3);
}

/* Two cells of 64 units on top of each other, 24 steps. */
static void two_cells(void) {
    net_init(&net);
    i32 x = nets_input(&net, "x", 24, 3, false);
    for (i32 k = 0; k < 2; k++) {
        struct op_spec c = net_spec("recurrent", k ? "lstm.1" : "lstm.0", x);
        c.hidden = 64;
        x = net.op[nets_add(&net, &c)].out;
    }
    nets_loss(&net, "loss_mse", nets_dense(&net, "head", x, 2, ACT_NONE), 24, 2, false);
    T_OK(net_check(&net));
}

/* A cell on each rank: seconds that forward of the first needs to send what the second reads, and in how many messages. */
static f64 forward_links(const char *parallel, i32 *messages) {
    struct plan *p = planned(2, "host*2(cpu) gflops=0.001", parallel, &costs);
    f64 sum = 0;
    *messages = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        if (p->task[i].kind != TASK_FWD || p->task[i].op != 0) continue;
        sum += (f64)p->task[i].link;
        ++*messages;
    }
    plan_free(p);
    return sum;
}

TEST(chunks_of_a_wave_send_their_own_steps) {
    i32 few = 0, many = 0;
    two_cells();
    costs.n = 0;
    put((struct cost){.kind = COST_LATENCY, .size = 1, .seconds = 1e-12});
    put((struct cost){.kind = COST_BYTE, .size = 1, .seconds = 1});
    const f64 once = forward_links("pipeline:2", &few), pieces = forward_links("wave:2", &many);
    assert_true(few == 2 && many > 2 && once > 0); /* micro-batches; chunks */
    is(pieces / once, 1); /* f32 in the plan: a part of a million is near enough */
}

/* Updates of busy workers take 3 times as long, for lines of weights that the other worker reads: none are where each stage has
 * weights of its own. */
TEST(a_stage_updates_its_own_weights_as_if_alone) {
    static const struct {
        const char *parallel;
        f64 least, most;
    } cases[] = {{"pipeline:2", 1, 1.5}, {"data:2", 3, 3.01}};
    two_cells();
    for (u32 c = 0; c < COUNT(cases); c++) {
        costs.n = 0;
        put((struct cost){.kind = TASK_UPDATE, .shape = 1, .size = 1, .seconds = 1});
        put((struct cost){.kind = TASK_UPDATE, .shape = 1, .size = 1, .busy = true, .seconds = 3});
        struct plan *p = planned(4, "cpu*2 gflops=0.001", cases[c].parallel, &costs);
        for (u32 i = 0; i < p->ntask; i++) {
            const f64 each = (f64)p->task[i].cost / (f64)(p->task[i].hi - p->task[i].lo);
            if (p->task[i].kind != TASK_UPDATE || p->task[i].hi - p->task[i].lo < 1000) continue;
            if (each < cases[c].least || each > cases[c].most) fail_msg("%s: an element takes %g s", cases[c].parallel, each);
        }
        plan_free(p);
    }
}

T_MAIN(cmocka_unit_test(between_two_sizes_costs_are_linear),
       cmocka_unit_test(busy_workers_are_slower_by_what_was_measured_nearby),
       cmocka_unit_test(a_plan_whose_tasks_were_measured_takes_their_seconds),
       cmocka_unit_test(waits_and_links_are_those_measured),
       cmocka_unit_test(a_member_has_its_share),
       cmocka_unit_test(a_device_with_half_a_core_takes_twice_as_long),
       cmocka_unit_test(ranks_of_a_host_fetch_each_others_weights),
       cmocka_unit_test(corrected_costs_replace_those_of_the_same_work),
       cmocka_unit_test(chunks_of_a_wave_send_their_own_steps), cmocka_unit_test(a_stage_updates_its_own_weights_as_if_alone))
