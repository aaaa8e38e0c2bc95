/* api_model.c - model handles: files, facts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/config.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

/* DATA and MODEL given in the wrong order is a mistake of its own: a model begins with a length, never with eight letters. */
static err not_a_table(const char *path) {
    struct file_in f;
    char head[8];
    TRY(file_open(path, &f));
    bool text = f.size >= 8 && file_read_at(&f, 0, head, 8) >= 0;
    file_close(&f);
    for (i32 i = 0; i < 8 && text; i++)
        text = (head[i] >= ' ' && head[i] < 127) || head[i] == '\n' || head[i] == '\r' || head[i] == '\t';
    return text ? FAIL_AT(E901, path, "the model comes first: MODEL DATA", "this is a text file, not a model") : 0;
}

/* Where values came from when the model was trained; a model that is older than this record says that it holds them. */
static err restore_origins(stretto_model *m) {
    struct js *record = NULL;
    TRY(m->record.len ? js_parse(str_text(&m->record), m->record.len, m->path, &record) : 0);
    const struct js *origins = js_get(record, "origins");
    err e = 0;
    for (i32 i = 0; e >= 0 && i < OPT_COUNT; i++) {
        const char *from = js_str(js_get(origins, opt_info((enum opt_id)i)->name), NULL);
        if (from || m->config.o.meta[i].rank == OPT_RANK_FILE)
            e = opt_set_origin(&m->config.o, (enum opt_id)i, from ? from : "the model");
    }
    js_free(record);
    return e;
}

static err load(const char *path, stretto_model *m) {
    TRY(not_a_table(path));
    struct str options = {0};
    err e = opt_defaults(&m->config.o, api_lists());
    if (e >= 0) e = forecast_load(path, &m->f, &options, &m->record);
    if (e >= 0) e = config_parse(str_text(&options), options.len, path, &m->config.o);
    if (e >= 0 && !(m->path = mem_strdup(path))) e = -E601;
    if (e >= 0) e = restore_origins(m);
    str_free(&options);
    return e;
}

stretto_err stretto_model_load(const char *path, stretto_model **out) {
    stretto_model *m;
    *out = NULL;
    NEW(m, 1);
    err e = load(path, m);
    if (e < 0) {
        stretto_model_free(m);
        return e;
    }
    *out = m;
    return 0;
}

stretto_err stretto_model_save(const stretto_model *self, const char *path) {
    struct str options = {0};
    opt_dump_json(&self->config.o, 1u << VERB_train, &options);
    err e = str_ok(&options);
    if (e >= 0) e = forecast_save(self->f, path, str_text(&options), str_text(&self->record));
    str_free(&options);
    return e;
}

void stretto_model_free(stretto_model *self) {
    if (!self) return;
    forecast_free(self->f);
    opt_free(&self->config.o);
    str_free(&self->record);
    str_free(&self->note);
    str_free(&self->warnings);
    mem_free(self->path);
    mem_free(self);
}

int stretto_model_horizon(const stretto_model *self) { return self->f->spec.horizon; }
int stretto_model_context(const stretto_model *self) { return self->f->spec.context; }
int stretto_model_targets(const stretto_model *self) { return self->f->schema.ntarget; }
int stretto_model_quantiles(const stretto_model *self) { return self->f->spec.nband; }
stretto_config *stretto_model_config(stretto_model *self) { return &self->config; }

const char *stretto_model_target(const stretto_model *self, int i) {
    return i >= 0 && i < self->f->schema.ntarget ? self->f->schema.name[i] : NULL;
}

double stretto_model_quantile(const stretto_model *self, int i) {
    return i >= 0 && i < self->f->spec.nband ? self->f->spec.band[i] : (f64)NAN;
}

/* Sizes of the canonical tensors: padding does not count. */
int64_t stretto_model_parameters(const stretto_model *self) {
    i64 n = 0;
    const struct net *net = &self->f->net;
    for (i32 l = 0; self->f->nmember > 0 && l < net->nop; l++) {
        struct tensor_info info[8];
        i32 count = net->op[l].layer->tensors ? net->op[l].layer->tensors(&net->op[l], info) : 0;
        for (i32 i = 0; i < count; i++) n += (i64)info[i].rows * imax(1, info[i].cols);
    }
    return n;
}

/* --- the training record --- */
static void put_scores(const struct stretto_trainer *t, struct js *o) {
    struct js *rows = js_object();
    for (i32 r = 0; t->scored && r < SCORE_ROWS; r++) {
        if (!t->scores.row[r]) continue;
        struct score raw, z;
        metrics_score(t->scores.row[r], -1, -1, true, &raw);
        metrics_score(t->scores.row[r], -1, -1, false, &z);
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
        js_put(rows, t->scores.name[r], row);
    }
    js_put(o, "test", rows);
    js_put_i64(o, "test_windows", t->scores.windows);
    js_put_f64(o, "skill", stretto_trainer_skill(t));
}

static void put_parts(const struct forecaster *f, struct js *o) {
    struct str base = {0};
    if (f->base && base_text(f->base, &base) >= 0) js_put_text(o, "base", str_text(&base));
    str_free(&base);
    js_put_i64(o, "members", f->nmember);
    js_put_f64(o, "guard_weight", f->nmember ? f->weight : 0);
    js_put_f64(o, "guard_t", f->has_guard ? f->guard.t : (f64)NAN);
    js_put_f64(o, "valid_loss_base", f->has_guard ? f->guard.loss_base : (f64)NAN);
    js_put_f64(o, "valid_loss_both", f->has_guard ? f->guard.loss_both : (f64)NAN);
    js_put_i64(o, "steps", f->steps_done);
    js_put_f64(o, "train_seconds", f->seconds);
    js_put_text(o, "stopped", stop_reason_text(f->stopped));
}

