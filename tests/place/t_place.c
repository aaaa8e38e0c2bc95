/* t_place.c - placement: the simulator against times by hand, closed forms, bounds, orders, limits of memory, bad input. */
#include "place/graphs.h"

#include "base/mem.h"

/* A placement to overwrite: the test sets device and order. */
static struct placement *blank(const struct place_graph *g, const struct place_machine *m) {
    struct placement *p;
    T_OK(place_run("single", g, m, NULL, &p));
    return p;
}

/* Node x on device at[x]; each device runs its nodes by number. */
static void by_number(struct placement *p, const i32 *at) {
    i32 n = 0;
    for (i32 d = 0; d < p->ndevice; d++) {
        p->first[d] = n;
        for (i32 x = 0; x < p->nnode; x++)
            if (at[x] == d) p->order[n++] = x;
    }
    p->first[p->ndevice] = n;
    memcpy(p->device, at, (size_t)p->nnode * sizeof *at);
}

static f64 makespan(const char *method, const struct place_graph *g, const struct place_machine *m) {
    const struct place_options o = {.no_contention = true};
    struct placement *p;
    T_OK(place_run(method, g, m, &o, &p));
    check_placement(g, m, p);
    const f64 seconds = p->makespan;
    placement_free(p);
    return seconds;
}

/* Two sources on device 0 whose results go to device 1: 4 s each on the link. */
static struct place_node fan[] = {{1, 0, 0, 0, 0, 0}, {1, 0, 1, 0, 0, 0}, {2, 0, 2, 0, 0, 0}, {2, 0, 3, 0, 0, 0}};
static struct place_edge fan_edge[] = {{0, 2, 40}, {1, 3, 40}};
static struct place_unit no_cost[2];
static const struct place_graph fan_graph = {4, 2, 1, 4, fan, fan_edge, no_cost, false, {0}};

TEST(transfers_overlap_tasks_and_hold_their_link) {
    struct place_machine m;
    T_OK(place_machine_equal(2, (struct place_link){0, 10}, &m));
    struct placement *p = blank(&fan_graph, &m);
    by_number(p, (i32[]){0, 0, 1, 1});
    T_OK(place_judge(&fan_graph, &m, NULL, p));
    assert_true(p->start[1] == 1 && p->start[2] == 5 && p->start[3] == 9); /* the second transfer waits for the first: 1+4+4 */
    assert_true(p->makespan == 11 && p->busy[0] == 2 && p->busy[1] == 4);
    T_OK(place_judge(&fan_graph, &m, &(struct place_options){.no_contention = true}, p));
    assert_true(p->start[2] == 5 && p->start[3] == 7 && p->makespan == 9); /* there at 6, but device 1 is busy until 7 */
    placement_free(p);
    place_machine_free(&m);
}

TEST(devices_of_a_rank_share_its_link) {
    struct place_device device[4] = {{1, 0, 0}, {1, 0, 0}, {2, 0, 1}, {1, 0, 1}};
    struct place_machine m = {.ndevice = 4, .nrank = 2, .device = device, .inside = {0, INFINITY}, .between = {1, 20}};
    struct placement *p = blank(&fan_graph, &m);
    by_number(p, (i32[]){0, 1, 2, 3}); /* both sources end at 1; a transfer takes 1 + 2 */
    T_OK(place_judge(&fan_graph, &m, NULL, p));
    assert_true(p->start[2] == 4 && p->end[2] == 5 && p->start[3] == 7);
    const struct place_link pair[4] = {{9, 9}, {1, 40}, {1, 10}, {9, 9}};
    m.pair = pair;
    T_OK(place_judge(&fan_graph, &m, NULL, p));
    assert_true(p->start[2] == 3 && p->start[3] == 5);
    m.pair = NULL;
    by_number(p, (i32[]){0, 0, 1, 1}); /* inside a rank */
    T_OK(place_judge(&fan_graph, &m, NULL, p));
    assert_true(p->start[2] == 1 && p->makespan == 5);
    placement_free(p);
}

