/* t_heuristics.c - what each placement method does: list schedulers against a plain reference, cuts against all cuts, cases by
 * hand. */
#include "place/graphs.h"

#include "place/inside.h"

static const struct place_options no_waiting = {.no_contention = true};

/* --- list schedulers --- */

struct reference {
    struct problem *p;
    f64 start[RANDOM_NODES], end[RANDOM_NODES];
    i32 at[RANDOM_NODES], device[RANDOM_NODES]; /* of a node, -1 = not placed; of a group */
    f64 b;                                      /* affinity */
};

static f64 data_at(const struct reference *r, i32 x, i32 d) {
    const struct place_graph *g = r->p->g;
    f64 there = 0;
    for (i32 k = 0; k < g->nedge; k++)
        if (g->edge[k].to == x)
            there = dmax(there, r->end[g->edge[k].from] + link_seconds(r->p->m, r->at[g->edge[k].from], d, g->edge[k].bytes));
    return there;
}

/* The earliest start >= from on device d where `seconds` meet no node that is there; candidates: from, and the end of each node.
 */
static f64 earliest(const struct reference *r, i32 d, f64 from, f64 seconds, bool gaps) {
    f64 best = INFINITY;
    for (i32 c = -1; c < r->p->n; c++) {
        if (c >= 0 && r->at[c] != d) continue;
        const f64 start = c < 0 ? from : dmax(from, r->end[c]);
        bool free = true;
        for (i32 y = 0; y < r->p->n; y++) {
            if (r->at[y] != d) continue;
            free &= gaps ? start + seconds <= r->start[y] || start >= r->end[y] : start >= r->end[y];
        }
        if (free) best = dmin(best, start);
    }
    return best;
}

/* What a first copy of the weights costs on d: b times its sum. */
static f64 off_home(const struct reference *r, i32 x, i32 d) {
    const struct problem *p = r->p;
    i32 home = -1;
    for (i32 i = 0; i < p->n; i++) {
        const i32 y = i;
        if (r->at[y] < 0 || p->unit[y] != p->unit[x]) continue;
        if (r->at[y] == d) return 0;
        home = r->at[y];
    }
    return home < 0 ? 0 : r->b * problem_sum_seconds(p, p->unit[x], home, d);
}

static i32 choose(const struct reference *r, i32 x, bool gaps, f64 *start) {
    const i32 fixed = r->device[r->p->group[x]];
    f64 least = INFINITY;
    i32 best = -1;
    for (i32 i = 0; i < r->p->P; i++) {
        const i32 d = fixed >= 0 ? fixed : r->p->by_speed[i];
        const f64 seconds = r->p->work[x] / r->p->m->device[d].speed, s = earliest(r, d, data_at(r, x, d), seconds, gaps);
        if (s + seconds + off_home(r, x, d) >= least) continue;
        least = s + seconds + off_home(r, x, d);
        best = d;
        *start = s;
    }
    return best;
}

static void put(struct reference *r, i32 x, i32 d, f64 start) {
    r->start[x] = start;
    r->end[x] = start + r->p->work[x] / r->p->m->device[d].speed;
    r->at[x] = r->device[r->p->group[x]] = d;
}

static bool is_ready(const struct reference *r, i32 x) {
    bool ready = r->at[x] < 0;
    for (i32 k = 0; k < r->p->g->nedge && ready; k++)
        if (r->p->g->edge[k].to == x) ready = r->at[r->p->g->edge[k].from] >= 0;
    return ready;
}

static void schedule(struct reference *r, bool etf) {
    struct problem *p = r->p;
    for (i32 x = 0; x < p->n; x++) r->at[x] = r->device[x] = -1;
    for (i32 done = 0; done < p->n; done++) {
        i32 node = -1, device = -1;
        f64 start = INFINITY, s = 0;
        for (i32 i = 0; i < p->n; i++) {
            const i32 x = p->topo[i];
            if (!is_ready(r, x)) continue;
            const i32 d = choose(r, x, !etf, &s);
            const bool higher = node < 0 || p->rank[x] > p->rank[node];
            if (etf ? s < start || (s == start && higher) : higher) {
                node = x;
                device = d;
                start = s;
            }
        }
        put(r, node, device, start);
    }
}

