/* model.c - data sets and models of every learner, in memory and as files; the table of learners. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/input.h"
#include "base/mem.h"
#include "learn/learner.h"

/* ------------------------------------------------------------------ learners ------------------------------------------------ */

#define LEARNER(name) extern const struct learner learner_##name;
#include "learn/learners.def"
#undef LEARNER

static const struct learner *const all[] = {
#define LEARNER(name) &learner_##name,
#include "learn/learners.def"
#undef LEARNER
};

const struct learner *learner_at(i32 i) { return i < (i32)COUNT(all) ? all[i] : NULL; }

const struct learner *learner_find(const char *name) {
    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}

err learner_of(const struct options *o, const struct learner **out) {
    *out = learner_find(o->task);
    return *out ? 0 : FAIL_AT(E103, "--task", "--task forecast", "there is no learner \"%s\"", o->task);
}

bool learner_on_cores(const struct options *o) { return strcmp(o->device, "auto") == 0 || strcmp(o->device, "cpu") == 0; }

static bool is_in(const enum opt_id *list, enum opt_id id) {
    while (*list != OPT_COUNT && *list != id) list++;
    return *list == id;
}

/* Options that serve every learner; of the other ones about the machine and the output, a learner names those that it uses. */
static bool is_common(enum opt_id id) {
    static const enum opt_id machine[] = {OPT_threads, OPT_memory, OPT_kernel, OPT_ranks, OPT_COUNT};
    static const enum opt_id forecasts[] = {OPT_stride, OPT_score_scale, OPT_score_steps, OPT_wide_output, OPT_COUNT};
    const enum opt_group group = opt_info(id)->group;
    return id == OPT_task || (group == OPT_MACHINE && is_in(machine, id)) || (group == OPT_OUTPUT && !is_in(forecasts, id)) ||
           group == OPT_VERB || group == OPT_HIDDEN;
}

bool learner_takes(const struct learner *l, enum opt_id id) {
    const enum opt_group group = opt_info(id)->group;
    if (!l->takes) return group != OPT_TASK;
    if (group == OPT_DATA) return !l->data->takes || is_in(l->data->takes, id);
    return is_common(id) || is_in(l->takes, id);
}

/* Config files, and that of a run, list every option. */
static bool is_default(const struct options *o, enum opt_id id) {
    const char *text = o->meta[id].text, *def = opt_info(id)->def;
    f64 a, b;
    if (strcmp(text, def) == 0) return true;
    return str_to_f64(text, strlen(text), '.', &a) && str_to_f64(def, strlen(def), '.', &b) && a == b;
}

err learner_check(const struct options *o) {
    const struct learner *l;
    TRY(learner_of(o, &l));
    for (i32 i = 0; i < OPT_COUNT; i++) {
        char flag[64], fix[96];
        const enum opt_id id = (enum opt_id)i;
        if (learner_takes(l, id) || !opt_given(o, id) || is_default(o, id)) continue;
        snprintf(flag, sizeof flag, "--%s", opt_info(id)->name);
        snprintf(fix, sizeof fix, "no %s", flag);
        return FAIL_AT(E106, flag, fix, "--task %s does not use %s", l->name, flag);
    }
    return l->check ? l->check(o) : 0;
}

err learner_check_devices(const struct learner *l, const struct options *o) {
    if (learner_on_cores(o) || (learner_takes(l, OPT_device) && l->offloads != OFFLOADS_FIT)) return 0;
    return FAIL_AT(E106, "--device", "no --device", "predictions of --task %s run on the cores", l->name);
}

err split_rows(const struct options *o, i64 rows, struct split *out) {
    static const char fifth[] = "20%";
    const struct series bare = {.nrow = rows};
    if (out->test > 0) return 0;
    return split_make(&bare, rows, opt_is_auto(o, OPT_validation) ? fifth : o->validation,
                        opt_is_auto(o, OPT_test) ? fifth : o->test, out);
}

/* ------------------------------------------------------------------ data sets ----------------------------------------------- */

err dataset_new(const struct data_kind *kind, const char *path, size_t size, void *out) {
    struct dataset *d = mem_alloc(size);
    if (!d) return -E601;
    d->kind = kind;
    d->piped = input_is(path);
    d->in_memory = input_is_memory(path);
    if (!(d->path = mem_strdup(input_label(path)))) {
        mem_free(d);
        return -E601;
    }
    *(struct dataset **)out = d;
    return 0;
}