TEST(order_is_followed_and_waits) {
    struct place_machine m = machine_of(2, 3);
    struct placement *p = blank(&fan_graph, &m);
    by_number(p, (i32[]){0, 1, 1, 0});
    T_OK(place_judge(&fan_graph, &m, NULL, p));
    assert_true(p->makespan == 6);       /* 1 + 3 + 2 on both */
    const i32 swapped[4] = {3, 0, 2, 1}; /* device 0 runs node 3 before node 0, device 1 node 2 before node 1: no one can start */
    memcpy(p->order, swapped, sizeof swapped);
    T_FAILS(place_judge(&fan_graph, &m, NULL, p), 401);
    memcpy(p->order, (i32[]){3, 0, 1, 2}, sizeof swapped); /* node 0 waits for node 3 */
    T_OK(place_judge(&fan_graph, &m, NULL, p));
    assert_true(p->start[3] == 4 && p->start[0] == 6 && p->start[2] == 10 && p->makespan == 12);
    placement_free(p);
    place_machine_free(&m);
}

TEST(copies_of_weights_cost_their_sums) {
    struct place_unit unit = {.memory = 7, .copy_seconds = 2, .copy_bytes = 30};
    struct place_graph g = fan_graph;
    struct place_machine m;
    g.unit = &unit;
    T_OK(place_machine_equal(3, (struct place_link){0.5, 10}, &m));
    struct placement *p = blank(&g, &m);
    assert_int_equal(p->copies, 0);
    g.nedge = 0;
    by_number(p, (i32[]){0, 1, 2, 0});
    T_OK(place_judge(&g, &m, NULL, p)); /* the last node ends at 3; two sums of 2 + 0.5 + 3 */
    assert_true(p->copies == 2 && p->makespan == 3 + 2 * 5.5 && p->peak[2] == 7);
    g.ring = true;
    T_OK(place_judge(&g, &m, NULL, p)); /* 2 + 4 steps of 0.5 + 1 */
    assert_true(fabs(p->makespan - (3 + 2 + 4 * 1.5)) < 1e-12);
    placement_free(p);
    place_machine_free(&m);
}

TEST(graph_of_an_lstm_has_its_edges) {
    struct place_graph g;
    graph_of(2, 3, true, 2, 1, 0, 8, &g);
    assert_int_equal(g.nnode, 2 * 6 + 3);
    assert_int_equal(g.ngroup, 6 + 3);
    assert_int_equal(g.nunit, 3);
    assert_int_equal(g.nedge,
                     (3 + 4) + 3 + (6 + 3 + 3 + 4)); /* up and along; to the head; of backward: saved, down, head, along */
    struct place_machine m = machine_of(1, 0);
    struct place_bound b;
    T_OK(place_lower_bound(&g, &m, &b));
    assert_true(b.seconds == 2 * 9 + 3);
    place_graph_free(&g);
    place_machine_free(&m);
    graph_of(2, 3, false, 0, 0, 0, 8, &g); /* forward of micro-batches alone */
    assert_true(g.nnode == 6 && g.nedge == 3 && g.nunit == 2);
    place_graph_free(&g);
    const struct place_lstm none = {0, 3, true, NULL, false, NULL};
    T_FAILS(place_lstm(&none, &g), 401);
}

TEST(cyclic_and_blocks_follow_their_closed_forms) {
    for (i32 P = 2; P <= 4; P++)
        for (i32 per = 1; per <= 3; per++)
            for (i32 C = P; C <= 9; C += 3) {
                const i32 L = P * per;
                struct place_graph g;
                struct place_machine m = machine_of(P, 0);
                struct place_bound b;
                graph_of(L, C, true, 0, 0, 0, 0, &g);
                assert_true(makespan("cyclic", &g, &m) == L * C / P + P - 1);
                assert_true(makespan("blocks", &g, &m) == per * (C + P - 1));
                T_OK(place_lower_bound(&g, &m, &b));
                assert_true(fabs(b.seconds - (L * C / P + P - 1)) < 1e-9); /* both ramps: cyclic is optimal */
                assert_true(makespan("best", &g, &m) == L * C / P + P - 1);
                place_graph_free(&g);
                place_machine_free(&m);
            }
}

TEST(bounds_are_what_their_names_say) {
    struct place_graph g;
    struct place_bound b;
    struct place_machine m = machine_of(2, 0);
    graph_of(1, 4, true, 0, 0, 0, 0, &g);
    T_OK(place_lower_bound(&g, &m, &b));
    assert_string_equal(b.name, "critical path");
    assert_true(b.seconds == 4);
    place_graph_free(&g);
    graph_of(1, 8, false, 0, 0, 0, 0, &g);
    m.device[1].speed = 3;
    T_OK(place_lower_bound(&g, &m, &b));
    assert_string_equal(b.name, "work");
    assert_true(b.seconds == 2);
    place_graph_free(&g);
    graph_of(4, 4, true, 0, 0, 0, 0, &g);
    m.device[1].speed = 1;
    T_OK(place_lower_bound(&g, &m, &b));
    assert_string_equal(b.name, "head-body-tail");
    assert_true(b.seconds == 9);
    place_graph_free(&g);
    place_machine_free(&m);
}

