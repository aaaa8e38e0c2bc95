/* api_train.c - trainer handles: resolve, fit, score, save. */
#include <math.h>
#include <stdio.h>

#include "api/earlier.h"
#include "api/host_data.h"
#include "api/keep.h"
#include "api/score_file.h"
#include "api/lost.h"
#include "api/mirror.h"
#include "api/plan_shape.h"
#include "api/ranks.h"
#include "api/tensorboard.h"
#include "base/file.h"
#include "learn/series_set.h"
#include "report/jsonl.h"
#include "report/trace.h"

/* What a device that is lost takes with it is at most what was computed since the last checkpoint. */
static err more_checkpoints(struct stretto_trainer *t) {
    static const struct opt_from from = {.rank = OPT_RANK_PRESET, .origin = "a device may be lost"};
    if (t->ctx.devices.n == 0 || opt_given(&t->o, OPT_checkpoint_every)) return 0;
    return opt_set_id(&t->o, OPT_checkpoint_every, "1m", &from);
}

/* comm: this process is a rank of an MPI job and trains with the others; *comm NULL = it joins now.  comm NULL = it is alone. */
static err open_trainer(const struct options *o, stretto_data *data, struct comm **comm, struct stretto_trainer *t) {
    t->lock = -1;
    t->data = data;
    trainer_listen(t);
    TRY(opt_copy(&t->o, o));
    TRY(comm ? run_context_joined(&t->o, &t->events, &t->stop, comm, &t->ctx)
             : run_context_open(&t->o, &t->events, &t->stop, false, &t->ctx));
    if (trainer_is_silent(t)) t->events.n = 0;
    return more_checkpoints(t);
}

stretto_err stretto_trainer_new(stretto_config *config, stretto_data *data, stretto_trainer **out) {
    struct stretto_trainer *t;
    *out = NULL;
    NEW(t, 1);
    err e = open_trainer(&config->o, data, &config->comm, t);
    if (e < 0) stretto_trainer_free(t);
    else *out = t;
    return e;
}

/* Scores of each series are those of forecasts. */
static err check_scores(const struct options *o, const struct learner *learner) {
    const char *flag = o->scores && *o->scores ? "--scores" : o->by && *o->by ? "--by" : NULL;
    if (!flag || learner->data == &data_series) return 0;
    return FAIL_AT(E106, flag, "--task forecast   or leave it out", "%s lists the scores of series, --task %s has none", flag,
                   learner->name);
}

err trainer_job(struct stretto_trainer *t, const struct events *to) {
    void *spec = t->job.spec;
    TRY(learner_of(&t->o, &t->learner));
    TRY(check_scores(&t->o, t->learner));
    if (t->learner->data != t->data->set->kind)
        return FAIL_AT(E106, "--task", "data opened with the options of this task", "%s learns from data of the kind %s, these "
                       "are of the kind %s", t->learner->name, t->learner->data->name, t->data->set->kind->name);
    if (!spec && t->learner->spec_bytes && !(spec = mem_alloc(t->learner->spec_bytes))) return -E601;
    t->job = (struct learn_job){.o = &t->o, .data = t->data->set, .spec = spec, .use = t->ctx.use};
    t->job.use.events = to;
    return 0;
}

static err resolve(struct learn_job *job, const struct learner *learner) {
    return learner->resolve ? learner->resolve(job) : split_rows(job->o, job->data->nrow, &job->split);
}

stretto_err stretto_trainer_config(stretto_trainer *self, char **yaml_out) {
    struct str text = {0};
    TRY(trainer_job(self, NULL));
    TRY(resolve(&self->job, self->learner));
    opt_dump(&self->o, 1u << VERB_train, &text);
    return text_give(&text, yaml_out);
}