void dataset_free(struct dataset *d) {
    if (!d) return;
    mem_free(d->path);
    d->kind->free(d);
}

void dataset_span(const struct dataset *d, i64 from, i64 to, char out[72]) {
    char a[32], b[32];
    if (to <= from) {
        snprintf(out, 72, "none");
        return;
    }
    d->kind->label(d, from, a);
    d->kind->label(d, to - 1, b);
    snprintf(out, 72, "%s..%s", a, b);
}

/* ------------------------------------------------------------------ models -------------------------------------------------- */

void scores_free(struct scores *s) {
    if (s->detail) s->free_detail(s->detail);
    arena_free(&s->arena);
    *s = (struct scores){0};
}

void graph_gap_add(struct graph_gap *gap, f64 difference) {
    if (!(difference <= gap->worst)) gap->worst = isnan(difference) ? (f64)INFINITY : difference;
    gap->cells++;
}

void model_put_end(const struct model *m, struct js *record) {
    if (!record) return;
    js_put_f64(record, "train_seconds", m->seconds);
    if (m->stopped) js_put_text(record, "stopped", stop_reason_text(m->stopped));
}

void model_drop(struct model *m) {
    str_free(&m->plan_text);
    mem_free(m->span);
    m->span = NULL;
    m->nspan = 0;
}

void model_free(struct model *m) {
    if (!m) return;
    model_drop(m);
    m->learner->ops->free(m);
}

const char *learner_predicts(const struct learner *l) { return l->predicts ? l->predicts : "prediction"; }

err learner_fit(const struct learner *learner, const struct learn_job *job, struct model **out) {
    *out = NULL;
    const err e = learner->fit(job, out);
    if (*out) (*out)->learner = learner;
    if (e != 0) model_free(*out);
    if (e != 0) *out = NULL;
    return e;
}

static void meta_key(const struct learner *l, char out[48]) { snprintf(out, 48, "stretto.%s", l->name); }

err model_to_file(const struct model *m, const char *path, const char *options_json, const char *record_json) {
    struct arena arena = {0};
    struct tens_list list = {.arena = &arena};
    struct str json = {0};
    char key[48];
    meta_key(m->learner, key);
    err e = m->learner->ops->save(m, &list, &json);
    struct meta meta[] = {{key, str_text(&json)}, {"stretto.options", options_json ? options_json : "{}"},
                          {"stretto.record", record_json ? record_json : "{}"}};
    if (e >= 0) e = str_ok(&json);
    if (e >= 0) e = model_write(path, &list, meta, COUNT(meta));
    arena_free(&arena);
    str_free(&json);
    return e;
}

/* The learner whose metadata key is in the file; otherwise E901, which names the expected key. */
static err writer_of(const struct st_file *file, const struct learner **out, const char **text) {
    char key[48];
    for (i32 i = 0; (*out = learner_at(i)); i++) {
        meta_key(*out, key);
        if ((*text = st_meta(file, key))) return 0;
    }
    meta_key(learner_at(0), key);
    return model_meta(file, key, text);
}

static err read_model(const struct st_file *file, const char *path, options_parser *parse, struct options *options,
                      struct model **out) {
    const struct learner *learner;
    const char *text, *given;
    struct js *o = NULL;
    TRY(writer_of(file, &learner, &text));
    TRY(model_meta(file, "stretto.options", &given));
    TRY(parse(given, strlen(given), path, options));
    err e = js_parse(text, strlen(text), path, &o);
    if (e < 0)
        return e == -E601 ? e : FAIL_AT(E901, NULL, "the model file that `stretto train` wrote",
                                        "%s: its description is no JSON", path);
    e = learner->ops->load(file, path, options, o, out);
    js_free(o);
    if (*out) (*out)->learner = learner;
    return e;
}

err model_from_file(const char *path, options_parser *parse, struct options *o, struct model **out, struct str *record_json) {
    struct st_file *file = NULL;
    struct model *m = NULL;
    const char *record;
    *out = NULL;
    TRY(model_open(path, &file));
    err e = read_model(file, path, parse, o, &m);
    if (e >= 0) e = model_meta(file, "stretto.record", &record);
    if (e >= 0) {
        str_add(record_json, record);
        e = str_ok(record_json);
    }
    st_free(file);
    if (e < 0) {
        model_free(m);
        return e;
    }
    *out = m;
    return 0;
}
