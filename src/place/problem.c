/* problem.c - checks a graph and a machine and indexes them for the methods: arcs, topological order, upward ranks, groups and
 * units. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/inside.h"

enum { COLUMNS_MOST = 1 << 24 };

static err check_machine(const struct place_machine *m) {
    if (m->ndevice < 1 || m->nrank < 1) return FAIL(E401, "the machine has no device");
    for (i32 d = 0; d < m->ndevice; d++) {
        const struct place_device *v = &m->device[d];
        if (!(v->speed > 0) || !isfinite(v->speed))
            return FAIL_AT(E401, NULL, "gflops=N in the machine text", "the speed of device %d is not known (%g)", d, v->speed);
        if (v->rank < 0 || v->rank >= m->nrank || v->memory < 0)
            return FAIL(E401, "device %d is on rank %d of %d, with %lld bytes", d, v->rank, m->nrank, (long long)v->memory);
    }
    const i64 pairs = m->pair ? (i64)m->nrank * m->nrank : 0;
    for (i64 k = -2; k < pairs; k++) {
        const struct place_link *l = k == -2 ? &m->inside : k == -1 ? &m->between : &m->pair[k];
        if (k >= 0 && k / m->nrank == k % m->nrank) continue; /* of a rank with itself: not used */
        if (k == -1 && (m->pair || m->nrank == 1)) continue;
        if (!(l->rate > 0) || !(l->seconds >= 0) || !isfinite(l->seconds))
            return FAIL_AT(E401, NULL, "link_gbytes=N in the machine text",
                           "a link %s has a latency of %g s and a rate of %g bytes/s",
                           k == -2 ? "between devices of a rank" : "between ranks", l->seconds, l->rate);
    }
    return 0;
}

static err check_graph(const struct place_graph *g) {
    if (g->nnode < 1) return FAIL(E401, "the graph has no task");
    for (i32 x = 0; x < g->nnode; x++) {
        const struct place_node *v = &g->node[x];
        if (!(v->work >= 0) || !isfinite(v->work)) return FAIL(E401, "task %d takes %g seconds", x, v->work);
        if (v->unit < 0 || v->unit >= g->nunit || v->group < 0 || v->group >= g->ngroup || v->memory < 0 || v->kind > PLACE_HEAD)
            return FAIL(E401, "task %d has unit %d of %d, group %d of %d, %lld bytes", x, v->unit, g->nunit, v->group, g->ngroup,
                        (long long)v->memory);
        if (v->column < 0 || v->column >= COLUMNS_MOST)
            return FAIL(E401, "task %d is of column %d of %d", x, v->column, COLUMNS_MOST);
    }
    for (i32 k = 0; k < g->nedge; k++) {
        const struct place_edge *e = &g->edge[k];
        if (e->from < 0 || e->from >= g->nnode || e->to < 0 || e->to >= g->nnode || e->bytes < 0)
            return FAIL(E401, "edge %d leads from task %d to %d with %lld bytes", k, e->from, e->to, (long long)e->bytes);
    }
    return 0;
}

/* Counts become beginnings: at[0..n] with at[n] = the sum. */
static void to_offsets(i32 *at, i32 n) {
    i32 sum = 0;
    for (i32 i = 0; i <= n; i++) {
        const i32 count = i < n ? at[i] : 0;
        at[i] = sum;
        sum += count;
    }
}

static err index_arcs(struct problem *p) {
    const struct place_graph *g = p->g;
    i32 *fill;
    ARENA_NEW(&p->arena, p->succ0, p->n + 1);
    ARENA_NEW(&p->arena, p->pred0, p->n + 1);
    ARENA_NEW(&p->arena, p->succ, g->nedge);
    ARENA_NEW(&p->arena, p->pred, g->nedge);
    ARENA_NEW(&p->arena, fill, 2 * (i64)p->n);
    for (i32 k = 0; k < g->nedge; k++) {
        p->succ0[g->edge[k].from]++;
        p->pred0[g->edge[k].to]++;
    }
    to_offsets(p->succ0, p->n);
    to_offsets(p->pred0, p->n);
    for (i32 k = 0; k < g->nedge; k++) {
        const struct place_edge *e = &g->edge[k];
        p->succ[p->succ0[e->from] + fill[e->from]++] = (struct arc){e->to, k, e->bytes};
        p->pred[p->pred0[e->to] + fill[p->n + e->to]++] = (struct arc){e->from, k, e->bytes};
    }
    return 0;
}

static err sort_nodes(struct problem *p) {
    i32 *wait, head = 0, tail = 0;
    ARENA_NEW(&p->arena, p->topo, p->n);
    ARENA_NEW(&p->arena, wait, p->n);
    for (i32 x = 0; x < p->n; x++) {
        wait[x] = p->pred0[x + 1] - p->pred0[x];
        if (wait[x] == 0) p->topo[tail++] = x;
    }
    while (head < tail) {
        const i32 x = p->topo[head++];
        for (i32 k = p->succ0[x]; k < p->succ0[x + 1]; k++)
            if (--wait[p->succ[k].node] == 0) p->topo[tail++] = p->succ[k].node;
    }
    if (tail == p->n) return 0;
    i32 stuck = 0;
    while (wait[stuck] <= 0) stuck++;
    return FAIL(E401, "task %d waits for itself: the edges form a cycle", stuck);
}

