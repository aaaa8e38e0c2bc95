/* merge.c - which device adds which pair of micro-batches' gradients (plan/tree.h).
 *
 * A pair whose grains all belong to one piece is merged by that piece's devices, without waiting for those of other pieces: the
 * piece then holds the canonical dyadic nodes of its run of grains.  The other pairs are shared out by ranges of
 * theta, so that every device helps.  The order of additions of every element is that of the tree in both cases. */
#include "model/layer.h"
#include "step/planner.h"

/* The piece that holds all grains of a pair, -1 = none: the pair is shared out. */
static i32 owner(const struct planner *p, const struct merge_pair *m) {
    for (i32 i = 0; i < p->npiece; i++) {
        i32 g0 = p->piece[i].box.b0 / p->grain, g1 = ceil_div(p->piece[i].box.b1, p->grain);
        if (m->a >= g0 && m->end <= g1) return i;
    }
    return -1;
}

static i32 rank_of(const struct planner *p, i32 sharer) { return p->machine->device[p->sharer[sharer]].rank; }

/* The rank whose pieces hold all grains of a pair, -1 = none: inside a process sums cost no messages. */
static i32 owner_rank(const struct planner *p, const struct merge_pair *m) {
    i32 rank = -1;
    for (i32 i = 0; i < p->npiece; i++) {
        i32 g0 = p->piece[i].box.b0 / p->grain, g1 = ceil_div(p->piece[i].box.b1, p->grain);
        if (g0 >= m->end || g1 <= m->a) continue;
        if (rank >= 0 && piece_rank(p, &p->piece[i]) != rank) return -1;
        rank = piece_rank(p, &p->piece[i]);
    }
    return rank;
}

static err pairs_of(const struct planner *p, struct merge_pair *pair, i32 *n) {
    if (p->ngrain > MACHINE_DEVICES) return FAIL(E1, "%d micro-batches, at most %d are possible", p->ngrain, MACHINE_DEVICES);
    *n = merge_pairs(p->ngrain, pair);
    return 0;
}

/* Each sharer of a rank merges its part of a range. */
static err share_in_rank(struct planner *p, i32 rank, i64 from, i64 to) {
    struct merge_pair pair[MACHINE_DEVICES];
    i32 all = p->nsharer, parts = 0, part = 0, n = 0;
    i64 lo, hi;
    TRY(pairs_of(p, pair, &n));
    for (i32 i = 0; i < all; i++) parts += rank_of(p, i) == rank;
    for (i32 i = 0; i < all; i++) {
        if (rank_of(p, i) != rank) continue;
        planner_range(p->plan, from, to, part++, parts, &lo, &hi);
        for (i32 k = 0; k < n && hi > lo; k++)
            if (owner(p, &pair[k]) < 0 && owner_rank(p, &pair[k]) == rank)
                TRY(task_merge(p, p->sharer[i], pair[k].a, pair[k].b, lo, hi));
    }
    return 0;
}

/* Each of all merges its part of every bucket, the last first. */
static err share_out(struct planner *p) {
    struct merge_pair pair[MACHINE_DEVICES];
    i32 n = 0;
    i64 lo, hi;
    TRY(pairs_of(p, pair, &n));
    for (i32 b = 0; b < p->nbucket; b++)
        for (i32 i = 0; i < p->nsharer; i++) {
            planner_share(p, planner_bucket(p, b), i, &lo, &hi);
            for (i32 k = 0; k < n && hi > lo; k++)
                if (owner(p, &pair[k]) < 0 && owner_rank(p, &pair[k]) < 0)
                    TRY(task_merge(p, p->sharer[i], pair[k].a, pair[k].b, lo, hi));
        }
    return 0;
}

/* Devices of a group share out the pairs of their piece by ranges. */
static err merge_own(struct planner *p, i32 piece, i64 from, i64 to) {
    struct merge_pair pair[MACHINE_DEVICES];
    const i32 group = planner_group(p);
    i32 n = 0;
    i64 lo, hi;
    TRY(pairs_of(p, pair, &n));
    for (i32 i = 0; i < group; i++) {
        planner_range(p->plan, from, to, i, group, &lo, &hi);
        for (i32 k = 0; k < n && hi > lo; k++)
            if (owner(p, &pair[k]) == piece)
                TRY(task_merge(p, planner_member(p, &p->piece[piece], i), pair[k].a, pair[k].b, lo, hi));
    }
    return 0;
}

err planner_merge_early(struct planner *p, i64 lo, i64 hi) {
    for (i32 i = 0; i < p->npiece && hi > lo; i++) TRY(merge_own(p, i, lo, hi));
    for (i32 r = 0; r < p->machine->nrank && hi > lo; r++) TRY(share_in_rank(p, r, lo, hi));
    return 0;
}

/* What no backward pass has made: gradients of ops that nobody asks, which are zero. */
static err rest(struct planner *p) {
    for (i32 l = 0; l < p->net->nop; l++) {
        const struct op *op = &p->net->op[l];
        if (!op_has_backward(p->net, op)) TRY(planner_merge_early(p, op->theta0, op->theta0 + op->ntheta));
    }
    return 0;
}

err planner_merge(struct planner *p) {
    TRY(p->early ? rest(p) : planner_merge_early(p, 0, netplan(p->plan)->ntheta));
    return share_out(p);
}
