/* heal.c - elastic recovery: after the death of a rank, the surviving ranks continue in the same processes, from the newest
 * step that any of them has completed.
 *
 *     rank 0   step 811 | 812 ...          | meet | standings | plan for two | step 812 ..
 *     rank 1   step 811 | 812 kill -9      .
 *     rank 2   step 811 | 812 done | 813.. | meet | farthest  | plan for two | its state to all: step 813 ..
 *
 * With recovery allowed, every rank holds all weights and the whole optimizer state after each step (plan.whole), and a step
 * takes effect completely or not at all (exec_step). Recovery is therefore a resume from memory; it reads no checkpoint. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ckpt/checkpoint.h"
#include "learn/forecast/save.h"

/* Progress of a rank: `far`, compared in order, the first entry counts most; then the values that the others adopt from it. */
struct standing {
    i64 far[5]; /* LEVEL_..; refit; members done; steps of the next member, -1 = not begun; enum train_place */
    i64 held, slices, slice_rank, nband, spread, guard, stopped;
};
enum { LEVEL_BEGINS, LEVEL_PREPARED, LEVEL_OUT }; /* OUT: the rank has left the fit and has its full result */
enum { FAR_LEVEL, FAR_REFIT, FAR_DONE, FAR_STEP, FAR_PLACE };

static struct standing standing_of(const struct fit *t) {
    const struct forecaster *f = t->f;
    const i64 step = t->at.begun ? t->at.state.step : -1, place = t->at.begun ? t->at.state.place : 0;
    return (struct standing){.far = {t->step.prepared ? LEVEL_PREPARED : LEVEL_BEGINS, t->at.refitting, t->at.done, step, place},
                             .held = f->nmember,
                             .slices = f->spec.cut.slices,
                             .slice_rank = f->spec.slice_rank,
                             .nband = f->spec.nband,
                             .spread = f->spread != NULL,
                             .guard = f->has_guard,
                             .stopped = f->model.stopped};
}

static i32 order(const struct standing *a, const struct standing *b) {
    for (size_t i = 0; i < COUNT(a->far); i++)
        if (a->far[i] != b->far[i]) return a->far[i] < b->far[i] ? -1 : 1;
    return 0;
}

/* Returns the lowest rank with the most progress. *alike: all ranks have equal progress; *ready: all have prepared training. */
static i32 farthest(const struct standing *all, i32 n, bool *alike, bool *ready) {
    i32 best = 0;
    *alike = *ready = true;
    for (i32 k = 0; k < n; k++) {
        if (order(&all[k], &all[best]) > 0) best = k;
        *alike = *alike && order(&all[k], &all[0]) == 0;
        *ready = *ready && all[k].far[FAR_LEVEL] > LEVEL_BEGINS;
    }
    return best;
}

/* --- the new group of ranks --- */

/* Removes the dead ranks from the machine that plans are made for. */
static err fewer(struct fit *t, const struct comm_loss *loss) {
    struct resources *use = &t->own.use;
    if (!t->left) {
        NEW(t->left, 1);
        *t->left = *use->ranks;
    }
    machine_without(t->left, loss->rank, loss->n);
    use->ranks = t->left->nrank > 1 ? t->left : NULL;
    return 0;
}

/* Waits for the saver thread and deletes an uncommitted checkpoint first: its shards belong to the old group of ranks. */
err forecast_meet(struct fit *t, struct comm_loss *loss) {
    struct comm *c = t->job->use.comm;
    saving_free(t->save.saving, comm_rank(c));
    t->save.saving = NULL;
    TRY(comm_recover(c, loss));
    if (t->own.healed) t->own.healed(t->own.owner, loss);
    return fewer(t, loss);
}

/* --- continuing --- */

static void adopt(struct fit *t, const struct standing *s) {
    struct forecaster *f = t->f;
    t->at.refitting = s->far[FAR_REFIT] != 0;
    t->at.done = (i32)s->far[FAR_DONE];
    t->at.begun = s->far[FAR_STEP] >= 0;
    f->spec.cut.slices = (i32)s->slices;
    f->spec.slice_rank = (i32)s->slice_rank;
    f->spec.nband = (i32)s->nband;
    f->has_guard = s->guard != 0;
    f->model.stopped = (err)s->stopped;
}

