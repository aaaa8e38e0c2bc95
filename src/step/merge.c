/* merge.c - which device adds which pair of micro-batches' gradients (plan/tree.h).
 *
 * A pair whose grains all belong to one piece is merged by that piece's devices, without waiting for those of other pieces: the
 * piece then holds the canonical dyadic nodes of its run of grains.  The other pairs are shared out by ranges of
 * theta, so that every device helps.  The order of additions of every element is that of the tree in both cases. */
#include "model/layer.h"
#include "step/planner.h"

/* Part `part` of `parts` of a range, cut at blocks of the norm so that one worker sums what it merged. */
static void part_of(const struct plan *p, i64 from, i64 to, i32 part, i32 parts, i64 *lo, i64 *hi) {
    const i64 first = from / netplan(p)->norm_block, blocks = (to + netplan(p)->norm_block - 1) / netplan(p)->norm_block - first;
    *lo = lmax(from, lmin((first + blocks * part / parts) * netplan(p)->norm_block, to));
    *hi = lmax(from, lmin((first + blocks * (part + 1) / parts) * netplan(p)->norm_block, to));
}

i64 planner_part(const struct planner *p, i32 k) {
    const struct plan *g = p->plan;
    const struct op *op = &p->net->op[netplan(g)->parted.op];
    if (k == 0) return op->theta0;
    return k == netplan(g)->parted.n
               ? op->theta0 + op->ntheta
               : (op->theta0 + op->layer->adds(op, k, netplan(g)->parted.n)) / netplan(g)->norm_block * netplan(g)->norm_block;
}

/* The first block of the norm that begins at an element or behind it, or the end. */
static i64 block_at(const struct planner *p, i64 at) {
    return lmin(round_up64(at, netplan(p->plan)->norm_block), netplan(p->plan)->ntheta);
}

/* Parts of an op have buckets of their own, and so has the op, however small. */
static void cut_bucket(struct planner *p) {
    for (i32 k = 1; p->early && netplan(p->plan)->parted.n > 0 && k <= netplan(p->plan)->parted.n; k++) {
        const i64 at = k < netplan(p->plan)->parted.n ? planner_part(p, k) : block_at(p, planner_part(p, k));
        i32 b = p->nbucket;
        while (p->bucket[b] > at) b--;
        if (p->bucket[b] == at) continue;
        for (i32 i = ++p->nbucket; i > b + 1; i--) p->bucket[i] = p->bucket[i - 1];
        p->bucket[b + 1] = at;
    }
}

/* Gradients come from the last op to the first, so what is sent of each must be about the same for all ranks: ranges of theta,
 * each shared out by itself, that begin where ops do (or at the next block of the norm), none too small.  So what an op has is in
 * its own bucket and the one before it: forward, to which weights come bucket by bucket, never waits for those of the next op. */
void planner_buckets(struct planner *p) {
    const struct plan *g = p->plan;
    p->nbucket = 0;
    p->bucket[0] = 0;
    for (i32 l = 1; p->early && l < p->net->nop && p->nbucket + 1 < PLAN_BUCKETS; l++) {
        const i64 at = block_at(p, p->net->op[l].theta0);
        if (at >= netplan(g)->ntheta) break;
        if (at - p->bucket[p->nbucket] >= netplan(g)->ntheta / PLAN_BUCKETS && at > p->bucket[p->nbucket])
            p->bucket[++p->nbucket] = at;
    }
    p->bucket[++p->nbucket] = netplan(g)->ntheta;
    cut_bucket(p);
}

/* From the last to the first, but the parts of an op in their order. */
i32 planner_bucket(const struct planner *p, i32 i) {
    const struct plan *g = p->plan;
    const i64 first = netplan(g)->parted.n > 0 ? planner_part(p, 0) : 0,
              last = netplan(g)->parted.n > 0 ? planner_part(p, netplan(g)->parted.n - 1) : -1;
    i32 lo = 0, hi = 0, b = p->nbucket - 1 - i;
    while (p->bucket[lo + 1] <= first) lo++;
    while (hi < p->nbucket && p->bucket[hi] <= last) hi++;
    return b >= lo && b < hi ? lo + hi - 1 - b : b;
}

/* Blocks that are left over go to another one in every bucket. */
void planner_share(const struct planner *p, i32 bucket, i32 i, i64 *lo, i64 *hi) {
    const i32 n = p->nsharer;
    part_of(p->plan, p->bucket[bucket], p->bucket[bucket + 1], (i + bucket) % n, n, lo, hi);
}

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
        part_of(p->plan, from, to, part++, parts, &lo, &hi);
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
        part_of(p->plan, from, to, i, group, &lo, &hi);
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
