/* learner.c - what the learners `classify` and `regress` share: options, splits, files, predictions as a table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/sequence/graph.h"
#include "learn/sequence/sequence.h"

enum { SEGMENTS_WISHED = 48 }; /* --segment auto: the longest sequence has no more */
enum { LEAST_STEPS = 600, LEAST_EPOCHS = 20, VALIDATIONS = 60 };

/* ------------------------------------------------------------------ options ------------------------------------------------- */

static err one_of(const char *flag, const char *value, const char *const *words, const char *fix) {
    for (; *words; words++)
        if (strcmp(value, *words) == 0) return 0;
    return FAIL_AT(E106, flag, fix, "%s %s is for forecasts, not for sequences", flag, value);
}

err sequence_check(const struct options *o) {
    static const char *const scales[] = {"auto", "none", "series", "window", NULL}, *const losses[] = {"auto", "mse", "mae",
                                                                                                       NULL};
    TRY(one_of("--scale", o->scale, scales, "--scale series   (by the training)   or   window   (each sequence by itself)"));
    if (strcmp(o->task, "regress") == 0) TRY(one_of("--loss", o->loss, losses, "--loss mse   or   mae"));
    return 0;
}

static err resolve_segment(struct learn_job *job) {
    const struct sequence_set *s = sequence_set_of(job->data);
    char text[24];
    if (s->per_step && job->o->segment > 1)
        return FAIL_AT(E106, "--segment", "--segment 1", "a label of every step needs a state at every step");
    const i32 longest = sequence_longest(s, 0, s->set.nrow), segment = s->per_step ? 1 : ceil_div(longest, SEGMENTS_WISHED);
    snprintf(text, sizeof text, "%d", segment);
    return opt_resolve(job->o, OPT_segment, text, s->per_step ? "a label of every step" : "at most 48 segments");
}

i64 sequence_steps(const struct options *o, i64 train) {
    const i64 batches = ceil_div((i32)train, (i32)lmin(o->batch, train));
    if (!isnan(o->epochs)) return lmax(1, (i64)ceil(o->epochs * (f64)batches));
    return lmax(LEAST_STEPS, LEAST_EPOCHS * batches);
}

/* After each epoch, but no more than VALIDATIONS times; set as an option, so that a resumed run has the same. */
static err resolve_validations(struct learn_job *job) {
    struct options *o = job->o;
    static const struct opt_from from = {.rank = OPT_RANK_PRESET, .origin = "an epoch, or a part of the steps"};
    const i64 train = job->split.train, batches = ceil_div((i32)train, (i32)lmin(o->batch, train));
    const i64 steps = o->steps == OPT_AUTO_INT || o->steps == 0 ? sequence_steps(o, train) : o->steps;
    char text[24];
    if (opt_given(o, OPT_validate_every)) return 0;
    snprintf(text, sizeof text, "%lld", (long long)lmax(batches, steps / VALIDATIONS));
    return opt_set_id(o, OPT_validate_every, text, &from);
}

static void tell_labels(const struct sequence_set *s, const struct events *to) {
    char where[256];
    if (!s->per_step) return;
    table_where(s->t, s->change, &s->t->col[s->target], where);
    event_note(to, EVENT_NOTE, "labels change within a sequence, first at %s: every step has a label of its own", where);
}

err sequence_resolve(struct learn_job *job) {
    struct sequence_set *s = sequence_set_of(job->data);
    if (s->target < 0)
        return FAIL_AT(E105, s->set.path, "a .ts file with @classLabel or @targetLabel", "the sequences have no label to learn");
    if (strcmp(job->o->preset, "auto") == 0) TRY(opt_preset(job->o, "sequence"));
    TRY(sequence_set_split(job->o, s, &job->split));
    tell_labels(s, job->use.events);
    TRY(resolve_validations(job));
    return resolve_segment(job);
}

void sequence_take_options(struct sequence_model *m, const struct options *o) {
    m->regress = strcmp(o->task, "regress") == 0;
    m->layers = (i32)o->layers;
    m->segment = o->segment == OPT_AUTO_INT ? 1 : (i32)o->segment;
    m->members = (i32)o->members;
    m->bidirectional = o->bidirectional;
    m->scale = strcmp(o->scale, "none") == 0 ? SCALE_NONE : strcmp(o->scale, "window") == 0 ? SCALE_EACH : SCALE_TRAINING;
    snprintf(m->loss, sizeof m->loss, "%s", strcmp(o->loss, "mae") == 0 ? "mae" : "mse");
    opt_give_net(o, &m->options);
}

/* ------------------------------------------------------------------ files --------------------------------------------------- */

