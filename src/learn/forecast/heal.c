/* heal.c - elastic recovery: after the death of a rank, the surviving ranks continue in the same processes, from the newest
 * step that any of them has completed.
 *
 *     rank 0   step 811 | 812 ...          | meet | standings | plan for two | step 812 ..
 *     rank 1   step 811 | 812 kill -9      .
 *     rank 2   step 811 | 812 done | 813.. | meet | most_progress  | plan for two | its state to all: step 813 ..
 *
 * With recovery allowed, every rank holds all weights and the whole optimizer state after each step (plan.whole), and a step
 * takes effect completely or not at all (exec_step). Recovery is therefore a resume from memory; it reads no checkpoint. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ckpt/checkpoint.h"
#include "learn/forecast/save.h"
#include "learn/store/run.h"

/* Progress of a rank.  `order` is compared lexicographically; the other ranks take over the remaining members from the rank with
 * most progress. */
struct progress {
    i64 order[5]; /* LEVEL_..; refit; members done; steps of the next member, -1 = not begun; enum train_place */
    i64 held, slices, slice_rank, nband, spread, guard, stopped;
};
enum { LEVEL_BEGINS, LEVEL_PREPARED, LEVEL_OUT }; /* OUT: the rank has left the fit and has its full result */
enum { ORDER_LEVEL, ORDER_REFIT, ORDER_DONE, ORDER_STEP, ORDER_PLACE };

static struct progress progress_of(const struct fit *t) {
    const struct forecaster *f = t->f;
    const i64 step = t->at.begun ? t->at.state.step : -1, place = t->at.begun ? t->at.state.place : 0;
    return (struct progress){.order = {t->step.prepared ? LEVEL_PREPARED : LEVEL_BEGINS, t->at.refitting, t->at.done, step,
                                       place},
                             .held = f->nmember,
                             .slices = f->spec.cut.slices,
                             .slice_rank = f->spec.slice_rank,
                             .nband = f->spec.nband,
                             .spread = f->spread != NULL,
                             .guard = f->has_guard,
                             .stopped = f->model.stopped};
}

static i32 compare(const struct progress *a, const struct progress *b) {
    for (size_t i = 0; i < COUNT(a->order); i++)
        if (a->order[i] != b->order[i]) return a->order[i] < b->order[i] ? -1 : 1;
    return 0;
}

/* Returns the lowest rank with the most progress. *alike: all ranks have equal progress; *ready: all have prepared training. */
static i32 most_progress(const struct progress *all, i32 n, bool *alike, bool *ready) {
    i32 best = 0;
    *alike = *ready = true;
    for (i32 k = 0; k < n; k++) {
        if (compare(&all[k], &all[best]) > 0) best = k;
        *alike = *alike && compare(&all[k], &all[0]) == 0;
        *ready = *ready && all[k].order[ORDER_LEVEL] > LEVEL_BEGINS;
    }
    return best;
}

/* --- the new group of ranks --- */

/* Removes the dead ranks from the machine that plans are made for. */
static err remove_dead(struct fit *t, const struct comm_loss *loss) {
    struct resources *use = &t->own.use;
    if (!t->left) {
        NEW(t->left, 1);
        machine_copy(t->left, use->ranks);
    }
    machine_without(t->left, loss->rank, loss->n);
    use->ranks = t->left->nrank > 1 ? t->left : NULL;
    return 0;
}

/* Waits for the saver thread and deletes an uncommitted checkpoint first: its shards belong to the old group of ranks. */
err forecast_regroup(struct fit *t, struct comm_loss *loss) {
    struct comm *c = t->job->use.comm;
    saving_free(t->save.saving, comm_rank(c));
    t->save.saving = NULL;
    TRY(comm_recover(c, loss));
    if (t->own.healed) t->own.healed(t->own.owner, loss);
    return remove_dead(t, loss);
}

/* --- continuing --- */

static void set_progress(struct fit *t, const struct progress *s) {
    struct forecaster *f = t->f;
    t->at.refitting = s->order[ORDER_REFIT] != 0;
    t->at.done = (i32)s->order[ORDER_DONE];
    t->at.begun = s->order[ORDER_STEP] >= 0;
    f->spec.cut.slices = (i32)s->slices;
    f->spec.slice_rank = (i32)s->slice_rank;
    f->spec.nband = (i32)s->nband;
    f->has_guard = s->guard != 0;
    f->model.stopped = (err)s->stopped;
}

/* Plans and binds again for the new group; keeps the weights and the optimizer state. */
static err prepare_again(struct fit *t) {
    if (t->step.engine.exec) TRY(exec_bring(step_exec(t->step.engine.exec))); /* from a device, before its memory is freed */
    struct store kept = t->step.engine.store;
    t->step.engine.store = (struct store){0};
    training_drop(t);
    err e = training_prepare(t);
    struct store *s = &t->step.engine.store;
    const size_t bytes = sizeof(f32) * (size_t)kept.ntheta;
    if (e >= 0) memcpy(s->theta, kept.theta, bytes);
    for (i32 k = 0; e >= 0 && k < s->optim->nstate; k++) memcpy(s->state[k], kept.state[k], bytes);
    store_free(&kept);
    return e;
}

