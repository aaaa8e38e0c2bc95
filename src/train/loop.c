/* loop.c - the training loop. */
#include "train/loop.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "data/prefetch.h"

const char *stop_reason_text(err reason) {
    static const char *const text[] = {"", "all steps done", "no better validation loss", "asked to stop", "time limit reached"};
    return reason > 0 && reason < (err)COUNT(text) ? text[reason] : "";
}

err train_state_new(const struct store *store, struct train_state *out) {
    *out = (struct train_state){.best = (f64)INFINITY, .lr_factor = 1};
    NEW(out->best_theta, store->ntheta);
    i64 vectors = 1 + (store->optim ? store->optim->nstate : 0);
    err e = mem_new((void **)&out->good, vectors * store->ntheta, sizeof(f32));
    if (e < 0) train_state_free(out);
    return e;
}

err train_state_ahead(struct train_state *s, i64 ntheta) {
    return s->ahead ? 0 : mem_new((void **)&s->ahead, ntheta, sizeof(f32));
}

void train_state_free(struct train_state *s) {
    mem_free(s->best_theta);
    mem_free(s->good);
    mem_free(s->ahead);
    s->best_theta = s->good = s->ahead = NULL;
}

/* Copies the elements of a vector of weights or state that this rank uses: pages of the others stay untouched. */
static void copy_held(const struct step *exec, f32 *to, const f32 *from) {
    i32 n;
    const struct plan_range *r = step_held(exec, &n);
    for (i32 i = 0; i < n; i++) memcpy(to + r[i].lo, from + r[i].lo, (size_t)(r[i].hi - r[i].lo) * sizeof *to);
}

/* Copies theta and optimiser state to or from the roll-back target. */
static void snapshot(const struct step *exec, const struct store *st, struct train_state *s, bool restore) {
    f32 *vector[3] = {st->theta, st->state[0], st->state[1]};
    for (i32 i = 0; i < 1 + st->optim->nstate; i++) {
        f32 *kept = s->good + i * st->ntheta;
        copy_held(exec, restore ? vector[i] : kept, restore ? kept : vector[i]);
    }
    if (!restore) s->good_step = s->step;
}

/* Steps of a round that lowers the best loss (likelihoods have negative ones) by less than this share are not followed by more;
 * the best of a round that is followed lies in its last quarter. */
#define ROUND_GAIN 0.005

/* Budget of the run: no round ends later. */
static i64 last_step(const struct train_job *j) { return j->until > 0 ? j->until : lmax(j->steps, j->max_steps); }

/* End of the round in which `step` is done, as rounds follow each other: steps, twice that, .. the budget. */
static i64 round_of(const struct train_job *j, i64 step) {
    const i64 most = lmax(j->steps, j->max_steps);
    i64 end = lmin(lmax(0, j->steps), most);
    while (end <= step && end < most) end = lmin(lmax(1, 2 * end), most);
    return end;
}

/* The end of a resumed round; where --steps or --max-steps are others now, that of the round in which its last step lies. */
static i64 resumed_end(const struct train_job *j, const struct train_state *s) {
    if (j->until > 0) return j->until;
    for (i64 end = round_of(j, 0);; end = round_of(j, end)) {
        if (end == s->end) return end;
        if (end >= last_step(j)) return round_of(j, lmax(0, s->step - 1));
    }
}

static bool still_falls(const struct train_state *s) {
    return isfinite(s->best) && s->best_step >= s->end - s->end / 4 &&
           (!isfinite(s->mark) || s->best <= s->mark - ROUND_GAIN * fabs(s->mark));
}

/* After the last step of a round: true if another one begins. */
static bool next_round(const struct train_job *j, struct train_state *s) {
    if (j->until > 0 || s->end >= last_step(j) || !still_falls(s)) return false;
    s->mark = s->best;
    s->end = round_of(j, s->end);
    return true;
}

/* Why a run with a budget ended: its rounds, or the budget. */
static const char *end_text(const struct train_job *j, const struct train_state *s, err reason) {
    if (reason != STOP_STEPS || j->until > 0 || j->max_steps <= j->steps) return stop_reason_text(reason);
    const bool falls = s->end >= last_step(j) && still_falls(s);
    return falls ? "budget used up, validation still falls (--max-steps)" : "validation falls no more";
}

