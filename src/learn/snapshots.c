/* snapshots.c - see snapshots.h.
 *
 *     RUN/checkpoints/N.ckpt     data, options: hashes of what the state depends on; then the items of the learner */
#include "learn/snapshots.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checkpoints.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "learn/map_run.h"

enum { KEEP = 2, LOOK_NS = 200000, LOOKS = 250 }; /* LOOKS polls, LOOK_NS apart, between messages to ranks that wait */

void snapshot_add(struct snapshot *s, const char *name, enum dtype dtype, const void *p, i64 n) {
    s->item[s->n++] = (struct ckpt_item){name, dtype, (void *)(uintptr_t)p, n};
}

/* ------------------------------------------------------------------ going on ------------------------------------------------ */

/* Texts of the learner's options, and the split; what a resumed run may change is left out. */
static u64 options_hash(const struct learner *l, const struct learn_job *job) {
    u64 h = hash_bytes(HASH_SEED, &job->split, sizeof job->split);
    for (const enum opt_id *id = l->takes; id && *id != OPT_COUNT; id++) {
        const char *text = job->o->meta[*id].text;
        if ((opt_info(*id)->verbs & 1u << VERB_resume) || !text) continue;
        h = hash_bytes(h, opt_info(*id)->name, strlen(opt_info(*id)->name) + 1);
        h = hash_bytes(h, text, strlen(text) + 1);
    }
    return h;
}

/* Rank 0 finds the newest intact checkpoint; none is no error. */
static err look(struct snapshots *s, const char *dir) {
    const struct events *ev = s->job->use.events;
    struct str passed = {0};
    const err e = ckpt_newest(dir, &passed, &s->found);
    if (e >= 0 && passed.len > 0)
        event_note(ev, EVENT_WARNING, "%s\npassed over; continuing from %s", str_text(&passed), ckpt_name(s->found));
    str_free(&passed);
    if (e != -E705) return e;
    err_clear();
    event_note(ev, EVENT_NOTE, "there is no checkpoint in %s yet: training begins at the start", s->job->run_dir);
    return 0;
}

static err same_run(const struct snapshots *s) {
    u64 data = 0, options = 0;
    const struct ckpt_item head[] = {{"data", DTYPE_I64, &data, 1}, {"options", DTYPE_I64, &options, 1}};
    char fix[4200];
    TRY(ckpt_take(s->found, head, COUNT(head)));
    if (data != s->data)
        return FAIL_AT(E215, s->job->data->path, "the file as it was when the run began   or   a new run with stretto train",
                       "the values are not those that the run in %s began with", s->job->run_dir);
    if (options == s->options) return 0;
    snprintf(fix, sizeof fix, "stretto resume %s   without options that change the training", s->job->run_dir);
    return FAIL_AT(E106, s->job->run_dir, fix, "the checkpoint belongs to a training with other options");
}

static err find(struct snapshots *s, const char *dir) {
    struct comm *c = s->job->use.comm;
    err e = 0;
    u8 found;
    if (comm_rank(c) == 0) e = look(s, dir);
    if (e >= 0 && s->found) e = same_run(s);
    TRY(comm_share_failure(c, "checkpoint", e));
    found = s->found != NULL;
    TRY(comm_broadcast(c, "found", &found, sizeof found));
    s->resumes = found;
    if (s->found) event_note(s->job->use.events, EVENT_NOTE, "resumed from %s", ckpt_name(s->found));
    return 0;
}

err snapshots_open(const struct learn_job *job, struct snapshots *out) {
    const f64 limit = job->o->time_limit;
    const struct learner *learner;
    char dir[4096];
    *out = (struct snapshots){.job = job, .saved = clock_now(), .deadline = limit > 0 ? clock_now() + limit : 0};
    if (!job->run_dir) return 0;
    TRY(checkpoints_of(job->run_dir, dir));
    out->data = job->data->kind->hash(job->data);
    TRY(learner_of(job->o, &learner));
    out->options = options_hash(learner, job);
    if (job->resume) TRY(find(out, dir));
    if (comm_rank(job->use.comm) > 0) return 0;
    TRY(ckpt_sweep(dir));
    return ckpt_saver_new(dir, 0, "this process", 0, &out->saver);
}

err snapshots_take(const struct snapshots *s, const struct snapshot *to) {
    struct comm *c = s->job->use.comm;
    TRY(comm_share_failure(c, "checkpoint", s->found ? ckpt_take(s->found, to->item, to->n) : 0));
    for (i32 i = 0; i < to->n; i++) TRY(comm_broadcast(c, to->item[i].name, to->item[i].p, ckpt_item_bytes(&to->item[i])));
    return 0;
}

err snapshots_unsound(const struct snapshots *s) {
    return FAIL(E901, "the checkpoint in %s holds numbers that no training leaves behind", s->job->run_dir);
}

/* ------------------------------------------------------------------ saving -------------------------------------------------- */

