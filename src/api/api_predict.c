/* api_predict.c - a model applied to new data: predictions into arrays and CSV files, scores, pictures. */
#include <math.h>
#include <string.h>

#include "api/api.h"
#include "api/arrow_out.h"
#include "api/score_file.h"
#include "base/file.h"

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

static void keep_warning(void *self, const struct event *e) {
    stretto_model *m = self;
    if (e->kind == EVENT_WARNING) str_addf(&m->warnings, "%s%s", m->warnings.len ? "\n" : "", e->text);
}

static struct events warnings_to(stretto_model *m) { return (struct events){.sink = {{keep_warning, m}}, .n = 1}; }

const char *stretto_model_warnings(const stretto_model *self) { return str_text(&self->warnings); }

/* Prepares data for the model; rejects data of another kind. */
static err take(stretto_model *m, struct dataset *d) {
    const struct learner *learner = m->m->learner;
    const struct events events = warnings_to(m);
    if (m->last != d) str_free(&m->warnings);
    m->last = d;
    if (d->kind != learner->data)
        return FAIL_AT(E903, NULL, "data that were opened for the model",
                       "the model learnt from data of the kind %s, these are of the kind %s", learner->data->name, d->kind->name);
    return learner->ops->take ? learner->ops->take(m->m, d, &events) : 0;
}

static err open_data(stretto_model *m, const char *path, struct dataset **out) {
    const struct learner *learner = m->m->learner;
    const struct events events = warnings_to(m);
    if (learner->ops->open) return learner->ops->open(m->m, &m->config.o, path, &events, out);
    TRY(learner->data->read(&m->config.o, path, out));
    const err e = take(m, *out);
    if (e < 0) dataset_free(*out);
    return e;
}

stretto_err stretto_model_open(stretto_model *self, const char *path, stretto_data **out) {
    struct dataset *d = NULL;
    *out = NULL;
    str_free(&self->warnings);
    mem_set_limit(self->config.o.memory);
    TRY(open_data(self, path, &d));
    self->last = d;
    return data_handle(d, out);
}

/* ------------------------------------------------------------------ predictions --------------------------------------------- */

static err open_context(const stretto_model *m, const struct events *events, struct run_context *ctx) {
    TRY(learner_check_devices(m->m->learner, &m->config.o));
    return run_context_open(&m->config.o, events, NULL, false, ctx);
}

/* Appends a note of a forecast to stretto_model_note, unless it is there already. */
static void keep_note(void *self, const struct event *e) {
    stretto_model *m = self;
    if (e->kind == EVENT_NOTE && !strstr(str_text(&m->note), e->text))
        str_addf(&m->note, "%s%s", m->note.len ? "\n" : "", e->text);
}

static struct events notes_to(stretto_model *m) {
    str_free(&m->note);
    return (struct events){.sink = {{keep_note, m}}, .n = 1};
}

const char *stretto_model_note(const stretto_model *self) { return str_text(&self->note); }

static err predict(stretto_model *m, stretto_data *d, const struct prediction_sink *to) {
    struct run_context ctx;
    struct events events = notes_to(m);
    TRY(take(m, d->set));
    TRY(open_context(m, &events, &ctx));
    err e = m->m->learner->ops->predict(m->m, d->set, &ctx.use, to);
    run_context_close(&ctx);
    return e;
}

/* Converts rows, which come target by target with all steps, to arrays, which hold all targets of each step. */
struct arrays {
    double *mean, *quantiles;
    i32 horizon, ntarget, nquantile, ncol, first; /* first: column of the first value */
    i64 row;
};

static err find_values(void *self, i32 ncol, const struct prediction_column *column) {
    struct arrays *a = self;
    for (a->first = 0; a->first < ncol && !column[a->first].value; a->first++) {}
    return ncol - a->first == 1 + a->nquantile ? 0 : FAIL(E106, "these predictions are no numbers with quantiles");
}

static err to_arrays(void *self, i32 ncol, const struct prediction_cell *cell) {
    struct arrays *a = self;
    const i64 at = a->row % a->horizon * a->ntarget + a->row / a->horizon;
    (void)ncol;
    a->row++;
    if (a->mean) a->mean[at] = cell[a->first].number;
    for (i32 q = 0; a->quantiles && q < a->nquantile; q++) a->quantiles[at * a->nquantile + q] = cell[a->first + 1 + q].number;
    return 0;
}

