/* network.c - the learner `network`: a model that `stretto import` makes; nothing trains it (network/network.h). */
#include "learn/network/network.h"

#include <math.h>
#include <stdio.h>

#include "learn/network/graph.h"
#include "learn/table_set.h"

static err check(const struct options *o) {
    (void)o;
    return FAIL_AT(E106, "--task", "stretto import FILE.onnx -o MODEL", "a network is imported, not trained");
}

static err fit(const struct learn_job *job, struct model **out) {
    (void)out;
    return check(job->o);
}

static err score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
                 struct scores *out) {
    (void)m, (void)d, (void)q, (void)use, (void)out;
    return FAIL_AT(E106, NULL, "stretto predict MODEL DATA", "a network knows no targets to score");
}

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

/* The columns of numbers, in their order: as many as the network has inputs, and every cell is there. */
static err take(const struct model *m, struct dataset *d, const struct events *to) {
    const struct network *w = network_of(m);
    struct table_set *s = table_set_of(d);
    (void)to;
    TRY(table_set_need_numbers(s, "a network reads numbers"));
    if (s->ninput != w->I)
        return FAIL_AT(E903, d->path, "--ignore COLUMN for the columns that are no inputs",
                       "the network has %d inputs, the file has %d columns of numbers", w->I, s->ninput);
    if (d->nrow > NETWORK_STEPS)
        return FAIL_AT(E903, d->path, "a shorter file", "the file has %lld rows, a sequence has at most %d steps",
                       (long long)d->nrow, NETWORK_STEPS);
    return table_set_need_all(s, "a file without missing cells");
}

static err open_data(const struct model *m, const struct options *o, const char *path, const struct events *to,
                     struct dataset **out) {
    TRY(table_set_read(o, path, NULL, true, out));
    const err e = take(m, *out, to);
    if (e >= 0) return 0;
    dataset_free(*out);
    *out = NULL;
    return e;
}

/* ------------------------------------------------------------------ predictions --------------------------------------------- */

static err table(const struct network *w, i32 T, const f32 *y, struct arena *a, const struct prediction_sink *to) {
    const i32 rows = network_steps(w, T);
    struct prediction_column *head;
    struct prediction_cell *cell;
    ARENA_NEW(a, head, 1 + w->O);
    ARENA_NEW(a, cell, 1 + w->O);
    head[0] = (struct prediction_column){.name = "step", .key = KEY_COUNT};
    for (i32 j = 0; j < w->O; j++)
        head[1 + j] = (struct prediction_column){.name = arena_printf(a, "y.%d", j + 1), .value = true};
    if (to->head) TRY(to->head(to->self, 1 + w->O, head));
    for (i32 t = 0; t < rows; t++) {
        cell[0].count = rows == 1 ? T : t + 1;
        cell[0].number = (f64)cell[0].count;
        for (i32 j = 0; j < w->O; j++) cell[1 + j].number = (f64)y[(i64)t * w->O + j];
        TRY(to->row(to->self, 1 + w->O, cell));
    }
    return 0;
}

static err predict_in(const struct network *w, const struct table_set *s, const struct resources *use, struct arena *a,
                      const struct prediction_sink *to) {
    const i32 T = (i32)s->set.nrow;
    f32 *x, *y;
    ARENA_NEW(a, x, (i64)T * w->I);
    ARENA_NEW(a, y, (i64)network_steps(w, T) * w->O);
    for (i32 k = 0; k < w->I; k++)
        for (i32 t = 0; t < T; t++) x[(i64)t * w->I + k] = (f32)table_input(s, k)->number[t];
    TRY(network_run(w, use->kern, T, 1, x, y));
    return table(w, T, y, a, to);
}

static err predict(const struct model *m, const struct dataset *d, const struct resources *use,
                   const struct prediction_sink *to) {
    struct arena room = {0};
    const err e = predict_in(network_of(m), table_set_of(d), use, &room, to);
    arena_free(&room);
    return e;
}

/* ------------------------------------------------------------------ the learner --------------------------------------------- */

static const struct model_ops ops = {.open = open_data,
                                     .take = take,
                                     .predict = predict,
                                     .score = score,
                                     .describe = network_describe,
                                     .save = network_save,
                                     .load = network_load,
                                     .graph = network_graph,
                                     .graph_check = network_graph_check,
                                     .free = network_free};
static const enum opt_id takes[] = {OPT_COUNT};

extern const struct learner learner_network;
const struct learner learner_network = {.name = "network",
                                        .help = "layers with given weights: a model of `stretto import`",
                                        .data = &data_table,
                                        .ops = &ops,
                                        .takes = takes,
                                        .check = check,
                                        .fit = fit};