/* Groups of units, nodes of groups. */
static err index_groups(struct problem *p) {
    const struct place_graph *g = p->g;
    i32 *fill, *first;
    ARENA_NEW(&p->arena, p->node0, p->G + 1);
    ARENA_NEW(&p->arena, p->node_of, p->n);
    ARENA_NEW(&p->arena, p->group_memory, p->G);
    ARENA_NEW(&p->arena, p->group_work, p->G);
    ARENA_NEW(&p->arena, p->column, p->G);
    ARENA_NEW(&p->arena, fill, lmax(p->G, p->U));
    ARENA_NEW(&p->arena, first, p->G);
    for (i32 x = 0; x < p->n; x++) p->node0[p->group[x]]++;
    for (i32 k = 0; k < p->G; k++)
        if (p->node0[k] == 0) return FAIL(E401, "group %d has no task", k);
    to_offsets(p->node0, p->G);
    for (i32 i = 0; i < p->n; i++) {
        const i32 x = p->topo[i], k = p->group[x];
        if (fill[k] == 0) {
            first[k] = x;
            p->column[k] = g->node[x].column;
        }
        p->ncolumn = imax(p->ncolumn, g->node[x].column + 1);
        p->node_of[p->node0[k] + fill[k]++] = x;
        p->group_memory[k] += g->node[x].memory;
        p->group_work[k] += p->work[x];
    }
    memset(fill, 0, (size_t)lmax(p->G, p->U) * sizeof *fill);
    ARENA_NEW(&p->arena, p->unit0, p->U + 1);
    ARENA_NEW(&p->arena, p->unit_group, p->G);
    for (i32 k = 0; k < p->G; k++) p->unit0[p->unit[first[k]]]++;
    to_offsets(p->unit0, p->U);
    for (i32 i = 0; i < p->n; i++) { /* topological order of first nodes: by column where columns follow each other */
        const i32 x = p->topo[i], u = p->unit[x];
        if (first[p->group[x]] == x) p->unit_group[p->unit0[u] + fill[u]++] = p->group[x];
    }
    return 0;
}

/* held: for every unit, the groups with a node of it. */
static err index_held(struct problem *p) {
    i32 *last, *fill;
    ARENA_NEW(&p->arena, p->held0, p->U + 1);
    ARENA_NEW(&p->arena, p->held, p->n);
    ARENA_NEW(&p->arena, last, p->U);
    ARENA_NEW(&p->arena, fill, p->U);
    for (i32 pass = 1; pass <= 2; pass++) {
        for (i32 k = 0; k < p->G; k++)
            for (i32 i = p->node0[k]; i < p->node0[k + 1]; i++) {
                const i32 u = p->unit[p->node_of[i]];
                if (last[u] == pass * (p->G + 1) - k) continue; /* the group is listed already */
                last[u] = pass * (p->G + 1) - k;
                if (pass == 1)
                    p->held0[u]++;
                else
                    p->held[p->held0[u] + fill[u]++] = k;
            }
        if (pass == 1) to_offsets(p->held0, p->U);
    }
    return 0;
}

void sort_falling(i32 *index, i32 *spare, i32 n, const f64 *key) {
    i32 *from = index, *to = spare;
    for (i32 width = 1; width < n; width *= 2) {
        for (i32 lo = 0; lo < n; lo += 2 * width) {
            const i32 mid = imin(lo + width, n), hi = imin(lo + 2 * width, n);
            for (i32 a = lo, b = mid, k = lo; k < hi; k++)
                to[k] = a < mid && (b >= hi || key[from[a]] >= key[from[b]]) ? from[a++] : from[b++];
        }
        i32 *swap = from;
        from = to;
        to = swap;
    }
    if (from != index) memcpy(index, from, (size_t)n * sizeof *index);
}

/* Devices, fastest first; of equal speed by number, so that devices of a rank stay next to each other. */
static err index_devices(struct problem *p) {
    const struct place_device *d = p->m->device;
    i32 *spare;
    f64 *speed;
    ARENA_NEW(&p->arena, p->by_speed, p->P);
    ARENA_NEW(&p->arena, spare, p->P);
    ARENA_NEW(&p->arena, speed, p->P);
    for (i32 i = 0; i < p->P; i++) {
        p->by_speed[i] = i;
        speed[i] = d[i].speed;
        p->speed_sum += d[i].speed;
        p->speed_most = dmax(p->speed_most, d[i].speed);
        p->limited |= d[i].memory > 0;
    }
    sort_falling(p->by_speed, spare, p->P, speed);
    if (p->P > DENSE_DEVICES) return 0;
    struct place_link *dense;
    ARENA_NEW(&p->arena, dense, (i64)p->P * p->P);
    for (i32 a = 0; a < p->P; a++)
        for (i32 b = 0; b < p->P; b++) dense[a * p->P + b] = *problem_link(p->m, a, b);
    p->dense = dense;
    return 0;
}

