/* plan_place.c - `stretto plan --place`: where a portfolio of methods (place/place.h) would put layers and micro-batches.
 *
 *     serial plan --cost of its tasks--> layers of a graph, a column per micro-batch --place_run--> a row per method
 *
 * The rows are predictions; --parallel pipeline --place METHOD runs one. */
#include "api/plan_place.h"

#include <string.h>

#include "base/mem.h"
#include "step/placed.h"

enum { ROWS_MOST = 24 }; /* of the table */

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

err plan_place(const struct plan_request *q, const char *method, struct str *out) {
    struct plan_request serial = *q;
    struct plan *costs;
    struct place_graph g;
    struct place_machine m;
    serial.parallel = "serial";
    serial.place = NULL;
    TRY(plan_make(&serial, &costs));
    err e = placed_graph(q->net, costs, costs->grain, costs->ngrain, &g);
    plan_free(costs);
    TRY(e);
    const struct device *measured = &q->machine->device[0]; /* by the serial plan, with its share */
    e = place_machine_of(q->machine, measured->gflops * measured->share, &m);
    if (e >= 0) {
        e = table(method, &g, &m, out);
        place_machine_free(&m);
    }
    place_graph_free(&g);
    return e;
}
