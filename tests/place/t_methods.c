/* t_methods.c - the placement methods on random graphs: valid, deterministic, within memory; `best` is never worse than a
 * heuristic and near the optimum where branch and bound or a theorem knows it; 10,000 devices. */
#include "place/graphs.h"

#include "base/clock.h"
#include "base/mem.h"

static const struct place_options quick = {.iterations = 200};

/* 1000 random graphs; each takes every method in turn, `best` in all. */
TEST(placements_of_random_graphs_are_valid) {
    static struct random_case c;
    const u32 cases = t_few() ? 100 : 1000;
    i32 methods = 0;
    while (place_method_name(methods)) methods++;
    for (u32 seed = 0; seed < cases; seed++) {
        random_case(seed, RANDOM_NODES, RANDOM_DEVICES, false, &c);
        for (i32 turn = 0; turn < 3; turn++) {
            struct placement *p;
            const struct place_options o = {.iterations = 20, .no_contention = turn == 1};
            T_OK(place_run(turn == 2 ? "best" : place_method_name(((i32)seed + turn * 5) % methods), &c.g, &c.m, &o, &p));
            check_placement(&c.g, &c.m, p);
            const f64 before = p->makespan;
            T_OK(place_judge(&c.g, &c.m, &o, p)); /* the order gives the same times */
            assert_true(p->makespan == before);
            check_placement(&c.g, &c.m, p);
            placement_free(p);
        }
    }
}

/* Nothing that fits is worse than `best`, and what does not fit is refused with a device that lacks memory. */
TEST(best_is_never_worse_than_a_method_and_within_memory) {
    static struct random_case c;
    i32 refused = 0, placed = 0;
    for (u32 seed = 0; seed < (t_few() ? 20 : 150); seed++) {
        random_case(1000 + seed, RANDOM_NODES, RANDOM_DEVICES, seed % 2 == 0, &c);
        struct placement *best, *p;
        const err e = place_run("best", &c.g, &c.m, &quick, &best);
        for (i32 i = 0; place_method_name(i); i++) {
            const bool baseline = strncmp(place_method_name(i), "random", 6) == 0;
            const err one = place_run(place_method_name(i), &c.g, &c.m, &quick, &p);
            if (one < 0) {
                assert_int_equal(one, -E401);
                refused++;
                continue;
            }
            if (!baseline) assert_true(p->fits);
            for (i32 d = 0; d < c.m.ndevice && p->fits && c.m.device[d].memory > 0; d++)
                assert_true(p->peak[d] <= c.m.device[d].memory);
            if (p->fits && !baseline) {
                if (e < 0) fail_msg("seed %u: %s fits, best does not", seed, p->method);
                if (best->makespan > p->makespan * (1 + 1e-12))
                    fail_msg("seed %u: best %g, %s %g", seed, best->makespan, p->method, p->makespan);
            }
            placed++;
            placement_free(p);
        }
        placement_free(best);
    }
    assert_true((t_few() || refused > 0) && placed > refused); /* few cases may all have room */
}

TEST(placements_are_deterministic) {
    static struct random_case c;
    for (u32 seed = 0; seed < 10; seed++) {
        random_case(2000 + seed, RANDOM_NODES, RANDOM_DEVICES, false, &c);
        for (i32 i = 0; place_method_name(i); i++) {
            struct placement *a, *b;
            T_OK(place_run(place_method_name(i), &c.g, &c.m, &quick, &a));
            T_OK(place_run(place_method_name(i), &c.g, &c.m, &quick, &b));
            assert_memory_equal(a->device, b->device, (size_t)c.g.nnode * sizeof *a->device);
            assert_memory_equal(a->order, b->order, (size_t)c.g.nnode * sizeof *a->order);
            assert_true(a->makespan == b->makespan);
            assert_string_equal(a->method, b->method);
            placement_free(a);
            placement_free(b);
        }
    }
    struct placement *a, *b;
    struct place_graph g;
    struct place_machine m = machine_of(4, 0);
    graph_of(8, 8, true, 2, 1, 0, 0, &g);
    T_OK(place_run("random:1", &g, &m, NULL, &a));
    T_OK(place_run("random:2", &g, &m, NULL, &b));
    assert_memory_not_equal(a->device, b->device, (size_t)g.nnode * sizeof *a->device);
    placement_free(a);
    placement_free(b);
    place_graph_free(&g);
    place_machine_free(&m);
}

/* --- oracles --- */

struct brute {
    const struct random_case *c;
    f64 end[RANDOM_NODES], free[RANDOM_DEVICES], best;
    i32 device[RANDOM_NODES]; /* of a group */
    u32 done;
};