stretto_err stretto_predict(stretto_model *self, stretto_data *data, double *mean, double *quantiles) {
    struct description d = {0};
    TRY(self->m->learner->ops->describe(self->m, &d));
    if (d.horizon == 0)
        return FAIL_AT(E106, NULL, "stretto_predict_file", "a model of %s has no horizon to fill arrays by",
                       self->m->learner->name);
    struct arrays a = {.mean = mean, .quantiles = quantiles, .horizon = d.horizon, .ntarget = data->set->ntarget,
                       .nquantile = d.nquantile};
    return predict(self, data, &(struct prediction_sink){.head = find_values, .row = to_arrays, .self = &a});
}

/* ------------------------------------------------------------------ into CSV ------------------------------------------------ */

static void add_number(struct str *out, const struct prediction_cell *c) {
    char text[32];
    if (isnan(c->number)) return;
    if (c->digits == 0) str_from_f32(text, (f32)c->number);
    else str_print(text, sizeof text, "%.*g", c->digits, c->number);
    str_add(out, text);
}

/* Predictions as text: kept for "-", otherwise written to a file piece by piece.  The file appears with its last piece. */
struct text_out {
    struct str text;
    const char *path;
    struct file_out file;
    bool open;
};

enum { PIECE = 1 << 18 };

static err write_piece(struct text_out *o) {
    TRY(str_ok(&o->text));
    if (!o->open) TRY(file_create(o->path, &o->file));
    o->open = true;
    TRY(file_write(&o->file, str_text(&o->text), (i64)o->text.len));
    o->text.len = 0;
    return 0;
}

static err end_line(struct text_out *o) {
    str_add(&o->text, "\n");
    return o->path && o->text.len >= PIECE ? write_piece(o) : 0;
}

static err csv_head(void *self, i32 ncol, const struct prediction_column *column) {
    struct text_out *out = self;
    for (i32 i = 0; i < ncol; i++) {
        if (i) str_add(&out->text, ",");
        str_add_csv(&out->text, column[i].name);
    }
    return end_line(out);
}

static err csv_row(void *self, i32 ncol, const struct prediction_cell *cell) {
    struct text_out *out = self;
    for (i32 i = 0; i < ncol; i++) {
        if (i) str_add(&out->text, ",");
        if (cell[i].text) str_add_csv(&out->text, cell[i].text);
        else add_number(&out->text, &cell[i]);
    }
    return end_line(out);
}

/* Lines of text, as they are. */
static err text_row(void *self, i32 ncol, const struct prediction_cell *cell) {
    struct text_out *out = self;
    for (i32 i = 0; i < ncol; i++) str_add(&out->text, cell[i].text);
    return end_line(out);
}

/* Gives the text to the caller, or the last piece to the file, which then takes its name; nothing is left where it failed. */
static err finish(err e, struct text_out *to, char **out) {
    if (e >= 0 && !to->path) return text_give(&to->text, out);
    if (e >= 0) e = write_piece(to);
    if (to->open && e >= 0) e = file_commit(&to->file);
    else if (to->open) file_abort(&to->file);
    str_free(&to->text);
    return e;
}

stretto_err stretto_predict_file(stretto_model *self, stretto_data *data, const char *path, int wide, char **out) {
    const bool lines_alone = self->m->learner->ops->lines;
    struct text_out to = {.path = strcmp(path, "-") == 0 ? NULL : path};
    const struct prediction_sink csv = {.head = csv_head, .row = csv_row, .self = &to, .wide = wide != 0};
    const struct prediction_sink lines = {.row = text_row, .self = &to};
    return finish(predict(self, data, lines_alone ? &lines : &csv), &to, out);
}

stretto_err stretto_marginals_file(stretto_model *self, stretto_data *data, const char *path, char **out) {
    struct text_out to = {.path = strcmp(path, "-") == 0 ? NULL : path};
    const struct prediction_sink lines = {.row = text_row, .self = &to, .marginals = true};
    if (!self->m->learner->ops->marginals)
        return FAIL_AT(E106, NULL, "no --marginals", "a model of %s has no probabilities of the labels of a token",
                       self->m->learner->name);
    return finish(predict(self, data, &lines), &to, out);
}

static err check_samples(const stretto_model *m, int samples) {
    struct description d = {0};
    TRY(m->m->learner->ops->describe(m->m, &d));
    if (d.horizon > 0 && samples > 0) return 0;
    return FAIL_AT(E106, NULL, samples < 1 ? "1 sample or more" : "no --samples", "%d samples of a model of %s", samples,
                   m->m->learner->name);
}

