/* fit.c - from a scaled series to a forecaster: base, members, guard, bands. */
#include "learn/forecast/balance.h"
#include "learn/forecast/save.h"
#include "learn/slices/slices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "step/text.h"

enum { SPANS_KEPT = 256 };

void forecast_free(struct forecaster *f) {
    if (!f) return;
    for (i32 m = 0; m < f->nmember; m++) mem_free(f->theta[m]);
    mem_free(f->spread);
    mem_free(f->mase);
    model_drop(&f->model);
    for (i32 k = 0; k < WATCH_LAYERS; k++)
        for (i32 back = 0; back < 2; back++) mem_free(f->slice_picture[k].ran[back]);
    base_free(f->base);
    base_free(f->ridge);
    schema_free(&f->schema);
    mem_free(f);
}

/* --- one member --- */
static void fill(void *self, i64 k, i32 slot) {
    struct fit *t = self;
    training_fill(&t->batch, k, slot);
}

/* Where a step has parts, a cell weighs in each of them what it would in the whole: their cells are counted before the first one
 * runs.  Where nothing is missing, each part has as many as the mean. */
static f32 loss_scale_of(struct fit *t, i64 batch, i64 present) {
    const i64 parts = t->f->spec.accumulate;
    if (parts > 1 && batch % parts == 0) t->step_cells = 0;
    for (i64 k = 0; k < parts && parts > 1 && batch % parts == 0; k++) t->step_cells += training_cells(&t->batch, batch + k);
    const f64 cells = parts > 1 ? (f64)t->step_cells / (f64)parts : (f64)present;
    return cells > 0 ? 1.f / (f32)cells / (f32)parts : 0.f;
}

static f32 *const *inputs(void *self, i64 batch, i32 slot, f32 *loss_scale) {
    struct fit *t = self;
    const struct batch_slot *s = &t->batch.slot[slot];
    *loss_scale = loss_scale_of(t, batch, s->present);
    stale_before(t, slot);
    return s->input;
}

/* Losses of one batch of validation windows. */
struct valid_part {
    f64 loss;
    i64 cells;
};

static err validate_part(struct fit *t, struct exec *forward, i64 first, struct valid_part *out) {
    struct exec_result r;
    batch_fill_set(&t->valid_batch, 0, &t->valid, first);
    if (t->valid_batch.failed < 0) {
        err_put(&t->valid_batch.why);
        return t->valid_batch.failed;
    }
    const struct batch_slot *s = &t->valid_batch.slot[0];
    TRY(exec_step(forward, &(struct exec_step){.input = s->input, .loss_scale = 1}, &r));
    *out = (struct valid_part){r.loss, s->present};
    return 0;
}

/* Ranks take turns at the batches; the sum goes over them in order, so it has the same bits for any number of ranks. */
static err validate_parts(struct fit *t, struct exec *forward, i32 n, struct valid_part *all, f64 *loss) {
    struct comm *c = t->job->use.comm;
    const i32 ranks = comm_size(c), me = comm_rank(c);
    struct valid_part *mine = all + (i64)ranks * n, sum = {0};
    for (i32 k = me; k < n; k += ranks) TRY(validate_part(t, forward, (i64)k * t->valid_batch.B, &mine[k]));
    TRY(comm_allgather(c, "validation", mine, (u32)n * (u32)sizeof *mine, all));
    for (i32 k = 0; k < n; k++) {
        const struct valid_part *part = &all[(i64)(k % ranks) * n + k];
        sum.loss += part->loss;
        sum.cells += part->cells;
    }
    *loss = sum.cells ? sum.loss / (f64)sum.cells : (f64)NAN;
    return 0;
}

/* Mean training loss over the validation windows; NaN where nothing was observed there. */
static err validate(void *self, f64 *loss) {
    struct fit *t = self;
    if (t->stream) return stream_loss(t->stream, t->engine.store.theta, &t->valid_all, loss);
    struct exec *forward = t->whole.forward ? t->whole.forward : t->engine.forward;
    if (t->whole.forward)
        memcpy(t->whole.store.theta, t->engine.store.theta, sizeof(f32) * (size_t)t->engine.store.ntheta);
    const i64 rows = window_origins(&t->valid) * t->job->series->ntarget;
    const i32 n = (i32)((rows + t->valid_batch.B - 1) / t->valid_batch.B);
    struct valid_part *all;
    NEW(all, (i64)n * (comm_size(t->job->use.comm) + 1));
    err e = validate_parts(t, forward, n, all, loss);
    mem_free(all);
    return e;
}

