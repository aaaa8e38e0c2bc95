/* api_train.c - trainer handles: resolve, fit, score, save. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/plan_shape.h"
#include "api/ranks.h"
#include "base/file.h"
#include "data/series_build.h"
#include "report/jsonl.h"
#include "report/trace.h"

/* Events of the library become events of stretto.h. */
static void forward(void *self, const struct event *e) {
    struct stretto_trainer *t = self;
    if (!t->fn || e->kind > EVENT_WORK) return;
#define SAME(field) .field = e->field,
    stretto_event out = {.kind = (int)e->kind, EVENT_SHARED(SAME)};
#undef SAME
    t->fn(t->user, &out);
}

static void listen(struct stretto_trainer *t, struct sink sink) {
    if (t->events.n < SINKS_MAX) t->events.sink[t->events.n++] = sink;
}

void trainer_listen(struct stretto_trainer *t) {
    listen(t, (struct sink){forward, t});
    listen(t, course_sink(&t->course));
}

static err open_trainer(const stretto_config *config, stretto_data *data, struct stretto_trainer *t) {
    t->lock = -1;
    t->data = data;
    trainer_listen(t);
    TRY(opt_copy(&t->o, &config->o));
    TRY(workshop_open(&t->o, &t->events, &t->stop, true, &t->shop));
    if (trainer_is_silent(t)) t->events.n = 0;
    return 0;
}

stretto_err stretto_trainer_new(stretto_config *config, stretto_data *data, stretto_trainer **out) {
    struct stretto_trainer *t;
    *out = NULL;
    NEW(t, 1);
    err e = open_trainer(config, data, t);
    if (e < 0) {
        stretto_trainer_free(t);
        return e;
    }
    *out = t;
    return 0;
}

stretto_err stretto_trainer_config(stretto_trainer *self, char **yaml_out) {
    struct str text = {0};
    struct forecast_spec spec;
    struct split split;
    TRY(resolve_forecast(&self->o, self->data->s, NULL, &spec, &split));
    opt_dump(&self->o, 1u << VERB_train, &text);
    return text_give(&text, yaml_out);
}

void stretto_trainer_on_event(stretto_trainer *self, stretto_event_fn *fn, void *user) {
    self->fn = fn;
    self->user = user;
}

stretto_err stretto_trainer_target(stretto_trainer *self, const char *model_path) {
    mem_free(self->model_path);
    self->model_path = mem_strdup(model_path);
    return self->model_path ? 0 : -E601;
}

stretto_err stretto_trainer_run_dir(stretto_trainer *self, const char *path, int resume) {
    return run_dir_open(self, path, resume != 0);
}
void stretto_trainer_stop(stretto_trainer *self) { self->stop = 1; }

/* What the reader of the file could not know of numbers, or found out: later files must not be read otherwise. */
err trainer_marks(struct stretto_trainer *t) {
    if (t->data->doubt) event_note(&t->events, EVENT_WARNING, "%s: %s", t->data->doubt, t->data->doubt_fix);
    if (!t->data->decimal) return 0;
    return opt_resolve(&t->o, OPT_decimal, t->data->decimal == ',' ? "comma" : "point", "the file has marks between thousands");
}

static err state_machine(const struct stretto_trainer *t) {
    i32 n = t->shop.machine->ndevice;
    TRY(forecast_check_kern(&t->spec, t->shop.use.kern));
    event_note(&t->events, EVENT_NOTE, "kernels %s%s, %d thread%s", t->shop.use.kern->name,
               t->spec.precision == PREC_BF16 ? " in bf16" : "", n, n > 1 ? "s" : "");
    return 0;
}

/* "slices 16" of a plan's first line; 0 = its rows are whole windows. */
static i32 slices_of_plan(const char *text) {
    size_t line = strcspn(text, "\n");
    const char *at = strstr(text, " slices ");
    i64 n = 0;
    if (!at || (size_t)(at - text) > line) return 0;
    at += 8;
    return str_to_i64(at, strcspn(at, " \n"), &n) && n > 0 && n <= SLICES_MAX ? (i32)n : 0;
}

