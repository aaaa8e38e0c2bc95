/* fit.c - from a scaled series to a forecaster: base, members, guard, bands. */
#include "learn/forecast/balance.h"
#include "learn/forecast/save.h"
#include "learn/series_set.h"
#include "learn/slices/slices.h"
#include "learn/store/account.h"
#include "learn/store/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "step/netplan.h"

enum { SPANS_KEPT = 256, COPIES_KEPT = 128 };

void forecast_free(struct model *m) {
    struct forecaster *f = forecaster_in(m);
    if (!f) return;
    for (i32 k = 0; k < f->nmember; k++) mem_free(f->theta[k]);
    mem_free(f->spread);
    mem_free(f->mase);
    model_drop(&f->model);
    slices_record_free(f);
    store_record_free(f);
    base_free(f->base);
    base_free(f->ridge);
    schema_free(&f->schema);
    mem_free(f);
}

/* Reports the bytes that this rank sends in a step, and what sparse rows of embeddings save of it. */
static void sent_note(const struct fit *t) {
    const struct exec_sent s = exec_sent(step_exec(t->step.engine.exec));
    const i64 parts = t->f->spec.accumulate; /* batches per step */
    struct str text = {0};
    if (comm_size(t->job->use.comm) < 2 || s.steps == 0) return;
    text_bytes(parts * s.bytes / s.steps, &text);
    str_add(&text, " a step");
    if (s.coded_whole > 0) {
        str_add(&text, "; packed by codecs: ");
        text_bytes(parts * s.coded / s.steps, &text);
        str_add(&text, " instead of ");
        text_bytes(parts * s.coded_whole / s.steps, &text);
    }
    if (str_ok(&text) >= 0)
        event_note(t->job->use.events, EVENT_DETAIL, "messages: rank 0 sends %s", str_text(&text));
    str_free(&text);
}

/* What `auto` chose among. */
static err choices_note(const struct fit *t) {
    struct str text = {0};
    plan_choices(t->step.engine.plan, &text);
    err e = str_ok(&text);
    if (e >= 0 && text.len > 0) event_note(t->job->use.events, EVENT_DETAIL, "%s", text.s);
    str_free(&text);
    return e;
}

/* Of tasks, and of the copies to and from a device meanwhile. */
static err keep_spans(struct model *m, const struct exec *x) {
    f64 since = (f64)INFINITY;
    NEW(m->span, SPANS_KEPT + COPIES_KEPT);
    m->nspan = exec_spans(x, m->span, SPANS_KEPT);
    for (i32 i = 0; i < m->nspan; i++) since = dmin(since, m->span[i].t0);
    m->nspan += exec_copies(x, since, m->span + m->nspan, COPIES_KEPT);
    return 0;
}

/* Copies the plan and the task spans of the last steps, for the report. */
static err keep_trace(struct fit *t) {
    struct forecaster *f = t->f;
    str_free(&f->model.plan_text); /* after a recovery this runs a second time */
    mem_free(f->model.span);
    f->model.span = NULL;
    TRY(slices_plan(t, &f->model.plan_text));
    f->step_predicted = t->step.engine.plan->predicted;
    if (f->step_measured > 0)
        event_note(t->job->use.events, EVENT_DETAIL,
                   "plan %s%s%s: a step of %d samples was predicted to take %.3f ms and took %.3f ms",
                   t->step.engine.plan->strategy, t->job->use.place ? " placed by " : "",
                   t->job->use.place ? t->job->use.place : "", t->step.engine.plan->B, 1e3 * f->step_predicted,
                   1e3 * f->step_measured);
    TRY(choices_note(t));
    balance_end_note(t);
    sent_note(t);
    TRY(store_report(t));
    TRY(keep_spans(&f->model, step_exec(t->step.engine.exec)));
    return slices_end(t);
}

/* Trains again on all rows before the test split, for the number of steps that validated best. */
static err refit(struct fit *t) {
    TRY(forecast_refit_base(t));
    if (t->f->base && t->f->base->trees) TRY(batch_bases(&t->step.batch, t->job->split.validation));
    if (!t->at.refitting) t->at.done = 0; /* a resumed run continues inside the refit */
    t->at.refitting = true;
    TRY(batch_draw_from(&t->step.batch, windows_in(&t->f->spec, 0, t->job->split.validation)));
    event_note(t->job->use.events, EVENT_NOTE, "refit on all rows before the test part: %lld steps",
               (long long)t->at.best_steps[0]);
    const err e = forecast_train_members(t);
    TRY(e);
    TRY(slices_plan(t, &t->f->model.plan_text)); /* includes the changes of the number of slices */
    return e;
}

/* One rank computes the guard for all. With elastic recovery each rank does, so that its death loses nothing. */
static err weigh(struct fit *t) {
    const struct resources *use = &t->job->use;
    event_phase(use->events, "guard");
    if (comm_rank(use->comm) == 0 || use->heal) {
        TRY(forecast_guard(t));
        TRY(forecast_spread(t)); /* before a refit: residuals need rows that the weights have not seen */
    }
    TRY(comm_broadcast_slow(use->comm, "shares", &t->f->shares, sizeof t->f->shares));
    return comm_broadcast_slow(use->comm, "weight", &t->f->weight, sizeof t->f->weight);
}