static err begin(struct snapshots *s, i64 number, const struct snapshot *state) {
    struct ckpt_piece piece[SNAPSHOT_ITEMS + 2];
    struct ckpt_item item[SNAPSHOT_ITEMS + 2] = {{"data", DTYPE_I64, &s->data, 1}, {"options", DTYPE_I64, &s->options, 1}};
    const i32 n = state->n + 2;
    i32 npiece = 0;
    memcpy(item + 2, state->item, sizeof *item * (size_t)state->n);
    for (i32 i = 0; i < n; i++)
        if (item[i].n > 0) piece[npiece++] = (struct ckpt_piece){i, 0, 0, item[i].n};
    s->saved = clock_now();
    TRY(ckpt_saver_begin(s->saver, &(struct ckpt_save){.number = number,
                                                       .step = number,
                                                       .item = item,
                                                       .nitem = n,
                                                       .keep = KEEP,
                                                       .pieces = {piece, npiece, 1}}));
    s->stage = 1;
    return 0;
}

/* Goes on with a checkpoint whose thread has ended; a failure leaves the one before it. */
static err go_on(struct snapshots *s) {
    struct ckpt_sum sum;
    ckpt_saver_sum(s->saver, &sum);
    if (sum.why.code != 0) {
        ckpt_saver_drop(s->saver);
        s->stage = 0;
        err_put(&sum.why);
        return -sum.why.code;
    }
    if (s->stage == 1) {
        ckpt_saver_commit(s->saver, &sum);
        s->stage = 2;
        return 0;
    }
    ckpt_saver_done(s->saver);
    s->stage = 0;
    event_note(s->job->use.events, EVENT_SAVED, "%s/checkpoints", s->job->run_dir);
    return 0;
}

static void warn(const struct snapshots *s) {
    const struct err_record *why = err_last();
    event_note(s->job->use.events, EVENT_WARNING, "no checkpoint: E%d, %s%s%.700s; the one before it stays", why->code,
               why->where, why->where[0] ? ": " : "", why->text);
    err_clear();
}

static err save(struct snapshots *s, i64 number, snapshot_list *list, void *self) {
    struct snapshot state = {0};
    err e = list(self, &state);
    if (e >= 0) e = begin(s, number, &state);
    arena_free(&state.arena);
    return e;
}

void snapshots_advance(struct snapshots *s) {
    if (s->stage > 0 && !ckpt_saver_busy(s->saver) && go_on(s) < 0) warn(s);
}

/* Completes what is being written; the other ranks wait for messages, so that a slow disk exceeds no deadline. */
static err finish(struct snapshots *s) {
    struct comm *c = s->job->use.comm;
    u8 busy = 1;
    err e = 0;
    for (;;) {
        for (i32 k = 0; k < LOOKS && s->stage > 0 && ckpt_saver_busy(s->saver); k++)
            nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        if (s->stage > 0 && !ckpt_saver_busy(s->saver)) e = go_on(s);
        busy = s->stage > 0;
        TRY(comm_broadcast(c, "writing", &busy, sizeof busy));
        if (!busy) return comm_share_failure(c, "checkpoint", e);
    }
}

/* A checkpoint of now, complete when this returns; once more behind a full disk, with the room that was kept for the model. */
static err save_now(struct snapshots *s, i64 number, snapshot_list *list, void *self) {
    if (finish(s) < 0) err_clear(); /* of a state before this one */
    if (s->gather) TRY(s->gather(self));
    for (i32 tries = 0;; tries++) {
        err e = s->saver ? save(s, number, list, self) : 0;
        e = comm_share_failure(s->job->use.comm, "checkpoint", e);
        if (e >= 0) e = finish(s);
        if (e >= 0 || tries > 0) return e;
        if (s->job->make_room) s->job->make_room(s->job->owner);
    }
}

err snapshots_save(struct snapshots *s, i64 number, snapshot_list *list, void *self, bool last) {
    if (!s->job->run_dir) return 0;
    if (last) return save_now(s, number, list, self);
    if (s->gather) TRY(s->gather(self));
    if (s->saver && s->stage == 0 && save(s, number, list, self) < 0) warn(s); /* one that is being written stands for this one */
    return 0;
}

static bool is_due(const struct snapshots *s) {
    const f64 every = s->job->o->checkpoint_every;
    return s->saver && s->stage == 0 && every > 0 && clock_now() - s->saved > every;
}

err snapshots_turn(struct snapshots *s, i64 number, snapshot_list *list, void *self, bool *late) {
    u32 seen;
    snapshots_advance(s);
    TRY(map_run_look(&s->job->use, s->deadline, is_due(s) ? MAP_SEES_OLD : 0, &seen));
    const bool signal = seen & MAP_SEES_SIGNAL, last = signal || (seen & MAP_SEES_LATE);
    *late = seen & MAP_SEES_LATE;
    if (signal && !s->job->run_dir) return FAIL(E806, "stopped by a signal; there is no run folder for a checkpoint");
    if (signal) event_phase(s->job->use.events, "checkpoint");
    if (last || (seen & MAP_SEES_OLD)) TRY(snapshots_save(s, number, list, self, last));
    return signal ? STOP_SIGNAL : 0;
}

void snapshots_close(struct snapshots *s) {
    ckpt_saver_free(s->saver);
    ckpt_close(s->found);
    *s = (struct snapshots){0};
}