/* A plan that was saved by `stretto plan --save`. */
static err load_plan(struct stretto_trainer *t) {
    char *text;
    i64 n;
    if (!t->o.plan || !*t->o.plan) return 0;
    TRY(file_load(t->o.plan, PLAN_BYTES, &text, &n));
    str_addn(&t->plan_text, text, (size_t)n);
    mem_free(text);
    t->spec.plan_text = t->plan_text.s;
    t->spec.plan_path = t->o.plan;
    TRY(str_ok(&t->plan_text));
    i32 slices = slices_of_plan(t->plan_text.s);
    if (t->spec.slices > 1 || slices < 2 || !forecast_can_slice(&t->spec)) return 0; /* else the plan is compared, line by line */
    if (slices > forecast_steps(&t->spec))
        return FAIL_AT(E402, t->o.plan, "stretto plan --save FILE   (writes a plan that fits)",
                       "%d time slices out of a context of %d steps", slices, forecast_steps(&t->spec));
    t->spec.slices = t->spec.slices_least = slices;
    return 0;
}

static err fit(struct stretto_trainer *t, struct forecaster **out) {
    const struct learner *learner = learner_find(t->o.task);
    if (!learner) return FAIL_AT(E103, "--task", "--task forecast", "there is no learner \"%s\"", t->o.task);
    TRY(resolve_forecast(&t->o, t->data->s, &t->events, &t->spec, &t->split));
    if (t->data->s->roles) event_note(&t->events, EVENT_NOTE, "columns: %s", t->data->s->roles);
    TRY(trainer_marks(t));
    TRY(ranks_answers(t));
    TRY(run_dir_config(t));
    schema_limit_words(t->data->s, t->split.train, &t->events);
    TRY(data_scale(t->data, t->split.train));
    TRY(load_plan(t));
    t->shop.use.trace = true;
    TRY(state_machine(t));
    struct forecast_job job = {.series = t->data->s,
                               .split = t->split,
                               .spec = t->spec,
                               .use = t->shop.use,
                               .run_dir = t->run_dir,
                               .resume = t->resume};
    return ranks_fit(t, learner, &job, out);
}

static void tell_coverage(const struct stretto_trainer *t) {
    const struct score_band band = score_band(t->model->f, &t->scores);
    char said[BAND_SAID];
    if (*score_band_said(&band, said)) event_note(&t->events, EVENT_NOTE, "%s", said);
}

static void tell_few(struct stretto_trainer *t, i64 windows) {
    enum { FEW = 10 };
    const i64 cells = windows * t->spec.horizon * t->data->s->ntarget;
    if (cells >= FEW) return;
    event_note(&t->events, EVENT_NOTE,
               "the scores rest on %lld forecast%s only and are noisy (--test N, or stretto backtest)",
               (long long)cells, cells == 1 ? "" : "s");
}

static err score(struct stretto_trainer *t) {
    struct window_set set = {.first = lmax(t->split.validation, t->spec.context), .end = t->split.test - t->spec.horizon + 1,
                             .stride = t->spec.stride};
    if (window_origins(&set) <= 0) {
        event_note(&t->events, EVENT_WARNING, "no test window: the model is not scored (--test N with at least %d rows)",
                   t->spec.horizon);
        return 0;
    }
    const err e = forecast_score(t->model->f, t->data->s, &set, &t->shop.use, &t->scores);
    if (e == -E806) { /* what was learnt is not lost to a signal now */
        err_clear();
        event_note(&t->events, EVENT_WARNING, "scoring was interrupted: the model is saved without scores (stretto eval "
                   "MODEL DATA computes them)");
        return 0;
    }
    TRY(e);
    t->scored = true;
    tell_few(t, window_origins(&set));
    tell_coverage(t);
    f64 skill = stretto_trainer_skill(t);
    i32 best = score_best(t->model->f, &t->scores, &t->o);
    if (skill < -0.005 && best >= 0)
        event_note(&t->events, EVENT_WARNING,
                   "on the test split the model is %.0f%% worse than the forecast \"%s\": use that forecast, or more data",
                   -100 * skill, t->scores.name[best]);
    return 0;
}

static err make_model(struct stretto_trainer *t, struct forecaster *f) {
    stretto_model *m = mem_alloc(sizeof *m);
    if (!m) {
        forecast_free(f);
        return -E601;
    }
    m->f = f;
    t->model = m;
    return opt_copy(&m->config.o, &t->o);
}

/* Stopped where nothing can be kept, but an earlier checkpoint is there. */
static err stopped(struct stretto_trainer *t) {
    const struct err_record why = *err_last();
    char fix[4200];
    const bool again = run_dir_has_checkpoint(t);
    err_put(&why);
    snprintf(fix, sizeof fix, "stretto resume %s", again ? t->run_dir : "");
    return run_dir_status(t, again ? FAIL_AT(E802, NULL, fix, "%s; a checkpoint is in %s", why.text, t->run_dir) : -E806);
}

