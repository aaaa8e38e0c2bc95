/* plan_place.c - `stretto plan --place`: where a portfolio of methods (place/place.h) would put layers and micro-batches.
 *
 *     serial plan --cost of its tasks--> layers of a graph, a column per micro-batch --place_run--> a row per method
 *
 * Layers are those of net_layers.  The rows are predictions; --parallel runs what it names. */
#include "api/plan_place.h"

#include <string.h>

#include "base/mem.h"
#include "model/layer.h"
#include "place/place.h"
#include "plan/plan.h"

enum { ROWS_MOST = 24 }; /* of the table */

/* Seconds and bytes of each layer for one micro-batch of the serial plan. */
static void add_costs(const struct net *n, const struct plan *p, i32 nstate, const i32 *layer_of, struct place_layer *out) {
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        struct place_layer *a = &out[layer_of[t->op]];
        if (t->kind == TASK_FWD) a->forward += (f64)t->cost / p->ngrain;
        if (t->kind == TASK_BWD || t->kind == TASK_DW) a->backward += (f64)t->cost / p->ngrain;
    }
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        struct place_layer *a = &out[layer_of[l]];
        const i64 bytes = 4 * op->ntheta;
        if (op->out >= 0) a->activation = 4 * buf_floats(&n->buf[op->out], p->grain);
        a->saved +=
            4 * op_saved_floats(op, n, rows_all(p->grain)) + (op->out >= 0 ? 8 * buf_floats(&n->buf[op->out], p->grain) : 0);
        a->unit.memory += bytes * (1 + nstate + p->ngrain);
        a->unit.copy_bytes += bytes;
        a->unit.copy_seconds += (f64)bytes / (p->place[0].device.gbytes * 1e9);
    }
}

static err graph_of(const struct net *n, const struct plan_request *q, struct place_graph *out) {
    struct plan_request serial = *q;
    struct plan *p;
    i32 layer_of[NET_OPS];
    struct place_layer *layer;
    serial.parallel = "serial";
    TRY(plan_make(&serial, &p));
    const i32 layers = net_layers(n, layer_of);
    err e = mem_new((void **)&layer, layers, sizeof *layer);
    if (e >= 0) {
        add_costs(n, p, q->nstate, layer_of, layer);
        const struct place_lstm spec = {.layers = layers, .columns = p->ngrain, .layer = layer};
        e = place_lstm(&spec, out);
    }
    mem_free(layer);
    plan_free(p);
    return e;
}

/* The rows of a table, and a line for each method that cannot place this model. */
struct table {
    struct placement *row[ROWS_MOST];
    i32 n;
    struct str refused;
};

static err one(const char *method, const struct place_graph *g, const struct place_machine *m, struct table *t) {
    TRY(place_run(method, g, m, NULL, &t->row[t->n]));
    t->n++;
    return 0;
}

static err all(const struct place_graph *g, const struct place_machine *m, struct table *t) {
    const char *name;
    for (i32 i = 0; (name = place_method_name(i)) && t->n < ROWS_MOST; i++) {
        const err e = one(name, g, m, t);
        if (e >= 0) continue;
        if (e != -E401) return e;
        str_addf(&t->refused, "%s\n", err_last()->text);
        err_clear();
    }
    return 0;
}

static err table(const char *method, const struct place_graph *g, const struct place_machine *m, struct str *out) {
    struct table t = {0};
    err e = strcmp(method, "all") == 0 ? all(g, m, &t) : one(method, g, m, &t);
    if (e >= 0) place_print((const struct placement *const *)t.row, t.n, out);
    if (t.refused.len) str_add(out, t.refused.s);
    while (t.n > 0) placement_free(t.row[--t.n]);
    str_free(&t.refused);
    return e < 0 ? e : str_ok(out);
}

err plan_place(const struct net *n, const struct plan_request *q, const char *method, struct str *out) {
    struct place_graph g;
    struct place_machine m;
    TRY(graph_of(n, q, &g));
    err e = place_machine_of(q->machine, q->machine->device[0].gflops, &m);
    if (e >= 0) {
        e = table(method, &g, &m, out);
        place_machine_free(&m);
    }
    place_graph_free(&g);
    return e;
}