/* All orders and devices, nothing cut. */
static void try_all(struct brute *b) {
    const struct place_graph *g = &b->c->g;
    f64 last = 0;
    if (b->done == (1u << g->nnode) - 1) {
        for (i32 x = 0; x < g->nnode; x++) last = dmax(last, b->end[x]);
        b->best = dmin(b->best, last);
        return;
    }
    for (i32 x = 0; x < g->nnode; x++) {
        bool ready = !(b->done >> x & 1);
        for (i32 k = 0; k < g->nedge; k++) ready &= g->edge[k].to != x || b->done >> g->edge[k].from & 1;
        if (!ready) continue;
        const i32 group = g->node[x].group, fixed = b->device[group];
        for (i32 d = 0; d < b->c->m.ndevice; d++) {
            if (fixed >= 0 && d != fixed) continue;
            f64 from = b->free[d];
            const f64 free = from;
            for (i32 k = 0; k < g->nedge; k++)
                if (g->edge[k].to == x)
                    from = dmax(from, b->end[g->edge[k].from] +
                                          link_seconds(&b->c->m, b->device[g->node[g->edge[k].from].group], d, g->edge[k].bytes));
            b->end[x] = b->free[d] = from + g->node[x].work / b->c->m.device[d].speed;
            b->device[group] = d;
            b->done |= 1u << x;
            try_all(b);
            b->done &= ~(1u << x);
            b->device[group] = fixed;
            b->free[d] = free;
        }
    }
}

TEST(exact_search_agrees_with_trying_everything) {
    static struct random_case c;
    for (u32 seed = 0; seed < (t_few() ? 30 : 200); seed++) {
        struct placement *p;
        bool solved;
        random_case(3000 + seed, 6, 3, false, &c);
        memset(c.unit, 0, sizeof c.unit); /* sums of copies are not in the brute force */
        struct brute b = {.c = &c, .best = INFINITY};
        for (i32 k = 0; k < RANDOM_NODES; k++) b.device[k] = -1;
        try_all(&b);
        T_OK(place_exact(&c.g, &c.m, 10000000, &p, &solved));
        check_placement(&c.g, &c.m, p);
        assert_true(solved);
        if (fabs(p->makespan - b.best) > 1e-9) fail_msg("seed %u: %g, but all orders give %g", seed, p->makespan, b.best);
        placement_free(p);
    }
}

TEST(best_is_within_5_percent_of_exact_search) {
    static const i32 shape[][2] = {{1, 6}, {2, 4}, {4, 2}, {3, 3}};
    static const f64 ratio[] = {0, 0.1, 1, 4};
    i32 optimal = 0, all = 0;
    for (size_t i = 0; i < COUNT(shape) * COUNT(ratio) * 4; i++) {
        struct place_graph g;
        struct place_machine m = machine_of(2, ratio[i / 4 % 4]);
        struct placement *best, *exact;
        bool solved;
        const struct place_options o = {.no_contention = true};
        graph_of(shape[i / 16][0], shape[i / 16][1], true, 2, 1, i % 2 ? 1 : 0.1, 0, &g);
        if (i / 2 % 2) m.device[1].speed = 0.5;
        T_OK(place_run("best", &g, &m, &o, &best));
        T_OK(place_exact(&g, &m, t_few() ? 100000 : 1000000, &exact, &solved));
        if (solved) {
            assert_true(exact->makespan <= best->makespan * (1 + 1e-9));
            all++;
            optimal += best->makespan <= exact->makespan * (1 + 1e-9);
            if (best->makespan > 1.05 * exact->makespan)
                fail_msg("case %d: best %g, exact %g", (int)i, best->makespan, exact->makespan);
        }
        placement_free(best);
        placement_free(exact);
        place_graph_free(&g);
        place_machine_free(&m);
    }
    assert_true(all >= (t_few() ? 24 : 48) && optimal >= all * 9 / 10);
}

/* Coffman and Graham (1972): optimal for unit tasks on two devices without transfers.  Needs transitive reduction: of these
 * graphs. */
static f64 coffman_graham(const struct place_graph *g) {
    const i32 n = g->nnode;
    i32 label[RANDOM_NODES] = {0}, list[RANDOM_NODES][RANDOM_NODES], order[RANDOM_NODES], at[RANDOM_NODES];
    for (i32 next = 1; next <= n; next++) {
        i32 least = -1;
        for (i32 x = 0; x < n; x++) {
            i32 *mine = list[x], count = 0;
            bool ready = label[x] == 0;
            for (i32 k = 0; k < g->nedge && ready; k++) {
                if (g->edge[k].from != x) continue;
                ready = label[g->edge[k].to] > 0;
                i32 i = count++;
                for (; i > 0 && mine[i - 1] < label[g->edge[k].to]; i--) mine[i] = mine[i - 1];
                mine[i] = label[g->edge[k].to];
            }
            if (!ready) continue;
            mine[count] = 0;
            i32 i = 0;
            while (least >= 0 && mine[i] == list[least][i] && mine[i] > 0) i++;
            if (least < 0 || mine[i] < list[least][i]) least = x;
        }
        label[least] = next;
        order[n - next] = least;
    }
    i32 done = 0, step = 0;
    for (i32 x = 0; x < n; x++) at[x] = -1;
    for (; done < n; step++) {
        i32 taken = 0;
        for (i32 i = 0; i < n && taken < 2; i++) {
            const i32 x = order[i];
            bool ready = at[x] < 0;
            for (i32 k = 0; k < g->nedge && ready; k++)
                if (g->edge[k].to == x) ready = at[g->edge[k].from] >= 0 && at[g->edge[k].from] < step;
            if (!ready) continue;
            at[x] = step;
            taken++;
        }
        done += taken;
    }
    return step;
}

