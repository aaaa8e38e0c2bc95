/* stages.c - which stage of a pipeline has which layers.
 *
 *     ops      embed  lstm.0  dropout | lstm.1  dropout | lstm.2 | head  loss
 *     stage         0                 |        1                                  the longest stage is as short as possible
 *
 * Stages are runs of consecutive ops, found by dynamic programming over the cuts (Narayanan et al., PipeDream, SOSP 2019). */
#include <math.h>

#include "base/cut.h"
#include "model/layer.h"
#include "plan/slice.h"
#include "step/planner.h"

/* Work of an op in both directions, in flops. */
f64 pipeline_work(const struct net *n, i32 l, i32 rows) {
    const struct op *op = &n->op[l];
    const f64 products = op->layer->flops ? op->layer->flops(op, n, rows, false) + op->layer->flops(op, n, rows, true) : 0;
    const f64 floats = op->out < 0 ? 0 : (f64)n->buf[op->out].T * rows * n->buf[op->out].F;
    return products + (1 + BACKWARD_WORK) * floats * FLOAT_FLOPS;
}

/* No cut separates an op from one that shares its weights. */
static bool may_cut(const struct net *n, i32 l) {
    for (i32 k = l; k < n->nop; k++)
        if (n->op[k].spec.share >= 0 && n->op[k].spec.share < l) return false;
    return true;
}

void pipeline_units(const struct net *n, i32 rows, struct pipeline_units *u) {
    i32 layer[NET_OPS];
    f64 work = 0;
    net_layers(n, layer);
    u->n = 0;
    for (i32 l = 0; l < n->nop; l++) {
        if (l == 0 || (layer[l] != layer[l - 1] && may_cut(n, l))) {
            u->first[u->n] = l;
            u->before[u->n++] = work;
        }
        u->of[l] = (u16)(u->n - 1);
        work += pipeline_work(n, l, rows);
    }
    u->first[u->n] = n->nop;
    u->before[u->n] = work;
}

/* Every stage has a unit. */
static f64 stage_work(const void *units, i32 lo, i32 hi, i32 part) {
    const struct pipeline_units *u = units;
    (void)part;
    return lo == hi ? (f64)INFINITY : u->before[hi] - u->before[lo];
}

err pipeline_stages(struct planner *p) {
    struct pipeline_units *u = &p->unit;
    i32 border[MACHINE_DEVICES + 1];
    f64 longest;
    pipeline_units(p->net, p->grain, u);
    if (p->q->place) {
        for (i32 l = 0; l < p->net->nop; l++) p->stage[l] = u->of[l];
        return 0;
    }
    const struct cut c = {.items = u->n, .parts = imin(p->layers.n, u->n), .cost = stage_work, .self = u, .late = true};
    TRY(cut_row(&c, border, &longest));
    for (i32 k = 0; k < c.parts; k++)
        for (i32 l = u->first[border[k]]; l < u->first[border[k + 1]]; l++) p->stage[l] = (u16)k;
    return 0;
}

i32 pipeline_rows(const struct planner *p, const struct piece *c, struct slice *rows) {
    const i32 grains = ceil_div(c->box.b1 - c->box.b0, p->grain), wish = p->q->microbatches > 0 ? p->q->microbatches : grains;
    return slice_cut_count(c->box, p->grain, imin(wish, grains), rows);
}
