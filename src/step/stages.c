/* stages.c - which stage of a pipeline has which layers.
 *
 *     ops      embed  lstm.0  dropout | lstm.1  dropout | lstm.2 | head  loss
 *     stage         0                 |        1                                  the longest stage is as short as possible
 *
 * Stages are runs of consecutive ops, found by dynamic programming over the cuts (Narayanan et al., PipeDream, SOSP 2019). */
#include <math.h>

#include "base/mem.h"
#include "model/layer.h"
#include "step/planner.h"

static bool has_weights(const struct net *n, i32 l) { return n->op[l].ntheta > 0; }

i32 pipeline_layers(const struct net *n) {
    i32 layers = 0;
    for (i32 l = 0; l < n->nop; l++) layers += has_weights(n, l);
    return layers;
}

/* Work of an op in both directions, in flops. */
f64 pipeline_work(const struct net *n, i32 l, i32 rows) {
    const struct op *op = &n->op[l];
    const f64 products = op->layer->flops ? op->layer->flops(op, n, rows, false) + op->layer->flops(op, n, rows, true) : 0;
    const f64 floats = op->out < 0 ? 0 : (f64)n->buf[op->out].T * rows * n->buf[op->out].F;
    return products + (1 + BACKWARD_WORK) * floats * FLOAT_FLOPS;
}

/* A unit: an op with weights, and the ops without that follow it; those before the first belong to it. */
struct units {
    i32 n, first[NET_OPS + 1]; /* first op of each */
    f64 before[NET_OPS + 1];   /* work of the units before it */
};

/* No cut separates an op from one that shares its weights. */
static bool may_cut(const struct net *n, i32 l) {
    for (i32 k = l; k < n->nop; k++)
        if (n->op[k].spec.share >= 0 && n->op[k].spec.share < l) return false;
    return true;
}

static void find_units(const struct net *n, i32 rows, struct units *u) {
    f64 work = 0;
    u->n = 0;
    for (i32 l = 0; l < n->nop; l++) {
        if (has_weights(n, l) && (u->n == 0 || may_cut(n, l))) {
            u->first[u->n] = u->n == 0 ? 0 : l;
            u->before[u->n] = u->n == 0 ? 0 : work;
            u->n++;
        }
        work += pipeline_work(n, l, rows);
    }
    if (u->n == 0) u->first[u->n] = 0, u->before[u->n++] = 0;
    u->first[u->n] = n->nop;
    u->before[u->n] = work;
}

/* Cuts the units into n runs with the least longest one; cut [n + 1]: their borders.  best[k][i] = the longest of the first i
 * units in k + 1 runs, from[k][i] = where the last of these begins. */
static err cut_stages(const struct units *u, i32 n, i32 *cut) {
    f64(*best)[NET_OPS + 1];
    i32(*from)[NET_OPS + 1];
    NEW(best, n);
    const err e = mem_new((void **)&from, n, sizeof *from);
    for (i32 k = 0; k < n && e >= 0; k++)
        for (i32 i = k + 1; i <= u->n; i++) {
            best[k][i] = k == 0 ? u->before[i] : (f64)INFINITY;
            from[k][i] = 0;
            for (i32 j = k; k > 0 && j < i; j++) {
                const f64 longest = dmax(best[k - 1][j], u->before[i] - u->before[j]);
                if (longest >= best[k][i]) continue;
                best[k][i] = longest;
                from[k][i] = j;
            }
        }
    cut[n] = u->n;
    for (i32 k = n - 1; k >= 0 && e >= 0; k--) cut[k] = from[k][cut[k + 1]];
    mem_free(best);
    mem_free(from);
    return e;
}

err pipeline_stages(struct planner *p) {
    struct units u;
    i32 cut[MACHINE_DEVICES + 1];
    find_units(p->net, p->grain, &u);
    const i32 n = imin(p->layers.n, u.n);
    TRY(cut_stages(&u, n, cut));
    for (i32 k = 0; k < n; k++)
        for (i32 l = u.first[cut[k]]; l < u.first[cut[k + 1]]; l++) p->stage[l] = (u16)k;
    return 0;
}
