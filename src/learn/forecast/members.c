/* members.c - trains the members of an ensemble one after another: batches, validation, the loop's job, first and last step. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/forecast/balance.h"
#include "learn/forecast/replan.h"
#include "learn/forecast/save.h"
#include "learn/slices/slices.h"
#include "learn/store/hogwild.h"
#include "learn/store/run.h"

static void fill(void *self, i64 k, i32 slot) {
    struct fit *t = self;
    training_fill(&t->step.batch, k, slot);
}

/* Where a step has parts, a cell weighs in each of them what it would in the whole: their cells are counted before the first one
 * runs.  Where nothing is missing, each part has as many as the mean. */
static f32 loss_scale_of(struct fit *t, i64 batch, i64 present) {
    const i64 parts = t->f->spec.accumulate;
    if (parts > 1 && batch % parts == 0) t->step.cells = 0;
    for (i64 k = 0; k < parts && parts > 1 && batch % parts == 0; k++) t->step.cells += training_cells(&t->step.batch, batch + k);
    const f64 cells = parts > 1 ? (f64)t->step.cells / (f64)parts : (f64)present;
    return cells > 0 ? 1.f / (f32)cells / (f32)parts : 0.f;
}

static f32 *const *inputs(void *self, i64 batch, i32 slot, f32 *loss_scale) {
    struct fit *t = self;
    const struct batch_slot *s = &t->step.batch.slot[slot];
    *loss_scale = loss_scale_of(t, batch, s->present);
    stale_before(t, slot);
    return s->input;
}

/* Losses of one batch of validation windows. */
struct valid_part {
    f64 loss;
    i64 cells;
};

static err validate_part(struct fit *t, struct step *forward, i64 first, struct valid_part *out) {
    struct exec_result r;
    batch_fill_set(&t->step.valid_batch, 0, &t->set.valid, first);
    TRY(batcher_failed(&t->step.valid_batch));
    const struct batch_slot *s = &t->step.valid_batch.slot[0];
    TRY(step_run(forward, &(struct step_args){.input = s->input, .loss_scale = 1}, &r));
    *out = (struct valid_part){r.loss, s->present};
    return 0;
}

/* Each rank gets every part: from all ranks together, or from the one whose turn it was. */
static err validate_parts(struct fit *t, struct step *forward, bool joint, i32 n, struct valid_part *all) {
    struct comm *c = t->job->use.comm;
    const i32 ranks = joint ? 1 : comm_size(c), me = joint ? 0 : comm_rank(c);
    struct valid_part *mine = joint ? all : all + (i64)ranks * n;
    for (i32 k = me; k < n; k += ranks) TRY(validate_part(t, forward, (i64)k * t->step.valid_batch.B, &mine[k]));
    return joint ? 0 : comm_allgather(c, "validation", mine, (u32)n * (u32)sizeof *mine, all);
}

/* The sum goes over the parts in order, so it has the same bits for any number of ranks. */
static f64 mean_of(const struct valid_part *all, i32 ranks, i32 n) {
    struct valid_part sum = {0};
    for (i32 k = 0; k < n; k++) {
        const struct valid_part *part = &all[(i64)(k % ranks) * n + k];
        sum.loss += part->loss;
        sum.cells += part->cells;
    }
    return sum.cells ? sum.loss / (f64)sum.cells : (f64)NAN;
}

/* Mean training loss over the validation windows; NaN where nothing was observed there. */
static err validate(void *self, f64 *loss) {
    struct fit *t = self;
    if (t->step.stream) return stream_loss(t->step.stream, t->step.engine.store.theta, &t->set.valid_all, loss);
    struct step *forward = t->step.whole.forward ? t->step.whole.forward : t->step.engine.forward;
    if (t->step.whole.forward)
        memcpy(t->step.whole.store.theta, t->step.engine.store.theta, sizeof(f32) * (size_t)t->step.engine.store.ntheta);
    const i64 rows = window_origins(&t->set.valid) * t->series->ntarget;
    const i32 n = (i32)((rows + t->step.valid_batch.B - 1) / t->step.valid_batch.B);
    struct valid_part *all;
    NEW(all, (i64)n * (comm_size(t->job->use.comm) + 1));
    const bool joint = t->step.engine.joint && forward == t->step.engine.forward;
    const err e = validate_parts(t, forward, joint, n, all);
    *loss = e < 0 ? (f64)NAN : mean_of(all, joint ? 1 : comm_size(t->job->use.comm), n);
    mem_free(all);
    return e;
}

/* Do all ranks validate together, each with the layers that it trains?  Then none needs the weights of others before the end.
 * Collective. */