/* Works and bytes without ties: equal choices may differ. */
static void without_ties(u32 seed, struct random_case *c) {
    struct draws d = {seed, 0};
    for (i32 x = 0; x < c->g.nnode; x++) c->node[x].work = 0.5 + 1e-4 * draw(&d, 30000);
    for (i32 k = 0; k < c->g.nedge; k++) c->edge[k].bytes = draw(&d, 100);
    for (i32 u = 0; u < c->g.nunit; u++) c->unit[u] = (struct place_unit){0, 1e-3 * draw(&d, 1000), 0};
    c->m.inside = (struct place_link){0.0123, 100};
    c->m.between = (struct place_link){0.0456, 70};
}

/* The trial is as good as the order of the reference's schedule, and as upward ranks.  True: the former is the better one. */
static bool own_order_counts(struct reference *r, const struct trial *t) {
    struct trial own, ranks;
    T_OK(trial_new(r->p, &own));
    T_OK(trial_new(r->p, &ranks));
    memcpy(own.device, r->device, (size_t)r->p->G * sizeof *own.device);
    memcpy(ranks.device, r->device, (size_t)r->p->G * sizeof *own.device);
    for (i32 x = 0; x < r->p->n; x++) own.priority[x] = -r->start[x];
    sim_trial(r->p, &own);
    sim_trial(r->p, &ranks);
    assert_true(t->makespan == dmin(own.makespan, ranks.makespan));
    return own.makespan < ranks.makespan;
}

TEST(list_schedulers_choose_as_a_plain_reference_does) {
    static struct random_case c;
    static struct reference r;
    static const f64 affinity[] = {0, 2, -1}; /* -1: etf */
    i32 own = 0;
    for (u32 seed = 0; seed < 150; seed++) {
        struct problem p;
        struct trial t;
        random_case(5000 + seed, RANDOM_NODES, RANDOM_DEVICES, false, &c);
        without_ties(seed, &c);
        T_OK(problem_new(&c.g, &c.m, &no_waiting, &p));
        T_OK(trial_new(&p, &t));
        for (size_t i = 0; i < COUNT(affinity); i++) {
            r = (struct reference){.p = &p, .b = dmax(affinity[i], 0)};
            schedule(&r, affinity[i] < 0);
            T_OK(affinity[i] < 0 ? list_etf(&p, &t) : list_heft(&p, affinity[i], &t));
            for (i32 k = 0; k < p.G; k++)
                if (t.device[k] != r.device[k])
                    fail_msg("seed %u, method %d: group %d on %d, not %d", seed, (int)i, k, t.device[k], r.device[k]);
            own += own_order_counts(&r, &t);
        }
        problem_free(&p);
    }
    assert_true(own > 0);
}

TEST(affinity_makes_fewer_copies_where_they_are_dear) {
    struct place_graph g;
    struct place_machine m = machine_of(4, 0);
    struct placement *heft, *affinity;
    graph_of(4, 8, true, 2, 1, 20, 0, &g);
    T_OK(place_run("heft", &g, &m, &no_waiting, &heft));
    T_OK(place_run("affinity", &g, &m, &no_waiting, &affinity));
    assert_true(affinity->copies < heft->copies && affinity->makespan < heft->makespan);
    assert_memory_equal(affinity->method, "affinity b=", 11);
    placement_free(heft);
    placement_free(affinity);
    place_graph_free(&g);
    place_machine_free(&m);
}

