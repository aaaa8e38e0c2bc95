/* list.c - list schedulers: they place node by node, each where it ends first in their own schedule.
 *
 *     heft   nodes by falling upward rank; a node may fill a gap between nodes placed before (Topcuoglu et al. 2002)
 *     etf    of all ready nodes, the one that can start first (Hwang et al. 1989)
 *
 * A group goes where its first node goes.  Limits of memory count all nodes of a group and one copy of its unit's weights, as if
 * nothing were freed; where no device has room, the one that lacks least is taken, and the simulator decides whether it fits. */
#include <math.h>
#include <string.h>

#include "place/inside.h"

struct list {
    struct problem *p;
    struct trial *t;
    f64 affinity;      /* times the cost of a copy, added where a device has no copy of the unit yet */
    f64 *start, *end;  /* [n] */
    f64 *free;         /* [P] etf: when the device has done what it has */
    i32 *first, *next; /* heft: nodes of a device by start; -1 = none */
    i64 *memory;       /* [P] */
    bool *holds;       /* [U][P] */
    i32 *home;         /* [U] first device; -1 = none */
};

struct slot {
    i32 device, after; /* after: the node before the gap; -1 = none */
    f64 start, end, value;
    i64 over;
};

static err list_new(struct problem *p, struct trial *t, struct list *l) {
    *l = (struct list){.p = p, .t = t};
    ARENA_NEW(&p->arena, l->start, p->n);
    ARENA_NEW(&p->arena, l->end, p->n);
    ARENA_NEW(&p->arena, l->free, p->P);
    ARENA_NEW(&p->arena, l->first, p->P);
    ARENA_NEW(&p->arena, l->next, p->n);
    ARENA_NEW(&p->arena, l->memory, p->P);
    ARENA_NEW(&p->arena, l->holds, (i64)p->U * p->P);
    ARENA_NEW(&p->arena, l->home, p->U);
    for (i32 d = 0; d < p->P; d++) l->first[d] = -1;
    for (i32 u = 0; u < p->U; u++) l->home[u] = -1;
    for (i32 k = 0; k < p->G; k++) t->device[k] = -1;
    return 0;
}

/* Bytes that device d would lack; <= 0: there is room. */
static i64 over_at(const struct list *l, i32 x, i32 d) {
    const struct problem *p = l->p;
    const i64 limit = p->m->device[d].memory;
    if (limit == 0) return 0;
    const i32 u = p->unit[x];
    return l->memory[d] + p->group_memory[p->group[x]] + (l->holds[(i64)u * p->P + d] ? 0 : p->g->unit[u].memory) - limit;
}

static bool slot_better(const struct slot *a, const struct slot *b) {
    if (a->over > 0 || b->over > 0) return lmax(a->over, 0) != lmax(b->over, 0) ? a->over < b->over : a->value < b->value;
    return a->value < b->value;
}

/* The first gap of device d from `from` on that takes `seconds`. */
static struct slot gap(const struct list *l, i32 d, f64 from, f64 seconds) {
    struct slot s = {.device = d, .after = -1, .start = from};
    for (i32 y = l->first[d]; y >= 0; y = l->next[y]) {
        if (l->start[y] - s.start >= seconds) break;
        s.start = dmax(s.start, l->end[y]);
        s.after = y;
    }
    s.end = s.start + seconds;
    return s;
}

static struct slot slot_of(const struct list *l, i32 x, i32 d, bool fills_gaps) {
    const struct problem *p = l->p;
    const f64 from = problem_inputs(l->p, l->t->device, l->end, x, d), seconds = problem_seconds(p, x, d);
    struct slot s = {.device = d, .after = -1, .start = dmax(from, l->free[d])};
    s.end = s.start + seconds;
    if (fills_gaps) s = gap(l, d, from, seconds);
    const i32 u = p->unit[x];
    s.value = s.end;
    if (l->home[u] >= 0 && !l->holds[(i64)u * p->P + d] && l->affinity > 0)
        s.value += l->affinity * problem_sum_seconds(p, u, l->home[u], d);
    s.over = over_at(l, x, d);
    return s;
}

