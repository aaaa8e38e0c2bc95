/* simulate.c - measured seconds to costs of kinds of work, and these to the costs of a plan's tasks. */
#include "step/simulate.h"

#include <stdlib.h>

#include "base/arena.h"
#include "model/layer.h"
#include "step/planner.h"

enum { GATES = 2 }; /* of a round: all have run, all have compared */

static bool walks_rows(u8 kind) { return kind == TASK_FWD || kind == TASK_BWD; }

static const struct walk *walk_of(const struct walks *w, const struct task *t) { return &w->op[t->op][t->kind == TASK_BWD]; }

static bool is_chain(const struct net *n, const struct task *t) { return walks_rows(t->kind) && op_is_chain(&n->op[t->op]); }

/* ------------------------------------------------------------------ chains -------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const i32 x = *(const i32 *)a, y = *(const i32 *)b;
    return (x > y) - (x < y);
}

/* Adds to side[i] the steps of a round in which i of the slices k0..k1 are on the way.  sorted: room for k1 - k0. */
static void count_steps(const struct walk *w, i32 round, i32 k0, i32 k1, i32 *sorted, i64 *side) {
    const i32 *ran = w->ran + (i64)imin(round, w->kept - 1) * w->nslice;
    i32 n = 0, before = 0;
    for (i32 k = k0; k < k1; k++)
        if (ran[k] > 0) sorted[n++] = ran[k];
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    for (i32 i = 0; i < n; i++) {
        side[n - i] += sorted[i] - before;
        before = sorted[i];
    }
}

/* Scratch to count the steps of `rows` slices. */
struct counter {
    i32 *sorted;
    i64 *side; /* [rows + 1] */
    struct arena arena;
};

static err counter_new(i32 rows, struct counter *c) {
    c->arena = (struct arena){0};
    ARENA_NEW(&c->arena, c->sorted, rows);
    ARENA_NEW(&c->arena, c->side, rows + 1);
    return 0;
}

static i32 most_rows(const struct task *t) {
    i32 rows = 0;
    for (i32 m = 0; m < t->members; m++) rows = imax(rows, t[m].box.b1 - t[m].box.b0);
    return rows;
}

/* A step of some rows of a chain, by one worker. */
static struct cost step_of(const struct plan *p, const struct net *n, const struct task *t, i32 rows) {
    return (struct cost){.kind = t->kind, .shape = costs_shape(n, t->op, p->grain), .size = rows};
}

static f64 step_seconds(const struct costs *c, struct cost like, i32 rows) {
    like.size = rows;
    return costs_get(c, &like);
}

/* Seconds of a step of the most rows that any member has, where all members' shares together took so long.  Of a step of fewer
 * rows: what is known, and between the most that are known and these a share of what is looked for.  t: the first of them. */
static err learn_chain(struct costs *c, const struct task *t, struct cost key, const struct walk *w, f64 seconds) {
    const i32 rows = (i32)key.size;
    const struct cost *known = costs_nearest(c, &key, true);
    const i32 low = known ? (i32)known->size : 0;
    const f64 base = known ? known->seconds : 0;
    struct counter count;
    f64 share = 0;
    if (low == rows) return 0;
    err e = counter_new(rows, &count);
    for (i32 r = 0; e == 0 && r < w->rounds; r++)
        for (i32 m = 0; m < t->members; m++) count_steps(w, r, t[m].box.b0, t[m].box.b1, count.sorted, count.side);
    for (i32 i = 1; e == 0 && i <= rows; i++) {
        const f64 steps = (f64)count.side[i], part = i > low ? (f64)(i - low) / (rows - low) : 0;
        seconds -= steps * (i > low ? (1 - part) * base : step_seconds(c, key, i));
        share += steps * part;
    }
    arena_free(&count.arena);
    key.seconds = share > 0 ? dmax(seconds, 0) / share : 0;
    if (e >= 0 && share > 0) costs_put(c, key);
    return e;
}

/* A member's share of a round. */
static f64 member_round(const struct task *t, const struct costs *c, struct cost key, const struct walk *w, i32 round,
                        struct counter *count) {
    const i32 rows = t->box.b1 - t->box.b0;
    f64 sum = 0;
    for (i32 i = 0; i <= rows; i++) count->side[i] = 0;
    count_steps(w, round, t->box.b0, t->box.b1, count->sorted, count->side);
    for (i32 i = 1; i <= rows; i++)
        if (count->side[i] > 0) sum += (f64)count->side[i] * step_seconds(c, key, i);
    return sum;
}

/* All members of a chain run until it is done.  t: its first task. */
static err chain_costs(struct task *t, const struct costs *c, struct cost key, const struct walk *w, u32 *guessed) {
    struct counter count;
    f64 sum = 0;
    if (w->rounds == 0 || step_seconds(c, key, 1) < 0) {
        *guessed += t->members;
        return 0;
    }
    err e = counter_new(w->nslice, &count);
    for (i32 r = 0; e == 0 && r < w->rounds; r++) {
        f64 slowest = 0;
        for (i32 m = 0; m < t->members; m++) slowest = dmax(slowest, member_round(&t[m], c, key, w, r, &count));
        sum += slowest + (t->members > 1 ? GATES * PLAN_SYNC_S : 0);
    }
    arena_free(&count.arena);
    for (i32 m = 0; e == 0 && m < t->members; m++) t[m].cost = (f32)sum;
    return e;
}

/* ------------------------------------------------------------------ plans --------------------------------------------------- */

err costs_learn_walks(struct costs *c, const struct plan *p, const struct net *n, const struct walks *w, const f64 *seconds) {
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (is_chain(n, t) && t->member == 0 && seconds[i] > 0 && walk_of(w, t)->rounds > 0)
            TRY(learn_chain(c, t, step_of(p, n, t, most_rows(t)), walk_of(w, t), seconds[i]));
    }
    return costs_learn(c, p, n, seconds, false);
}

static bool one_process(const struct plan *p) {
    for (i32 d = 1; d < p->ndevice; d++)
        if (p->place[d].rank != p->place[0].rank) return false;
    return true;
}

/* -1 = not known. */
static f64 measured(const struct plan *p, const struct net *n, const struct task *t, const struct costs *c) {
    if (t->members > 1 || (t->kind == TASK_MERGE && !one_process(p))) return -1;
    return costs_of(c, p, n, t, 0);
}

err plan_simulate(struct plan *p, const struct net *n, const struct costs *c, const struct walks *w, u32 *guessed) {
    *guessed = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        struct task *t = &p->task[i];
        if (is_chain(n, t)) {
            if (walk_of(w, t)->rounds > 0 && walk_of(w, t)->nslice != p->B)
                return FAIL(E1, "%s: a chain of %d slices for %d rows", n->op[t->op].spec.name, walk_of(w, t)->nslice, p->B);
            if (t->member == 0) TRY(chain_costs(t, c, step_of(p, n, t, 1), walk_of(w, t), guessed));
            continue;
        }
        const f64 s = measured(p, n, t, c);
        if (s >= 0) t->cost = (f32)s;
        *guessed += s < 0;
    }
    p->predicted = plan_schedule(p, NULL);
    return 0;
}