/* A device without room is passed over: two groups of 6 and a weight of 1 on devices of 8 and 100. */
TEST(list_schedulers_respect_memory) {
    struct place_node node[2] = {{4, 0, 0, 0, 0, 6}, {4, 0, 1, 1, 0, 6}};
    struct place_unit unit = {.memory = 1};
    struct place_device device[2] = {{4, 8, 0}, {1, 100, 1}};
    const struct place_graph g = {.nnode = 2, .nunit = 1, .ngroup = 2, .node = node, .unit = &unit};
    const struct place_machine m = {.ndevice = 2, .nrank = 2, .device = device, .inside = {0, 1}, .between = {0, 1}};
    static const char *const methods[] = {"greedy", "heft", "affinity"};
    struct problem p;
    struct trial t;
    T_OK(problem_new(&g, &m, NULL, &p));
    T_OK(trial_new(&p, &t));
    T_OK(list_heft(&p, 0, &t));
    assert_true(t.device[0] == 0 && t.device[1] == 1); /* by time alone both belong on device 0 */
    T_OK(list_etf(&p, &t));
    assert_true(t.device[0] == 0 && t.device[1] == 1);
    problem_free(&p);
    for (size_t i = 0; i < COUNT(methods); i++) {
        struct placement *q;
        T_OK(place_run(methods[i], &g, &m, NULL, &q));
        assert_true(q->peak[0] == 7 && q->peak[1] == 7);
        placement_free(q);
    }
}

/* --- blocks, cyclic, single, hybrid
 * ---------------------------------------------------------------------------------------------- */

struct cuts {
    const struct problem *p;
    const struct stages *s;
    f64 best;
};

static f64 cost_of(const struct cuts *c, i32 lo, i32 hi, i32 k) {
    f64 work = 0, bytes = 0, across = 0;
    if (lo == hi) return 0;
    for (i32 x = 0; x < c->p->n; x++) {
        if (c->p->unit[x] < lo || c->p->unit[x] >= hi) continue;
        work += c->s->share * c->p->work[x];
        bytes += c->s->share * (f64)c->p->g->node[x].memory;
    }
    for (i32 u = lo; u < hi; u++) bytes += (f64)c->p->g->unit[u].memory;
    for (i32 e = 0; e < c->p->g->nedge; e++) {
        const i32 a = c->p->unit[c->p->g->edge[e].from], b = c->p->unit[c->p->g->edge[e].to];
        const i32 crossings = (imin(a, b) < lo && imax(a, b) >= lo) + (imin(a, b) < hi && imax(a, b) >= hi);
        across += crossings * c->s->share * (c->p->mean.seconds + (f64)c->p->g->edge[e].bytes / c->p->mean.rate);
    }
    const struct place_device *d = &c->p->m->device[c->s->row[k]];
    if (c->s->aim == STAGES_MEMORY) return bytes;
    if (c->s->aim == STAGES_FIT && d->memory > 0 && bytes > (f64)d->memory) return INFINITY;
    return work / d->speed + (c->s->transfers ? across : 0);
}

static void try_cuts(struct cuts *c, i32 lo, i32 k, f64 slowest) {
    if (k == c->s->k) {
        if (lo == c->p->U) c->best = dmin(c->best, slowest);
        return;
    }
    for (i32 hi = lo; hi <= c->p->U; hi++) try_cuts(c, hi, k + 1, dmax(slowest, cost_of(c, lo, hi, k)));
}

TEST(cuts_are_the_best_of_all_cuts) {
    static struct random_case c;
    i32 found = 0, none = 0;
    for (u32 seed = 0; seed < 300; seed++) {
        i32 row[RANDOM_DEVICES], stage[RANDOM_UNITS];
        struct problem p;
        random_case(6000 + seed, RANDOM_NODES, RANDOM_DEVICES, true, &c);
        for (i32 x = 0; x < c.g.nnode; x++) { /* a group has one unit, as layers have */
            for (i32 y = 0; y < x; y++)
                if (c.node[y].group == c.node[x].group) c.node[x].unit = c.node[y].unit;
        }
        T_OK(problem_new(&c.g, &c.m, NULL, &p));
        for (i32 d = 0; d < p.P; d++) row[d] = (d + (i32)seed) % p.P;
        const struct stages s = {(enum stages_aim)(seed % 3), p.P, row, seed % 2 ? 0.5 : 1, seed % 5 == 0};
        struct cuts all = {&p, &s, INFINITY};
        f64 value, slowest = 0;
        try_cuts(&all, 0, 0, 0);
        T_OK(stages_cut(&p, &s, stage, &value));
        if (isfinite(value) != isfinite(all.best) || (isfinite(value) && fabs(value - all.best) > 1e-9 * (1 + value)))
            fail_msg("seed %u: %g, the best of all cuts is %g", seed, value, all.best);
        for (i32 u = 0; u < p.U && isfinite(value);) { /* the stages are those of the value */
            i32 hi = u;
            while (hi < p.U && stage[hi] == stage[u]) hi++;
            assert_true(hi == p.U || stage[hi] > stage[u]);
            slowest = dmax(slowest, cost_of(&all, u, hi, stage[u]));
            u = hi;
        }
        if (isfinite(value)) assert_true(fabs(slowest - value) < 1e-9 * (1 + value));
        found += isfinite(value);
        none += !isfinite(value);
        problem_free(&p);
    }
    assert_true(found > 100 && none > 0);
}