static void annotate(void *self, struct event *e) {
    const struct fit *t = self;
    slices_annotate(self, e);
    if (comm_size(t->job->use.comm) > 1) e->device_share = (f64)(t->batch.row1 - t->batch.row0) / t->batch.B;
}

static struct train_job job_of(struct fit *t, i32 m) {
    const struct forecast_spec *s = &t->f->spec;
    f64 per_epoch = (f64)forecast_epoch(s, t->batch.set.end + s->horizon - 1) / ((f64)t->batch.nwin * s->accumulate);
    struct train_job j = {.exec = t->engine.exec,
                          .store = &t->engine.store,
                          .options = s->for_loop,
                          .steps_per_epoch = per_epoch,
                          .rows_per_step = (f64)t->batch.nwin * t->job->series->ntarget * s->accumulate,
                          .prefetch = t->job->use.pipe != PIPE_LINEAR &&
                                      (pool_size(t->job->use.pool) > 1 || comm_size(t->job->use.comm) > 1),
                          .late = t->job->use.pipe == PIPE_DELAY1,
                          .member = m,
                          .members = s->members,
                          .refit = t->refitting,
                          .self = t,
                          .fill = fill,
                          .inputs = inputs,
                          .validate = validate,
                          .nonfinite = slices_nonfinite,
                          .warm = t->memory != NULL,
                          .stepped = slices_stepped,
                          .annotate = annotate,
                          .outgrown = slices_outgrown,
                          .relay = slices_relay,
                          .uneven = balance_uneven,
                          .recut = balance_recut,
                          .checkpoint = t->saving ? saving_begin : NULL,
                          .saving = saving_now,
                          .saved = saving_next,
                          .events = t->job->use.events,
                          .stop = t->job->use.stop,
                          .comm = t->job->use.comm};
    j.steps = t->steps;
    j.seed += m;
    j.time_limit = t->deadline > 0 ? dmax(1e-3, t->deadline - clock_now()) : 0;
    j.hyper = (struct optim_hyper){.options = s->for_optim, .beta1 = s->momentum, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1};
    return j;
}

static void fresh_weights(struct fit *t, i32 m) {
    struct store *st = &t->engine.store;
    net_weights_init(&t->f->net, (u64)(t->f->spec.seed + m), st->theta);
    for (i32 k = 0; k < st->optim->nstate; k++) memset(st->state[k], 0, sizeof(f32) * (size_t)st->ntheta);
}

static err run_member(struct fit *t, i32 m, struct train_state *state) {
    t->member = m;
    t->batch.seed = (u64)(t->f->spec.seed + m);
    struct train_job j = job_of(t, m);
    if (t->refitting) {
        j.until = lmax(1, t->best_steps[m]);
        j.validate = NULL;
    }
    err e = train_run(&j, state);
    if (t->batch.failed < 0) {
        err_put(&t->batch.why);
        return t->batch.failed;
    }
    return e;
}

enum { SLOWER = 10 }; /* that a host may be than another */

/* Ranks look for the newest checkpoint each for itself, on file systems that may not show them the same. */
static err same_start(const struct fit *t, const struct train_state *s) {
    const struct store *st = &t->engine.store;
    const i64 place[] = {t->member, t->done, t->refitting, s->step, s->place, s->best_step, s->bad, s->rollbacks};
    u64 h = comm_hash(COMM_HASH, place, sizeof place);
    h = comm_hash(h, st->theta, sizeof(f32) * (size_t)st->ntheta);
    for (i32 k = 0; k < st->optim->nstate; k++) h = comm_hash(h, st->state[k], sizeof(f32) * (size_t)st->ntheta);
    if (s->due) h = comm_hash(h, s->ahead, sizeof(f32) * (size_t)st->ntheta);
    struct comm *c = t->job->use.comm;
    const f64 usual = comm_set_deadline(c, SLOWER * comm_default_deadline()); /* ranks come from unequal work: base, wisdom */
    const err e = comm_check_equal(c, "checkpoint", h, "a run folder that all hosts see alike, or resume on one host");
    comm_set_deadline(c, usual);
    return e;
}

/* From its first step, or from where a checkpoint has it; a member that goes on without a rank that died has all it needs. */
static err begin_member(struct fit *t, i32 m) {
    t->member = m;
    if (!t->begun) {
        train_state_free(&t->state);
        TRY(train_state_new(&t->engine.store, &t->state));
        fresh_weights(t, m);
        TRY(stale_new(t)); /* ends that other weights left are of no use */
        TRY(forecast_restore(t, m, &t->state));
        t->begun = true;
    }
    return same_start(t, &t->state);
}

