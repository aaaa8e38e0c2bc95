/* save.c - see save.h. */
#include "learn/forecast/save.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/forecast/ops.h"
#include "learn/store/run.h"
#include "step/sent.h"

enum { METADATA = 1 << 15 }; /* of a model file, about: options and record */
enum { LOOK_NS = 200000, LOOKS = 250 }; /* between exchanges of messages: LOOKS polls, LOOK_NS apart */

/* The optimiser's state lies with the servers, or each rank has one of its own, of which rank 0's is written. */
static err store_shares(const struct fit *t, struct saving *s) {
    const struct store_shard *shard;
    const i32 n = store_owned(t, &shard);
    s->nshare = imax(1, n);
    ARENA_NEW(&s->arena, s->share, s->nshare);
    s->share[0] = (struct plan_share){.hi = t->step.engine.store.ntheta};
    for (i32 k = 0; k < n; k++) s->share[k] = (struct plan_share){shard[k].lo, shard[k].hi, shard[k].rank};
    return 0;
}

err saving_shares(struct fit *t) {
    struct saving *s = t->save.saving;
    if (!s) return 0;
    arena_free(&s->arena);
    if (t->store) return store_shares(t, s);
    return plan_shares(t->step.engine.plan, &s->arena, &s->share, &s->nshare);
}

static err make(struct fit *t) {
    NEW(t->save.saving, 1);
    NEW(t->save.saving->sum, comm_size(t->job->use.comm));
    return saving_shares(t);
}

static err open_saver(struct fit *t, const char *dir, i64 room) {
    struct comm *c = t->job->use.comm;
    const i32 me = comm_rank(c);
    char who[SAVER_WHO] = "this process";
    if (comm_size(c) > 1) snprintf(who, sizeof who, "rank %d on host %.63s", me, comm_rank_info(c, me)->host);
    t->save.saving->room = room;
    return ckpt_saver_new(dir, me, who, room, &t->save.saving->saver);
}

err saving_prepare(struct fit *t) {
    char dir[4096];
    i64 room;
    if (!t->job->run_dir) return 0;
    TRY(forecast_checkpoints(t, dir));
    TRY(make(t));
    TRY(forecast_state_room(t, &room));
    return open_saver(t, dir, room);
}

/* In stage 2 only rank 0 may touch the folder: it may be renaming it to its final name. */
void saving_free(struct saving *s, i32 rank) {
    if (!s) return;
    if (s->saver && s->stage == 2 && rank > 0) ckpt_saver_done(s->saver);
    ckpt_saver_free(s->saver);
    arena_free(&s->arena);
    mem_free(s->sum);
    mem_free(s);
}

/* Bytes of the model file: weights of all members, the tensors of the base, and metadata. */
static err model_bytes(const struct fit *t, i64 *bytes) {
    struct arena a = {0};
    struct tens_list parts = {.arena = &a};
    struct str json = {0};
    err e = forecast_save(&t->f->model, &parts, &json);
    *bytes = METADATA + (i64)json.len + t->f->spec.members * t->step.engine.store.ntheta * (i64)sizeof(f32);
    for (i32 i = 0; i < parts.n; i++) *bytes += tens_count(&parts.tens[i]) * (i64)dtype_size(parts.tens[i].dtype);
    arena_free(&a);
    str_free(&json);
    return e;
}

err saving_foresee(struct fit *t) {
    const struct learn_job *job = t->job;
    err e = 0;
    if (comm_rank(job->use.comm) == 0 && job->foresee) {
        i64 bytes;
        e = model_bytes(t, &bytes);
        if (e >= 0) e = job->foresee(job->owner, bytes, t->save.saving ? t->save.saving->room : 0);
    }
    return comm_share_failure(job->use.comm, "room", e);
}

enum train_saving saving_now(void *fit) {
    const struct saving *s = ((struct fit *)fit)->save.saving;
    return s->stage == 0 ? SAVING_NONE : ckpt_saver_busy(s->saver) ? SAVING_BUSY : SAVING_READY;
}

/* Abandons the checkpoint with the same warning on every rank. */
static void given_up(struct fit *t, const struct ckpt_sum *sum) {
    struct saving *s = t->save.saving;
    ckpt_saver_drop(s->saver);
    s->why = sum->why;
    s->stage = 0;
    event_note(t->job->use.events, EVENT_WARNING, "no checkpoint of step %lld: E%d, %s%s%.700s; the one before it stays",
               (long long)s->step, sum->why.code, sum->why.where, sum->why.where[0] ? ": " : "", sum->why.text);
}