/* A rank is missing: with a checkpoint the run can be started again, and its exit status says so. */
static err lost(struct stretto_trainer *t) {
    char fix[4200];
    const struct err_record why = *err_last();
    const bool again = run_dir_has_checkpoint(t);
    err_put(&why);
    if (again) {
        snprintf(fix, sizeof fix, "stretto resume %s", t->run_dir);
        err_set(E802, why.where, fix, "E801, %.900s; a checkpoint is in %s", why.text, t->run_dir);
    }
    return run_dir_status(t, -err_last()->code);
}

static err run(struct stretto_trainer *self) {
    struct forecaster *f = NULL;
    err e = fit(self, &f);
    if (e == -E402 && self->plan_text.len > 0) e = plan_shape_explain(&self->o, str_text(&self->plan_text));
    if (self->o.log && *self->o.log && !trainer_is_silent(self)) {
        err logged = course_csv(&self->course, self->o.log);
        if (e >= 0 && logged < 0) e = logged;
    }
    if (e != 0) return e; /* failed, or stopped by a signal: a checkpoint is there */
    if (trainer_is_silent(self)) e = ranks_part(self);
    if (e < 0) forecast_free(f);
    TRY(e);
    if (trainer_is_silent(self)) {
        e = f->stopped;
        forecast_free(f);
        return e;
    }
    TRY(make_model(self, f));
    event_phase(&self->events, "score");
    TRY(score(self));
    TRY(trainer_record(self, &self->model->record));
    return f->stopped;
}

stretto_err stretto_trainer_run(stretto_trainer *self) {
    err e = run(self);
    if (e == STOP_SIGNAL) status_end(&self->status, "stopped", err_exit_status(-E802));
    else if (e >= 0 && trainer_is_silent(self)) status_end(&self->status, "done", 0);
    return e == -E801 ? lost(self) : e == -E806 ? stopped(self) : run_dir_status(self, e);
}

const char *stretto_trainer_scores(stretto_trainer *self, int json) {
    str_free(&self->text);
    if (!self->scored) return "";
    char title[96], span[72];
    struct score_view v;
    span_label(self->data->s, self->split.validation, self->split.test, span);
    snprintf(title, sizeof title, "test %s", span);
    if (score_view(self->model->f, &self->scores, &self->o, title, &v) < 0) return "";
    if (json) table_json(&self->text, v.table);
    else table_text(&self->text, v.table);
    score_view_free(&v);
    return str_text(&self->text);
}

double stretto_trainer_skill(const stretto_trainer *self) {
    if (trainer_is_silent(self)) return 1; /* rank 0 judges */
    return self->scored ? score_skill(self->model->f, &self->scores, &self->o) : (f64)NAN;
}

stretto_err stretto_trainer_save(stretto_trainer *self, const char *path) {
    if (trainer_is_silent(self)) return 0;
    if (!self->model) return FAIL(E105, "there is no model yet: run the trainer first");
    TRY(run_dir_status(self, stretto_model_save(self->model, path)));
    TRY(run_dir_status(self, run_dir_finish(self)));
    event_note(&self->events, EVENT_SAVED, "%s", path);
    return 0;
}

stretto_err stretto_trainer_report(stretto_trainer *self, const char *html_path) {
    if (trainer_is_silent(self)) return 0;
    return self->model ? trainer_report(self, html_path) : FAIL(E105, "there is no model yet: run the trainer first");
}

stretto_err stretto_trainer_plot(stretto_trainer *self, const char *svg_path) {
    if (trainer_is_silent(self)) return 0;
    return self->model ? trainer_plot(self, svg_path) : FAIL(E105, "there is no model yet: run the trainer first");
}

stretto_model *stretto_trainer_model(stretto_trainer *self) { return self->model; }

void stretto_trainer_free(stretto_trainer *self) {
    if (!self) return;
    if (self->parts && !trainer_is_silent(self) && ranks_part(self) < 0) err_clear();
    run_dir_close(self);
    workshop_close(&self->shop);
    forecast_scores_free(&self->scores);
    stretto_model_free(self->model);
    course_free(&self->course);
    opt_free(&self->o);
    mem_free(self->run_dir);
    mem_free(self->model_path);
    str_free(&self->text);
    str_free(&self->plan_text);
    mem_free(self);
}
