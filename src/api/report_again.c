/* report_again.c - `stretto report`: the report of a model that is in a file, on the data of its run or on others.
 *
 *     RUN/run.json      model and data             RUN/metrics.jsonl   losses          RUN/plan.txt   plan
 *     RUN/data.json     split of the data          none of them is needed: the report then has less in it
 *
 * With the data of the run, the parts are those of the training.  Other data are scored as `stretto eval` scores them. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/api.h"
#include "base/file.h"
#include "base/json.h"
#include "base/kind.h"

#define MEASURE 5.0 /* seconds: somebody waits for the report alone */

/* What a run or a model names. */
struct named {
    char *run, *model, *data; /* run, data: NULL = not known */
};

static void named_free(struct named *n) {
    mem_free(n->run);
    mem_free(n->model);
    mem_free(n->data);
}

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static err keep_text(char **to, const char *text) { return (*to = mem_strdup(text)) ? 0 : -E601; }

/* Model and data of a run folder, as far as run.json names them. */
static err read_run(const char *run, struct named *out) {
    char path[PATH_MAX];
    struct js *o = NULL;
    if (snprintf(path, sizeof path, "%s/run.json", run) >= PATH_MAX || !file_exists(path)) return 0;
    TRY(js_load(path, &o));
    const char *model = js_str(js_get(o, "model"), ""), *data = js_str(js_get(o, "data"), "");
    err e = keep_text(&out->run, run);
    if (e >= 0 && !out->model && *model) e = keep_text(&out->model, model);
    if (e >= 0 && *data && strcmp(data, "-") != 0) e = keep_text(&out->data, data);
    js_free(o);
    return e;
}

static err find(const char *what, struct named *out) {
    char run[PATH_MAX];
    if (!is_folder(what)) {
        TRY(keep_text(&out->model, what));
        return snprintf(run, sizeof run, "%s.run", what) < PATH_MAX ? read_run(run, out) : 0;
    }
    TRY(read_run(what, out));
    if (out->model && file_exists(out->model)) return 0;
    return FAIL_AT(E705, NULL, "stretto report MODEL DATA", "%s names no model that is there: %s", what,
                   out->model ? out->model : "it has no run.json");
}

/* ------------------------------------------------------------------ trainer ------------------------------------------------- */

/* Options of this call that replace those of the training: how the machine is used, and what is scored. */
static err take_options(const struct options *given, struct options *o) {
    static const enum opt_id own[] = {OPT_threads, OPT_device, OPT_kernel, OPT_memory, OPT_stride};
    for (size_t i = 0; given && i < COUNT(own); i++) {
        const struct opt_from from = {.rank = OPT_RANK_FILE, .origin = given->meta[own[i]].origin};
        if (given->meta[own[i]].rank >= OPT_RANK_FLAG) TRY(opt_set_id(o, own[i], given->meta[own[i]].text, &from));
    }
    return 0;
}

static err text_of(const char *run, const char *name, struct str *out) {
    char path[PATH_MAX], *text = NULL;
    i64 n;
    if (!run || snprintf(path, sizeof path, "%s/%s", run, name) >= PATH_MAX || !file_exists(path)) return 0;
    TRY(file_load(path, PLAN_BYTES, &text, &n));
    str_addn(out, text, (size_t)n);
    mem_free(text);
    return str_ok(out);
}

/* The split of the training, where these are its data; else it stays unknown. */
static err find_split(struct stretto_trainer *t, const char *run) {
    const struct data_kind *kind = t->data->set->kind;
    struct data_change c;
    struct js *print = NULL;
    char path[PATH_MAX];
    if (!kind->compare)
        return t->learner->resolve ? t->learner->resolve(&t->job) : split_rows(&t->o, t->data->set->nrow, &t->job.split);
    if (!run || snprintf(path, sizeof path, "%s/data.json", run) >= PATH_MAX || !file_exists(path)) return 0;
    err e = js_load(path, &print);
    if (e >= 0) e = kind->compare(t->data->set, print, &c);
    js_free(print);
    if (e == -E601) return e;
    if (e < 0) return err_clear(), 0; /* of an earlier version */
    if (c.verdict == DATA_SAME || c.verdict == DATA_BEYOND)
        t->job.split = c.split;
    else
        event_note(&t->events, EVENT_WARNING, "the data changed since the training: %s", c.text);
    return 0;
}