static err shards_are_written(struct fit *t) {
    struct saving *s = t->save.saving;
    struct comm *c = t->job->use.comm;
    struct ckpt_sum mine;
    ckpt_saver_sum(s->saver, &mine);
    TRY(comm_allgather(c, "shards", &mine, sizeof mine, s->sum));
    for (i32 k = 0; k < comm_size(c); k++) {
        if (s->sum[k].why.code == 0) continue;
        given_up(t, &s->sum[k]);
        return 0;
    }
    s->stage = 2;
    if (comm_rank(c) == 0) ckpt_saver_commit(s->saver, s->sum);
    return 0;
}

static err is_committed(struct fit *t) {
    struct saving *s = t->save.saving;
    struct comm *c = t->job->use.comm;
    struct ckpt_sum first;
    ckpt_saver_sum(s->saver, &first);
    TRY(comm_broadcast(c, "checkpoint", &first, sizeof first));
    if (first.why.code != 0) {
        given_up(t, &first);
        return 0;
    }
    ckpt_saver_done(s->saver);
    s->stage = 0;
    s->why.code = 0;
    s->count++;
    for (i32 k = 0; k < comm_size(c); k++) s->bytes += s->sum[k].bytes;
    event_note(t->job->use.events, EVENT_SAVED, "%s/checkpoints", t->job->run_dir);
    return 0;
}

static void waited(struct saving *s, f64 since) {
    const f64 now = clock_now();
    s->waited += now - since;
    s->stall += now - since;
    s->worst = dmax(s->worst, s->waited);
}

err saving_next(void *fit) {
    struct fit *t = fit;
    const f64 since = clock_now();
    err e = t->save.saving->stage == 1 ? shards_are_written(t) : is_committed(t);
    waited(t->save.saving, since);
    return e;
}

/* Completes the checkpoint being written.  All ranks exchange messages at intervals, so a slow disk exceeds no deadline. */
static err finish(struct fit *t) {
    struct comm *c = t->job->use.comm;
    u8 mine, all[COMM_RANKS];
    while (t->save.saving->stage > 0) {
        for (i32 k = 0; k < LOOKS && ckpt_saver_busy(t->save.saving->saver); k++)
            nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        mine = ckpt_saver_busy(t->save.saving->saver);
        TRY(comm_allgather(c, "writing", &mine, sizeof mine, all));
        for (i32 k = 0; k < comm_size(c); k++) mine |= all[k];
        if (!mine) TRY(t->save.saving->stage == 1 ? shards_are_written(t) : is_committed(t));
    }
    return 0;
}

static err begin(struct fit *t, const struct train_state *state) {
    struct saving *s = t->save.saving;
    s->step = state->step;
    TRY(forecast_save_state(t, state));
    s->stage = 1;
    return 0;
}

err saving_begin(void *fit, const struct train_state *state, bool last) {
    struct fit *t = fit;
    struct saving *s = t->save.saving;
    const f64 since = clock_now();
    if (s->began <= 0) s->began = since - 1e-9;
    if (last) {
        TRY(finish(t));
        for (i32 tries = 0; tries < 2; tries++) {
            TRY(begin(t, state));
            TRY(finish(t));
            if (s->why.code == 0) return 0;
            if (t->job->make_room) t->job->make_room(t->job->owner); /* the same on every rank: all try again */
        }
        err_put(&s->why);
        return -s->why.code;
    }
    s->waited = 0;
    s->begun++;
    TRY(begin(t, state));
    waited(s, since);
    return 0;
}

/* Saves the last member's state with all its steps done: a resumed run continues behind its training.  After a time limit such a
 * checkpoint exists already. */
err saving_after(struct fit *t, err e) {
    struct forecaster *f = t->f;
    if (e != -E806 || !t->save.saving || f->nmember == 0 || f->model.stopped == STOP_TIME) return e;
    f->steps_done -= t->at.state.step; /* they are counted when the member ends, once more */
    f->model.seconds -= t->at.state.seconds;
    if (!t->at.refitting) mem_free(f->spread);
    if (!t->at.refitting) f->spread = NULL; /* measured again */
    event_phase(t->job->use.events, "checkpoint");
    TRY(saving_begin(t, &t->at.state, true));
    err_clear();
    return STOP_SIGNAL;
}

err saving_end(struct fit *t) {
    struct saving *s = t->save.saving;
    if (!s) return 0;
    TRY(finish(t));
    if (s->begun == 0 || s->count == 0) return 0;
    const f64 run = clock_now() - s->began;
    event_note(t->job->use.events, EVENT_DETAIL,
               "checkpoints: %lld of %.2f MB; steps waited %.2f ms for one, %.2f ms at most: %.3f %% of the time since the first",
               (long long)s->count, (f64)s->bytes / (f64)s->count / 1e6, 1e3 * s->stall / (f64)s->begun, 1e3 * s->worst,
               100 * s->stall / run);
    return 0;
}