struct progress {
    struct step *exec;
    f64 begin;          /* clock at the start of this run */
    f64 start, since;   /* clock at the start or last checkpoint, and at the start of the current interval */
    i64 counted;        /* losses in the interval */
    bool early;         /* the time limit is reached: an uninterrupted run does not report this event */
    f64 lr, norm, last_norm;
    f64 saved;          /* clock of the last checkpoint */
    bool whole_leg;     /* the last leg came to its end: validation is due */
    i32 ask;            /* steps until ranks exchange their flags again */
};

static f64 mean_loss(const struct train_state *s) { return s->loss_count ? s->loss_sum / (f64)s->loss_count : (f64)NAN; }

static void emit(const struct train_job *j, const struct train_state *s, const struct progress *p, enum event_kind kind,
                 f64 valid, bool best) {
    f64 now = clock_now(), run = now - p->start;
    f64 done = (f64)s->step;
    struct event e = {.kind = kind, .member = j->member, .members = j->members, .step = s->step, .steps = s->end};
    e.epoch = j->steps_per_epoch > 0 ? done / j->steps_per_epoch : 0;
    e.seconds = s->seconds + run;
    e.left = done > 0 ? (s->seconds + run) / done * (f64)(s->end - s->step) : -1;
    e.train = mean_loss(s);
    e.valid = valid;
    e.lr = p->lr;
    e.grad_norm = p->norm;
    e.windows_per_s = now > p->since ? (f64)p->counted * j->rows_per_step / (now - p->since) : 0;
    e.best = best;
    e.rollbacks = (i32)s->rollbacks;
    e.refit = j->refit;
    e.early = p->early;
    if (j->annotate) j->annotate(j->self, &e);
    event_emit(j->events, &e);
}

static err roll_back(const struct train_job *j, struct train_state *s, const struct progress *p) {
    const i64 bad = s->step + (j->late ? 0 : 1);
    char where[240] = "";
    TRY(exec_quiet(step_exec(p->exec)));
    if (j->nonfinite) j->nonfinite(j->self, where);
    if (s->rollbacks > 0)
        return FAIL_AT(
            E501, NULL, "--lr with a tenth of the value\n--clip 1\n--scale window (when values differ by orders of magnitude)",
            "loss is not finite at step %lld (lr %.3g, gradient norm %.3g at the step before); %s%s; tried again "
            "from step %lld with half the step",
            (long long)bad, p->lr, p->last_norm, where[0] ? "first in " : "inputs are finite", where,
            (long long)s->good_step);
    event_note(j->events, EVENT_WARNING, "loss is not finite at step %lld%s%s%s: back to step %lld, lr halved",
               (long long)bad, where[0] ? " (first in " : "", where, where[0] ? ")" : "", (long long)s->good_step);
    snapshot(p->exec, j->store, s, true);
    s->step = s->good_step;
    s->place = PLACE_BORDER;
    s->lr_factor *= 0.5;
    s->rollbacks++;
    return 0;
}

/* Adds the results of a step; the first step of a delayed policy has none. */
static void count(struct train_state *s, struct progress *p, const struct exec_result *r, f64 loss) {
    if (r->none) return;
    p->last_norm = p->norm;
    p->norm = r->norm;
    p->counted++;
    s->loss_sum += loss;
    s->loss_count++;
}

f64 train_rate(const struct train_job *j, const struct train_state *s, i64 step) {
    return (f64)(f32)j->lr * s->lr_factor * schedule_factor(j->schedule, step, round_of(j, step), j->warmup);
}

/* A leg up to the next validation. */
static err one_leg(const struct train_job *j, struct train_state *s, struct progress *p) {
    const i64 from = s->step, border = (from / j->validate_every + 1) * j->validate_every, until = lmin(border, s->end);
    p->lr = train_rate(j, s, from);
    p->ask = 0; /* ranks look around after each leg */
    TRY(j->leg(j->self, s, until));
    p->whole_leg = s->step >= until;
    p->counted += s->step - from;
    if (s->step > from) s->place = PLACE_STEPPED;
    return 0;
}