static err end_member(struct fit *t, i32 m, err reason) {
    const struct train_state *s = &t->state;
    const i64 P = t->f->net.ntheta;
    if (!t->f->theta[m]) NEW(t->f->theta[m], P);
    memcpy(t->f->theta[m], t->engine.store.theta, sizeof(f32) * (size_t)P);
    t->f->nmember = imax(t->f->nmember, m + 1);
    if (!t->refitting) t->best_steps[m] = isfinite(s->best) ? s->best_step : s->step; /* a refit does not validate */
    t->f->steps_done += s->step;
    t->f->model.seconds += s->seconds;
    if (s->step_count) t->f->step_measured = s->step_seconds / (f64)s->step_count;
    t->f->model.stopped = reason;
    t->begun = false;
    t->done = m + 1;
    return reason;
}

static err train_member(struct fit *t, i32 m) {
    TRY(begin_member(t, m));
    const err e = run_member(t, m, &t->state);
    return e > 0 && e != STOP_SIGNAL ? end_member(t, m, e) : e;
}

static err train_members(struct fit *t) {
    for (i32 m = t->done; m < t->f->spec.members; m++) {
        err e = train_member(t, m);
        if (e < 0 || e == STOP_SIGNAL) return e;
        if (e == STOP_TIME) t->done = m = t->f->spec.members; /* the members so far are the model */
    }
    return 0;
}

/* What this rank sends in a step, and what lines of embeddings saved of it. */
static void sent_note(const struct fit *t) {
    const struct exec_sent s = exec_sent(t->engine.exec);
    const i64 parts = t->f->spec.accumulate; /* batches that make a step */
    struct str text = {0};
    if (comm_size(t->job->use.comm) < 2 || s.steps == 0) return;
    text_bytes(parts * s.bytes / s.steps, &text);
    str_add(&text, " a step");
    if (s.lines_whole > 0) {
        str_add(&text, "; embedding gradients as sparse rows: ");
        text_bytes(parts * s.lines / s.steps, &text);
        str_add(&text, " instead of ");
        text_bytes(parts * s.lines_whole / s.steps, &text);
    }
    if (str_ok(&text) >= 0)
        event_note(t->job->use.events, EVENT_NOTE, "messages: rank 0 sends %s", str_text(&text));
    str_free(&text);
}

/* What the report shows of the machine at work: the plan and the spans of the last steps. */
static err keep_trace(struct fit *t) {
    struct forecaster *f = t->f;
    str_free(&f->model.plan_text); /* after healing all this comes a second time */
    mem_free(f->model.span);
    f->model.span = NULL;
    TRY(slices_plan(t, &f->model.plan_text));
    f->step_predicted = t->engine.plan->predicted;
    if (f->step_measured > 0)
        event_note(t->job->use.events, EVENT_NOTE, "plan %s: a step of %d samples was predicted to take %.2f ms and took %.2f ms",
                   t->engine.plan->strategy, t->engine.plan->B, 1e3 * f->step_predicted, 1e3 * f->step_measured);
    balance_end_note(t);
    sent_note(t);
    NEW(f->model.span, SPANS_KEPT);
    f->model.nspan = exec_spans(t->engine.exec, f->model.span, SPANS_KEPT);
    return slices_end(t);
}

/* The same training on all rows before the test part, for the steps that were best. */
static err refit(struct fit *t) {
    if (!t->refitting) t->done = 0; /* else a resumed run goes on inside the refit */
    t->refitting = true;
    t->batch.set = windows_in(&t->f->spec, 0, t->job->split.validation);
    event_note(t->job->use.events, EVENT_NOTE, "refit on all rows before the test part: %lld steps", (long long)t->best_steps[0]);
    const err e = train_members(t);
    TRY(e);
    TRY(slices_plan(t, &t->f->model.plan_text)); /* with the turns that it took */
    return e;
}

/* One rank weighs for all; where ranks may die each does, so that nothing is lost with the first. */
static err weigh(struct fit *t) {
    const struct resources *use = &t->job->use;
    event_phase(use->events, "guard");
    if (comm_rank(use->comm) == 0 || use->heal) {
        TRY(forecast_guard(t));
        TRY(forecast_spread(t)); /* before a refit: residuals of rows that the weights have not seen */
    }
    return comm_broadcast_slow(use->comm, "weight", &t->f->weight, sizeof t->f->weight);
}

