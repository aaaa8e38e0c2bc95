/* merge.c - the fixed binary tree that adds the gradients of grains, whoever computed them.
 *
 *     grains   0   1   2   3   4   5   6
 *     level 0  0<--1   2<--3   4<--5   6        pair (a,b): vector a += vector b
 *     level 1  0<------2       4<------6
 *     level 2  0<--------------4                the sum ends in vector 0
 *
 * A pair whose grains all belong to one piece is merged by that piece's device, over all of theta, without waiting for
 * anybody: the piece then holds the canonical dyadic nodes of its run of grains.  The other pairs are shared out by ranges of
 * theta, so that every device helps.  The order of additions of every element is that of the tree in both cases. */
#include "plan/planner.h"

i32 merge_pairs(i32 n, struct merge_pair *out) {
    i32 count = 0;
    for (i32 level = 0; level < 30 && 1 << level < n; level++) {
        i32 half = 1 << level;
        for (i32 a = 0; a + half < n; a += 2 * half)
            out[count++] = (struct merge_pair){.a = a, .b = a + half, .end = imin(a + 2 * half, n), .level = level};
    }
    return count;
}

/* Part `part` of `parts` of theta, cut at blocks of the norm so that one worker sums what it merged. */
void plan_theta_share(const struct plan *p, i32 part, i32 parts, i64 *lo, i64 *hi) {
    i64 blocks = (p->ntheta + p->norm_block - 1) / p->norm_block;
    *lo = lmin(blocks * part / parts * p->norm_block, p->ntheta);
    *hi = lmin(blocks * (part + 1) / parts * p->norm_block, p->ntheta);
}

/* The piece that holds all grains of a pair, -1 = none: the pair is shared out.  A team shares out every pair. */
static i32 owner(const struct planner *p, const struct merge_pair *m) {
    if (p->nteam > 1) return -1;
    for (i32 i = 0; i < p->npiece; i++) {
        i32 g0 = p->piece[i].box.b0 / p->grain, g1 = ceil_div(p->piece[i].box.b1, p->grain);
        if (m->a >= g0 && m->end <= g1) return i;
    }
    return -1;
}

err planner_merge(struct planner *p) {
    struct merge_pair pair[MACHINE_DEVICES];
    if (p->ngrain > MACHINE_DEVICES) return FAIL(E1, "%d grains, at most %d are possible", p->ngrain, MACHINE_DEVICES);
    i32 n = merge_pairs(p->ngrain, pair);
    i64 P = p->plan->ntheta, lo, hi;
    for (i32 i = 0; i < p->npiece; i++)
        for (i32 k = 0; k < n; k++)
            if (owner(p, &pair[k]) == i) TRY(task_merge(p, p->piece[i].device, pair[k].a, pair[k].b, 0, P));
    for (i32 i = 0; i < planner_sharers(p); i++) {
        plan_theta_share(p->plan, i, planner_sharers(p), &lo, &hi);
        for (i32 k = 0; k < n && hi > lo; k++)
            if (owner(p, &pair[k]) < 0) TRY(task_merge(p, planner_sharer(p, i), pair[k].a, pair[k].b, lo, hi));
    }
    return 0;
}