TEST(single_takes_the_fastest_device_with_room) {
    struct place_graph g;
    struct place_machine m = machine_of(3, 1);
    struct placement *p;
    graph_of(2, 2, true, 2, 1, 0, 0, &g); /* 200 of weights, 42 of activations */
    m.device[0] = (struct place_device){1, 300, 0};
    m.device[1] = (struct place_device){4, 200, 1};
    m.device[2] = (struct place_device){2, 300, 2};
    T_OK(place_run("single", &g, &m, NULL, &p));
    assert_true(p->device[0] == 2 && p->copies == 0 && p->makespan == 7);
    placement_free(p);
    place_graph_free(&g);
    place_machine_free(&m);
}

TEST(blocks_give_a_slow_device_less) {
    struct place_graph g;
    struct place_machine m = machine_of(2, 0);
    struct placement *p;
    graph_of(6, 12, true, 2, 0, 0, 0, &g);
    m.device[0].speed = 0.5;
    T_OK(place_run("blocks", &g, &m, NULL, &p));
    assert_true(p->busy[0] == 2 * 12 * 3 * 2 && p->busy[1] == 4 * 12 * 3); /* two layers at half the speed, four */
    placement_free(p);
    place_graph_free(&g);
    graph_of(3, 12, true, 2, 1, 0, 0, &g); /* work 3, 3, 3 and the head's 1: the slow device first gives 6 | 7, last 6 | 8 */
    for (i32 slow = 0; slow < 2; slow++) {
        m.device[slow].speed = 0.5;
        m.device[1 - slow].speed = 1;
        T_OK(place_run("blocks", &g, &m, NULL, &p));
        assert_true(p->device[0] == slow && p->busy[slow] == 6 * 12 && p->busy[1 - slow] == 7 * 12);
        placement_free(p);
    }
    place_graph_free(&g);
    place_machine_free(&m);
}

/* One layer, independent micro-batches: layers cannot be split, columns can. */
TEST(hybrid_deals_columns_to_replicas) {
    struct place_graph g;
    struct place_machine m = machine_of(8, 0);
    struct placement *p;
    graph_of(2, 16, false, 2, 0, 0, 0, &g);
    T_OK(place_run("hybrid", &g, &m, NULL, &p));
    assert_true(p->makespan == 16 * 2 * 3 / 8);
    placement_free(p);
    T_OK(place_run("blocks", &g, &m, NULL, &p));
    assert_true(p->makespan >= 16 * 3);
    placement_free(p);
    place_graph_free(&g);
    graph_of(2, 16, false, 2, 0, 100, 0, &g); /* copies of weights are too dear: two stages */
    T_OK(place_run("hybrid", &g, &m, NULL, &p));
    assert_true(p->copies == 0 && p->makespan < 16 * 3 + 6);
    placement_free(p);
    place_graph_free(&g);
    place_machine_free(&m);
}

/* A transfer takes 100 tasks: whatever is spread loses, and the portfolio does not. */
TEST(best_stays_on_one_device_where_links_are_slow) {
    struct place_graph g;
    struct place_machine m = machine_of(4, 100);
    struct placement *p;
    graph_of(4, 4, true, 2, 1, 1, 0, &g);
    T_OK(place_run("cyclic", &g, &m, NULL, &p));
    assert_true(p->makespan > 2 * 52);
    placement_free(p);
    T_OK(place_run("best", &g, &m, NULL, &p));
    assert_true(p->makespan <= 52);
    placement_free(p);
    place_graph_free(&g);
    place_machine_free(&m);
}

