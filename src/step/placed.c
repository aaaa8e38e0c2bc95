/* placed.c - a pipeline whose layers and micro-batches are where a method of placement (place/place.h) puts them.
 *
 *     net --costs of the serial plan--> graph of nodes --method--> device and begin of each node --pipeline.c--> tasks
 *
 *     node   a unit (a layer, or several that share weights) and a micro-batch: forward, and backward on the same device
 *
 * A unit on several devices is data parallelism there: its gradients merge along the tree of micro-batches as everywhere, so
 * every placement has the bits of `serial`.  A sum is made where its first micro-batch is; norm and update of a unit, where
 * micro-batch 0 is. */
#include "step/placed.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/layer.h"
#include "step/planner.h"

/* ------------------------------------------------------------------ the graph ----------------------------------------------- */

static void add_op(const struct net *n, const struct plan *p, const struct op *op, i32 rows, struct place_layer *a) {
    const i64 bytes = 4 * op->ntheta;
    if (op->out >= 0) a->activation = 4 * buf_floats(&n->buf[op->out], rows);
    a->saved += 4 * op_saved_floats(op, n, rows_all(rows)) + (op->out >= 0 ? 8 * buf_floats(&n->buf[op->out], rows) : 0);
    a->unit.memory += bytes * (1 + netplan(p)->nstate + p->ngrain);
    a->unit.copy_bytes += bytes;
    a->unit.copy_seconds += (f64)bytes / (p->place[0].device.gbytes * 1e9);
}

/* Seconds and bytes of each unit for `rows` rows of the serial plan. */
static void add_costs(const struct net *n, const struct plan *p, const struct pipeline_units *u, i32 rows,
                      struct place_layer *out) {
    const f64 part = (f64)rows / p->B;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        struct place_layer *a = &out[u->of[t->op]];
        if (t->kind == TASK_FWD) a->forward += part * (f64)t->cost;
        if (t->kind == TASK_BWD || t->kind == TASK_DW) a->backward += part * (f64)t->cost;
    }
    for (i32 l = 0; l < n->nop; l++) add_op(n, p, &n->op[l], rows, &out[u->of[l]]);
}

err placed_graph(const struct net *n, const struct plan *serial, i32 rows, i32 columns, struct place_graph *out) {
    struct pipeline_units u;
    struct place_layer *layer;
    pipeline_units(n, rows, &u);
    NEW(layer, u.n);
    add_costs(n, serial, &u, rows, layer);
    const err e = place_lstm(&(struct place_lstm){.layers = u.n, .columns = columns, .layer = layer}, out);
    mem_free(layer);
    return e;
}

/* ------------------------------------------------------------------ the search ---------------------------------------------- */

/* The devices of a piece's group that divide the layers; speed 1 is that of the device that the costs are of. */
static err group_machine(const struct planner *p, const struct piece *c, struct place_machine *out) {
    const struct machine *m = p->machine;
    const f64 one = m->device[0].gflops * m->device[0].share;
    TRY(place_machine_equal(p->layers.n, (struct place_link){1e-6 * m->link_us, 1e9 * m->link_gbytes}, out));
    out->inside = (struct place_link){0, (f64)INFINITY};
    out->nrank = 0;
    for (i32 j = 0, last = -1; j < p->layers.n; j++) {
        const struct device *d = &m->device[planner_device(p, c, 0, j)];
        if (d->rank != last) out->nrank++;
        last = d->rank;
        out->device[j] = (struct place_device){dmax(1e-6, d->gflops * d->share / one), d->memory, out->nrank - 1};
    }
    return 0;
}

struct begin {
    f64 start;
    i32 node;
};

static int by_start(const void *a, const void *b) {
    const struct begin *x = a, *y = b;
    if (x->start < y->start || x->start > y->start) return x->start < y->start ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Keeps the device of every node, and the order of begins. */
static err keep(struct planner *p, struct placed *at, const struct placement *where) {
    struct begin *b;
    NEW(b, where->nnode);
    for (i32 k = 0; k < where->nnode; k++) b[k] = (struct begin){where->start[k], k};
    qsort(b, (size_t)where->nnode, sizeof *b, by_start);
    for (i32 k = 0; k < where->nnode; k++) at->node[k] = b[k].node;
    mem_free(b);
    for (i32 u = 0; u < p->unit.n; u++)
        for (i32 m = 0; m < at->micro; m++)
            for (i32 g = at->rows[m].b0 / p->grain; g < ceil_div(at->rows[m].b1, p->grain); g++)
                p->on[u * p->ngrain + g] = (u16)where->device[u * at->micro + m];
    return 0;
}

static err search(struct planner *p, const struct piece *c, struct placed *at) {
    struct place_graph g;
    struct place_machine m;
    struct placement *where;
    TRY(placed_graph(p->net, p->q->serial, at->rows[0].b1 - at->rows[0].b0, at->micro, &g));
    err e = group_machine(p, c, &m);
    if (e >= 0) {
        e = place_run(p->q->place, &g, &m, NULL, &where);
        if (e >= 0) {
            at->nnode = where->nnode;
            e = keep(p, at, where);
            placement_free(where);
        }
        place_machine_free(&m);
    }
    place_graph_free(&g);
    return e;
}

err placed_find(struct planner *p) {
    struct arena *a = &p->plan->arena;
    ARENA_NEW(a, p->placed, p->npiece);
    ARENA_NEW(a, p->on, p->unit.n * p->ngrain);
    for (i32 i = 0; i < p->npiece; i++) {
        struct placed *at = &p->placed[i];
        ARENA_NEW(a, at->rows, p->ngrain);
        at->micro = pipeline_rows(p, &p->piece[i], at->rows);
        ARENA_NEW(a, at->node, 2 * p->unit.n * at->micro);
        TRY(search(p, &p->piece[i], at));
    }
    return 0;
}

/* ------------------------------------------------------------------ questions ----------------------------------------------- */

i32 placed_stage(const struct planner *p, i32 unit, i32 grain) { return p->on[unit * p->ngrain + grain]; }

u32 placed_device(const struct planner *p, i32 unit, i32 grain) {
    i32 i = 0;
    while (i + 1 < p->npiece && p->piece[i].box.b1 <= grain * p->grain) i++;
    return planner_device(p, &p->piece[i], 0, placed_stage(p, unit, grain));
}

bool planner_in_stage(const struct planner *p, i32 i, i32 stage) {
    if (stage == ALL_STAGES) return true;
    return p->placed ? p->sharer[i] == placed_device(p, stage, 0) : p->sharer_stage[i] == stage;
}
