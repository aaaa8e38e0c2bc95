/* merge.c - which device adds which pair of micro-batches' gradients (plan/tree.h).
 *
 * A pair whose micro-batches all belong to one piece is merged by that piece's devices, without waiting for other pieces: the
 * piece then holds the dyadic nodes of its micro-batches.  All devices divide the other pairs by ranges of theta.  The order of
 * additions of every element is that of the tree in both cases. */
#include "model/layer.h"
#include "step/planner.h"

/* The piece that holds all micro-batches of a pair, -1 = none: several devices divide its range. */
static i32 owner(const struct planner *p, const struct merge_pair *m) {
    for (i32 i = 0; i < p->npiece; i++) {
        i32 g0 = p->piece[i].box.b0 / p->grain, g1 = ceil_div(p->piece[i].box.b1, p->grain);
        if (m->a >= g0 && m->end <= g1) return i;
    }
    return -1;
}

static i32 rank_of(const struct planner *p, i32 sharer) { return p->machine->device[p->sharer[sharer]].rank; }

/* Rank of a piece's devices of a stage. */
static i32 stage_rank(const struct planner *p, const struct piece *c, i32 stage) {
    return p->machine->device[planner_device(p, c, 0, imax(0, stage))].rank;
}

/* The rank whose pieces hold all micro-batches of a pair for a stage, -1 = none: inside a process sums cost no messages.  Where
 * ranks share units, each of them has its part of every vector. */
static i32 owner_rank(const struct planner *p, const struct merge_pair *m, i32 stage) {
    i32 rank = -1;
    for (i32 i = 0; i < p->npiece && !p->split; i++) {
        i32 g0 = p->piece[i].box.b0 / p->grain, g1 = ceil_div(p->piece[i].box.b1, p->grain);
        if (g0 >= m->end || g1 <= m->a) continue;
        const i32 here = stage_rank(p, &p->piece[i], stage);
        if (rank >= 0 && here != rank) return -1;
        rank = here;
    }
    return rank;
}

/* All pairs, and who merges each for a stage. */
struct owned {
    i32 n;
    struct merge_pair pair[MACHINE_DEVICES];
    i32 piece[MACHINE_DEVICES], rank[MACHINE_DEVICES];
};

static err find_owners(const struct planner *p, i32 stage, struct owned *o) {
    if (p->ngrain > MACHINE_DEVICES) return FAIL(E1, "%d micro-batches, at most %d are possible", p->ngrain, MACHINE_DEVICES);
    o->n = merge_pairs(p->ngrain, o->pair);
    for (i32 k = 0; k < o->n; k++) {
        o->piece[k] = owner(p, &o->pair[k]);
        o->rank[k] = owner_rank(p, &o->pair[k], stage);
    }
    return 0;
}

/* Adds MERGE tasks of a device over elements [lo,hi), for the pairs of these owners. */
static err merge_range(struct planner *p, const struct owned *o, u32 device, i32 piece, i32 rank, i64 lo, i64 hi) {
    for (i32 k = 0; k < o->n && hi > lo; k++) {
        if (o->piece[k] != piece || o->rank[k] != rank) continue;
        const struct task t = {
            .kind = TASK_MERGE, .device = device, .node_a = o->pair[k].a, .node_b = o->pair[k].b, .lo = lo, .hi = hi};
        TRY(planner_task(p, t));
    }
    return 0;
}

static bool shares(const struct planner *p, i32 i, i32 rank, i32 stage) {
    return rank_of(p, i) == rank && planner_in_stage(p, i, stage);
}

/* Pairs of a rank that no single piece holds: each sharer of the rank merges its part of the range. */
static err share_in_rank(struct planner *p, const struct owned *o, i32 rank, i32 stage, i64 from, i64 to) {
    i32 parts = 0, part = 0;
    i64 lo, hi;
    for (i32 i = 0; i < p->nsharer; i++) parts += shares(p, i, rank, stage);
    for (i32 i = 0; i < p->nsharer; i++) {
        if (!shares(p, i, rank, stage)) continue;
        planner_range(p->plan, from, to, part++, parts, &lo, &hi);
        TRY(merge_range(p, o, p->sharer[i], -1, rank, lo, hi));
    }
    return 0;
}

/* Pairs of several ranks: each sharer merges its part of every bucket, the last bucket first. */
static err share_out(struct planner *p) {
    struct owned o;
    i64 lo, hi;
    if (p->placed) return 0;
    for (i32 b = 0; b < p->nbucket; b++) {
        TRY(find_owners(p, p->bucket_stage[planner_bucket(p, b)], &o));
        for (i32 i = 0; i < p->nsharer; i++) {
            planner_share(p, planner_bucket(p, b), i, &lo, &hi);
            TRY(merge_range(p, &o, p->sharer[i], -1, -1, lo, hi));
        }
    }
    return 0;
}

/* Pairs of a piece: the devices of its group share the range, or those of the stage. */
static err merge_own(struct planner *p, const struct owned *o, i32 piece, i32 stage, i64 from, i64 to) {
    const struct piece *c = &p->piece[piece];
    const i32 group = stage == ALL_STAGES ? planner_group(p) : p->team.n;
    i64 lo, hi;
    for (i32 i = 0; i < p->team.n && p->split; i++) {
        split_range(p, from, to, i, &lo, &hi);
        TRY(merge_range(p, o, planner_device(p, c, i, imax(0, stage)), piece, -1, lo, hi));
    }
    for (i32 i = 0; i < group && !p->split; i++) {
        const u32 device = stage == ALL_STAGES ? planner_member(p, c, i) : planner_device(p, c, i, stage);
        planner_range(p->plan, from, to, i, group, &lo, &hi);
        TRY(merge_range(p, o, device, piece, stage_rank(p, c, stage), lo, hi));
    }
    return 0;
}

/* Pairs of a unit that a method of placement put on devices: each where its first micro-batch is. */
static err merge_placed(struct planner *p, i32 unit, i64 lo, i64 hi) {
    struct merge_pair pair[MACHINE_DEVICES];
    const i32 n = merge_pairs(p->ngrain, pair);
    for (i32 k = 0; k < n; k++)
        TRY(planner_task(p, (struct task){.kind = TASK_MERGE,
                                          .device = placed_device(p, unit, pair[k].a),
                                          .node_a = pair[k].a,
                                          .node_b = pair[k].b,
                                          .lo = lo,
                                          .hi = hi}));
    return 0;
}

err planner_merge_early(struct planner *p, i32 stage, i64 lo, i64 hi) {
    struct owned o;
    if (p->placed) return merge_placed(p, stage, lo, hi);
    TRY(find_owners(p, stage, &o));
    for (i32 i = 0; i < p->npiece; i++) TRY(merge_own(p, &o, i, stage, lo, hi));
    for (i32 r = 0; r < p->machine->nrank; r++) TRY(share_in_rank(p, &o, r, stage, lo, hi));
    return 0;
}

/* With early merges, merges the ranges that no backward pass writes: gradients of ops without one stay zero. */
err planner_merge(struct planner *p) {
    for (i32 b = 0; !p->early && b < p->nbucket; b++)
        TRY(planner_merge_early(p, p->bucket_stage[b], p->bucket[b], p->bucket[b + 1]));
    for (i32 l = 0; p->early && l < p->net->nop; l++) {
        const struct op *op = &p->net->op[l];
        if (!op_has_backward(p->net, op)) TRY(planner_merge_early(p, ALL_STAGES, op->theta0, op->theta0 + op->ntheta));
    }
    return share_out(p);
}