static err mean_link(struct problem *p) {
    const struct place_machine *m = p->m;
    f64 *count, together = 0, seconds, per_byte;
    p->mean = (struct place_link){0, INFINITY};
    if (p->P == 1) return 0;
    ARENA_NEW(&p->arena, count, m->nrank);
    for (i32 d = 0; d < p->P; d++) count[m->device[d].rank] += 1;
    const f64 pairs = (f64)p->P * (p->P - 1);
    for (i32 r = 0; r < m->nrank; r++) together += count[r] * (count[r] - 1) / pairs;
    seconds = together * m->inside.seconds;
    per_byte = together / m->inside.rate;
    if (!m->pair && m->nrank > 1) {
        seconds += (1 - together) * m->between.seconds;
        per_byte += (1 - together) / m->between.rate;
    }
    for (i32 k = 0; m->pair && k < m->nrank * m->nrank; k++) {
        const f64 weight = count[k / m->nrank] * count[k % m->nrank] / pairs;
        if (k / m->nrank == k % m->nrank) continue;
        seconds += weight * m->pair[k].seconds;
        per_byte += weight / m->pair[k].rate;
    }
    p->mean = (struct place_link){seconds, 1 / per_byte};
    return 0;
}

/* u(x) = work at the mean speed + max over successors (transfer between two devices drawn at random + u). */
static err upward_ranks(struct problem *p) {
    ARENA_NEW(&p->arena, p->rank, p->n);
    TRY(mean_link(p));
    const f64 speed = p->speed_sum / p->P, apart = 1 - 1.0 / p->P;
    for (i32 i = p->n - 1; i >= 0; i--) {
        const i32 x = p->topo[i];
        f64 most = 0;
        for (i32 k = p->succ0[x]; k < p->succ0[x + 1]; k++) {
            const struct arc *a = &p->succ[k];
            const bool stays = p->group[a->node] == p->group[x];
            most = dmax(most, p->rank[a->node] + (stays ? 0 : apart * (p->mean.seconds + (f64)a->bytes / p->mean.rate)));
        }
        p->rank[x] = p->work[x] / speed + most;
    }
    return 0;
}

/* Nodes of one column and kind are a class; the class with the largest rank goes first, of equal ones the lower column. */
static err column_order(struct problem *p) {
    const i32 kinds = PLACE_HEAD + 1, classes = kinds * imax(1, p->ncolumn);
    f64 *most;
    i32 *order, *spare, *position;
    ARENA_NEW(&p->arena, p->by_column, p->n);
    ARENA_NEW(&p->arena, most, classes);
    ARENA_NEW(&p->arena, order, classes);
    ARENA_NEW(&p->arena, spare, classes);
    ARENA_NEW(&p->arena, position, classes);
    f64 longest = 0;
    for (i32 k = 0; k < classes; k++) order[k] = k;
    for (i32 x = 0; x < p->n; x++) {
        const i32 class = p->g->node[x].column * kinds + p->g->node[x].kind;
        most[class] = dmax(most[class], p->rank[x]);
        longest = dmax(longest, p->rank[x]);
    }
    sort_falling(order, spare, classes, most);
    for (i32 i = 0; i < classes; i++) position[order[i]] = i;
    for (i32 x = 0; x < p->n; x++) {
        const i32 class = p->g->node[x].column * kinds + p->g->node[x].kind;
        p->by_column[x] = p->rank[x] - (longest + 1) * position[class];
    }
    return 0;
}

static err build(struct problem *p) {
    TRY(check_machine(p->m));
    TRY(check_graph(p->g));
    ARENA_NEW(&p->arena, p->work, p->n);
    ARENA_NEW(&p->arena, p->group, p->n);
    ARENA_NEW(&p->arena, p->unit, p->n);
    for (i32 x = 0; x < p->n; x++) {
        p->work[x] = p->g->node[x].work;
        p->group[x] = p->g->node[x].group;
        p->unit[x] = p->g->node[x].unit;
    }
    TRY(index_arcs(p));
    TRY(sort_nodes(p));
    TRY(index_groups(p));
    TRY(index_held(p));
    TRY(index_devices(p));
    TRY(upward_ranks(p));
    TRY(column_order(p));
    return sim_new(p);
}

err problem_new(const struct place_graph *g, const struct place_machine *m, const struct place_options *o, struct problem *p) {
    *p = (struct problem){.g = g, .m = m, .n = g->nnode, .P = m->ndevice, .G = g->ngroup, .U = g->nunit};
    if (o) p->o = *o;
    const err e = build(p);
    if (e < 0) problem_free(p);
    return e;
}

void problem_free(struct problem *p) { arena_free(&p->arena); }
