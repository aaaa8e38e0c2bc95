/* fit.c - trains the members of a model of sequences one after the other: batches, validation by the loss, the loop of
 * train/loop.h; with --refit-all each once more on all sequences before the test part, for as many epochs as validated best.
 *
 *     fit 0: member 0    fit 1: member 0 again    fit 2: member 1    ..        a checkpoint holds what earlier fits left */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "exec/policy.h"
#include "learn/net_state.h"
#include "learn/sequence/sequence.h"

enum { SPANS_KEPT = 256, FORWARD_ROWS = 64, STEPS_MOST = 4096 };

#define FIT_MOST 100000000 /* steps of a fit, in the numbers of checkpoints */

/* What earlier fits left; all of it is in a checkpoint. */
struct past {
    i64 fits;      /* that have ended */
    i64 best_step; /* of the last one with validation */
    f64 loss;      /* sum of the best validation losses of the members so far */
    f64 seconds;
    f32 *theta; /* [members][ntheta] of the members that have ended */
};

struct fit {
    const struct learn_job *job;
    const struct sequence_set *s;
    struct sequence_model *m;
    struct snapshots shots;
    struct past past;
    struct split split; /* of this fit */
    bool refit;
    struct sequence_data d;
    struct engine engine;
    struct sequence_batcher train, valid;
    struct train_state state;
    i64 batches; /* of an epoch */
    f64 began;   /* clock_now() of all fits of this process */
};

/* ------------------------------------------------------------------ checkpoints --------------------------------------------- */

static void list_past(struct fit *f, struct snapshot *to) {
    snapshot_add(to, "fits", DTYPE_I64, &f->past.fits, 1);
    snapshot_add(to, "past.best_step", DTYPE_I64, &f->past.best_step, 1);
    snapshot_add(to, "past.loss", DTYPE_F64, &f->past.loss, 1);
    snapshot_add(to, "past.seconds", DTYPE_F64, &f->past.seconds, 1);
    snapshot_add(to, "past.theta", DTYPE_F32, f->past.theta, f->m->members * f->m->net.ntheta);
}

static err list(void *self, struct snapshot *to) {
    struct fit *f = self;
    list_past(f, to);
    net_state_list(&f->state, &f->engine.store, to);
    return 0;
}

static err checkpoint(void *self, const struct train_state *s, bool last) {
    struct fit *f = self;
    TRY(net_state_gather(f->job->use.comm, &f->engine, &f->state));
    return snapshots_save(&f->shots, f->past.fits * FIT_MOST + s->step, list, f, last);
}

static err take_past(struct fit *f, i64 fits) {
    struct snapshot head = {0};
    if (!f->shots.resumes) return 0;
    list_past(f, &head);
    TRY(snapshots_take(&f->shots, &head));
    const struct past *p = &f->past;
    return p->fits >= 0 && p->fits < fits && p->best_step >= 0 && p->best_step <= NET_STATE_MOST ? 0
                                                                                                 : snapshots_unsound(&f->shots);
}

static err take_state(struct fit *f) {
    struct snapshot all = {0};
    if (!f->shots.resumes) return 0;
    TRY(list(f, &all));
    TRY(snapshots_take(&f->shots, &all));
    f->shots.resumes = false; /* later fits begin anew */
    return net_state_sound(&f->state) ? 0 : snapshots_unsound(&f->shots);
}

/* ------------------------------------------------------------------ the loop ------------------------------------------------ */

static f32 *const *inputs(void *self, i64 batch, i32 slot, f32 *loss_scale) {
    struct fit *f = self;
    (void)batch;
    *loss_scale = 1.f / (f32)lmax(1, f->train.slot[slot].labels);
    return f->train.slot[slot].input;
}

static void fill(void *self, i64 k, i32 slot) { sequence_batch_train(&((struct fit *)self)->train, k, slot); }

/* Loss of an output, in units of the training loss. */
static f64 loss_of(const struct sequence_model *m, const struct sequence_data *d, i64 place, const f64 *p) {
    if (!m->regress) return -log(dmax(p[d->class[place]], 1e-12));
    const f64 e = (*p - m->y_mean) / m->y_deviation - (f64)d->y[place];
    return strcmp(m->loss, "mae") == 0 ? fabs(e) : e * e;
}

/* Mean loss over the labels of the validation part that the training knows. */
static f64 mean_loss(const struct fit *f, const struct sequence_out *o) {
    const struct sequence_set *s = f->s;
    f64 sum = 0, n = 0;
    for (i64 k = o->from; k < o->to; k++) {
        const i64 first = s->first[s->at[k]];
        const i32 labels = f->m->per_step ? sequence_batch_steps(&f->valid, k) : 1;
        for (i32 t = 0; t < labels; t++) {
            if (f->m->regress ? isnan(f->d.y[first + t]) : f->d.class[first + t] < 0) continue;
            sum += loss_of(f->m, &f->d, first + t, o->p + (o->first[k - o->from] + t) * o->K);
            n++;
        }
    }
    return n > 0 ? sum / n : (f64)NAN;
}

