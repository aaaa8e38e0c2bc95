/* describe.c - the facts of a forecaster: for `info`, the training record and API callers. */
#include <math.h>
#include <stdio.h>

#include "learn/forecast/ops.h"
#include "learn/forecast/shares.h"
#include "model/layer.h"

/* Sizes of the canonical tensors: padding does not count. */
static i64 parameters(const struct forecaster *f) {
    i64 n = 0;
    const struct net *net = &f->net;
    for (i32 l = 0; f->nmember > 0 && l < net->nop; l++) {
        struct tensor_info info[8];
        i32 count = net->op[l].layer->tensors ? net->op[l].layer->tensors(&net->op[l], info) : 0;
        for (i32 i = 0; i < count; i++) n += (i64)info[i].rows * imax(1, info[i].cols);
    }
    return n;
}

/* ------------------------------------------------------------------ the training record ------------------------------------- */

static void put_parts(const struct forecaster *f, struct js *o) {
    struct str base = {0};
    if (f->base && base_text(f->base, &base) >= 0) js_put_text(o, "base", str_text(&base));
    str_free(&base);
    js_put_i64(o, "members", f->nmember);
    js_put_f64(o, "guard_weight", f->nmember ? f->weight : 0);
    if (f->shares.n > 0) js_put(o, "network_shares", shares_json(&f->shares));
    js_put_f64(o, "guard_t", f->has_guard ? f->guard.t : (f64)NAN);
    js_put_f64(o, "valid_loss_base", f->has_guard ? f->guard.loss_base : (f64)NAN);
    js_put_f64(o, "valid_loss_both", f->has_guard ? f->guard.loss_both : (f64)NAN);
    js_put_i64(o, "steps", f->steps_done);
    js_put_f64(o, "train_seconds", f->model.seconds);
    js_put_text(o, "stopped", stop_reason_text(f->model.stopped));
}

static void put_scores(const struct scores *scores, struct js *o) {
    const struct forecast_scores *s = forecast_detail(scores);
    struct js *rows = js_object();
    for (i32 r = 0; s && r < SCORE_ROWS; r++) {
        if (!s->row[r]) continue;
        struct score raw, z;
        metrics_score(s->row[r], -1, -1, true, &raw);
        metrics_score(s->row[r], -1, -1, false, &z);
        struct js *row = js_object();
        js_put_f64(row, "mae", raw.mae);
        js_put_f64(row, "rmse", raw.rmse);
        js_put_f64(row, "mase", raw.mase);
        js_put_f64(row, "nd", raw.nd);
        js_put_f64(row, "wql", raw.wql);
        js_put_f64(row, "mse_z", z.mse);
        js_put_f64(row, "mae_z", z.mae);
        js_put_f64(row, "rse", raw.rse);
        js_put_f64(row, "corr", raw.corr);
        js_put_i64(row, "cells", raw.n);
        js_put(rows, s->name[r], row);
    }
    js_put(o, "test", rows);
    js_put_i64(o, "test_windows", s ? s->windows : 0);
    js_put_f64(o, "skill", scores ? scores->skill : (f64)NAN);
}

/* ------------------------------------------------------------------ info ---------------------------------------------------- */

static struct js *schema_json(const struct schema *c) {
    struct js *columns = js_array();
    for (i32 i = 0; i < c->ncol; i++) {
        struct js *col = js_object();
        js_put_text(col, "name", c->name[i]);
        js_put_text(col, "role",
                    i < c->ntarget                                            ? "target"
                    : i < c->ntarget + c->npast * (c->panel ? c->ntarget : 1) ? "past"
                                                                              : "known");
        js_put_f64(col, "mean", c->mean[i]);
        js_put_f64(col, "deviation", c->dev[i]);
        js_push(columns, col);
    }
    for (i32 i = 0; i < c->ncat; i++) {
        struct js *col = js_object();
        js_put_text(col, "name", c->cat_name[i]);
        js_put_text(col, "role", "category");
        js_put_i64(col, "words", c->nword[i]);
        js_push(columns, col);
    }
    return columns;
}

static struct js *layers_json(const struct forecaster *f) {
    struct js *layers = js_array();
    for (i32 l = 0; f->nmember > 0 && l < f->net.nop; l++) {
        const struct op *op = &f->net.op[l];
        char line[128];
        snprintf(line, sizeof line, "%s: %s, %d steps, %d -> %d", op->spec.name, op->layer->name, op->T, op->I, op->F);
        js_push(layers, js_new_text(line));
    }
    return layers;
}

static void put_info(const struct forecaster *f, struct js *o) {
    js_put_text(o, "preset", f->spec.preset);
    js_put_i64(o, "horizon", f->spec.horizon);
    js_put_i64(o, "context", f->spec.context);
    js_put_text(o, "frequency", f->schema.freq.name);
    js_put_i64(o, "parameters", parameters(f));
    js_put(o, "columns", schema_json(&f->schema));
    js_put(o, "layers", layers_json(f));
}

err forecast_describe(const struct model *m, struct description *d) {
    const struct forecaster *f = forecaster_in(m);
    d->horizon = f->spec.horizon;
    d->context = f->spec.context;
    d->ntarget = f->schema.ntarget;
    d->target = f->schema.name;
    d->nquantile = f->spec.nband;
    d->quantile = f->spec.quantiles.v;
    d->parameters = parameters(f);
    d->kernels = f->spec.precision == PREC_BF16 ? "recurrent products in bf16" : NULL;
    if (d->info) put_info(f, d->info);
    if (d->record) put_parts(f, d->record);
    if (d->record) put_scores(d->scores, d->record);
    return 0;
}
