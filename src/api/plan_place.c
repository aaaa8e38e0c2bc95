/* plan_place.c - `stretto plan --place`: where a portfolio of methods (place/place.h) would put layers and micro-batches.
 *
 *     serial plan --cost of its tasks--> layers of a graph, a column per micro-batch --place_run--> a row per method
 *
 * A layer is an op with weights and the ops without that follow it.  The rows are predictions; --parallel runs what it names. */
#include "api/plan_place.h"

#include <string.h>

#include "base/mem.h"
#include "model/layer.h"
#include "place/place.h"
#include "plan/plan.h"

enum { ROWS_MOST = 24 }; /* of the table */

struct layers {
    i32 n;
    struct place_layer layer[NET_OPS];
};

/* Layer of each op. */
static i32 find_layers(const struct net *n, i32 layer_of[NET_OPS]) {
    i32 layers = 0;
    for (i32 l = 0; l < n->nop; l++) {
        layers += n->op[l].ntheta > 0;
        layer_of[l] = imax(0, layers - 1);
    }
    return imax(1, layers);
}

/* Seconds and bytes of each layer for one micro-batch of the serial plan. */
static void add_costs(const struct net *n, const struct plan *p, i32 nstate, const i32 *layer_of, struct layers *out) {
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        struct place_layer *a = &out->layer[layer_of[t->op]];
        if (t->kind == TASK_FWD) a->forward += (f64)t->cost / p->ngrain;
        if (t->kind == TASK_BWD || t->kind == TASK_DW) a->backward += (f64)t->cost / p->ngrain;
    }
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        struct place_layer *a = &out->layer[layer_of[l]];
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
    struct layers *a;
    serial.parallel = "serial";
    TRY(plan_make(&serial, &p));
    err e = mem_new((void **)&a, 1, sizeof *a);
    if (e >= 0) {
        a->n = find_layers(n, layer_of);
        add_costs(n, p, q->nstate, layer_of, a);
        const struct place_lstm spec = {.layers = a->n, .columns = p->ngrain, .layer = a->layer};
        e = place_lstm(&spec, out);
    }
    mem_free(a);
    plan_free(p);
    return e;
}

/* A row for a method, or a line that says why it cannot place this model. */
static err one(const char *method, const struct place_graph *g, const struct place_machine *m, const struct placement **row,
               i32 *n, struct str *refused) {
    struct placement *p;
    const err e = place_run(method, g, m, NULL, &p);
    if (e >= 0) row[(*n)++] = p;
    if (e != -E401) return e;
    str_addf(refused, "%s\n", err_last()->text);
    err_clear();
    return 0;
}

static err all(const struct place_graph *g, const struct place_machine *m, const struct placement **row, i32 *n,
               struct str *refused) {
    const char *name;
    for (i32 i = 0; (name = place_method_name(i)) && *n < ROWS_MOST; i++) TRY(one(name, g, m, row, n, refused));
    return 0;
}

static err table(const char *method, const struct place_graph *g, const struct place_machine *m, struct str *out) {
    const struct placement *row[ROWS_MOST];
    struct str refused = {0};
    i32 n = 0;
    err e =
        strcmp(method, "all") == 0 ? all(g, m, row, &n, &refused) : place_run(method, g, m, NULL, (struct placement **)&row[0]);
    if (e >= 0 && strcmp(method, "all") != 0) n = 1;
    if (e >= 0) place_print(row, n, out);
    if (refused.len) str_add(out, refused.s);
    while (n > 0) placement_free((struct placement *)(uintptr_t)row[--n]);
    str_free(&refused);
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