static err validate(void *self, f64 *loss) {
    struct fit *f = self;
    struct sequence_out o;
    TRY(sequence_out_new(f->m, f->s, f->split.train, f->split.validation, &o));
    const err e = sequence_out_add(&f->valid, &f->engine, 1, &o);
    if (e >= 0) *loss = mean_loss(f, &o);
    sequence_out_free(&o);
    return e;
}

static void stepped(void *self, bool finite) {
    (void)finite;
    snapshots_advance(&((struct fit *)self)->shots);
}

/* Snapshots complete a checkpoint without the loop. */
static enum train_saving saving(void *self) {
    (void)self;
    return SAVING_NONE;
}

static i64 refit_steps(const struct fit *f) {
    const struct split *p = &f->job->split;
    return lmax(1, (i64)ceil((f64)f->past.best_step * (f64)p->validation / (f64)p->train));
}

static i32 member_of(const struct fit *f) { return (i32)(f->past.fits / (f->job->o->refit_all ? 2 : 1)); }

static struct train_job job_of(struct fit *f) {
    const struct options *o = f->job->o;
    const struct resources *use = &f->job->use;
    struct optim_options hyper;
    struct train_job j = {.exec = f->engine.exec,
                          .store = &f->engine.store,
                          .steps_per_epoch = (f64)f->batches,
                          .rows_per_step = f->engine.B,
                          .prefetch = pool_size(use->pool) > 1 || comm_size(use->comm) > 1,
                          .member = member_of(f),
                          .members = f->m->members,
                          .self = f,
                          .fill = fill,
                          .inputs = inputs,
                          .validate = f->split.validation > f->split.train ? validate : NULL,
                          .stepped = stepped,
                          .checkpoint = f->job->run_dir ? checkpoint : NULL,
                          .saving = saving,
                          .events = use->events,
                          .stop = use->stop,
                          .comm = use->comm};
    opt_give_loop(o, &j.options);
    if (j.time_limit > 0) j.time_limit = dmax(1e-3, j.time_limit - (clock_now() - f->began));
    j.seed = o->seed + member_of(f);
    if (j.steps == 0) j.steps = sequence_steps(o, f->split.train);
    if (j.max_steps < j.steps) j.max_steps = j.steps;
    j.accumulate = 1;
    j.until = f->refit ? refit_steps(f) : 0;
    j.refit = f->refit;
    opt_give_optim(o, &hyper);
    j.hyper = optim_hyper_of(&hyper);
    return j;
}

/* ------------------------------------------------------------------ one fit ------------------------------------------------- */

static err prepare(struct fit *f) {
    const struct options *o = f->job->o;
    const i32 B = (i32)lmin(o->batch, f->split.train), forward = engine_forward_rows(&f->m->net, FORWARD_ROWS);
    const struct optim *optim = optim_find(o->optim);
    struct resources use = f->job->use;
    if (!optim) return FAIL(E103, "there is no optimiser \"%s\"", o->optim);
    f->batches = (f->split.train + B - 1) / B;
    use.steps = f->batches;
    TRY(engine_new(&f->m->net, &use, B, forward, optim, &f->engine));
    TRY(sequence_batcher_new(f->m, &f->d, &f->m->net, B, PREFETCH_SLOTS, &f->train));
    TRY(sequence_batcher_new(f->m, &f->d, &f->m->net, forward, 1, &f->valid));
    f->train.to = f->split.train;
    f->train.seed = (u64)(o->seed + member_of(f));
    f->m->model.planned_bytes = engine_planned_bytes(&f->engine);
    return train_state_new(&f->engine.store, &f->state);
}

/* The weights and figures of a fit that has ended. */
static err keep(struct fit *f, err reason) {
    struct sequence_model *m = f->m;
    const bool validated = isfinite(f->state.best) && !f->refit;
    f->past.seconds += f->state.seconds;
    m->model.stopped = reason;
    if (reason == STOP_TIME && f->past.fits > 0) return 0; /* what the fits before left is better than a part of this one */
    memcpy(f->past.theta + member_of(f) * m->net.ntheta, f->engine.store.theta, sizeof *m->theta * (size_t)m->net.ntheta);
    if (validated) f->past.best_step = f->state.best_step;
    if (validated) f->past.loss += f->state.best;
    str_free(&m->model.plan_text);
    str_addf(&m->model.plan_text, "%s, %d sequences a step\n", f->engine.plan->strategy, f->engine.B);
    if (!m->model.span) NEW(m->model.span, SPANS_KEPT);
    m->model.nspan = exec_spans(step_exec(f->engine.exec), m->model.span, SPANS_KEPT);
    return str_ok(&m->model.plan_text);
}

static err run_fit(struct fit *f) {
    TRY(prepare(f));
    net_weights_init(&f->m->net, (u64)(f->job->o->seed + member_of(f)), f->engine.store.theta);
    const struct train_job j = job_of(f);
    TRY(take_state(f));
    const err reason = train_run(&j, &f->state);
    if (reason == STOP_SIGNAL && !f->job->run_dir)
        return FAIL(E806, "stopped after %lld steps; there is no run folder for a checkpoint", (long long)f->state.step);
    if (reason < 0 || reason == STOP_SIGNAL) return reason;
    TRY(keep(f, reason));
    return reason;
}

