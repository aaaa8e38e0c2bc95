/* exact.c - branch and bound over (task, device): the fastest placement there is, for graphs of some 20 tasks.
 *
 * A schedule is built in order of start times: a step appends a ready task to a device.  That covers a fastest schedule, because
 * each schedule can be sorted so and starting earlier is never worse.  Unlike the simulator's priorities, the search may let a
 * device wait on purpose.  A branch is cut if its lower bound is not below the best schedule so far:
 *
 *     path   earliest start of a task + longest path from it
 *     area   for all y: the work that is left with a path of at least y behind it, on devices that are free from the last start
 * on
 *
 * The search starts with HEFT's placement, so that it is independent of `best`, which it judges. */
#include <math.h>
#include <string.h>

#include "place/inside.h"

enum { NODES = 64, DEVICES = 8, CHOICES = NODES * DEVICES };

struct choice {
    i32 node, device;
    f64 start, end;
};

struct search {
    struct problem *p;
    i64 steps, most;
    bool symmetric;                                /* devices of one speed can change places */
    f64 tail[NODES];                               /* longest path behind a node, fastest device */
    i32 by_tail[NODES];                            /* nodes by falling tail */
    f64 start[NODES], end[NODES];                  /* of scheduled nodes */
    i32 wait[NODES], device[NODES], used[DEVICES]; /* device: of a group, -1 = none */
    i32 left[NODES];                               /* groups: nodes that are not scheduled; gone back to -1 where none is */
    f64 free[DEVICES];
    bool done[NODES];
    i32 sequence[NODES], depth;
    f64 best;
    i32 best_device[NODES], best_sequence[NODES];
};

/* Seconds of the sums of unit u on the devices that hold it so far. */
static f64 sum_of(const struct search *s, i32 u) {
    const struct problem *p = s->p;
    i32 holder[DEVICES], n = 0;
    u32 holds = 0;
    for (i32 i = p->held0[u]; i < p->held0[u + 1]; i++)
        if (s->device[p->held[i]] >= 0) holds |= 1u << s->device[p->held[i]];
    for (i32 d = 0; d < p->P; d++)
        if (holds >> d & 1) holder[n++] = d;
    return problem_sum(p, u, holder, n);
}

static f64 lower_bound(const struct search *s, f64 last) {
    const struct problem *p = s->p;
    f64 early[NODES], unit_end[NODES] = {0}, bound = 0, area = 0, work = 0;
    for (i32 i = 0; i < p->n; i++) {
        const i32 x = p->topo[i];
        early[x] = s->end[x];
        if (!s->done[x]) {
            f64 from = last;
            for (i32 k = p->pred0[x]; k < p->pred0[x + 1]; k++) from = dmax(from, early[p->pred[k].node]);
            early[x] = from + p->work[x] / p->speed_most;
        }
        bound = dmax(bound, early[x] + s->tail[x]);
        unit_end[p->unit[x]] = dmax(unit_end[p->unit[x]], early[x]);
    }
    for (i32 u = 0; u < p->U; u++) bound = dmax(bound, unit_end[u] + sum_of(s, u));
    for (i32 d = 0; d < p->P; d++) area += p->m->device[d].speed * dmax(s->free[d], last);
    for (i32 i = 0; i < p->n; i++) {
        const i32 x = s->by_tail[i];
        if (s->done[x]) continue;
        work += p->work[x];
        bound = dmax(bound, (area + work) / p->speed_sum + s->tail[x]);
    }
    return bound;
}

static bool is_twin(const struct search *s, i32 d) {
    for (i32 other = 0; s->symmetric && s->used[d] == 0 && other < d; other++)
        if (s->used[other] == 0 && s->p->m->device[other].speed == s->p->m->device[d].speed) return true;
    return false;
}

/* All (ready task, device), the earliest start first, then the highest rank. */
static i32 choices_of(const struct search *s, f64 last, struct choice *c) {
    const struct problem *p = s->p;
    i32 n = 0;
    for (i32 x = 0; x < p->n; x++) {
        if (s->done[x] || s->wait[x] > 0) continue;
        const i32 fixed = s->device[p->group[x]];
        for (i32 d = fixed >= 0 ? fixed : 0; d < (fixed >= 0 ? fixed + 1 : p->P); d++) {
            if (fixed < 0 && is_twin(s, d)) continue;
            const f64 from = dmax(s->free[d], problem_inputs(s->p, s->device, s->end, x, d));
            if (from < last) continue; /* the same schedule is found in order of start times */
            const struct choice one = {x, d, from, from + problem_seconds(p, x, d)};
            i32 at = n++;
            for (; at > 0; at--) {
                const struct choice *b = &c[at - 1];
                if (b->start < from || (b->start == from && p->rank[b->node] >= p->rank[x])) break;
                c[at] = *b;
            }
            c[at] = one;
        }
    }
    return n;
}