static err agree_on_parts(struct fit *t) {
    const struct comm *c = t->job->use.comm;
    const bool alone = t->step.stream || t->step.whole.forward || policy_delay(t->job->use.policy) > 0; /* need all weights */
    const u8 mine = engine_keeps_to_itself(&t->step.engine);
    u8 *all;
    t->at.parts = t->step.engine.joint && !alone;
    if (!t->at.parts) return 0;
    NEW(all, comm_size(c));
    const err e = comm_allgather(t->job->use.comm, "weights of validation", &mine, sizeof mine, all);
    for (i32 r = 0; r < comm_size(c); r++) t->at.parts = t->at.parts && all[r];
    mem_free(all);
    return e;
}

static void stepped(void *self, bool finite) {
    slices_stepped(self, finite);
    replan_stepped(self, finite);
}

/* Another number of time slices, or another plan of the same net: nets with slices have no measured costs. */
static bool outgrown(void *self, i64 step) { return slices_changed(self, step) || replan_better(self); }

static err relay(void *self, struct step **exec) {
    const struct fit *t = self;
    return t->replan ? replan_bind(self, exec) : slices_rebuild(self, exec);
}

static void annotate(void *self, struct event *e) {
    const struct fit *t = self;
    slices_annotate(self, e);
    if (comm_size(t->job->use.comm) > 1) e->device_share = (f64)(t->step.batch.row1 - t->step.batch.row0) / t->step.batch.B;
}

/* Members to train; a refit trains those that were kept. */
static i32 members_of(const struct fit *t) {
    if (!t->at.refitting) return t->f->spec.members;
    return t->save.found ? (i32)t->save.held : t->f->nmember;
}

static struct train_job job_of(struct fit *t, i32 m) {
    const struct forecast_spec *s = &t->f->spec;
    f64 per_epoch = (f64)forecast_epoch(s, t->series, t->step.batch.set.end + s->horizon - 1) /
                    ((f64)t->step.batch.nwin * s->accumulate * store_parts(t));
    struct train_job j = {.exec = t->step.engine.exec,
                          .store = &t->step.engine.store,
                          .options = s->for_loop,
                          .steps_per_epoch = per_epoch,
                          .rows_per_step =
                              (f64)t->step.batch.nwin * forecast_width(s, t->series) * s->accumulate * store_parts(t),
                          .prefetch = !policy_serial(t->job->use.policy) &&
                                      (pool_size(t->job->use.pool) > 1 || comm_size(t->job->use.comm) > 1),
                          .parts = t->at.parts,
                          .late = policy_delay(t->job->use.policy) > 0,
                          .member = m,
                          .members = members_of(t),
                          .refit = t->at.refitting,
                          .leg = t->store ? store_leg : t->hogwild ? hogwild_leg : NULL,
                          .self = t,
                          .fill = fill,
                          .inputs = inputs,
                          .validate = validate,
                          .nonfinite = slices_nonfinite,
                          .warm = t->slicing->memory != NULL,
                          .stepped = stepped,
                          .annotate = annotate,
                          .outgrown = outgrown,
                          .relay = relay,
                          .uneven = balance_uneven,
                          .recut = balance_recut,
                          .checkpoint = t->save.saving ? saving_begin : NULL,
                          .saving = saving_now,
                          .saved = saving_next,
                          .events = t->job->use.events,
                          .stop = t->job->use.stop,
                          .comm = t->job->use.comm};
    j.steps = t->step.steps;
    j.seed += m;
    j.time_limit = t->at.deadline > 0 ? dmax(1e-3, t->at.deadline - clock_now()) : 0;
    j.hyper = optim_hyper_of(&s->for_optim);
    return j;
}

static void fresh_weights(struct fit *t, i32 m) {
    struct store *st = &t->step.engine.store;
    net_weights_init(&t->f->net, (u64)(t->f->spec.seed + m), st->theta);
    for (i32 k = 0; k < st->optim->nstate; k++) mem_zero(st->state[k]);
}

static err run_member(struct fit *t, i32 m, struct train_state *state) {
    t->at.member = m;
    t->step.batch.seed = (u64)(t->f->spec.seed + m);
    struct train_job j = job_of(t, m);
    if (t->at.refitting) {
        j.until = lmax(1, t->at.best_steps[m]);
        j.validate = NULL;
    }
    store_begin_run(t, &j);
    err e = train_run(&j, state);
    TRY(batcher_failed(&t->step.batch));
    return e;
}

enum { SLOWER = 10 }; /* that a host may be than another */