static void end_fit(struct fit *f) {
    train_state_free(&f->state);
    engine_free(&f->engine);
    sequence_batcher_free(&f->train);
    sequence_batcher_free(&f->valid);
    f->state = (struct train_state){0};
}

/* A refit needs a validation that chose a step. */
static bool has_refit(const struct fit *f) {
    const struct split *p = &f->job->split;
    return p->validation > p->train && f->past.best_step > 0;
}

/* All fits; a stop reason, that of the last one. */
static err run_fits(struct fit *f, i64 fits) {
    const struct split *p = &f->job->split, all = {p->validation, p->validation, p->test};
    const bool again = f->job->o->refit_all;
    err reason = STOP_STEPS;
    for (; f->past.fits < fits; f->past.fits++) {
        f->refit = again && f->past.fits % 2 == 1;
        f->split = f->refit ? all : *p;
        if (f->refit && !has_refit(f)) continue;
        if (f->refit && f->past.fits == 1)
            event_note(f->job->use.events, EVENT_NOTE, "refit on all sequences before the test part: %lld steps",
                       (long long)refit_steps(f));
        reason = run_fit(f);
        end_fit(f);
        if (reason < 0 || reason == STOP_SIGNAL) return reason;
        if (reason == STOP_TIME) break;
    }
    return reason;
}

/* ------------------------------------------------------------------ all of it ----------------------------------------------- */

static err need_labels(const struct fit *f) {
    char where[256], name[256];
    const struct sequence_set *s = f->s;
    for (i64 k = 0; k < s->set.nrow && !f->m->per_step; k++) {
        const bool missing = f->m->regress ? isnan(sequence_number(s, k, 0)) : sequence_class(s, k, 0) < 0;
        if (!missing) continue;
        sequence_where(s, k, 0, where);
        return FAIL_AT(E207, where, "a label for each sequence   or   a file without it", "the sequence \"%.60s\" has no label",
                       sequence_name(s, k, name));
    }
    return 0;
}

/* Labels, channels and values, as the training needs them. */
static err take_data(struct fit *f) {
    TRY(need_labels(f));
    TRY(sequence_scale_fit(f->m, f->s, f->job->split.validation));
    return sequence_data_new(f->m, f->s, &f->d);
}

static err begin(struct fit *f) {
    struct sequence_model *m = f->m;
    const struct split *p = &f->job->split;
    const i32 longest = sequence_segments(m, sequence_longest(f->s, 0, p->validation));
    TRY(take_data(f));
    TRY(sequence_rule_fit(m, &f->d, p->validation));
    if (m->per_step && longest > STEPS_MOST)
        event_note(f->job->use.events, EVENT_NOTE, "the longest sequence has %d steps: training reads the first %d of a sequence",
                   longest, STEPS_MOST);
    TRY(sequence_net(m, m->per_step ? imin(longest, STEPS_MOST) : longest, &m->net));
    NEW(f->past.theta, m->members * m->net.ntheta);
    m->model.train_records = p->train;
    m->model.valid_records = p->validation - p->train;
    return 0;
}

static err fit(struct fit *f) {
    struct sequence_model *m = f->m;
    const i64 per = f->job->o->refit_all ? 2 : 1;
    TRY(begin(f));
    TRY(snapshots_open(f->job, &f->shots));
    TRY(take_past(f, m->members * per));
    const err reason = run_fits(f, m->members * per);
    if (reason < 0 || reason == STOP_SIGNAL) return reason;
    const i32 ended = (i32)lmax(1, (f->past.fits + per - 1) / per);
    const bool validated = f->job->split.validation > f->job->split.train;
    m->members = imin(m->members, ended); /* the time limit may end the first of them */
    m->theta = f->past.theta;
    f->past.theta = NULL;
    m->valid_loss = validated ? f->past.loss / m->members : (f64)NAN;
    m->best_step = f->past.best_step;
    m->model.seconds = f->past.seconds;
    return 0;
}

static err open_fit(const struct learn_job *job, struct fit *f) {
    *f = (struct fit){.job = job, .s = sequence_set_of(job->data), .began = clock_now()};
    NEW(f->m, 1);
    sequence_take_options(f->m, job->o);
    f->m->per_step = f->s->per_step;
    return 0;
}

err sequence_prepare(struct learn_job *job) {
    struct fit f;
    TRY(open_fit(job, &f));
    const err e = take_data(&f);
    sequence_data_free(&f.d);
    sequence_free(&f.m->model);
    return e;
}

err sequence_fit(const struct learn_job *job, struct model **out) {
    struct fit f;
    TRY(open_fit(job, &f));
    const err e = fit(&f);
    end_fit(&f);
    snapshots_close(&f.shots);
    sequence_data_free(&f.d);
    mem_free(f.past.theta);
    if (e == 0)
        *out = &f.m->model;
    else
        sequence_free(&f.m->model);
    return e;
}
