/* ranges.c - ranges of theta: buckets in the order of backward, parts of an op, shares of a bucket, tables.
 *
 *     theta   | lstm.0 .. | embed.0   line line line line .. | head |       tables are large embeddings that no other op uses:
 *                                                                           a row of the batch touches a few lines
 */
#include "base/arena.h"
#include "model/layer.h"
#include "step/planner.h"

/* Part `part` of `parts` of a range, cut at blocks of the norm so that one worker sums what it merged. */
void planner_range(const struct plan *p, i64 from, i64 to, i32 part, i32 parts, i64 *lo, i64 *hi) {
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

i64 planner_block(const struct planner *p, i64 at) {
    return lmin(round_up64(at, netplan(p->plan)->norm_block), netplan(p->plan)->ntheta);
}

/* Adds a bucket for each part of the op netplan.parted, and one border behind it, however small the buckets get. */
static void cut_bucket(struct planner *p) {
    for (i32 k = 1; p->early && netplan(p->plan)->parted.n > 0 && k <= netplan(p->plan)->parted.n; k++) {
        const i64 at = k < netplan(p->plan)->parted.n ? planner_part(p, k) : planner_block(p, planner_part(p, k));
        i32 b = p->nbucket;
        while (p->bucket[b] > at) b--;
        if (p->bucket[b] == at) continue;
        for (i32 i = ++p->nbucket; i > b + 1; i--) p->bucket[i] = p->bucket[i - 1];
        p->bucket[b + 1] = at;
    }
}

/* A bucket for each run of ops of one stage, and for each split op.  A block of the norm on a border belongs to the ops before
 * it. */
static void stage_buckets(struct planner *p) {
    i32 now = planner_stage(p, 0), before = -1; /* the last op with weights */
    for (i32 l = 0; l < p->net->nop; l++) {
        const i64 at = planner_block(p, p->net->op[l].theta0);
        const bool border = planner_stage(p, l) != now || planner_splits(p, l) || (before >= 0 && planner_splits(p, before));
        if (p->net->op[l].ntheta == 0) continue;
        before = l;
        if (!border) continue;
        if (at > p->bucket[p->nbucket]) p->bucket_stage[p->nbucket++] = now;
        p->bucket[p->nbucket] = at;
        now = planner_stage(p, l);
    }
    if (netplan(p->plan)->ntheta > p->bucket[p->nbucket]) p->bucket_stage[p->nbucket++] = now;
    p->bucket[p->nbucket] = netplan(p->plan)->ntheta;
}

/* Gradients come from the last op to the first, so what is sent of each must be about the same for all ranks: ranges of theta,
 * each shared out by itself, that begin where ops do (or at the next block of the norm), none too small.  So what an op has is in
 * its own bucket and the one before it: forward, to which weights come bucket by bucket, never waits for those of the next op. */
void planner_buckets(struct planner *p) {
    const struct plan *g = p->plan;
    p->nbucket = 0;
    p->bucket[0] = 0;
    if (p->staged || p->split) {
        stage_buckets(p);
        return;
    }
    for (i32 l = 1; p->early && l < p->net->nop && p->nbucket + 1 < PLAN_BUCKETS; l++) {
        const i64 at = planner_block(p, p->net->op[l].theta0);
        if (at >= netplan(g)->ntheta) break;
        if (at - p->bucket[p->nbucket] >= netplan(g)->ntheta / PLAN_BUCKETS && at > p->bucket[p->nbucket])
            p->bucket[++p->nbucket] = at;
    }
    p->bucket[++p->nbucket] = netplan(g)->ntheta;
    cut_bucket(p);
    for (i32 b = 0; b < p->nbucket; b++) p->bucket_stage[b] = ALL_STAGES;
}

/* Order of the buckets: from the last to the first, but the parts of an op forward. */
i32 planner_bucket(const struct planner *p, i32 i) {
    const struct plan *g = p->plan;
    const i64 first = netplan(g)->parted.n > 0 ? planner_part(p, 0) : 0,
              last = netplan(g)->parted.n > 0 ? planner_part(p, netplan(g)->parted.n - 1) : -1;
    i32 lo = 0, hi = 0, b = p->nbucket - 1 - i;
    while (p->bucket[lo + 1] <= first) lo++;
    while (hi < p->nbucket && p->bucket[hi] <= last) hi++;
    return b >= lo && b < hi ? lo + hi - 1 - b : b;
}

/* Where the part of member k begins in the bucket of a split op. */
static i64 member_begin(const struct planner *p, const struct op *op, i64 from, i64 to, i32 k, i32 n) {
    const i64 block = netplan(p->plan)->norm_block;
    if (k == 0 || k >= n) return k == 0 ? from : to;
    return lmax(from, lmin(to, (op->theta0 + op->layer->adds(op, k, n)) / block * block));
}

void split_range(const struct planner *p, i64 from, i64 to, i32 k, i64 *lo, i64 *hi) {
    for (i32 l = p->net->nop - 1; l >= 0; l--) {
        const struct op *op = &p->net->op[l];
        if (!planner_splits(p, l) || planner_block(p, op->theta0) != from) continue;
        *lo = member_begin(p, op, from, to, k, split_members(p, l));
        *hi = member_begin(p, op, from, to, k + 1, split_members(p, l));
        return;
    }
    planner_range(p->plan, from, to, k, p->team.n, lo, hi);
}

/* Gives the remaining blocks to a different sharer in every bucket. */
void planner_share(const struct planner *p, i32 bucket, i32 i, i64 *lo, i64 *hi) {
    const i32 stage = p->bucket_stage[bucket];
    const i32 of_stage = p->placed ? 1 : p->nsharer / p->layers.n, n = stage == ALL_STAGES ? p->nsharer : of_stage;
    const i32 k = stage == ALL_STAGES ? i : p->placed ? 0 : p->sharer_nth[i];
    *lo = *hi = 0;
    if (!planner_in_stage(p, i, stage)) return;
    if (p->split) {
        split_range(p, p->bucket[bucket], p->bucket[bucket + 1], p->sharer_unit[i], lo, hi);
        planner_range(p->plan, *lo, *hi, p->sharer_rest[i], n / p->team.n, lo, hi);
        return;
    }
    planner_range(p->plan, p->bucket[bucket], p->bucket[bucket + 1], (k + bucket) % n, n, lo, hi);
}

enum { TABLE_LINES = 512 }; /* smaller tables are sent whole */

static bool is_shared(const struct net *n, i32 l) {
    for (i32 k = 0; k < n->nop; k++)
        if (n->op[k].spec.share == l) return true;
    return false;
}

err plan_tables(const struct net *n, struct plan *out) {
    ARENA_NEW(&out->arena, out->table, n->nop);
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        if (!op->layer->table || op->ntheta < TABLE_LINES * LANES || is_shared(n, l)) continue;
        out->table[out->ntable++] = (struct plan_table){
            .lo = op->theta0, .hi = op->theta0 + op->ntheta, .op = l, .lines = op->T * (round_up(op->F, LANES) / LANES)};
    }
    return 0;
}

i64 plan_touched_bytes(const struct plan *p, i64 lo, i64 hi, i32 grains) {
    i64 sum = 0;
    for (i64 at = lo, end; at < hi; at = end) {
        const struct plan_table *t = plan_table_at(p, at, &end);
        end = lmin(end, hi);
        sum += t ? lmin(end - at, (i64)grains * p->grain * t->lines * LANES) : end - at;
    }
    return 4 * sum;
}