void train_step_took(struct train_state *s, f64 seconds) {
    if (s->step_count == 1 && !s->first_left_out) {
        s->step_seconds = 0;
        s->step_count = 0;
        s->first_left_out = true;
    }
    s->step_seconds += seconds;
    s->step_count++;
}

f64 train_step_seconds(const struct train_state *s) { return s->step_seconds / (f64)lmax(1, s->step_count); }

/* One optimiser step of `accumulate` batches. *finite: the update was made. */
static err one_step(const struct train_job *j, struct train_state *s, struct progress *p, struct prefetch *batches,
                    bool *finite) {
    struct step_args step = {.seed = (u64)j->seed, .warm = j->warm, .hyper = j->hyper, .clip = j->clip};
    p->lr = train_rate(j, s, s->step);
    step.hyper.lr = (f32)p->lr;
    step.hyper.step = s->step + 1;
    struct exec_result r = {0};
    f64 loss = 0;
    for (i64 k = 0; k < j->accumulate; k++) {
        i32 slot = prefetch_next(batches);
        const i64 batch = s->step * j->accumulate + k;
        step.input = j->inputs(j->self, batch, slot, &step.loss_scale);
        step.step = (u32)batch;
        step.accumulate = k + 1 < j->accumulate;
        f64 before = clock_now();
        TRY(step_run(p->exec, &step, &r));
        train_step_took(s, clock_now() - before);
        if (j->stepped) j->stepped(j->self, r.finite);
        loss += r.loss;
        if (!r.finite) break;
    }
    *finite = r.finite;
    if (!r.finite) return 0;
    count(s, p, &r, loss);
    s->step++;
    s->place = PLACE_STEPPED;
    return 0;
}

/* Completes pending updates, so that the store holds the weights after all steps, or those that this rank keeps. *finite false:
 * the last step was not finite, and the caller rolls back. */
static err settle(const struct train_job *j, struct train_state *s, struct progress *p, bool *finite) {
    struct exec_result r;
    if (j->parts) return step_quiet(p->exec);
    TRY(step_settle(p->exec, &r));
    *finite = r.finite;
    if (r.finite) count(s, p, &r, r.loss);
    return 0;
}

/* Puts the weights of a pending update into the state for a checkpoint. The run itself continues with the update pending: the
 * time of a checkpoint depends on the clock, and the weights must not. */
static err look_ahead(const struct train_job *j, struct train_state *s, const struct progress *p) {
    struct step_ahead a;
    TRY(step_look_ahead(p->exec, &a));
    s->due = a.theta != NULL;
    s->ahead_loss = a.loss;
    s->ahead_norm = a.norm;
    if (!a.theta) return 0;
    TRY(train_state_ahead(s, j->store->ntheta));
    memcpy(s->ahead, a.theta, sizeof(f32) * (size_t)j->store->ntheta);
    return 0;
}

/* Ranks hold bit-identical copies of the weights; if they differ, further steps are worthless. */
static err same_weights(const struct train_job *j) {
    if (comm_size(j->comm) == 1 || !comm_watched(j->comm) || j->parts) return 0;
    return comm_check_equal(j->comm, "weights", comm_hash(COMM_HASH, j->store->theta, sizeof(f32) * (size_t)j->store->ntheta),
                      "the same processor and the same build on every host; --ranks 1 while you look for the cause");
}

static err validate(const struct train_job *j, struct train_state *s, struct progress *p) {
    f64 loss = (f64)NAN;
    event_phase(j->events, "validate");
    TRY(same_weights(j));
    if (j->validate) TRY(j->validate(j->self, &loss));
    bool best = loss < s->best;
    if (best) {
        s->best = loss;
        s->best_step = s->step;
        s->bad = 0;
        copy_held(p->exec, s->best_theta, j->store->theta);
    } else {
        s->bad += isfinite(s->best); /* no validation loss yet: nothing to compare with */
    }
    s->train_loss = mean_loss(s);
    emit(j, s, p, EVENT_VALID, loss, best);
    s->loss_sum = 0;
    s->loss_count = p->counted = 0;
    p->since = clock_now();
    snapshot(p->exec, j->store, s, false);
    event_phase(j->events, "train");
    s->place = PLACE_VALIDATED;
    return 0;
}