stretto_err stretto_sample_file(stretto_model *self, stretto_data *data, const char *path, int samples, long long seed,
                                char **out) {
    struct text_out to = {.path = strcmp(path, "-") == 0 ? NULL : path};
    TRY(check_samples(self, samples));
    const struct prediction_sink csv = {.head = csv_head, .row = csv_row, .self = &to, .samples = samples, .seed = seed};
    return finish(predict(self, data, &csv), &to, out);
}

stretto_err stretto_predict_arrow(stretto_model *self, stretto_data *data, int samples, long long seed,
                                  struct ArrowArray *array_out, struct ArrowSchema *schema_out) {
    struct arrow_out to = {.lines = self->m->learner->ops->lines};
    const struct prediction_sink sink = {.head = to.lines ? NULL : arrow_out_head, .row = arrow_out_row, .self = &to,
                                         .samples = samples, .seed = seed};
    *array_out = (struct ArrowArray){0};
    *schema_out = (struct ArrowSchema){0};
    err e = samples ? check_samples(self, samples) : 0;
    if (e >= 0) e = predict(self, data, &sink);
    if (e >= 0) return arrow_out_give(&to, array_out, schema_out);
    arrow_out_free(&to);
    return e;
}

/* ------------------------------------------------------------------ scores -------------------------------------------------- */

static err score(stretto_model *m, struct dataset *d, const struct scoring *q, struct scores *out) {
    struct run_context ctx;
    struct events events = notes_to(m);
    TRY(take(m, d));
    TRY(open_context(m, &events, &ctx));
    err e = m->m->learner->ops->score(m->m, d, q, &ctx.use, out);
    run_context_close(&ctx);
    return e;
}

stretto_err stretto_eval(stretto_model *self, stretto_data *data, stretto_config *config, int json, char **out, double *skill) {
    struct scores s = {0};
    struct str text = {0};
    const struct scoring q = {.show = config ? &config->o : &self->config.o, .since = config ? config->o.since : NULL};
    err e = score(self, data->set, &q, &s);
    if (e >= 0 && s.said[0]) str_addf(&self->note, "%s%s", self->note.len ? "\n" : "", s.said);
    if (e >= 0 && s.table && config) e = score_file(&config->o, s.table->lines);
    if (e >= 0 && s.table) {
        if (json) table_json(&text, s.table);
        else table_text(&text, s.table);
    }
    if (e >= 0 && skill) *skill = s.skill;
    scores_free(&s);
    return text_end(e, &text, out);
}

/* ------------------------------------------------------------------ one long sequence --------------------------------------- */

struct listener {
    stretto_event_fn *fn;
    void *user;
};

static void forward(void *self, const struct event *e) {
    const struct listener *l = self;
    forward_event(e, l->fn, l->user);
}

stretto_err stretto_decode_file(stretto_model *self, const char *sequence, const char *path, stretto_event_fn *fn, void *user,
                                char **out) {
    const struct model_ops *ops = self->m->learner->ops;
    struct listener listener = {fn, user};
    const struct events events = {.sink = {{forward, &listener}}, .n = 1};
    struct run_context ctx;
    struct str text = {0};
    if (!ops->decode)
        return FAIL_AT(E106, self->path, "a model of --task hmm   or   stretto predict MODEL DATA",
                       "a model of %s labels no sequences", self->m->learner->name);
    TRY(open_context(self, &events, &ctx));
    err e = ops->decode(self->m, &self->config.o, sequence, path, &ctx.use, &text);
    run_context_close(&ctx);
    if (e >= 0 && strcmp(path, "-") == 0) return text_give(&text, out);
    str_free(&text);
    return e;
}

/* ------------------------------------------------------------------ picture ------------------------------------------------- */

stretto_err stretto_model_plot(stretto_model *self, stretto_data *data, const char *svg_path) {
    const struct model_ops *ops = self->m->learner->ops;
    struct run_context ctx;
    struct events events = notes_to(self);
    if (!ops->plot) return FAIL_AT(E106, "--plot", "no --plot", "a model of %s has no picture", self->m->learner->name);
    TRY(take(self, data->set));
    TRY(open_context(self, &events, &ctx));
    err e = ops->plot(self->m, data->set, &ctx.use, NULL, svg_path);
    run_context_close(&ctx);
    return e;
}