/* Micro-batches: backward frees what forward kept, so that a limit below all activations admits one after the other. */
TEST(memory_is_freed_by_backward) {
    struct place_graph g;
    struct place_machine m = machine_of(2, 0);
    struct placement *p;
    graph_of(2, 8, false, 2, 0, 0, 0, &g); /* 100 for weights of a layer, 10 per micro-batch */
    T_OK(place_run("blocks", &g, &m, NULL, &p));
    assert_int_equal(p->peak[0], 100 + 80);
    const f64 unlimited = p->makespan;
    placement_free(p);
    m.device[0].memory = m.device[1].memory = 100 + 20;
    T_OK(place_run("blocks", &g, &m, NULL, &p));
    assert_true(p->fits && p->peak[0] == 120 && p->peak[1] <= 120);
    assert_true(p->makespan >= unlimited && p->makespan < 2 * unlimited);
    check_placement(&g, &m, p);
    placement_free(p);
    T_OK(place_run("hybrid", &g, &m, NULL, &p)); /* no static cut fits: a layer each */
    assert_true(p->fits && p->copies == 0);
    placement_free(p);
    place_graph_free(&g);
    place_machine_free(&m);
}

TEST(model_that_does_not_fit_says_what_would) {
    struct place_graph g;
    struct place_machine m = machine_of(2, 0);
    struct placement *p;
    graph_of(4, 4, true, 2, 0, 0, 0, &g); /* 100 + 4 * 10 a layer: 280 on each of two devices */
    for (i64 v = 0; v < 2; v++) m.device[v].memory = 279;
    for (i32 u = 0; u < 4; u++) g.unit[u].memory <<= 20;
    for (i32 x = 0; x < g.nnode; x++) g.node[x].memory <<= 20;
    for (i32 d = 0; d < 2; d++) m.device[d].memory = (i64)270 << 20;
    static const char *const methods[] = {"single", "blocks", "cyclic", "hybrid", "greedy", "heft", "affinity", "anneal", "best"};
    for (size_t i = 0; i < COUNT(methods); i++) {
        T_FAILS(place_run(methods[i], &g, &m, NULL, &p), 401);
        assert_null(p);
    }
    assert_non_null(strstr(err_last()->text, "needs 280.0 MiB and has 270.0 MiB, 10.0 MiB too little"));
    assert_string_equal(err_last()->fix, "2 devices of 280.0 MiB\n4 devices of 270.0 MiB");
    T_OK(place_run("random:3", &g, &m, NULL, &p));
    assert_false(p->fits);
    assert_int_equal(p->over_bytes, p->peak[p->over_device] - m.device[p->over_device].memory);
    placement_free(p);
    for (i32 d = 0; d < 2; d++) m.device[d].memory = (i64)280 << 20; /* what the message promises */
    T_OK(place_run("best", &g, &m, NULL, &p));
    assert_true(p->fits && p->peak[0] <= (i64)280 << 20 && p->peak[1] <= (i64)280 << 20);
    placement_free(p);
    place_machine_free(&m);
    m = machine_of(4, 0);
    for (i32 d = 0; d < 4; d++) m.device[d].memory = (i64)270 << 20;
    T_OK(place_run("best", &g, &m, NULL, &p));
    placement_free(p);
    place_graph_free(&g);
    place_machine_free(&m);
}