static err put_origins(const struct options *options, struct js *o) {
    struct str text = {0};
    struct js *origins = NULL;
    opt_dump_origins(options, 1u << VERB_train, &text);
    err e = str_ok(&text);
    if (e >= 0) e = js_parse(str_text(&text), text.len, "origins", &origins);
    if (e >= 0) js_put(o, "origins", origins);
    str_free(&text);
    return e;
}

err trainer_record(const struct stretto_trainer *t, struct str *out) {
    char date[32], span[72];
    const struct series *s = t->data->s;
    struct js *o = js_object();
    clock_date(date);
    js_put_text(o, "created", date);
    js_put_text(o, "version", STRETTO_VERSION);
    js_put_text(o, "data", t->data->summary);
    i64 border[4] = {0, t->split.train, t->split.validation, t->split.test};
    static const char *const name[3] = {"train", "validation", "test_rows"};
    for (i32 i = 0; i < 3; i++) {
        span_label(s, border[i], border[i + 1], span);
        js_put_text(o, name[i], span);
    }
    js_put_text(o, "kernels", t->shop.use.kern->name);
    js_put_text(o, "precision", t->o.precision);
    js_put_i64(o, "threads", t->shop.machine->ndevice);
    js_put_text(o, "processor", t->shop.machine->cpu);
    put_parts(t->model->f, o);
    put_scores(t, o);
    err e = put_origins(&t->o, o);
    if (e >= 0) e = js_text(o, out, 0);
    js_free(o);
    return e;
}

/* --- info --- */
static struct js *schema_json(const struct schema *c) {
    struct js *columns = js_array();
    for (i32 i = 0; i < c->ncol; i++) {
        struct js *col = js_object();
        js_put_text(col, "name", c->name[i]);
        js_put_text(col, "role", i < c->ntarget ? "target" : i < c->ntarget + c->npast ? "past" : "known");
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

static err info_json(const stretto_model *m, struct str *out) {
    struct js *o = js_object(), *record = NULL;
    const struct forecast_spec *s = &m->f->spec;
    js_put_text(o, "model", m->path);
    js_put_text(o, "preset", s->preset);
    js_put_i64(o, "horizon", s->horizon);
    js_put_i64(o, "context", s->context);
    js_put_text(o, "frequency", m->f->schema.freq.name);
    js_put_i64(o, "parameters", stretto_model_parameters(m));
    js_put(o, "columns", schema_json(&m->f->schema));
    struct js *layers = js_array();
    for (i32 l = 0; m->f->nmember > 0 && l < m->f->net.nop; l++) {
        const struct op *op = &m->f->net.op[l];
        char line[128];
        snprintf(line, sizeof line, "%s: %s, %d steps, %d -> %d", op->spec.name, op->layer->name, op->T, op->I, op->F);
        js_push(layers, js_new_text(line));
    }
    js_put(o, "layers", layers);
    err e = m->record.len ? js_parse(str_text(&m->record), m->record.len, m->path, &record) : 0;
    if (e >= 0) js_put(o, "training", record);
    if (e >= 0) e = js_text(o, out, 2);
    js_free(o);
    return e;
}

/* The JSON of info as indented lines: "name: value".  The origins of the training record stand beside the options. */
static void plain(struct str *out, const char *name, const struct js *v, i32 depth) {
    if (js_kind(v) == JS_OBJECT || js_kind(v) == JS_ARRAY) {
        str_addf(out, "%*s%s:\n", depth * 2, "", name);
        const char *key;
        const struct js *value;
        const bool record = depth == 0 && strcmp(name, "training") == 0;
        for (i64 i = 0; js_kind(v) == JS_OBJECT && js_member(v, i, &key, &value); i++)
            if (!record || strcmp(key, "origins") != 0) plain(out, key, value, depth + 1);
        for (i64 i = 0; js_kind(v) == JS_ARRAY && i < js_len(v); i++) {
            const struct js *item = js_at(v, i);
            plain(out, js_str(js_get(item, "name"), "-"), item, depth + 1);
        }
        return;
    }
    char number[32];
    const char *text = js_str(v, NULL);
    if (!text && js_kind(v) == JS_INT) snprintf(number, sizeof number, "%lld", (long long)js_i64(v, 0));
    else if (!text && js_kind(v) == JS_REAL) str_print(number, sizeof number, "%.6g", js_f64(v, 0));
    else if (!text) snprintf(number, sizeof number, "-");
    str_addf(out, "%*s%s: %s\n", depth * 2, "", name, text ? text : number);
}

stretto_err stretto_model_info(const stretto_model *self, int json, char **out) {
    struct str text = {0}, lines = {0};
    struct js *o = NULL;
    err e = info_json(self, &text);
    if (e >= 0 && !json) e = js_parse(str_text(&text), text.len, "info", &o);
    const char *key;
    const struct js *value;
    for (i64 i = 0; o && js_member(o, i, &key, &value); i++) plain(&lines, key, value, 0);
    if (o) {
        str_add(&lines, "options:\n");
        struct str yaml = {0};
        opt_dump(&self->config.o, 1u << VERB_train, &yaml);
        for (const char *p = str_text(&yaml); *p;) {
            const char *end = strchr(p, '\n');
            size_t n = end ? (size_t)(end - p) : strlen(p);
            str_addf(&lines, "  %.*s\n", (int)n, p);
            p += n + (end ? 1 : 0);
        }
        str_free(&yaml);
    }
    js_free(o);
    if (e < 0 || !json) str_free(&text);
    if (e < 0) {
        str_free(&lines);
        return e;
    }
    return text_give(json ? &text : &lines, out);
}