/* A trainer as it would be after the training, as far as the files say. */
static err make_trainer(const struct named *n, bool own_data, const struct options *given, stretto_model *m,
                        struct stretto_trainer *t) {
    const struct model_ops *ops = m->m->learner->ops;
    char path[PATH_MAX];
    t->lock = -1;
    t->model = m;
    t->learner = m->m->learner;
    trainer_listen(t);
    TRY(opt_copy(&t->o, &m->config.o));
    TRY(take_options(given, &t->o));
    TRY(learner_check_devices(t->learner, &t->o));
    mem_set_limit(t->o.memory);
    TRY(run_context_open(&t->o, &t->events, NULL, false, &t->ctx));
    struct dataset *set = NULL;
    if (own_data)
        TRY(t->learner->data->read(&t->o, n->data, &set)); /* the rows of the training, not all of the file */
    else if (ops->open)
        TRY(ops->open(m->m, &t->o, n->data, &t->events, &set));
    else
        TRY(t->learner->data->read(&t->o, n->data, &set));
    TRY(data_handle(set, &t->data));
    TRY(trainer_job(t, NULL));
    t->job.measure = MEASURE;
    if (own_data) TRY(find_split(t, n->run));
    if (ops->take) TRY(ops->take(m->m, set, &t->events));
    if (n->run && snprintf(path, sizeof path, "%s/metrics.jsonl", n->run) < PATH_MAX) history_read(&t->history, path);
    return text_of(own_data ? n->run : NULL, "plan.txt", &m->m->plan_text);
}

static err score(struct stretto_trainer *t) {
    const struct split *p = &t->job.split;
    struct scoring q = {.show = &t->o};
    if (p->test > 0) q = (struct scoring){.show = &t->o, .what = "test", .from = p->validation, .to = p->test, .rows = p->test};
    TRY(t->learner->ops->score(t->model->m, t->data->set, &q, &t->job.use, &t->scores));
    if (t->scores.said[0]) event_note(&t->events, EVENT_NOTE, "%s", t->scores.said);
    return 0;
}

static err write_report(const struct named *n, bool own_data, const struct options *given, stretto_model *m, const char *path) {
    struct stretto_trainer *t;
    stretto_data *data;
    NEW(t, 1);
    err e = make_trainer(n, own_data, given, m, t);
    if (e >= 0) e = score(t);
    if (e >= 0) e = stretto_trainer_report(t, path);
    data = t->data;
    stretto_trainer_free(t);
    stretto_data_free(data);
    return e;
}

/* RUN/report.html, or the model's name with .html. */
static err path_of(const struct named *n, bool own_data, const char *given, char out[PATH_MAX]) {
    int length;
    if (given && *given)
        length = snprintf(out, PATH_MAX, "%s", given);
    else if (n->run && own_data)
        length = snprintf(out, PATH_MAX, "%s/report.html", n->run);
    else
        length = snprintf(out, PATH_MAX, "%s.html", n->model);
    if (length >= PATH_MAX) return FAIL(E702, "the path of the report is too long: %s", n->model);
    return kind_replaces(out, "--out", "<!doctype html", "a report"); /* the data, the model, a file of the run */
}

stretto_err stretto_report(const char *run_or_model, const char *data_path, stretto_config *config, const char *html_path,
                           char **path_out) {
    struct named n = {0};
    stretto_model *m = NULL;
    char path[PATH_MAX];
    const bool own_data = !data_path || !*data_path;
    *path_out = NULL;
    err e = find(run_or_model, &n);
    if (e >= 0 && !own_data) {
        mem_free(n.data);
        e = keep_text(&n.data, data_path);
    }
    if (e >= 0) e = path_of(&n, own_data, html_path, path);
    if (e >= 0) e = stretto_model_load(n.model, &m);
    if (e >= 0 && !n.data)
        e = FAIL_AT(E105, NULL, "stretto report MODEL DATA", "no run folder beside %s names the data of the report", n.model);
    if (e >= 0)
        e = write_report(&n, own_data, config ? &config->o : NULL, m, path); /* which frees the model */
    else
        stretto_model_free(m);
    if (e >= 0) e = keep_text(path_out, path);
    named_free(&n);
    return e;
}