/* Ranks look for the newest checkpoint each for itself, on file systems that may not show them the same. */
static err same_start(const struct fit *t, const struct train_state *s) {
    const struct store *st = &t->step.engine.store;
    const i64 place[] = {t->at.member, t->at.done, t->at.refitting, s->step, s->place, s->best_step, s->bad, s->rollbacks};
    u64 h = comm_hash(COMM_HASH, place, sizeof place);
    h = comm_hash(h, st->theta, sizeof(f32) * (size_t)st->ntheta);
    for (i32 k = 0; k < st->optim->nstate && !store_is_local(t); k++)
        h = comm_hash(h, st->state[k], sizeof(f32) * (size_t)st->ntheta);
    if (s->due) h = comm_hash(h, s->ahead, sizeof(f32) * (size_t)st->ntheta);
    struct comm *c = t->job->use.comm;
    const f64 usual = comm_set_deadline(c, SLOWER * clock_deadline()); /* ranks come from unequal work: base, wisdom */
    const err e = comm_check_equal(c, "checkpoint", h, "a run folder that all hosts see alike, or resume on one host");
    comm_set_deadline(c, usual);
    return e;
}

/* From its first step, or from where a checkpoint has it; a member that goes on without a rank that died has all it needs. */
static err begin_member(struct fit *t, i32 m) {
    t->at.member = m;
    if (!t->at.begun) {
        train_state_free(&t->at.state);
        TRY(train_state_new(&t->step.engine.store, &t->at.state));
        fresh_weights(t, m);
        exec_load_residuals(step_exec(t->step.engine.exec), NULL);
        TRY(store_fresh(t));
        TRY(stale_new(t)); /* ends that other weights left are of no use */
        TRY(forecast_restore(t, m, &t->at.state));
        t->at.begun = true;
    }
    TRY(same_start(t, &t->at.state));
    TRY(agree_on_parts(t));
    if (t->at.parts) engine_release_others(&t->step.engine, t->job->use.comm);
    return 0;
}

/* Makes room for guard and bands: what training alone needs.  One process may be asked to stop there, and under elastic recovery
 * a rank may lose others: both still need the state. */
static void rest_after(struct fit *t) {
    const struct resources *use = &t->job->use;
    const struct store *st = &t->step.engine.store;
    if (comm_size(use->comm) < 2 || use->heal || t->store || t->hogwild) return;
    train_state_free(&t->at.state);
    for (i32 k = 0; k < st->optim->nstate; k++) mem_zero(st->state[k]);
}

static err end_member(struct fit *t, i32 m, err reason) {
    const struct train_state *s = &t->at.state;
    const i64 P = t->f->net.ntheta;
    training_rest(t);
    if (!t->f->theta[m]) NEW(t->f->theta[m], P);
    memcpy(t->f->theta[m], t->step.engine.store.theta, sizeof(f32) * (size_t)P);
    t->f->nmember = imax(t->f->nmember, m + 1);
    if (!t->at.refitting) t->at.best_steps[m] = isfinite(s->best) ? s->best_step : s->step; /* a refit does not validate */
    t->f->steps_done += s->step;
    t->f->model.seconds += s->seconds;
    if (s->step_count) t->f->step_measured = train_step_seconds(s);
    t->f->model.stopped = reason;
    t->at.begun = false;
    t->at.done = m + 1;
    rest_after(t);
    return reason;
}

static err train_member(struct fit *t, i32 m) {
    TRY(begin_member(t, m));
    const err e = run_member(t, m, &t->at.state);
    return e > 0 && e != STOP_SIGNAL ? end_member(t, m, e) : e;
}

/* Reports that the members so far are the model. */
static void end_early(struct fit *t, const char *why) {
    const i32 n = t->f->nmember;
    event_emit(t->job->use.events, &(struct event){.kind = EVENT_END, .text = why, .member = n - 1, .members = n});
}

/* True if no further member is to be trained. One that has begun, here or in a checkpoint, was asked for then. */
static err is_enough(struct fit *t, i32 m, bool *enough) {
    *enough = false;
    const bool decided = m == 0 || t->at.refitting || t->at.begun || t->save.found;
    return decided ? 0 : forecast_enough(t, m, enough);
}

err forecast_train_members(struct fit *t) {
    for (i32 m = t->at.done; m < members_of(t); m++) {
        bool enough;
        TRY(is_enough(t, m, &enough));
        if (enough) end_early(t, "");
        if (enough) break;
        const err e = train_member(t, m);
        if (e < 0 || e == STOP_SIGNAL) return e;
        if (e == STOP_TIME && m + 1 < members_of(t)) end_early(t, stop_reason_text(e));
        if (e == STOP_TIME) break;
    }
    t->at.done = t->f->spec.members;
    return 0;
}
