/* simulate.c - measured seconds to costs of kinds of work, and these to the costs of a plan's tasks. */
#include "step/simulate.h"

#include <stdlib.h>

#include "base/arena.h"
#include "model/layer.h"
#include "step/planner.h"

enum { GATES = 2 }; /* of a round: all have run, all have compared */

static bool walks_rows(u8 kind) { return kind == TASK_FWD || kind == TASK_BWD; }

/* The key of a cost: kind, op and rows. */
static struct cost key_of(const struct task *t) {
    bool rows = walks_rows(t->kind);
    return (struct cost){
        .kind = t->kind, .op = rows || t->kind == TASK_PREP ? t->op : 0, .rows = rows ? t->box.b1 - t->box.b0 : 0};
}

err costs_put(struct costs *c, struct cost what) {
    for (i32 i = 0; i < c->n; i++)
        if (c->at[i].kind == what.kind && c->at[i].op == what.op && c->at[i].rows == what.rows) return 0;
    if (c->n == COSTS_MAX) return FAIL(E1, "more than %d kinds of work were measured", COSTS_MAX);
    c->at[c->n++] = what;
    return 0;
}

/* The nearest known cost with at most (at least) this number of rows. */
static const struct cost *nearest(const struct costs *c, enum task_kind kind, i32 op, i32 rows, bool fewer) {
    const struct cost *best = NULL;
    for (i32 i = 0; i < c->n; i++) {
        const struct cost *k = &c->at[i];
        if (k->kind != kind || k->op != op || (fewer ? k->rows > rows : k->rows < rows)) continue;
        if (!best || (fewer ? k->rows > best->rows : k->rows < best->rows)) best = k;
    }
    return best;
}

f64 costs_get(const struct costs *c, enum task_kind kind, i32 op, i32 rows) {
    const struct cost *low = nearest(c, kind, op, rows, true), *high = nearest(c, kind, op, rows, false);
    if (!low && !high) return -1;
    if (!low) return high->seconds * rows / high->rows;
    if (low->rows == rows) return low->seconds;
    if (!high) return low->seconds * rows / low->rows;
    return low->seconds + (high->seconds - low->seconds) * (rows - low->rows) / (high->rows - low->rows);
}

/* Amount of work of a task in the unit of its cost. */
static f64 amount(const struct plan *p, const struct task *t) {
    if (walks_rows(t->kind) || t->kind == TASK_DW) return t->box.t1 - t->box.t0;
    if (t->kind == TASK_PREP) return 1;
    if (t->kind == TASK_ZERO) return (f64)netplan(p)->ntheta * ceil_div(t->box.b1 - t->box.b0, p->grain);
    return (f64)(t->hi - t->lo);
}

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

/* Seconds of a step of the most rows that any member has, where all members' shares together took so long.  Of a step of fewer
 * rows: what is known, and between the most that are known and these a share of what is looked for.  t: the first of them. */
static err learn_chain(struct costs *c, const struct task *t, const struct walk *w, f64 seconds) {
    struct cost key = {.kind = t->kind, .op = t->op, .rows = most_rows(t)};
    const struct cost *known = nearest(c, t->kind, t->op, key.rows, true);
    const i32 low = known ? known->rows : 0;
    const f64 base = known ? known->seconds : 0;
    struct counter count;
    f64 share = 0;
    if (low == key.rows) return 0;
    err e = counter_new(key.rows, &count);
    for (i32 r = 0; e == 0 && r < w->rounds; r++)
        for (i32 m = 0; m < t->members; m++) count_steps(w, r, t[m].box.b0, t[m].box.b1, count.sorted, count.side);
    for (i32 i = 1; e == 0 && i <= key.rows; i++) {
        const f64 steps = (f64)count.side[i], part = i > low ? (f64)(i - low) / (key.rows - low) : 0;
        seconds -= steps * (i > low ? (1 - part) * base : costs_get(c, t->kind, t->op, i));
        share += steps * part;
    }
    arena_free(&count.arena);
    key.seconds = share > 0 ? dmax(seconds, 0) / share : 0;
    return e < 0 || share <= 0 ? e : costs_put(c, key);
}