TEST(bad_input_is_named) {
    struct place_machine m = machine_of(2, 0);
    struct placement *p;
    T_FAILS(place_run("hefd", &fan_graph, &m, NULL, &p), 103);
    assert_string_equal(err_last()->fix, "--place heft");
    T_FAILS(place_run("heft:3", &fan_graph, &m, NULL, &p), 103);
    T_FAILS(place_run("random:x", &fan_graph, &m, NULL, &p), 103);
    T_FAILS(place_run("random:-1", &fan_graph, &m, NULL, &p), 103);
    m.between.rate = 0;
    T_FAILS(place_run("best", &fan_graph, &m, NULL, &p), 401);
    assert_non_null(strstr(err_last()->text, "rate of 0"));
    m.between.rate = 1;
    m.device[1].speed = 0;
    T_FAILS(place_run("best", &fan_graph, &m, NULL, &p), 401);
    m.device[1].speed = 1;
    struct place_edge back[] = {{0, 2, 1}, {2, 0, 1}};
    struct place_graph g = fan_graph;
    g.edge = back;
    T_FAILS(place_run("best", &g, &m, NULL, &p), 401);
    assert_non_null(strstr(err_last()->text, "cycle"));
    back[1].to = 4;
    T_FAILS(place_run("best", &g, &m, NULL, &p), 401);
    fan[3].column = -1;
    T_FAILS(place_run("best", &fan_graph, &m, NULL, &p), 401);
    fan[3].column = 0;
    T_OK(place_run("best", &fan_graph, &m, NULL, &p));
    place_machine_free(&m);
    m = machine_of(3, 0); /* a plan for another machine */
    T_FAILS(place_judge(&fan_graph, &m, NULL, p), 401);
    placement_free(p);
    place_machine_free(&m);
}

TEST(machine_text_gives_speeds_ranks_and_links) {
    static struct machine text;
    struct place_machine m;
    T_OK(machine_parse("host*2(cpu*3) gflops=50 memory=1GiB link_gbytes=2 link_us=10 shares=1,0.5", &text));
    T_OK(place_machine_of(&text, 100, &m));
    assert_true(m.ndevice == 6 && m.nrank == 2 && m.device[3].rank == 1);
    assert_true(m.device[0].speed == 0.5 && m.device[5].speed == 0.25 && m.device[0].memory == 1 << 30);
    assert_true(m.between.rate == 2e9 && fabs(m.between.seconds - 10e-6) < 1e-15 && m.inside.rate > m.between.rate);
    place_machine_free(&m);
}

TEST(table_lists_every_placement) {
    struct place_graph g;
    struct place_machine m = machine_of(2, 0.1);
    struct placement *p[16];
    struct str text = {0};
    i32 n = 0;
    graph_of(4, 4, true, 2, 1, 0.1, 0, &g);
    for (const char *name; (name = place_method_name(n)); n++) {
        assert_non_null(place_method_help(n));
        T_OK(place_run(name, &g, &m, NULL, &p[n]));
    }
    assert_true(n >= 10);
    place_print((const struct placement *const *)p, n, &text);
    T_OK(str_ok(&text));
    i32 lines = 0;
    for (const char *s = text.s; *s; s++) lines += *s == '\n';
    assert_int_equal(lines, n + 2);
    assert_non_null(strstr(text.s, "random-layer"));
    assert_non_null(strstr(text.s, "lower bound"));
    for (i32 i = 0; i < n; i++) placement_free(p[i]);
    str_free(&text);
    place_graph_free(&g);
    place_machine_free(&m);
}

TEST(failed_allocation_is_reported_and_leaks_nothing) {
    struct place_graph g;
    struct place_machine m = machine_of(2, 0.1);
    struct placement *p;
    graph_of(2, 3, true, 2, 1, 0.1, 0, &g);
    const i64 live = mem_stats().live;
    i32 n = 0;
    for (bool failed = true; failed; n++) {
        mem_fail_nth(n + 1);
        const err e = place_run("best", &g, &m, &(struct place_options){.iterations = 10}, &p);
        mem_fail_nth(0);
        failed = e < 0;
        if (failed) assert_int_equal(e, -E601);
        placement_free(p);
        assert_int_equal(mem_stats().live, live);
    }
    assert_true(n > 1);
    place_graph_free(&g);
    place_machine_free(&m);
}

T_MAIN(cmocka_unit_test(transfers_overlap_tasks_and_hold_their_link), cmocka_unit_test(devices_of_a_rank_share_its_link),
       cmocka_unit_test(order_is_followed_and_waits), cmocka_unit_test(copies_of_weights_cost_their_sums),
       cmocka_unit_test(graph_of_an_lstm_has_its_edges), cmocka_unit_test(cyclic_and_blocks_follow_their_closed_forms),
       cmocka_unit_test(bounds_are_what_their_names_say), cmocka_unit_test(memory_is_freed_by_backward),
       cmocka_unit_test(model_that_does_not_fit_says_what_would), cmocka_unit_test(bad_input_is_named),
       cmocka_unit_test(machine_text_gives_speeds_ranks_and_links), cmocka_unit_test(table_lists_every_placement),
       cmocka_unit_test(failed_allocation_is_reported_and_leaks_nothing))