/* Continues the fit from its current state to its end; a resumed run, or one that lost a rank, starts in the middle. */
static err learn(struct fit *t) {
    const struct forecast_spec *s = &t->f->spec;
    if (!t->step.prepared) {
        TRY(forecast_resume_point(t));
        TRY(slices_read_plan(t));
        TRY(training_prepare(t));
    }
    if (s->time_limit > 0 && t->at.deadline <= 0) t->at.deadline = clock_now() + dmax(1e-3, s->time_limit - t->job->spent);
    err e = 0;
    if (!t->at.refitting) {
        e = forecast_train_members(t);
        if (e == 0) e = keep_trace(t);
        if (e == 0) e = weigh(t);
    }
    const bool again = forecast_refits(t) && t->f->weight > 0 && t->f->model.stopped != STOP_TIME;
    if (e == 0 && (t->at.refitting || again)) e = refit(t);
    e = saving_after(t, e);
    if (e >= 0) TRY(saving_end(t));
    u8 here = 1, all[COMM_RANKS];
    return e == 0 && t->job->use.heal ? comm_allgather(t->job->use.comm, "learnt", &here, sizeof here, all) : e;
}

/* True if the splits have too few windows to train a network on, or none to weigh it against the base. */
static bool too_few(const struct fit *t) {
    return forecast_origins(t, &t->set.train) < MIN_WINDOWS || (t->f->spec.guard && window_origins(&t->set.valid_all) < 1);
}

static err correction(struct fit *t) {
    const struct forecast_spec *s = &t->f->spec;
    if (!s->correction) return 0;
    if (t->f->base && too_few(t)) {
        event_note(t->job->use.events, EVENT_NOTE,
                   "no network: %lld training windows (%d are needed), %lld validation windows (1 is needed)",
                   (long long)forecast_origins(t, &t->set.train), MIN_WINDOWS,
                   (long long)lmax(0, window_origins(&t->set.valid_all)));
        return 0;
    }
    err e = learn(t);
    while (e < 0 && comm_died(t->job->use.comm)) {
        struct comm_loss loss;
        TRY(forecast_regroup(t, &loss));
        e = forecast_heal(t, &loss);
        if (e >= 0 && !t->at.over) e = learn(t);
    }
    return e;
}

static err fit_parts(struct fit *t) {
    const struct series *x = t->series;
    struct forecaster *f = t->f;
    TRY(schema_of(x, &f->schema));
    NEW(f->mase, x->ntarget);
    for (i32 c = 0; c < x->ntarget; c++) {
        f->mase[c] = mase_scale(x, c, imax(1, x->freq.season), t->job->split.validation);
        if (isnan(f->mase[c]) && x->panel) f->mase[c] = mase_scale(x, c, imax(1, x->freq.season), x->nrow); /* begins later */
    }
    f->seen_rows = t->job->split.validation;
    f->seen_from = x->time ? x->time[0] : INT64_MIN;
    f->seen_time = x->time && f->seen_rows > 0 ? x->time[f->seen_rows - 1] : INT64_MIN;
    TRY(forecast_shape(&f->spec, x, t->job->split.validation, &f->shape));
    t->set.train = windows_in(&f->spec, 0, t->job->split.train);
    t->set.valid_all = windows_in(&f->spec, t->job->split.train, t->job->split.validation);
    t->set.valid = windows_thinned(t->set.valid_all, x);
    f->model.train_records = forecast_epoch(&f->spec, x, t->job->split.train) * forecast_width(&f->spec, x);
    f->model.valid_records = window_origins(&t->set.valid_all) * x->ntarget;
    if (f->spec.correction && (strcmp(f->spec.base, "none") == 0 || !too_few(t))) TRY(forecast_try_plan(t));
    f64 start = clock_now();
    event_phase(t->job->use.events, "base");
    TRY(forecast_choose_base(t));
    const f64 seconds = clock_now() - start;
    if (f->base) {
        struct str text = {0};
        err e = base_label(f->base, &text);
        if (e >= 0) event_note(t->job->use.events, EVENT_NOTE, "base %s (%.2f s)", str_text(&text), seconds);
        str_free(&text);
    }
    err e = correction(t);
    if (e != 0) return e;
    e = saving_after(t, forecast_ridge_row(t));
    if (e == 0 && f->nmember == 0) e = forecast_spread(t);
    return e != 0 ? e : forecast_refit_base(t);
}

err forecast_fit(const struct learn_job *job, struct model **out) {
    struct slicing slicing = {0};
    struct fit t = {.own = *job, .series = series_of(job->data), .requested = job->spec, .slicing = &slicing};
    t.job = &t.own;
    TRY(forecast_check_kern(t.requested, job->use.kern));
    TRY(store_spec_ranks(&job->use.store, comm_size(job->use.comm), job->use.events));
    NEW(t.f, 1);
    t.f->spec = *t.requested;
    store_settle(&t);
    err e = slices_record_new(t.f);
    if (e >= 0) e = fit_parts(&t);
    training_drop(&t);
    train_state_free(&t.at.state);
    mem_free(t.step.cut);
    mem_free(t.left);
    if (e == 0) *out = &t.f->model;
    else forecast_free(&t.f->model);
    return e;
}
