/* api_model.c - model handles: files, facts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/config.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

/* Detects DATA and MODEL in the wrong order: a model file begins with a binary length, never with eight letters. */
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

/* Restores the origin of each option at training; for models without this record the origin is "the model". */
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
    TRY(opt_defaults(&m->config.o, api_lists()));
    TRY(model_from_file(path, config_parse, &m->config.o, &m->m, &m->record));
    if (!(m->path = mem_strdup(path))) return -E601;
    TRY(restore_origins(m));
    if (strcmp(m->config.o.device, "auto") == 0) return 0;
    const struct opt_from from = {.rank = OPT_RANK_FILE, .origin = "default"}; /* the device of the training may not be here */
    return opt_set_id(&m->config.o, OPT_device, "auto", &from);
}

stretto_err stretto_model_load(const char *path, stretto_model **out) {
    stretto_model *m;
    *out = NULL;
    NEW(m, 1);
    err e = load(path, m);
    if (e < 0) stretto_model_free(m);
    else *out = m;
    return e;
}

stretto_err stretto_model_save(const stretto_model *self, const char *path) {
    struct str options = {0};
    opt_dump_json(&self->config.o, 1u << VERB_train, &options);
    err e = str_ok(&options);
    if (e >= 0) e = model_to_file(self->m, path, str_text(&options), str_text(&self->record));
    str_free(&options);
    return e;
}

void stretto_model_free(stretto_model *self) {
    if (!self) return;
    model_free(self->m);
    opt_free(&self->config.o);
    str_free(&self->record);
    str_free(&self->note);
    str_free(&self->warnings);
    mem_free(self->path);
    mem_free(self);
}

/* ------------------------------------------------------------------ facts --------------------------------------------------- */

static struct description facts(const stretto_model *self) {
    struct description d = {0};
    if (self->m->learner->ops->describe(self->m, &d) < 0) err_clear();
    return d;
}

int stretto_model_horizon(const stretto_model *self) { return facts(self).horizon; }
int stretto_model_context(const stretto_model *self) { return facts(self).context; }
int stretto_model_targets(const stretto_model *self) { return facts(self).ntarget; }
int stretto_model_quantiles(const stretto_model *self) { return facts(self).nquantile; }
int64_t stretto_model_parameters(const stretto_model *self) { return facts(self).parameters; }
stretto_config *stretto_model_config(stretto_model *self) { return &self->config; }

const char *stretto_model_target(const stretto_model *self, int i) {
    const struct description d = facts(self);
    return i >= 0 && i < d.ntarget ? d.target[i] : NULL;
}

double stretto_model_quantile(const stretto_model *self, int i) {
    const struct description d = facts(self);
    return i >= 0 && i < d.nquantile ? d.quantile[i] : (f64)NAN;
}

/* --- the training record --- */
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
    const struct split *p = &t->job.split;
    struct js *o = js_object();
    struct description d = {.record = o, .scores = trainer_scored(t) ? &t->scores : NULL};
    clock_date(date);
    js_put_text(o, "created", date);
    js_put_text(o, "version", STRETTO_VERSION);
    js_put_text(o, "data", t->data->set->summary);
    const i64 border[4] = {0, p->train, p->validation, p->test};
    static const char *const name[3] = {"train", "validation", "test_rows"};
    for (i32 i = 0; i < 3; i++) {
        dataset_span(t->data->set, border[i], border[i + 1], span);
        js_put_text(o, name[i], span);
    }
    js_put_text(o, "kernels", t->ctx.use.kern->name);
    js_put_text(o, "precision", t->o.precision);
    js_put_i64(o, "threads", t->ctx.machine->ndevice);
    js_put_text(o, "processor", t->ctx.machine->cpu);
    err e = t->learner->ops->describe(t->model->m, &d);
    if (e >= 0) e = put_origins(&t->o, o);
    if (e >= 0) e = js_text(o, out, 0);
    js_free(o);
    return e;
}

/* --- info --- */
static err put_info(const stretto_model *m, struct js *o) {
    struct js *record = NULL;
    struct description d = {.info = o};
    js_put_text(o, "model", m->path);
    err e = m->m->learner->ops->describe(m->m, &d);
    if (e >= 0) e = m->record.len ? js_parse(str_text(&m->record), m->record.len, m->path, &record) : 0;
    if (e >= 0) js_put(o, "training", record);
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

static void info_lines(const stretto_model *m, const struct js *o, struct str *out) {
    struct str options = {0};
    const char *key;
    const struct js *value;
    for (i64 i = 0; js_member(o, i, &key, &value); i++) plain(out, key, value, 0);
    opt_dump(&m->config.o, 1u << VERB_train, &options);
    str_add(out, "options:\n");
    str_add_lines(out, "  ", str_text(&options));
    str_free(&options);
}

stretto_err stretto_model_info(const stretto_model *self, int json, char **out) {
    struct str text = {0};
    struct js *o = js_object();
    err e = put_info(self, o);
    if (e >= 0 && json) e = js_text(o, &text, 2);
    else if (e >= 0) info_lines(self, o, &text);
    js_free(o);
    return text_end(e, &text, out);
}