static void take(struct search *s, const struct choice *c, i32 sign) {
    const struct problem *p = s->p;
    const i32 x = c->node, k = p->group[x];
    s->used[c->device] += sign;
    s->left[k] -= sign;
    s->done[x] = sign > 0;
    s->start[x] = sign > 0 ? c->start : 0;
    s->end[x] = sign > 0 ? c->end : 0;
    s->device[k] = s->left[k] == p->node0[k + 1] - p->node0[k] ? -1 : c->device;
    for (i32 i = p->succ0[x]; i < p->succ0[x + 1]; i++) s->wait[p->succ[i].node] -= sign;
    if (sign > 0) s->sequence[s->depth] = x;
    s->depth += sign;
}

static void finish(struct search *s) {
    const struct problem *p = s->p;
    const f64 makespan = lower_bound(s, 0); /* nothing is left: exact */
    if (makespan >= s->best * (1 - 1e-9)) return;
    s->best = makespan;
    memcpy(s->best_device, s->device, (size_t)p->G * sizeof *s->device);
    memcpy(s->best_sequence, s->sequence, (size_t)p->n * sizeof *s->sequence);
}

static void branch(struct search *s, f64 last, struct choice *room) {
    if (s->depth == s->p->n) {
        finish(s);
        return;
    }
    const i32 n = choices_of(s, last, room);
    for (i32 i = 0; i < n && s->steps < s->most; i++) {
        const struct choice *c = &room[i];
        const f64 free = s->free[c->device];
        s->steps++;
        take(s, c, 1);
        s->free[c->device] = c->end;
        if (lower_bound(s, c->start) < s->best * (1 - 1e-9)) branch(s, c->start, room + n);
        s->free[c->device] = free;
        take(s, c, -1);
    }
}

static err prepare(struct problem *p, struct search *s) {
    i32 spare[NODES];
    for (i32 i = p->n - 1; i >= 0; i--) {
        const i32 x = p->topo[i];
        for (i32 k = p->succ0[x]; k < p->succ0[x + 1]; k++) {
            const i32 y = p->succ[k].node;
            s->tail[x] = dmax(s->tail[x], s->tail[y] + p->work[y] / p->speed_most);
        }
        s->wait[x] = p->pred0[x + 1] - p->pred0[x];
    }
    memcpy(s->by_tail, p->topo, (size_t)p->n * sizeof *s->by_tail);
    sort_falling(s->by_tail, spare, p->n, s->tail);
    for (i32 k = 0; k < p->G; k++) {
        s->device[k] = -1;
        s->left[k] = p->node0[k + 1] - p->node0[k];
    }
    s->symmetric = !p->m->pair;
    for (i32 a = 0; a < p->P; a++) /* all links alike: one rank, or a rank for each device */
        for (i32 b = 0; b < a; b++) s->symmetric &= p->m->nrank == 1 || p->m->device[a].rank != p->m->device[b].rank;
    return 0;
}

static err solve(struct problem *p, i64 most, struct placement *out, bool *solved) {
    struct search *s;
    struct choice *room;
    struct trial t;
    ARENA_NEW(&p->arena, s, 1);
    ARENA_NEW(&p->arena, room, (i64)CHOICES * (NODES + 1));
    TRY(trial_new(p, &t));
    TRY(list_heft(p, 0, &t));
    s->p = p;
    s->most = most;
    TRY(prepare(p, s));
    sim_trial(p, &t);
    s->best = t.makespan;
    memcpy(s->best_device, t.device, (size_t)p->G * sizeof *t.device);
    memcpy(s->best_sequence, sim_started(p), (size_t)p->n * sizeof *s->best_sequence);
    branch(s, 0, room);
    *solved = s->steps < most;
    TRY(placement_fill(p, s->best_device, s->best_sequence, out));
    out->simulated = s->steps;
    str_print(out->method, sizeof out->method, "exact%s", *solved ? "" : ", not finished");
    return 0;
}

err place_exact(const struct place_graph *g, const struct place_machine *m, i64 most, struct placement **out, bool *solved) {
    const struct place_options o = {.no_contention = true};
    struct problem p;
    *out = NULL;
    *solved = false;
    if (g->nnode > NODES || g->nunit > NODES || m->ndevice > DEVICES)
        return FAIL(E401, "branch and bound takes up to %d tasks on %d devices, not %d on %d", NODES, DEVICES, g->nnode,
                    m->ndevice);
    TRY(problem_new(g, m, &o, &p));
    p.limited = false;
    err e = placement_new(out);
    if (e == 0) e = solve(&p, most, *out, solved);
    if (e < 0) {
        placement_free(*out);
        *out = NULL;
    }
    problem_free(&p);
    return e;
}