static err open_file(const struct model *model, const struct options *o, const char *path, const struct events *to,
                     struct dataset **out) {
    const struct sequence_model *m = sequence_of(model);
    (void)to;
    return sequence_set_read_as(o, path, m->nchannel, m->channel, out);
}

/* ------------------------------------------------------------------ predictions --------------------------------------------- */

struct writing {
    const struct sequence_model *m;
    const struct sequence_set *s;
    const struct prediction_sink *to;
    i32 keys, n;                  /* columns */
    struct prediction_cell *cell; /* [n] */
};

static err heading(struct writing *w, struct arena *a) {
    const struct sequence_model *m = w->m;
    struct prediction_column *column;
    w->keys = m->per_step ? 2 : 1;
    w->n = w->keys + 1 + (m->regress ? 0 : m->classes.n);
    ARENA_NEW(a, column, w->n);
    ARENA_NEW(a, w->cell, w->n);
    column[0] = (struct prediction_column){.name = w->s->nid == 1 ? w->s->t->col[w->s->id[0]].name : "sequence"};
    if (m->per_step) column[1] = (struct prediction_column){.name = "step", .key = KEY_COUNT};
    column[w->keys] = (struct prediction_column){.name = m->regress ? "value" : "class", .value = true};
    for (i32 k = w->keys + 1; k < w->n; k++) {
        const char *class = vocab_word(&m->classes, k - w->keys - 1);
        char *name;
        ARENA_NEW(a, name, strlen(class) + 3);
        memcpy(name, "p_", 2);
        memcpy(name + 2, class, strlen(class));
        column[k] = (struct prediction_column){.name = name, .value = true};
    }
    return w->to->head ? w->to->head(w->to->self, w->n, column) : 0;
}

static i32 likeliest(const f64 *p, i32 n) {
    i32 best = 0;
    for (i32 k = 1; k < n; k++)
        if (p[k] > p[best]) best = k;
    return best;
}

static err write_label(struct writing *w, const char *name, i32 step, const f64 *p) {
    const struct sequence_model *m = w->m;
    w->cell[0] = (struct prediction_cell){.text = name};
    if (m->per_step) w->cell[1] = (struct prediction_cell){.number = step + 1, .digits = 10, .count = step + 1};
    if (m->regress)
        w->cell[w->keys] = (struct prediction_cell){.number = *p};
    else
        w->cell[w->keys] = (struct prediction_cell){.text = vocab_word(&m->classes, likeliest(p, m->classes.n))};
    for (i32 k = w->keys + 1; k < w->n; k++) w->cell[k] = (struct prediction_cell){.number = p[k - w->keys - 1], .digits = 6};
    return w->to->row(w->to->self, w->n, w->cell);
}

static err write_all(struct writing *w, const struct sequence_out *o, struct arena *a) {
    char name[256];
    TRY(heading(w, a));
    for (i64 k = o->from; k < o->to; k++) {
        const i64 sequence = w->s->at[k], first = o->first[k - o->from];
        sequence_name(w->s, sequence, name);
        for (i64 i = first; i < o->first[k - o->from + 1]; i++) TRY(write_label(w, name, (i32)(i - first), o->p + i * o->K));
    }
    return 0;
}

static err predict(const struct model *model, const struct dataset *d, const struct resources *use,
                   const struct prediction_sink *to) {
    const struct sequence_model *m = sequence_of(model);
    struct writing w = {.m = m, .s = sequence_set_of(d), .to = to};
    struct sequence_out o;
    struct arena a = {0};
    TRY(sequence_out_new(m, w.s, 0, d->nrow, &o));
    err e = sequence_predict(m, w.s, use, &o);
    if (e >= 0) e = write_all(&w, &o, &a);
    arena_free(&a);
    sequence_out_free(&o);
    return e;
}

/* ------------------------------------------------------------------ facts --------------------------------------------------- */

static err describe(const struct model *model, struct description *out) {
    const struct sequence_model *m = sequence_of(model);
    out->parameters = m->members * m->net.ntheta;
    if (out->info) {
        js_put_text(out->info, "label of", m->per_step ? "each step" : "each sequence");
        js_put_i64(out->info, "channels", m->nchannel);
        if (!m->regress) js_put_i64(out->info, "classes", m->classes.n);
        if (!isnan(m->valid_loss)) js_put_f64(out->info, "validation loss", m->valid_loss);
    }
    if (out->record) js_put_text(out->record, "stopped", stop_reason_text(model->stopped));
    return 0;
}

const struct model_ops sequence_ops = {.open = open_file,
                                       .predict = predict,
                                       .score = sequence_score,
                                       .describe = describe,
                                       .report = sequence_report,
                                       .save = sequence_save,
                                       .load = sequence_load,
                                       .graph = sequence_graph,
                                       .graph_check = sequence_graph_check,
                                       .free = sequence_free};
