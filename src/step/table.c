/* table.c - which parameters are tables: large embeddings that no other op uses.
 *
 *     theta   | lstm.0 .. | embed.0   line line line line .. | head |       a row of the batch touches a few lines
 */
#include "base/arena.h"
#include "model/layer.h"
#include "step/planner.h"

enum { TABLE_LINES = 512 }; /* below, whole vectors are as good */

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