/* From where the run stands to its end: also in a run that goes on, after a checkpoint or without a rank that died. */
static err learn(struct fit *t) {
    const struct forecast_spec *s = &t->f->spec;
    if (!t->prepared) {
        TRY(forecast_resume_point(t));
        TRY(slices_orders(t));
        TRY(training_prepare(t));
    }
    if (s->time_limit > 0 && t->deadline <= 0) t->deadline = clock_now() + s->time_limit;
    err e = 0;
    if (!t->refitting) {
        e = train_members(t);
        if (e == 0) e = keep_trace(t);
        if (e == 0) e = weigh(t);
    }
    const bool again = s->refit_all && t->f->weight > 0 && t->f->model.stopped != STOP_TIME;
    if (e == 0 && (t->refitting || again)) e = refit(t);
    e = saving_after(t, e);
    if (e >= 0) TRY(saving_end(t));
    u8 here = 1, all[COMM_RANKS];
    return e == 0 && t->job->use.heal ? comm_allgather(t->job->use.comm, "learnt", &here, sizeof here, all) : e;
}

/* For a recurrent part beside a base: windows to train it on, and to weigh it on. */
static bool too_few(const struct fit *t) {
    return forecast_origins(t, &t->train) < MIN_WINDOWS || (t->f->spec.guard && window_origins(&t->valid_all) < 1);
}

static err correction(struct fit *t) {
    const struct forecast_spec *s = &t->f->spec;
    if (!s->correction) return 0;
    if (t->f->base && too_few(t)) {
        event_note(t->job->use.events, EVENT_NOTE,
                   "no network: %lld training windows (%d are needed), %lld validation windows (1 is needed)",
                   (long long)forecast_origins(t, &t->train), MIN_WINDOWS, (long long)lmax(0, window_origins(&t->valid_all)));
        return 0;
    }
    err e = learn(t);
    while (e < 0 && comm_died(t->job->use.comm)) {
        struct comm_loss loss;
        TRY(forecast_meet(t, &loss));
        e = forecast_heal(t, &loss);
        if (e >= 0 && !t->over) e = learn(t);
    }
    return e;
}

static err fit_parts(struct fit *t) {
    const struct series *x = t->job->series;
    struct forecaster *f = t->f;
    TRY(schema_of(x, &f->schema));
    NEW(f->mase, x->ntarget);
    for (i32 c = 0; c < x->ntarget; c++) f->mase[c] = mase_scale(x, c, imax(1, x->freq.season), t->job->split.validation);
    f->seen_rows = t->job->split.validation;
    f->seen_time = x->time && f->seen_rows > 0 ? x->time[f->seen_rows - 1] : INT64_MIN;
    TRY(forecast_shape(&f->spec, x, t->job->split.validation, &f->shape));
    t->train = windows_in(&f->spec, 0, t->job->split.train);
    t->valid_all = windows_in(&f->spec, t->job->split.train, t->job->split.validation);
    t->valid = windows_thinned(t->valid_all, x->freq.season);
    f->model.train_records = forecast_epoch(&f->spec, t->job->split.train) * x->ntarget;
    f->model.valid_records = window_origins(&t->valid_all) * x->ntarget;
    if (f->spec.correction && (strcmp(f->spec.base, "none") == 0 || !too_few(t))) TRY(forecast_try_plan(t));
    f64 start = clock_now();
    event_phase(t->job->use.events, "base");
    TRY(forecast_choose_base(t));
    t->base_seconds = clock_now() - start;
    if (f->base) {
        struct str text = {0};
        err e = base_label(f->base, &text);
        if (e >= 0) event_note(t->job->use.events, EVENT_NOTE, "base %s (%.2f s)", str_text(&text), t->base_seconds);
        str_free(&text);
    }
    err e = correction(t);
    if (e != 0) return e;
    e = saving_after(t, forecast_ridge_row(t));
    return e != 0 || f->nmember > 0 ? e : forecast_spread(t);
}

err forecast_fit(const struct forecast_job *job, struct forecaster **out) {
    TRY(forecast_check_length(&job->split, &job->spec));
    TRY(forecast_check_kern(&job->spec, job->use.kern));
    struct fit t = {.own = *job};
    t.job = &t.own;
    NEW(t.f, 1);
    t.f->spec = job->spec;
    t.f->spec.plan_text = t.f->spec.plan_path = NULL;
    err e = fit_parts(&t);
    training_drop(&t);
    train_state_free(&t.state);
    mem_free(t.cut);
    mem_free(t.left);
    if (e != 0) {
        forecast_free(t.f);
        return e;
    }
    *out = t.f;
    return 0;
}