err trainer_check(const struct options *o, stretto_data *data, i64 *horizon, struct split *split) {
    struct stretto_trainer *t;
    NEW(t, 1);
    err e = open_trainer(o, data, NULL, t);
    if (e >= 0) e = trainer_job(t, NULL);
    if (e >= 0) e = resolve(&t->job, t->learner);
    if (e >= 0 && t->learner->prepare) e = t->learner->prepare(&t->job);
    *horizon = t->o.horizon;
    *split = t->job.split;
    stretto_trainer_free(t);
    return e;
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

void stretto_trainer_stop(stretto_trainer *self) { self->stop = 1; }

/* A plan that was saved by `stretto plan --save`. */
static err load_plan(struct stretto_trainer *t) {
    char *text;
    i64 n;
    if (!t->o.plan || !*t->o.plan) return 0;
    TRY(file_load(t->o.plan, PLAN_BYTES, &text, &n));
    str_addn(&t->plan_text, text, (size_t)n);
    mem_free(text);
    t->job.use.plan_text = t->plan_text.s;
    t->job.use.plan_path = t->o.plan;
    return str_ok(&t->plan_text);
}

/* Loads the trained model of a run whose outputs failed; on all ranks or on none. */
static err find_trained(struct stretto_trainer *t, bool *found) {
    u8 here = 0;
    if (!trainer_is_silent(t) && !t->resume) keep_set_aside(t);
    if (!trainer_is_silent(t)) keep_find(t, &t->model);
    here = t->model != NULL;
    TRY(comm_broadcast(t->ctx.comm, "trained", &here, sizeof here));
    *found = here;
    return 0;
}

static err make_model(struct stretto_trainer *t, struct model *fitted) {
    stretto_model *m = mem_alloc(sizeof *m);
    if (!m) {
        model_free(fitted);
        return -E601;
    }
    m->m = fitted;
    t->model = m;
    return opt_copy(&m->config.o, &t->o);
}

static err prepare(struct stretto_trainer *t) { return host_data_prepare(t->ctx.comm, t->learner, &t->job); }

/* Trains, or loads the model that the run has kept: t->model, NULL on silent ranks. Returns a stop reason, or 0 with a
 * model. */
static err fit(struct stretto_trainer *t) {
    struct model *m = NULL;
    bool found;
    TRY(trainer_job(t, &t->events));
    t->job.use.comm = t->ctx.comm; /* ranks use the measurements of rank 0 */
    TRY(run_data_check(t));
    TRY(run_dir_given(t));
    TRY(resolve(&t->job, t->learner));
    t->job.use.comm = t->ctx.use.comm;
    TRY(load_plan(t));
    TRY(run_data_print(t));
    if (!t->resume) TRY(prepare(t)); /* a run that is refused leaves in its folder what an earlier one left there */
    TRY(run_dir_begin(t));
    TRY(run_dir_config(t));
    TRY(run_data_write(t));
    if (t->run_dir && !trainer_is_silent(t)) TRY(mirror_open(t));
    TRY(find_trained(t, &found));
    if (found) return t->model && t->learner->ops->take ? t->learner->ops->take(t->model->m, t->data->set, &t->events) : 0;
    if (t->resume) TRY(prepare(t));
    t->job.use.trace = true;
    t->job.run_dir = t->run_dir;
    t->job.resume = t->resume;
    t->job.foresee = keep_foresee;
    t->job.make_room = keep_make_room;
    t->job.owner = t;
    const err e = lost_fit(t, &m);
    if (e != 0) return e; /* failed, or stopped by a signal after a checkpoint */
    if (trainer_is_silent(t)) {
        const err ended = ranks_finish(t), reason = m->stopped;
        if (ended >= 0 && !trainer_is_silent(t)) return make_model(t, m); /* if rank 0 died, this rank may be rank 0 now */
        model_free(m);
        return ended < 0 ? ended : reason;
    }
    return make_model(t, m);
}

static void tell_few(struct stretto_trainer *t) {
    enum { FEW = 10 };
    const i64 cells = t->scores.cells;
    if (cells >= FEW) return;
    event_note(&t->events, EVENT_NOTE, "the scores rest on %lld %s%s only and are noisy (--test N%s)", (long long)cells,
               learner_predicts(t->learner), cells == 1 ? "" : "s", t->learner->folds ? ", or stretto backtest" : "");
}

static err score(struct stretto_trainer *t) {
    const struct split *p = &t->job.split;
    const struct scoring test = {.show = &t->o, .what = "test", .from = p->validation, .to = p->test, .rows = p->test};
    const err e = t->learner->ops->score(t->model->m, t->data->set, &test, &t->job.use, &t->scores);
    if (e == -E806) { /* the model exists: a signal now must not lose it */
        err_clear();
        event_note(&t->events, EVENT_WARNING, "scoring was interrupted: the model is saved without scores (stretto eval "
                   "MODEL DATA computes them)");
        return 0;
    }
    TRY(e);
    if (!trainer_scored(t)) return 0;
    tell_few(t);
    if (t->scores.said[0]) event_note(&t->events, EVENT_NOTE, "%s", t->scores.said);
    if (isfinite(t->scores.skill) && t->scores.skill < -0.005 && t->scores.best)
        event_note(&t->events, EVENT_WARNING,
                   "on the test split the model is %.0f%% worse than the %s \"%s\": use that %s, or more data",
                   -100 * t->scores.skill, learner_predicts(t->learner), t->scores.best, learner_predicts(t->learner));
    return 0;
}

/* Stopped without a new checkpoint: E802 with the command that resumes if an earlier one exists, else the given E806. */
static err stopped(struct stretto_trainer *t) {
    const struct err_record why = *err_last();
    char fix[4200];
    const bool again = run_dir_has_checkpoint(t);
    err_put(&why);
    snprintf(fix, sizeof fix, "stretto resume %s", again ? t->run_dir : "");
    return run_dir_status(t, again ? FAIL_AT(E802, NULL, fix, "%s; a checkpoint is in %s", why.text, t->run_dir) : -E806);
}

/* A rank was lost: E802 (exit status 75: can be resumed) if there is a checkpoint, else E801. */
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

/* Writes the losses as a CSV file; a resumed run reads them from metrics.jsonl, which has the earlier steps, too. */
static void write_log(struct stretto_trainer *t) {
    if (trainer_is_silent(t)) return;
    if (t->metrics && t->metrics->failed.code)
        event_note(&t->events, EVENT_WARNING, "metrics.jsonl is not complete: %s", t->metrics->failed.text);
    else if (t->resume && t->metrics) history_read(&t->history, t->metrics->path);
    if (!t->o.log || !*t->o.log) return;
    if (keep_output(t, history_csv(&t->history, t->o.log), "--log") < 0)
        event_note(&t->events, EVENT_WARNING, "%s", err_last()->text);
}

/* Opens the event file of --tensorboard, on the rank that writes files. */
static err open_board(struct stretto_trainer *t) {
    if (!t->o.tensorboard || !*t->o.tensorboard || trainer_is_silent(t) || t->board) return 0;
    NEW(t->board, 1);
    TRY(file_option(tensorboard_open(t->board, t->o.tensorboard), "--tensorboard"));
    events_add(&t->events, tensorboard_sink(t->board));
    return 0;
}

static void close_board(struct stretto_trainer *t) {
    if (t->board && tensorboard_close(t->board) < 0)
        event_note(&t->events, EVENT_WARNING, "the event file is not complete: %s", err_last()->text);
}

/* Keeps the trained model if an error occurs after the training. */
static err results(struct stretto_trainer *t) {
    err e;
    event_phase(&t->events, "score");
    do e = score(t);
    while (e < 0 && lost_left(t, e, "to score the model"));
    if (e >= 0 && trainer_scored(t)) keep_output(t, score_file(&t->o, t->scores.table->lines), "--scores");
    if (e >= 0 && t->model->record.len == 0) e = trainer_record(t, &t->model->record);
    if (e >= 0) return t->model->m->stopped;
    keep_output(t, e, "--run-dir");
    return keep_report(t, false);
}

/* A run that ends without a checkpoint and a model gives way to the one that was in the folder before. */
static void settle(const struct stretto_trainer *t) {
    if (trainer_is_silent(t) || !t->run_dir || !earlier_settle(t->run_dir, t->model != NULL, t->resume)) return;
    keep_put_back(t);
    event_note(&t->events, EVENT_NOTE, "%s is as the earlier run left it", t->run_dir);
}

static err run(struct stretto_trainer *self) {
    TRY(open_board(self));
    err e = fit(self);
    if (e == -E402 && self->plan_text.len > 0) e = plan_shape_explain(&self->o, str_text(&self->plan_text));
    const struct err_record why = *err_last();
    settle(self);
    keep_make_room(self);
    write_log(self);
    close_board(self);
    if (e < 0) err_put(&why);
    return e < 0 || !self->model ? e : results(self);
}

stretto_err stretto_trainer_run(stretto_trainer *self) {
    err e = run(self);
    if (e == STOP_SIGNAL) status_end(&self->status, "stopped", err_exit_status(-E802));
    else if (e >= 0 && trainer_is_silent(self)) status_end(&self->status, "done", 0);
    return e == -E801 ? lost(self) : e == -E806 ? stopped(self) : run_dir_status(self, e);
}

const char *stretto_trainer_scores(stretto_trainer *self, int json) {
    str_free(&self->text);
    if (!trainer_scored(self)) return "";
    if (json) table_json(&self->text, self->scores.table);
    else table_text(&self->text, self->scores.table);
    return str_text(&self->text);
}

double stretto_trainer_skill(const stretto_trainer *self) {
    if (trainer_is_silent(self)) return 1; /* rank 0 decides */
    return trainer_scored(self) ? self->scores.skill : (f64)NAN;
}

stretto_err stretto_trainer_save(stretto_trainer *self, const char *path) {
    if (trainer_is_silent(self)) return 0;
    TRY(trainer_need_model(self));
    err e = keep_output(self, stretto_model_save(self->model, path), "--out");
    const bool saved = e >= 0;
    if (saved) event_note(&self->events, EVENT_SAVED, "%s", path);
    if (!self->late.code && keep_output(self, run_dir_finish(self), "--run-dir") >= 0) keep_forget(self);
    return run_dir_status(self, keep_report(self, saved));
}

stretto_model *stretto_trainer_model(stretto_trainer *self) { return self->model; }

void stretto_trainer_free(stretto_trainer *self) {
    if (!self) return;
    if (self->unfinished && !trainer_is_silent(self) && ranks_finish(self) < 0) err_clear();
    if (!trainer_is_silent(self)) keep_make_room(self);
    run_dir_close(self);
    run_context_close(&self->ctx);
    scores_free(&self->scores);
    stretto_model_free(self->model);
    history_free(&self->history);
    opt_free(&self->o);
    mem_free(self->job.spec);
    mem_free(self->board);
    mem_free(self->run_dir);
    mem_free(self->model_path);
    str_free(&self->text);
    str_free(&self->plan_text);
    str_free(&self->print);
    mem_free(self);
}