/* Annealing changes orders, too: on one device nothing else can be changed, and the bound is not the makespan. */
TEST(annealing_is_never_worse_than_its_start) {
    static struct random_case c;
    i32 better = 0;
    for (u32 seed = 0; seed < 40; seed++) {
        struct placement *heft, *anneal;
        const struct place_options o = {.iterations = 500};
        random_case(7000 + seed, RANDOM_NODES, RANDOM_DEVICES, false, &c);
        T_OK(place_run("heft", &c.g, &c.m, &o, &heft));
        T_OK(place_run("anneal:4", &c.g, &c.m, &o, &anneal));
        assert_true(anneal->makespan <= heft->makespan);
        better += anneal->makespan < heft->makespan * 0.999;
        placement_free(heft);
        placement_free(anneal);
    }
    assert_true(better >= 10);
}

/* Where a transfer takes as long as a task or four, annealing gains a quarter over HEFT. */
TEST(annealing_gains_where_transfers_are_slow) {
    static const i32 shape[][3] = {{3, 8, 2}, {4, 8, 3}, {6, 4, 3}, {6, 8, 4}};
    f64 product = 1;
    for (size_t i = 0; i < 2 * COUNT(shape); i++) {
        struct place_graph g;
        struct place_machine m = machine_of(shape[i / 2][2], i % 2 ? 4 : 1);
        struct placement *heft, *anneal;
        graph_of(shape[i / 2][0], shape[i / 2][1], true, 2, 1, 0.1, 0, &g);
        T_OK(place_run("heft", &g, &m, &no_waiting, &heft));
        T_OK(place_run("anneal", &g, &m, &no_waiting, &anneal));
        product *= anneal->makespan / heft->makespan;
        placement_free(heft);
        placement_free(anneal);
        place_graph_free(&g);
        place_machine_free(&m);
    }
    const f64 mean = pow(product, 0.5 / COUNT(shape));
    if (mean > 0.76) fail_msg("annealed / HEFT: %g", mean);
}

/* The order decides here, the devices are forced by memory: device 0 must start the node whose result device 1 waits for. */
TEST(annealing_finds_an_order_that_ranks_do_not_see) {
    struct place_node node[4] = {{3, 0, 0, 0, 0, 0}, {1, 0, 1, 0, 0, 0}, {1, 1, 2, 0, 0, 9}, {4, 0, 0, 0, 0, 0}};
    struct place_edge edge[2] = {{0, 3, 0}, {1, 2, 0}};
    struct place_unit unit[2] = {{5, 0, 0}, {0, 0, 0}};
    struct place_device device[2] = {{1, 6, 0}, {0.1, 9, 1}};
    const struct place_graph g = {.nnode = 4, .nedge = 2, .nunit = 2, .ngroup = 3, .node = node, .edge = edge, .unit = unit};
    const struct place_machine m = {.ndevice = 2, .nrank = 2, .device = device, .inside = {0, 1}, .between = {0, 1}};
    struct placement *p;
    T_OK(place_run("anneal", &g, &m, NULL, &p)); /* node 1 first: 1 + 10 on device 1, beside 1 + 3 + 4 */
    assert_true(p->device[2] == 1 && p->device[0] == 0 && p->device[1] == 0);
    assert_true(p->makespan == 11 && p->order[0] == 1);
    placement_free(p);
}

T_MAIN(cmocka_unit_test(list_schedulers_choose_as_a_plain_reference_does),
       cmocka_unit_test(affinity_makes_fewer_copies_where_they_are_dear), cmocka_unit_test(list_schedulers_respect_memory),
       cmocka_unit_test(cuts_are_the_best_of_all_cuts), cmocka_unit_test(single_takes_the_fastest_device_with_room),
       cmocka_unit_test(blocks_give_a_slow_device_less), cmocka_unit_test(hybrid_deals_columns_to_replicas),
       cmocka_unit_test(best_stays_on_one_device_where_links_are_slow), cmocka_unit_test(annealing_is_never_worse_than_its_start),
       cmocka_unit_test(annealing_gains_where_transfers_are_slow),
       cmocka_unit_test(annealing_finds_an_order_that_ranks_do_not_see))
