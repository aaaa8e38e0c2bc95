/* graphs.h - graphs and machines for the tests of placement: equal layers, random ones; and what every placement must satisfy. */
#ifndef STRETTO_TESTS_PLACE_GRAPHS_H
#define STRETTO_TESTS_PLACE_GRAPHS_H

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "place/place.h"
#include "t.h"

enum { RANDOM_NODES = 40, RANDOM_EDGES = 120, RANDOM_DEVICES = 5, RANDOM_UNITS = 5 };

/* L equal layers and a head (if head > 0) of C columns: forward 1, backward as given, all messages `bytes`. */
static inline void graph_of(i32 L, i32 C, bool time, f64 backward, f64 head, f64 copy, i64 bytes, struct place_graph *g) {
    struct place_layer layer[64], top = {.forward = head, .saved = 1};
    for (i32 l = 0; l < L; l++) layer[l] = (struct place_layer){1, backward, bytes, bytes, 10, {100, copy, 0}};
    const struct place_lstm spec = {L, C, time, layer, false, head > 0 ? &top : NULL};
    T_OK(place_lstm(&spec, g));
}

static inline struct place_machine machine_of(i32 P, f64 seconds) {
    struct place_machine m;
    T_OK(place_machine_equal(P, (struct place_link){seconds, INFINITY}, &m));
    return m;
}

struct random_case {
    struct place_graph g;
    struct place_machine m;
    struct place_node node[RANDOM_NODES];
    struct place_edge edge[RANDOM_EDGES];
    struct place_unit unit[RANDOM_UNITS];
    struct place_device device[RANDOM_DEVICES];
};

struct draws {
    u32 seed;
    u64 index;
};

static inline i32 draw(struct draws *d, i32 n) {
    u32 word[4];
    rng_words(d->seed, RNG_TEST, 77, d->index++, word);
    return (i32)(word[0] % (u32)n);
}

/* Up to `most` nodes in random groups of one or two, some without work; 1 to `devices` devices of several speeds on random ranks.
 */
static inline void random_case(u32 seed, i32 most, i32 devices, bool limited, struct random_case *c) {
    struct draws d = {seed, 0};
    const i32 n = 2 + draw(&d, most - 1), U = 1 + draw(&d, RANDOM_UNITS), P = 1 + draw(&d, devices);
    *c = (struct random_case){0};
    c->g =
        (struct place_graph){.nnode = n, .nunit = U, .node = c->node, .edge = c->edge, .unit = c->unit, .ring = draw(&d, 2) > 0};
    for (i32 x = 0; x < n; x++) {
        const bool joins = x > 0 && draw(&d, 3) == 0; /* the group of an earlier node */
        const i32 group = joins ? c->node[draw(&d, x)].group : c->g.ngroup++;
        c->node[x] = (struct place_node){draw(&d, 5), draw(&d, U), group, draw(&d, 6), PLACE_FORWARD, draw(&d, 4)};
        for (i32 tries = draw(&d, 4); x > 0 && tries > 0 && c->g.nedge < RANDOM_EDGES; tries--)
            c->edge[c->g.nedge++] = (struct place_edge){draw(&d, x), x, draw(&d, 4)};
    }
    for (i32 u = 0; u < U; u++) c->unit[u] = (struct place_unit){draw(&d, 5), draw(&d, 3), draw(&d, 3)};
    const i32 R = 1 + draw(&d, P);
    c->m = (struct place_machine){.ndevice = P, .nrank = R, .device = c->device};
    c->m.inside = (struct place_link){0, 100};
    c->m.between = (struct place_link){draw(&d, 2), draw(&d, 2) ? 1 : 3};
    for (i32 i = 0; i < P; i++)
        c->device[i] = (struct place_device){(f64[]){0.5, 1, 1, 2}[draw(&d, 4)], limited ? 10 + draw(&d, 60) : 0, draw(&d, R)};
}

static inline f64 link_seconds(const struct place_machine *m, i32 a, i32 b, i64 bytes) {
    if (a == b) return 0;
    const struct place_link *l = m->device[a].rank == m->device[b].rank ? &m->inside : &m->between;
    return l->seconds + (f64)bytes / l->rate;
}

/* Every edge is respected, a device runs one node at a time in its order, groups stay together, sums are right. */
static inline void check_placement(const struct place_graph *g, const struct place_machine *m, const struct placement *p) {
    f64 last = 0, busy[64] = {0};
    i32 seen = 0;
    assert_int_equal(p->nnode, g->nnode);
    assert_int_equal(p->first[m->ndevice], g->nnode);
    for (i32 k = 0; k < g->nedge; k++) {
        const struct place_edge *e = &g->edge[k];
        const f64 there = p->end[e->from] + link_seconds(m, p->device[e->from], p->device[e->to], e->bytes);
        if (p->start[e->to] < there - 1e-9) fail_msg("edge %d -> %d: %g, there at %g", e->from, e->to, p->start[e->to], there);
    }
    for (i32 d = 0; d < m->ndevice; d++) {
        f64 free = 0;
        for (i32 i = p->first[d]; i < p->first[d + 1]; i++) {
            const i32 x = p->order[i];
            assert_int_equal(p->device[x], d);
            assert_true(p->start[x] >= free - 1e-9);
            free = p->end[x];
            assert_true(fabs(p->end[x] - p->start[x] - g->node[x].work / m->device[d].speed) < 1e-9);
            busy[d] += p->end[x] - p->start[x];
            seen++;
        }
        last = dmax(last, free);
        assert_true(fabs(busy[d] - p->busy[d]) < 1e-9);
    }
    assert_int_equal(seen, g->nnode);
    for (i32 x = 0; x < g->nnode; x++)
        for (i32 y = 0; y < x; y++)
            if (g->node[x].group == g->node[y].group) assert_int_equal(p->device[x], p->device[y]);
    assert_true(p->makespan >= last - 1e-9);
    assert_true(p->makespan >= p->bound * (1 - 1e-9));
}

#endif