static enum train_saving saving(const struct train_job *j) { return j->checkpoint ? j->saving(j->self) : SAVING_NONE; }

static err save(const struct train_job *j, struct train_state *s, struct progress *p, bool last) {
    f64 now = clock_now();
    s->seconds += now - p->start;
    p->start = p->saved = now;
    if (!j->checkpoint) return 0;
    if (last) event_phase(j->events, "checkpoint");
    TRY(look_ahead(j, s, p));
    return j->checkpoint(j->self, s, last);
}

/* At a time limit the model is written all the same: a checkpoint that fails, which a warning has said, does not end the run. */
static err save_last(const struct train_job *j, struct train_state *s, struct progress *p, err reason) {
    const err e = save(j, s, p, true);
    const bool written = e != -E702 && e != -E703 && e != -E901;
    return reason == STOP_TIME && !written ? 0 : e;
}

/* Time limit, signals and checkpoints due. Ranks exchange their flags about four times a second, and a flag of one rank holds for
 * all. The exchange waits for all weights, so it cannot overlap the next step: with long steps only every eighth step has one, if
 * that is often enough. */
enum { SEEN_STOP = 1, SEEN_LATE = 2, SEEN_OLD = 4, SEEN_UNEVEN = 8, SEEN_BUSY = 16 };
enum { ASK_MOST = 64, ASK_FASTER = 5, ASK_STEPS = 8 };
#define ASK_S 0.25      /* seconds between exchanges; a fifth of it while a checkpoint is being written */
#define ASK_SELDOM_S 2.0

struct sight {
    u64 seen;
    f64 seconds; /* seconds per step */
    f64 row;     /* seconds per row; 0 = unknown */
};

/* Once every rank has written its part of the checkpoint, all ranks complete it together. */
static err all_saved(const struct train_job *j, enum train_saving mine, u64 seen) {
    return mine != SAVING_NONE && !(seen & SEEN_BUSY) ? j->saved(j->self) : 0;
}

static err look_around(const struct train_job *j, const struct train_state *s, struct progress *p, u64 *seen) {
    const f64 now = clock_now();
    struct sight mine = {.seconds = train_step_seconds(s) * (f64)j->accumulate,
                         .row = exec_row_seconds(step_exec(p->exec))}, all[COMM_RANKS];
    f64 row[COMM_RANKS];
    mine.seen |= j->stop && *j->stop ? SEEN_STOP : 0;
    mine.seen |= j->time_limit > 0 && now - p->begin > j->time_limit ? SEEN_LATE : 0;
    const enum train_saving state = saving(j);
    mine.seen |= j->checkpoint_every > 0 && state == SAVING_NONE && now - p->saved > j->checkpoint_every ? SEEN_OLD : 0;
    mine.seen |= state == SAVING_BUSY ? SEEN_BUSY : 0;
    *seen = mine.seen;
    if (comm_size(j->comm) == 1) return all_saved(j, state, *seen);
    *seen = 0;
    if (--p->ask > 0) return 0;
    TRY(exec_quiet(step_exec(p->exec)));
    TRY(comm_allgather(j->comm, "stop", &mine, sizeof mine, all));
    f64 slowest = 1e-6;
    for (i32 k = 0; k < comm_size(j->comm); k++) {
        *seen |= all[k].seen;
        slowest = dmax(slowest, all[k].seconds);
        row[k] = all[k].row;
    }
    *seen |= j->uneven && j->uneven(j->self, row) ? SEEN_UNEVEN : 0;
    const bool saves = state != SAVING_NONE;
    const f64 apart = saves ? 1 : dmax(1, dmin(ASK_STEPS, ASK_SELDOM_S / slowest));
    p->ask = (i32)dmax(apart, dmin(ASK_MOST, ASK_S / slowest / (saves ? ASK_FASTER : 1)));
    return all_saved(j, state, *seen);
}

/* The reason to stop after the present step, or 0. The last step takes precedence over a signal: a checkpoint is only written
 * while steps are left, so that a resumed run never misses the last validation. */