/* Plans and binds again for the new group; keeps the weights and the optimizer state. */
static err prepare_again(struct fit *t) {
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

static err take_state(struct fit *t, i32 root, const struct standing *s) {
    struct forecaster *f = t->f;
    const i64 floats = (i64)t->series->ntarget * f->spec.nband * f->spec.horizon;
    if (!t->at.state.good) TRY(train_state_new(&t->step.engine.store, &t->at.state));
    if (!s->spread || !f->spread) {
        mem_free(f->spread);
        f->spread = NULL;
        if (s->spread) NEW(f->spread, floats);
    }
    TRY(forecast_share_state(t, root, s->held));
    t->at.state.place = s->far[FAR_PLACE];
    return 0;
}

/* The sender of the state died as well and its state did not arrive: returns this rank to its own progress. */
static void stay(struct fit *t, const struct standing *mine) {
    adopt(t, mine);
    if (mine->spread) return;
    mem_free(t->f->spread);
    t->f->spread = NULL;
}

static err sweep(const struct fit *t) {
    char dir[4096];
    if (!t->job->run_dir || comm_rank(t->job->use.comm) > 0) return 0;
    TRY(forecast_checkpoints(t, dir));
    return ckpt_sweep(dir);
}

static void name_place(const struct fit *t, const struct standing *s, char *out, size_t size) {
    const i64 members = t->f->spec.members, step = lmax(0, s->far[FAR_STEP]);
    char member[48] = "";
    if (members > 1) snprintf(member, sizeof member, " of member %lld", (long long)s->far[FAR_DONE] + 1);
    if (s->far[FAR_LEVEL] == LEVEL_BEGINS) snprintf(out, size, "the beginning");
    else if (s->far[FAR_DONE] >= members) snprintf(out, size, "the end of the %s", s->far[FAR_REFIT] ? "refit" : "training");
    else snprintf(out, size, "step %lld%s%s", (long long)step, member, s->far[FAR_REFIT] ? " of the refit" : "");
}

static void tell(const struct fit *t, const struct comm_loss *loss, const struct standing *s, f64 seconds) {
    char others[48] = "", where[120];
    const i32 left = comm_size(t->job->use.comm);
    if (loss->n > 1) snprintf(others, sizeof others, " and %d more", loss->n - 1);
    name_place(t, s, where, sizeof where);
    event_note(t->job->use.events, EVENT_WARNING,
               "rank %d (host %s, pid %d)%s died: %d rank%s of %d go%s on from %s after %.3f s, no step is lost", loss->rank[0],
               loss->who.host, loss->who.pid, others, left, left > 1 ? "s" : "", loss->was, left > 1 ? "" : "es", where, seconds);
}

/* A rank leaves the fit only when all ranks have the full result (fit.c): if one has left, the others may leave, too. */
static err go_on(struct fit *t, i32 root, bool alike, bool ready, const struct standing *s) {
    TRY(sweep(t));
    t->at.over = s->far[FAR_LEVEL] == LEVEL_OUT;
    if (t->at.over) return 0;
    if (!ready) { /* some rank has not prepared training yet: start again from the beginning */
        training_drop(t);
        mem_free(t->f->spread);
        t->f->spread = NULL;
        t->at.begun = t->at.refitting = false;
        t->at.done = 0;
        return 0;
    }
    const struct standing mine = standing_of(t);
    adopt(t, s);
    TRY(prepare_again(t));
    const err e = alike ? 0 : take_state(t, root, s);
    if (e < 0) stay(t, &mine);
    return e;
}

err forecast_heal(struct fit *t, const struct comm_loss *loss) {
    struct comm *c = t->job->use.comm;
    const struct standing mine = standing_of(t);
    const f64 begin = clock_now();
    struct standing *all;
    bool alike, ready;
    NEW(all, comm_size(c));
    err e = comm_allgather(c, "standing", &mine, sizeof mine, all);
    const i32 root = farthest(all, comm_size(c), &alike, &ready);
    if (e >= 0) e = go_on(t, root, alike, ready, &all[root]);
    if (e >= 0 && !t->at.over) tell(t, loss, &all[root], loss->seconds + clock_now() - begin);
    mem_free(all);
    return e;
}

err forecast_healed(struct comm *c) {
    const struct standing mine = {.far = {LEVEL_OUT}};
    struct standing *all;
    NEW(all, comm_size(c));
    err e = comm_allgather(c, "standing", &mine, sizeof mine, all);
    mem_free(all);
    return e;
}