static err receive_state(struct fit *t, i32 root, const struct progress *s) {
    struct forecaster *f = t->f;
    const i64 floats = forecast_spread_floats(f, t->series->ntarget);
    if (!t->at.state.good) TRY(train_state_new(&t->step.engine.store, &t->at.state));
    if (!s->spread || !f->spread) {
        mem_free(f->spread);
        f->spread = NULL;
        if (s->spread) NEW(f->spread, floats);
    }
    TRY(forecast_share_state(t, root, s->held));
    t->at.state.place = s->order[ORDER_PLACE];
    return 0;
}

/* The sender of the state died as well and its state did not arrive: returns this rank to its own progress. */
static void keep_own_progress(struct fit *t, const struct progress *mine) {
    set_progress(t, mine);
    if (mine->spread) return;
    mem_free(t->f->spread);
    t->f->spread = NULL;
}

static err remove_partial(const struct fit *t) {
    char dir[4096];
    if (!t->job->run_dir || comm_rank(t->job->use.comm) > 0) return 0;
    TRY(forecast_checkpoints(t, dir));
    return ckpt_sweep(dir);
}

static void describe_progress(const struct fit *t, const struct progress *s, char *out, size_t size) {
    const i64 members = t->f->spec.members, step = lmax(0, s->order[ORDER_STEP]);
    char member[48] = "";
    if (members > 1) snprintf(member, sizeof member, " of member %lld", (long long)s->order[ORDER_DONE] + 1);
    if (s->order[ORDER_LEVEL] == LEVEL_BEGINS) snprintf(out, size, "the beginning");
    else if (s->order[ORDER_DONE] >= members)
        snprintf(out, size, "the end of the %s", s->order[ORDER_REFIT] ? "refit" : "training");
    else snprintf(out, size, "step %lld%s%s", (long long)step, member, s->order[ORDER_REFIT] ? " of the refit" : "");
}

static void report_loss(const struct fit *t, const struct comm_loss *loss, f64 seconds) {
    const struct progress now = progress_of(t), *s = &now;
    char others[48] = "", where[120];
    const i32 left = comm_size(t->job->use.comm);
    if (loss->n > 1) snprintf(others, sizeof others, " and %d more", loss->n - 1);
    describe_progress(t, s, where, sizeof where);
    event_note(t->job->use.events, EVENT_WARNING,
               "rank %d (host %s, pid %d)%s died: %d rank%s of %d go%s on from %s after %.3f s, %s", loss->rank[0],
               loss->who.host, loss->who.pid, others, left, left > 1 ? "s" : "", loss->was, left > 1 ? "" : "es", where, seconds,
               store_used(&t->job->use) ? "pushes under way are repeated" : "no step is lost");
}

/* A rank leaves the fit only when all ranks have the full result (fit.c): if one has left, the others may leave, too. */
static err continue_fit(struct fit *t, i32 root, bool alike, bool ready, const struct progress *s, const struct comm_loss *loss) {
    TRY(remove_partial(t));
    t->at.over = s->order[ORDER_LEVEL] == LEVEL_OUT;
    if (t->at.over) return 0;
    if (!ready) { /* some rank has not prepared training yet: start again from the beginning */
        training_drop(t);
        mem_free(t->f->spread);
        t->f->spread = NULL;
        t->at.begun = t->at.refitting = false;
        t->at.done = 0;
        return 0;
    }
    const struct progress mine = progress_of(t);
    set_progress(t, s);
    TRY(store_lost(t, loss));
    if (alike) TRY(store_salvage(t, loss));
    TRY(prepare_again(t));
    const err e = alike ? 0 : receive_state(t, root, s);
    if (e < 0) keep_own_progress(t, &mine);
    return e;
}

err forecast_heal(struct fit *t, const struct comm_loss *loss) {
    struct comm *c = t->job->use.comm;
    const struct progress mine = progress_of(t);
    const f64 begin = clock_now();
    struct progress *all;
    bool alike, ready;
    NEW(all, comm_size(c));
    err e = comm_allgather(c, "standing", &mine, sizeof mine, all);
    const i32 root = most_progress(all, comm_size(c), &alike, &ready);
    if (e >= 0) e = continue_fit(t, root, alike, ready, &all[root], loss);
    if (e >= 0 && !t->at.over) report_loss(t, loss, loss->seconds + clock_now() - begin);
    mem_free(all);
    return e;
}

err forecast_healed(struct comm *c) {
    const struct progress mine = {.order = {LEVEL_OUT}};
    struct progress *all;
    NEW(all, comm_size(c));
    err e = comm_allgather(c, "standing", &mine, sizeof mine, all);
    mem_free(all);
    return e;
}