/* A member's share of a round. */
static f64 member_round(const struct task *t, const struct costs *c, const struct walk *w, i32 round, struct counter *count) {
    const i32 rows = t->box.b1 - t->box.b0;
    f64 sum = 0;
    for (i32 i = 0; i <= rows; i++) count->side[i] = 0;
    count_steps(w, round, t->box.b0, t->box.b1, count->sorted, count->side);
    for (i32 i = 1; i <= rows; i++)
        if (count->side[i] > 0) sum += (f64)count->side[i] * costs_get(c, t->kind, t->op, i);
    return sum;
}

/* All members of a chain run until it is done.  t: its first task. */
static err chain_costs(struct task *t, const struct costs *c, const struct walk *w, u32 *guessed) {
    struct counter count;
    f64 sum = 0;
    if (w->rounds == 0 || costs_get(c, t->kind, t->op, 1) < 0) {
        *guessed += t->members;
        return 0;
    }
    err e = counter_new(w->nslice, &count);
    for (i32 r = 0; e == 0 && r < w->rounds; r++) {
        f64 slowest = 0;
        for (i32 m = 0; m < t->members; m++) slowest = dmax(slowest, member_round(&t[m], c, w, r, &count));
        sum += slowest + (t->members > 1 ? GATES * PLAN_SYNC_S : 0);
    }
    arena_free(&count.arena);
    for (i32 m = 0; e == 0 && m < t->members; m++) t[m].cost = (f32)sum;
    return e;
}

/* ------------------------------------------------------------------ plans --------------------------------------------------- */

/* Sums and amounts of the tasks of one key: merges that were done together are seen as one. */
static err learn_key(struct costs *c, const struct plan *p, u32 first, const f64 *seconds) {
    struct cost key = key_of(&p->task[first]);
    f64 sum = 0, all = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct cost k = key_of(&p->task[i]);
        if (k.kind != key.kind || k.op != key.op || k.rows != key.rows) continue;
        if (i < first) return 0; /* an earlier task has the key */
        sum += seconds[i];
        all += amount(p, &p->task[i]);
    }
    key.seconds = sum / all;
    return sum > 0 ? costs_put(c, key) : 0;
}

err costs_learn(struct costs *c, const struct plan *p, const struct net *n, const struct walks *w, const f64 *seconds) {
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (t->members > 1 && !is_chain(n, t)) continue; /* a share of units is no measure of rows */
        if (!is_chain(n, t))
            TRY(learn_key(c, p, i, seconds));
        else if (t->member == 0 && seconds[i] > 0 && walk_of(w, t)->rounds > 0)
            TRY(learn_chain(c, t, walk_of(w, t), seconds[i]));
    }
    return 0;
}

static bool one_process(const struct plan *p) {
    for (i32 d = 1; d < p->ndevice; d++)
        if (p->place[d].rank != p->place[0].rank) return false;
    return true;
}

/* -1 = not known.  One worker makes no weight gradient in parts: what it took is in its backward pass. */
static f64 measured(const struct plan *p, const struct net *n, const struct task *t, const struct costs *c) {
    struct task like = *t;
    if (t->kind == TASK_DW) like.kind = TASK_BWD;
    const struct cost key = key_of(&like);
    if (t->members > 1 || (t->kind == TASK_MERGE && !one_process(p))) return -1;
    const f64 s = costs_get(c, key.kind, key.op, key.rows);
    return s < 0 ? s : s * amount(p, t) * (key.kind == TASK_BWD ? plan_part_of_backward(p, n, t) : 1);
}

err plan_simulate(struct plan *p, const struct net *n, const struct costs *c, const struct walks *w, u32 *guessed) {
    *guessed = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        struct task *t = &p->task[i];
        if (is_chain(n, t)) {
            if (walk_of(w, t)->rounds > 0 && walk_of(w, t)->nslice != p->B)
                return FAIL(E1, "%s: a chain of %d slices for %d rows", n->op[t->op].spec.name, walk_of(w, t)->nslice, p->B);
            if (t->member == 0) TRY(chain_costs(t, c, walk_of(w, t), guessed));
            continue;
        }
        const f64 s = measured(p, n, t, c);
        if (s >= 0) t->cost = (f32)s;
        *guessed += s < 0;
    }
    p->predicted = plan_schedule(p, NULL);
    return 0;
}