static err stop_now(const struct train_state *s, u64 seen) {
    if (s->step >= s->end) return STOP_STEPS;
    return seen & SEEN_STOP ? STOP_SIGNAL : seen & SEEN_LATE ? STOP_TIME : 0;
}

static err batches_from(const struct train_job *j, const struct train_state *s, struct prefetch **batches) {
    prefetch_free(*batches);
    *batches = NULL;
    if (j->leg) return 0; /* workers fill the batches of their tickets */
    return prefetch_new(j->fill, j->self, s->step * j->accumulate, last_step(j) * j->accumulate, j->prefetch, batches);
}

/* Another plan may update other ranges on a rank: gathers the optimiser state on all ranks, and makes it the roll-back target. */
static err spread_state(const struct train_job *j, struct train_state *s, struct progress *p) {
    if (comm_size(j->comm) == 1) return 0;
    TRY(exec_quiet(step_exec(p->exec)));
    TRY(exec_gather(step_exec(p->exec)));
    for (i32 k = 0; k < j->store->optim->nstate; k++)
        TRY(comm_broadcast(j->comm, "state", j->store->state[k], (i64)sizeof(f32) * j->store->ntheta));
    snapshot(p->exec, j->store, s, false);
    return 0;
}

/* Changes the layout by `make`, and restarts the batches. */
static err change(const struct train_job *j, const struct train_state *s, struct progress *p, struct prefetch **batches,
                  err (*make)(void *self, struct step **exec)) {
    prefetch_free(*batches); /* its thread may be filling buffers that `make` frees */
    *batches = NULL;
    TRY(make(j->self, &p->exec));
    return batches_from(j, s, batches);
}

/* Changes the layout if the job has outgrown it; clears SEEN_UNEVEN, which was measured on the old one. */
static err relay(const struct train_job *j, struct train_state *s, struct progress *p, struct prefetch **batches, u64 *seen) {
    if (!j->outgrown || !j->outgrown(j->self, s->step)) return 0;
    *seen &= ~(u64)SEEN_UNEVEN;
    TRY(spread_state(j, s, p));
    return change(j, s, p, batches, j->relay);
}

static void tick(const struct train_job *j, const struct train_state *s) {
    event_emit(j->events, &(struct event){.kind = EVENT_TICK, .member = j->member, .members = j->members, .step = s->step,
                                          .steps = s->end, .train = (f64)NAN, .valid = (f64)NAN, .left = -1});
}

/* After a step: checks flags, validates, changes the layout, saves. *reason to stop, or 0. */
static err after_step(const struct train_job *j, struct train_state *s, struct progress *p, struct prefetch **batches,
                      err *reason) {
    bool finite = true;
    u64 seen;
    TRY(look_around(j, s, p, &seen));
    *reason = stop_now(s, seen);
    const bool regular = j->leg ? p->whole_leg : s->step % j->validate_every == 0, early = *reason == STOP_TIME && !regular;
    const bool due = regular || (*reason && *reason != STOP_SIGNAL);
    const bool tells = !regular && s->step % imax(1, (i32)(j->validate_every / 5)) == 0;
    if (tells && (early || !due)) emit(j, s, p, EVENT_STEP, (f64)NAN, false);
    if (early) TRY(save_last(j, s, p, *reason)); /* an uninterrupted run, which resume continues, has no validation here */
    p->early = early;
    if (due) TRY(settle(j, s, p, &finite));
    if (!finite) {
        *reason = 0;
        TRY(roll_back(j, s, p));
        return batches_from(j, s, batches);
    }
    if (due && s->place == PLACE_STEPPED) TRY(validate(j, s, p));
    if (due && *reason == STOP_STEPS && next_round(j, s)) *reason = 0;
    const bool plateau = due && j->validate && j->patience > 0 && s->bad >= j->patience;
    if (plateau && (!*reason || *reason == STOP_SIGNAL)) *reason = STOP_PLATEAU; /* as in the run that was not interrupted */
    if (due && (!*reason || *reason == STOP_SIGNAL)) TRY(relay(j, s, p, batches, &seen)); /* also in the run that is resumed */
    const bool last = *reason == STOP_SIGNAL || *reason == STOP_TIME;
    if (!early && last) TRY(save_last(j, s, p, *reason));
    else if (!early && (seen & SEEN_OLD)) TRY(save(j, s, p, false));
    if (!*reason && (seen & SEEN_UNEVEN)) TRY(change(j, s, p, batches, j->recut));
    s->place = PLACE_BORDER;
    return 0;
}

