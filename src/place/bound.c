/* bound.c - lower bounds of the makespan: no placement is faster, whatever the transfers.
 *
 *     critical path    the longest path, every node on the fastest device
 *     work             all work / sum of speeds
 *     head-body-tail   for all (x, y): x + work of {v: head(v) >= x and tail(v) >= y} / sum of speeds + y
 *
 * head(v): longest path that ends where v starts; tail(v): longest path that starts where v ends.  The third bound sees the ramps
 * at both ends of a step, where devices must be idle. */
#include "place/inside.h"

#define PAIRS_MOST 40000000 /* (x, v) that are looked at: for larger graphs only some x, which gives a bound too */

static f64 path_bounds(struct problem *p, f64 *head, f64 *tail) {
    f64 longest = 0;
    for (i32 i = 0; i < p->n; i++) {
        const i32 x = p->topo[i];
        for (i32 k = p->succ0[x]; k < p->succ0[x + 1]; k++)
            head[p->succ[k].node] = dmax(head[p->succ[k].node], head[x] + p->work[x] / p->speed_most);
    }
    for (i32 i = p->n - 1; i >= 0; i--) {
        const i32 x = p->topo[i];
        for (i32 k = p->succ0[x]; k < p->succ0[x + 1]; k++) {
            const i32 y = p->succ[k].node;
            tail[x] = dmax(tail[x], tail[y] + p->work[y] / p->speed_most);
        }
        longest = dmax(longest, head[x] + p->work[x] / p->speed_most + tail[x]);
    }
    return longest;
}

err problem_bound(struct problem *p, struct place_bound *out) {
    f64 *head, *tail, work = 0, best = 0;
    i32 *by_head, *by_tail, *spare;
    if (p->bound.name) {
        *out = p->bound;
        return 0;
    }
    ARENA_NEW(&p->arena, head, p->n);
    ARENA_NEW(&p->arena, tail, p->n);
    ARENA_NEW(&p->arena, by_head, p->n);
    ARENA_NEW(&p->arena, by_tail, p->n);
    ARENA_NEW(&p->arena, spare, p->n);
    *out = (struct place_bound){path_bounds(p, head, tail), "critical path"};
    for (i32 x = 0; x < p->n; x++) {
        work += p->work[x];
        by_head[x] = by_tail[x] = x;
    }
    if (work / p->speed_sum > out->seconds) *out = (struct place_bound){work / p->speed_sum, "work"};
    sort_falling(by_head, spare, p->n, head);
    sort_falling(by_tail, spare, p->n, tail);
    const i32 step = (i32)((i64)p->n * p->n / PAIRS_MOST) + 1;
    for (i32 i = 0; i < p->n; i += step) {
        const f64 x = head[by_head[i]];
        if (i > 0 && step == 1 && x == head[by_head[i - 1]]) continue;
        f64 body = 0;
        for (i32 k = 0; k < p->n; k++) {
            const i32 v = by_tail[k];
            if (head[v] < x) continue;
            body += p->work[v];
            best = dmax(best, x + body / p->speed_sum + tail[v]);
        }
    }
    if (best > out->seconds * (1 + 1e-12)) *out = (struct place_bound){best, "head-body-tail"};
    p->bound = *out;
    return 0;
}

err place_lower_bound(const struct place_graph *g, const struct place_machine *m, struct place_bound *out) {
    struct problem p;
    TRY(problem_new(g, m, NULL, &p));
    const err e = problem_bound(&p, out);
    problem_free(&p);
    return e;
}