static struct slot best_slot(const struct list *l, i32 x, bool fills_gaps) {
    const i32 fixed = l->t->device[l->p->group[x]];
    if (fixed >= 0) return slot_of(l, x, fixed, fills_gaps);
    struct slot best = slot_of(l, x, l->p->by_speed[0], fills_gaps);
    for (i32 i = 1; i < l->p->P; i++) {
        const struct slot s = slot_of(l, x, l->p->by_speed[i], fills_gaps);
        if (slot_better(&s, &best)) best = s;
    }
    return best;
}

static void put(struct list *l, i32 x, const struct slot *s) {
    const struct problem *p = l->p;
    const i32 d = s->device, u = p->unit[x], k = p->group[x];
    l->start[x] = s->start;
    l->end[x] = s->end;
    l->free[d] = dmax(l->free[d], s->end);
    i32 *link = s->after < 0 ? &l->first[d] : &l->next[s->after];
    l->next[x] = *link;
    *link = x;
    if (!l->holds[(i64)u * p->P + d]) {
        l->holds[(i64)u * p->P + d] = true;
        l->memory[d] += p->g->unit[u].memory;
        if (l->home[u] < 0) l->home[u] = d;
    }
    if (l->t->device[k] >= 0) return;
    l->t->device[k] = d;
    l->memory[d] += p->group_memory[k];
}

bool list_able(const struct problem *p) { return p->n <= LIST_NODES && (i64)p->n * p->P <= LIST_MOST; }

err list_heft(struct problem *p, f64 affinity, struct trial *t) {
    struct list l;
    i32 *order, *spare;
    TRY(list_new(p, t, &l));
    l.affinity = affinity;
    ARENA_NEW(&p->arena, order, p->n);
    ARENA_NEW(&p->arena, spare, p->n);
    memcpy(order, p->topo, (size_t)p->n * sizeof *order);
    memcpy(t->priority, p->rank, (size_t)p->n * sizeof *t->priority);
    sort_falling(order, spare, p->n, p->rank); /* stable: a node of rank equal to its successor's stays before it */
    for (i32 i = 0; i < p->n; i++) {
        const struct slot s = best_slot(&l, order[i], true);
        put(&l, order[i], &s);
    }
    sim_trial_or(p, t, l.start);
    return 0;
}

err list_etf(struct problem *p, struct trial *t) {
    struct list l;
    i32 *ready, *wait, n = 0;
    TRY(list_new(p, t, &l));
    ARENA_NEW(&p->arena, ready, p->n);
    ARENA_NEW(&p->arena, wait, p->n);
    memcpy(t->priority, p->rank, (size_t)p->n * sizeof *t->priority);
    for (i32 x = 0; x < p->n; x++) {
        wait[x] = p->pred0[x + 1] - p->pred0[x];
        if (wait[x] == 0) ready[n++] = x;
    }
    while (n > 0) {
        struct slot best = {.start = INFINITY};
        i32 at = -1;
        for (i32 i = 0; i < n; i++) {
            const struct slot s = best_slot(&l, ready[i], false);
            const bool tie = at >= 0 && s.start == best.start, higher = at >= 0 && p->rank[ready[i]] > p->rank[ready[at]];
            if (at >= 0 && !(s.start < best.start || (tie && higher))) continue;
            best = s;
            at = i;
        }
        const i32 x = ready[at];
        ready[at] = ready[--n];
        put(&l, x, &(struct slot){.device = best.device, .after = -1, .start = best.start, .end = best.end});
        for (i32 k = p->succ0[x]; k < p->succ0[x + 1]; k++)
            if (--wait[p->succ[k].node] == 0) ready[n++] = p->succ[k].node;
    }
    sim_trial_or(p, t, l.start);
    return 0;
}