static bool between(const struct train_state *s) { return s->place == PLACE_STEPPED || s->place == PLACE_VALIDATED; }

static err run_steps(const struct train_job *j, struct train_state *s, struct progress *p, struct prefetch **batches) {
    const bool plateau = j->validate && j->patience > 0 && s->bad >= j->patience; /* resumed after the last validation */
    err reason = between(s) ? 0 : s->step >= s->end ? STOP_STEPS : plateau ? STOP_PLATEAU : 0;
    while (!reason) {
        bool finite = true;
        if (!between(s) && j->leg) TRY(one_leg(j, s, p));
        else if (!between(s)) TRY(one_step(j, s, p, *batches, &finite));
        if (!finite) {
            TRY(roll_back(j, s, p));
            TRY(batches_from(j, s, batches));
            continue;
        }
        tick(j, s);
        TRY(after_step(j, s, p, batches, &reason));
    }
    return reason;
}

/* Validates the initial weights. */
static err first_look(const struct train_job *j, struct train_state *s, struct progress *p) {
    snapshot(p->exec, j->store, s, false);
    TRY(validate(j, s, p));
    s->bad = 0;
    s->place = PLACE_BORDER;
    return 0;
}

/* The newest step whose events are all emitted; -1 = not even the validation of the initial weights. */
static i64 reported_to(const struct train_state *s) {
    if (s->place == PLACE_BEGIN && s->step == 0) return -1;
    return s->place == PLACE_STEPPED ? s->step - 1 : s->step;
}

/* The best weights, on every rank; the last ones where none was validated.  An update that a delaying policy has pending stays
 * so: every rank has all of theta there. */
static err take_best(const struct train_job *j, const struct train_state *s, const struct progress *p) {
    struct exec_result r;
    if (isfinite(s->best)) copy_held(p->exec, j->store->theta, s->best_theta);
    if (j->parts) {
        TRY(step_quiet(p->exec));
        exec_rest(step_exec(p->exec)); /* room for the weights of the other ranks */
    }
    return j->late ? 0 : step_settle(p->exec, &r);
}

err train_run(const struct train_job *j, struct train_state *s) {
    struct progress p = {.exec = j->exec, .begin = clock_now()};
    p.start = p.begin;
    s->end = resumed_end(j, s);
    step_set_ahead(p.exec, &(struct step_ahead){s->due ? s->ahead : NULL, s->ahead_loss, s->ahead_norm});
    p.since = p.saved = p.start;
    event_emit(j->events, &(struct event){.kind = EVENT_BEGIN, .member = j->member, .members = j->members, .step = s->step,
                                          .steps = s->end, .train = (f64)NAN, .left = -1, .refit = j->refit,
                                          .rollbacks = (i32)s->rollbacks, .kept = reported_to(s),
                                          .valid = isfinite(s->best) ? s->best : (f64)NAN, .best_step = s->best_step});
    if (s->step == 0 && s->place == PLACE_BEGIN) TRY(first_look(j, s, &p));
    if (s->step == 0) s->mark = s->best;
    struct prefetch *batches = NULL;
    TRY(batches_from(j, s, &batches));
    err reason = run_steps(j, s, &p, &batches);
    prefetch_free(batches);
    s->seconds += clock_now() - p.start;
    if (reason < 0) return reason;
    if (reason != STOP_SIGNAL) TRY(take_best(j, s, &p));
    event_emit(j->events, &(struct event){.kind = EVENT_END,
                                          .text = end_text(j, s, reason),
                                          .member = j->member,
                                          .members = j->members,
                                          .step = s->step,
                                          .steps = s->end,
                                          .seconds = s->seconds,
                                          .train = s->train_loss,
                                          .valid = isfinite(s->best) ? s->best : (f64)NAN,
                                          .left = 0});
    return reason;
}