/* Edges of unit-task graphs without those that a longer path implies. */
static void unit_tasks(u32 seed, struct random_case *c) {
    struct draws d = {seed, 0};
    bool path[RANDOM_NODES][RANDOM_NODES] = {0};
    const i32 n = 8 + draw(&d, 17);
    *c = (struct random_case){0};
    c->g = (struct place_graph){.nnode = n, .nunit = 1, .ngroup = n, .node = c->node, .edge = c->edge, .unit = c->unit};
    for (i32 x = 0; x < n; x++) {
        c->node[x] = (struct place_node){1, 0, x, 0, PLACE_FORWARD, 0};
        for (i32 y = x - 1; y >= 0; y--) { /* near ones first: a path to x is known before y is asked */
            if (draw(&d, 4) > 0 || path[y][x] || c->g.nedge == RANDOM_EDGES) continue;
            c->edge[c->g.nedge++] = (struct place_edge){y, x, 0};
            path[y][x] = true;
            for (i32 z = 0; z < y; z++) path[z][x] |= path[z][y];
        }
    }
}

TEST(best_is_optimal_for_unit_tasks_on_two_devices) {
    static struct random_case c;
    struct place_machine m = machine_of(2, 0);
    for (u32 seed = 0; seed < (t_few() ? 10 : 60); seed++) {
        struct placement *p;
        unit_tasks(seed, &c);
        T_OK(place_run("best", &c.g, &m, NULL, &p));
        check_placement(&c.g, &m, p);
        const f64 optimum = coffman_graham(&c.g);
        if (p->makespan != optimum) fail_msg("seed %u, %d tasks: %g, the optimum is %g", seed, c.g.nnode, p->makespan, optimum);
        placement_free(p);
    }
    place_machine_free(&m);
}

/* --- large
 * ---------------------------------------------------------------------------------------------------------------------- */

TEST(ten_thousand_devices_are_placed_with_bounded_work) {
    struct place_layer layer[8], head = {.forward = 0.2e-3};
    for (i32 l = 0; l < 8; l++) layer[l] = (struct place_layer){1e-3, 2e-3, 1 << 18, 1 << 16, 1 << 20, {1 << 26, 0, 1 << 24}};
    const struct place_lstm spec = {8, t_few() ? 256 : 4096, false, layer, true, &head};
    struct place_graph g;
    struct place_machine m;
    struct placement *p, *single;
    T_OK(place_lstm(&spec, &g));
    T_OK(place_machine_equal(10000, (struct place_link){5e-6, 1e10}, &m));
    for (i32 d = 0; d < m.ndevice; d++) m.device[d] = (struct place_device){1, (i64)40 << 30, d / 16};
    mem_reset_peak();
    T_OK(place_run("best", &g, &m, NULL, &p));
    /* the work is bounded by counts; `make bench-placement` measures seconds */
    assert_true(p->simulated * (i64)g.nnode < 16000000 && mem_stats().peak < (i64)256 << 20);
    assert_non_null(strstr(p->method, "not annealed"));
    T_OK(place_run("single", &g, &m, NULL, &single));
    assert_true(p->makespan < single->makespan / 100);
    placement_free(single);
    T_FAILS(place_run("heft", &g, &m, NULL, &single), 401);
    assert_non_null(strstr(err_last()->text, "too many for this method"));
    placement_free(p);
    place_graph_free(&g);
    place_machine_free(&m);
}

T_MAIN(cmocka_unit_test(placements_of_random_graphs_are_valid),
       cmocka_unit_test(best_is_never_worse_than_a_method_and_within_memory), cmocka_unit_test(placements_are_deterministic),
       cmocka_unit_test(exact_search_agrees_with_trying_everything), cmocka_unit_test(best_is_within_5_percent_of_exact_search),
       cmocka_unit_test(best_is_optimal_for_unit_tasks_on_two_devices),
       cmocka_unit_test(ten_thousand_devices_are_placed_with_bounded_work))
