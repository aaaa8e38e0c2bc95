/* anneal.c - simulated annealing of devices and priorities, every proposal judged by the simulator.
 *
 * Moves: a run of columns of one unit to another device; one group; two groups change devices; the priority of a node.  The order
 * is part of a placement: where a transfer takes as long as a task, moves of devices alone do not reach the best ones. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "place/inside.h"

#define HOT 0.03 /* temperatures, of the first makespan: from HOT down to COLD */
#define COLD 5e-4
#define WORK 1500000 /* nodes x simulations of a run, within the limits below */
enum { RUNS_LEAST = 1000, RUNS_MOST = 6000, BATCH = 64 };

struct anneal {
    struct problem *p;
    u64 seed, index;
    u32 word[4];
    i32 left;           /* words that are not used yet */
    struct trial now;   /* the current state; the proposal while it is judged */
    i32 *old, *changed; /* [G] devices before the proposal, and whose */
    i32 nchanged;
    i32 node[2]; /* nodes with a new priority, -1 = none */
    f64 priority[2];
};

static u32 draw(struct anneal *a) {
    if (a->left == 0) {
        rng_words(a->seed, RNG_PLACE, 1, a->index++, a->word);
        a->left = 4;
    }
    return a->word[--a->left];
}

static i32 below(struct anneal *a, i32 n) { return place_below(draw(a), n); }
static f64 uniform(struct anneal *a) { return ((f64)draw(a) + 0.5) * 0x1p-32; }

static void move(struct anneal *a, i32 k, i32 d) {
    if (a->now.device[k] == d) return;
    a->old[a->nchanged] = a->now.device[k];
    a->changed[a->nchanged++] = k;
    a->now.device[k] = d;
}

static void move_run(struct anneal *a) {
    const struct problem *p = a->p;
    const i32 k = below(a, p->G), u = p->unit[p->node_of[p->node0[k]]]; /* units with more groups are drawn more often */
    const i32 base = p->unit0[u], n = p->unit0[u + 1] - base;
    const i32 lo = below(a, n), hi = lo + 1 + below(a, n - lo), d = below(a, p->P);
    for (i32 i = lo; i < hi; i++) move(a, p->unit_group[base + i], d);
}

static void set_priority(struct anneal *a, i32 slot, i32 x, f64 value) {
    a->node[slot] = x;
    a->priority[slot] = a->now.priority[x];
    a->now.priority[x] = value;
}

/* Two nodes of a device exchange priorities, or that of one changes by up to 0.3 to 100 % of the makespan, log-uniform. */
static void move_priority(struct anneal *a) {
    const struct problem *p = a->p;
    f64 *priority = a->now.priority;
    const i32 x = below(a, p->n), d = a->now.device[p->group[x]];
    if (draw(a) & 1) {
        for (i32 attempt = 0; attempt < 4; attempt++) {
            const i32 y = below(a, p->n);
            if (y == x || a->now.device[p->group[y]] != d) continue;
            const f64 keep = priority[x];
            set_priority(a, 0, x, priority[y]);
            set_priority(a, 1, y, keep);
            return;
        }
    }
    const f64 far = a->now.makespan * pow(10, -2.5 * uniform(a));
    set_priority(a, 0, x, priority[x] + far * (2 * uniform(a) - 1));
}

static void propose(struct anneal *a) {
    const struct problem *p = a->p;
    a->nchanged = 0;
    a->node[0] = a->node[1] = -1;
    const i32 kind = p->P > 1 ? below(a, 100) : 99;
    if (kind < 25) {
        move_run(a);
    } else if (kind < 45) {
        move(a, below(a, p->G), below(a, p->P));
    } else if (kind < 60) {
        const i32 k = below(a, p->G), other = below(a, p->G), d = a->now.device[k];
        move(a, k, a->now.device[other]);
        move(a, other, d);
    } else {
        move_priority(a);
    }
}

/* In reverse order: a group or node may have changed twice. */
static void undo(struct anneal *a) {
    while (a->nchanged > 0) {
        a->nchanged--;
        a->now.device[a->changed[a->nchanged]] = a->old[a->nchanged];
    }
    for (i32 slot = 1; slot >= 0; slot--)
        if (a->node[slot] >= 0) a->now.priority[a->node[slot]] = a->priority[slot];
}

err anneal_run(struct problem *p, u64 seed, struct trial *t, f64 bound) {
    struct anneal a = {.p = p, .seed = seed};
    TRY(trial_new(p, &a.now));
    ARENA_NEW(&p->arena, a.old, p->G);
    ARENA_NEW(&p->arena, a.changed, p->G);
    trial_copy(p, t, &a.now);
    const i32 usual = imax(RUNS_LEAST, imin(RUNS_MOST, WORK / p->n)), runs = p->o.iterations > 0 ? p->o.iterations : usual;
    const f64 hot = HOT * t->makespan, cooling = pow(COLD / HOT, (f64)BATCH / runs);
    f64 heat = hot;
    for (i32 i = 0; i < runs; i++) {
        if (t->over <= 0 && t->makespan <= bound * (1 + 1e-9)) break;
        if (i > 0 && i % BATCH == 0) heat *= cooling;
        const f64 makespan = a.now.makespan;
        const i64 over = lmax(a.now.over, 0);
        propose(&a);
        if (a.nchanged == 0 && a.node[0] < 0) continue;
        sim_trial(p, &a.now);
        const i64 lacks = lmax(a.now.over, 0);
        const bool better = lacks < over || (lacks == over && a.now.makespan <= makespan);
        if (better || (lacks == over && uniform(&a) < exp((makespan - a.now.makespan) / heat))) {
            if (trial_better(&a.now, t)) trial_copy(p, &a.now, t);
            continue;
        }
        undo(&a);
        a.now.makespan = makespan;
        a.now.over = over;
    }
    return 0;
}
