/* state.c - what a checkpoint of a fit holds: the member in training, the members that are done, the loop's counters.
 *
 *     RUN/checkpoints/N.ckpt    N = steps done over all members: grows through the run
 *
 *     counters, ahead  | rank 0 ................................. |     every rank has these
 *     theta, exp_avg.. | rank 0 ... | rank 1 ... | rank 2 ....... |     as the plan deals the update out
 *     ends             | rank 0 ...... | rank 1 ..... | rank 2 .. |     every rank has these too, but they are many
 *     residual         | rank 0 . | rank 1 ........ | rank 2 .... |     what codecs dropped from messages that the rank sends */
#include <stdio.h>
#include <string.h>

#include "base/checkpoints.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"
#include "learn/forecast/save.h"
#include "learn/forecast/shares.h"
#include "learn/slices/slices.h"
#include "learn/store/run.h"

enum { ITEMS = 52, KEEP = 2, VECTORS = 7 }; /* VECTORS: theta, two of state, best, good of the first three */

struct state_file {
    struct ckpt_item item[ITEMS];
    i64 common[ITEMS];                /* first elements, which all ranks have; then vectors as the update is dealt out */
    i64 row[ITEMS];                   /* of an item of rows, which all ranks have: elements of one; 0 = it is none */
    const i64 *at_rank[ITEMS];        /* [ranks + 1] of an item of which rank k has [at_rank[k], at_rank[k+1]); else NULL */
    bool cold;                        /* without the ends of slices */
    bool plain;                       /* of an earlier version: without the losses since the last validation */
    bool roundless;                   /* of an earlier version: without the round of steps */
    bool lossless;                    /* without residuals of codecs */
    bool paused;                      /* a stop ended a leg of a parameter store early */
    i64 pause_key;
    f32 *pause;
    bool timeless;                    /* without what followed the clock in a parameter store: of an earlier version */
    struct exec_residuals sent;       /* of which `residual` is the vector */
    f32 *residual;
    i32 n;
    i64 member, done, phase, params;  /* phase 1 = refit */
    i64 slices, rank;                 /* of time; directions in which their begins are foreseen */
    f32 *members;                     /* [done][ntheta] */
};

static void add(struct state_file *s, const char *name, enum dtype dtype, void *p, i64 n) {
    s->common[s->n] = n;
    s->item[s->n++] = (struct ckpt_item){name, dtype, p, n};
}

static void add_dealt(struct state_file *s, const char *name, f32 *p, i64 common, i64 n) {
    add(s, name, DTYPE_F32, p, n);
    s->common[s->n - 1] = common;
}

static void add_rows(struct state_file *s, const char *name, f32 *p, i64 rows, i64 row) {
    add(s, name, DTYPE_F32, p, rows * row);
    s->common[s->n - 1] = 0;
    s->row[s->n - 1] = row;
}

/* What slices of time left at their ends, where steps begin from that. */
static void add_ends(const struct fit *t, struct state_file *f) {
    struct stale_ends e;
    if (f->cold || !stale_kept(t, &e)) return;
    add(f, "ends.key", DTYPE_I64, e.key, 1);
    add(f, "ends.known", DTYPE_U8, e.known, e.places);
    add_rows(f, "ends", e.end, e.places, e.floats);
}

/* Floats that each rank has alone: of codecs on the plan's messages, or of a parameter store. */
static struct exec_residuals residuals_of(const struct fit *t) {
    const i32 ranks = comm_size(t->job->use.comm);
    if (!t->store) return exec_residuals(step_exec(t->step.engine.exec));
    const i64 *first = store_private_first(t);
    struct exec_residuals r = {.first = (i64 *)(uintptr_t)first, .floats = first[ranks]};
    r.key = (i64)comm_hash(COMM_HASH, first, sizeof *first * (size_t)(ranks + 1));
    return r;
}

static void save_residuals(const struct fit *t, f32 *to) {
    if (t->store) store_private_save(t, to + store_private_first(t)[comm_rank(t->job->use.comm)]);
    else exec_save_residuals(step_exec(t->step.engine.exec), to);
}

static void load_residuals(struct fit *t, const f32 *from) {
    if (t->store) store_private_load(t, from + store_private_first(t)[comm_rank(t->job->use.comm)]);
    else exec_load_residuals(step_exec(t->step.engine.exec), from);
}

static void add_residuals(const struct fit *t, struct state_file *f) {
    f->sent = residuals_of(t);
    const i64 n = f->sent.floats;
    if (f->lossless || n == 0) return;
    add(f, "residual.key", DTYPE_I64, &f->sent.key, 1);
    add_dealt(f, "residual", f->residual, 0, n);
    f->at_rank[f->n - 1] = f->sent.first;
}

static void add_reached(const struct fit *t, struct state_file *f) {
    struct store_reached *s = store_reached(t);
    if (f->timeless || !s) return;
    add(f, "store.reached", DTYPE_I64, s->count, REACHED_COUNTS);
    add(f, "store.gain", DTYPE_F64, s->gain, (i64)COUNT(s->gain));
    add(f, "store.decisions", DTYPE_U8, t->f->store->decision, (i64)sizeof t->f->store->decision);
}

static void add_pause(const struct fit *t, struct state_file *f) {
    if (!f->paused) return;
    f->pause_key = store_pause_key(t);
    add(f, "store.pause.key", DTYPE_I64, &f->pause_key, 1);
    add(f, "store.pause", DTYPE_F32, f->pause, store_pause_floats(t));
}

/* Residual quantiles are measured before a refit and kept through it. */
static i64 spread_floats(const struct fit *t) { return forecast_spread_floats(t->f, t->series->ntarget); }

/* Every item in a fixed order; `done` members are part of it, so that count must be known. */
static void list(struct fit *t, struct train_state *s, struct state_file *f) {
    struct store *st = &t->step.engine.store;
    i64 P = st->ntheta;
    add(f, "member", DTYPE_I64, &f->member, 1);
    add(f, "done", DTYPE_I64, &f->done, 1);
    add(f, "phase", DTYPE_I64, &f->phase, 1);
    add(f, "slices", DTYPE_I64, &f->slices, 1);
    add(f, "slice_rank", DTYPE_I64, &f->rank, 1);
    add(f, "watch", DTYPE_U8, &t->f->slices->watch, (i64)sizeof t->f->slices->watch);
    add(f, "best_steps", DTYPE_I64, t->at.best_steps, MEMBERS_MAX);
    add(f, "steps_done", DTYPE_I64, &t->f->steps_done, 1);
    add(f, "seconds_done", DTYPE_F64, &t->f->model.seconds, 1);
    add(f, "weight", DTYPE_F64, &t->f->weight, 1);
    if (forecast_averages(&t->f->spec)) add(f, "shares", DTYPE_U8, &t->f->shares, (i64)sizeof t->f->shares);
    add(f, "guard.t", DTYPE_F64, &t->f->guard.t, 1);
    add(f, "guard.base", DTYPE_F64, &t->f->guard.loss_base, 1);
    add(f, "guard.both", DTYPE_F64, &t->f->guard.loss_both, 1);
    add(f, "guard.blocks", DTYPE_U8, &t->f->guard.nblock, (i64)sizeof t->f->guard.nblock);
    add(f, "step", DTYPE_I64, &s->step, 1);
    add(f, "best_step", DTYPE_I64, &s->best_step, 1);
    add(f, "best", DTYPE_F64, &s->best, 1);
    add(f, "bad", DTYPE_I64, &s->bad, 1);
    add(f, "lr_factor", DTYPE_F64, &s->lr_factor, 1);
    add(f, "rollbacks", DTYPE_I64, &s->rollbacks, 1);
    add(f, "seconds", DTYPE_F64, &s->seconds, 1);
    add(f, "good_step", DTYPE_I64, &s->good_step, 1);
    if (!f->roundless) add(f, "round_end", DTYPE_I64, &s->end, 1);
    if (!f->roundless) add(f, "round_mark", DTYPE_F64, &s->mark, 1);
    if (!f->plain) add(f, "loss_sum", DTYPE_F64, &s->loss_sum, 1);
    if (!f->plain) add(f, "loss_count", DTYPE_I64, &s->loss_count, 1);
    if (policy_delay(t->job->use.policy) > 0) { /* due or not: a file of one form */
        add(f, "ahead.due", DTYPE_I64, &s->due, 1);
        add(f, "ahead.loss", DTYPE_F64, &s->ahead_loss, 1);
        add(f, "ahead.norm", DTYPE_F64, &s->ahead_norm, 1);
        add(f, "ahead", DTYPE_F32, s->ahead, P);
    }
    const i64 common = t->store ? P : 0; /* of weights: else the rank that updates them writes them */
    add_dealt(f, "theta", st->theta, common, P);
    for (i32 k = 0; k < st->optim->nstate; k++) add_dealt(f, st->optim->state_name[k], st->state[k], 0, P);
    add_dealt(f, "best_theta", s->best_theta, common, P);
    add_dealt(f, "good", s->good, common, (1 + st->optim->nstate) * P);
    if (f->done > 0) add(f, "members", DTYPE_F32, f->members, f->done * P);
    if (t->f->spread) add(f, "spread", DTYPE_F32, t->f->spread, spread_floats(t));
    add_residuals(t, f);
    add_reached(t, f);
    add_pause(t, f);
    add_ends(t, f);
}

err forecast_checkpoints(const struct fit *t, char dir[4096]) {
    return checkpoints_of(t->job->run_dir, dir);
}

/* ------------------------------------------------------------------ saving -------------------------------------------------- */

/* First element that rank k writes of an item of ranges, or of rows, which all ranks have: about as many each. */
static i64 range_first(const struct state_file *f, i32 i, i32 k, i32 ranks) {
    if (f->at_rank[i]) return f->at_rank[i][k];
    return f->item[i].n / f->row[i] * k / ranks * f->row[i];
}

static i32 deal_ranges(const struct state_file *f, i32 i, i32 ranks, struct ckpt_piece *piece) {
    i32 n = 0;
    for (i32 k = 0; k < ranks; k++) {
        const i64 lo = range_first(f, i, k, ranks), hi = range_first(f, i, k + 1, ranks);
        if (hi > lo) piece[n++] = (struct ckpt_piece){i, k, lo, hi};
    }
    return n;
}

static err deal(const struct fit *t, const struct state_file *f, struct arena *a, struct ckpt_pieces *out) {
    const struct saving *s = t->save.saving;
    const i64 P = t->step.engine.store.ntheta;
    const i32 ranks = comm_size(t->job->use.comm);
    struct ckpt_piece *piece;
    i32 n = 0;
    ARENA_NEW(a, piece, f->n + VECTORS * (s->nshare + 1) + 2 * ranks); /* ends, residuals */
    for (i32 i = 0; i < f->n; i++) {
        if (f->row[i] > 0 || f->at_rank[i]) {
            n += deal_ranges(f, i, ranks, piece + n);
            continue;
        }
        if (f->common[i] > 0) piece[n++] = (struct ckpt_piece){i, 0, 0, f->common[i]};
        for (i64 at = f->common[i]; at < f->item[i].n; at += P)
            for (i32 k = 0; k < s->nshare; k++)
                piece[n++] = (struct ckpt_piece){i, s->share[k].rank, at + s->share[k].lo, at + s->share[k].hi};
    }
    *out = (struct ckpt_pieces){piece, n, ranks};
    return 0;
}

/* For people: what the numbers of the loop mean.  The order of the data follows from seed and cursor alone. */
static err about(const struct fit *t, const struct train_state *s, struct str *out) {
    const struct forecast_spec *spec = &t->f->spec;
    const i64 drawn = s->step * spec->accumulate * t->step.batch.nwin * store_parts(t); /* windows */
    struct js *o = js_object();
    js_put_i64(o, "step", s->step);
    js_put_i64(o, "steps", s->end);
    js_put_i64(o, "member", t->at.member);
    js_put_i64(o, "members", spec->members);
    js_put_bool(o, "refit", t->at.refitting);
    js_put_i64(o, "cursor", drawn);
    js_put_f64(o, "epoch", (f64)drawn / (f64)lmax(1, forecast_epoch(spec, t->series, t->job->split.train)));
    js_put_i64(o, "seed", (i64)spec->seed);
    js_put_text(o, "optim", spec->optim);
    js_put_f64(o, "lr", spec->lr);
    err e = js_text(o, out, 0);
    js_free(o);
    return e;
}

static err hand_over(struct fit *t, const struct train_state *s, struct state_file *f, struct arena *a) {
    struct str run = {0};
    struct train_state copy = *s;
    const i64 P = t->step.engine.store.ntheta;
    if (policy_delay(t->job->use.policy) > 0 && !copy.due) copy.ahead = t->step.engine.store.theta;
    struct ckpt_save save = {.step = s->step, .item = f->item, .keep = KEEP};
    save.number = (f->phase * t->f->spec.members + f->member) * (lmax(t->step.steps, t->f->spec.max_steps) + 1) + s->step;
    const bool mine = comm_rank(t->job->use.comm) == 0; /* members that are done stand in its shard */
    if (mine && f->done > 0) ARENA_NEW(a, f->members, f->done * P);
    for (i64 m = 0; mine && m < f->done; m++) memcpy(f->members + m * P, t->f->theta[m], sizeof(f32) * (size_t)P);
    f->pause = (f32 *)(uintptr_t)store_paused(t);
    f->paused = f->pause != NULL;
    ARENA_NEW(a, f->residual, residuals_of(t).floats);
    save_residuals(t, f->residual);
    list(t, &copy, f);
    save.nitem = f->n;
    TRY(deal(t, f, a, &save.pieces));
    err e = about(t, s, &run);
    save.run = run.s;
    if (e >= 0) e = ckpt_saver_begin(t->save.saving->saver, &save);
    str_free(&run);
    return e;
}

err forecast_save_state(struct fit *t, const struct train_state *s) {
    struct state_file f = {.member = t->at.member,
                           .done = t->at.refitting ? t->f->nmember : t->at.member,
                           .phase = t->at.refitting,
                           .slices = t->f->spec.cut.slices, .rank = t->f->spec.slice_rank};
    struct arena a = {0};
    err e = hand_over(t, s, &f, &a);
    arena_free(&a);
    return e;
}

/* Bytes that this rank copies for a checkpoint with all that the run will hold. */
err forecast_state_room(struct fit *t, i64 *bytes) {
    struct state_file f = {.done = t->f->spec.members, .paused = store_pause_floats(t) > 0};
    struct train_state none = {0};
    struct ckpt_pieces pieces;
    struct arena a = {0};
    list(t, &none, &f);
    err e = deal(t, &f, &a, &pieces);
    if (e >= 0) *bytes = ckpt_saver_bytes(f.item, &pieces, comm_rank(t->job->use.comm));
    arena_free(&a);
    return e;
}

/* ------------------------------------------------------------------ going on ------------------------------------------------ */

static err take_members(struct fit *t, const struct state_file *f) {
    i64 P = t->step.engine.store.ntheta;
    for (i64 m = 0; m < f->done; m++) {
        if (!t->f->theta[m]) NEW(t->f->theta[m], P);
        memcpy(t->f->theta[m], f->members + m * P, sizeof(f32) * (size_t)P);
        t->f->nmember = imax(t->f->nmember, (i32)m + 1);
    }
    return 0;
}

/* Takes numbers, where the checkpoint has them. */
static bool holds_all(const struct fit *t, const char *name, enum dtype dtype, void *p, i64 n) {
    const bool got = ckpt_take(t->save.found, &(struct ckpt_item){name, dtype, p, n}, 1) >= 0;
    if (!got) err_clear();
    return got;
}

static bool holds(const struct fit *t, const char *name, enum dtype dtype, void *p) { return holds_all(t, name, dtype, p, 1); }

static bool has_reached(const struct fit *t) {
    i64 count[REACHED_COUNTS];
    return store_reached(t) && holds_all(t, "store.reached", DTYPE_I64, count, REACHED_COUNTS);
}

static bool has_pause(const struct fit *t) {
    i64 key;
    return store_pause_floats(t) > 0 && holds(t, "store.pause.key", DTYPE_I64, &key) && key == store_pause_key(t);
}

/* True if the number `name` of the checkpoint is `want`; else warns that `what` is missing, or is `other`. */
static bool same_key(const struct fit *t, const char *name, i64 want, const char *what, const char *other) {
    i64 key = 0;
    const bool got = holds(t, name, DTYPE_I64, &key);
    if (got && key == want) return true;
    event_note(t->job->use.events, EVENT_WARNING, "%s in %s are %s", what, ckpt_name(t->save.found), got ? other : "missing");
    return false;
}

static bool has_ends(const struct fit *t) {
    struct stale_ends e;
    return stale_kept(t, &e) && same_key(t, "ends.key", *e.key, "time slices start from zero: the ends",
                                         "those of another series, model or cut");
}

static bool has_residuals(const struct fit *t) {
    const struct exec_residuals r = residuals_of(t);
    return r.floats > 0 && same_key(t, "residual.key", r.key, "codecs and servers start anew: their states",
                                                    "those of other messages between ranks");
}

#define COUNT_MOST 1000000000000 /* steps, and what there is one of in each */

/* Files of before have no sum, and whoever writes a file can write that too: what is counted on, or by, is looked at. */
static bool is_sound(const struct fit *t, const struct train_state *s) {
    const struct forecaster *f = t->f;
    const i64 count[] = {s->step, s->best_step, s->bad, s->rollbacks, s->good_step, s->loss_count, f->steps_done, s->end};
    bool good = s->lr_factor > 0 && s->lr_factor <= 1 && f->weight >= 0 && f->weight <= 1 && shares_sound(&f->shares);
    for (size_t i = 0; i < COUNT(count); i++) good = good && count[i] >= 0 && count[i] <= COUNT_MOST;
    for (i32 m = 0; m < MEMBERS_MAX; m++) good = good && t->at.best_steps[m] >= 0 && t->at.best_steps[m] <= COUNT_MOST;
    return good && slices_sound(&f->slices->watch, f->spec.cut.slices, forecast_steps(&f->spec));
}

static err read_state(struct fit *t, struct train_state *s, struct state_file *f) {
    f->cold = !has_ends(t);
    f->plain = !holds(t, "loss_count", DTYPE_I64, &s->loss_count);
    f->roundless = !holds(t, "round_end", DTYPE_I64, &s->end);
    f->lossless = !has_residuals(t);
    f->timeless = !has_reached(t);
    f->paused = has_pause(t);
    if (f->paused) NEW(f->pause, store_pause_floats(t));
    if (!f->lossless) NEW(f->residual, residuals_of(t).floats);
    if (policy_delay(t->job->use.policy) > 0) TRY(train_state_ahead(s, t->step.engine.store.ntheta));
    if (f->done > 0) NEW(f->members, f->done * t->step.engine.store.ntheta);
    if (t->at.refitting && t->f->spec.nband > 0 && window_origins(&t->set.valid_all) >= SPREAD_WINDOWS)
        NEW(t->f->spread, spread_floats(t));
    list(t, s, f);
    err e = ckpt_take(t->save.found, f->item, f->n);
    if (e >= 0) e = take_members(t, f);
    if (e >= 0 && !f->lossless) load_residuals(t, f->residual);
    if (e >= 0) store_go_on(t);
    if (e >= 0) e = store_pause_load(t, f->pause);
    mem_free(f->pause);
    mem_free(f->members);
    mem_free(f->residual);
    TRY(e);
    if (is_sound(t, s)) return 0;
    return FAIL(E901, "the checkpoint in %s holds numbers that no training leaves behind", ckpt_name(t->save.found));
}

/* Whole or not at all: root may die as well, and what is here then is needed. */
static err share_items(struct comm *c, i32 root, const struct state_file *f) {
    char *room = NULL;
    i64 bytes = 0, at = 0;
    err e = 0;
    for (i32 i = 0; i < f->n; i++) bytes += ckpt_item_bytes(&f->item[i]);
    if (comm_rank(c) != root) NEW(room, bytes);
    for (i32 i = 0; i < f->n && e >= 0; at += ckpt_item_bytes(&f->item[i++]))
        e = comm_broadcast_from(c, root, f->item[i].name, room ? room + at : f->item[i].p, ckpt_item_bytes(&f->item[i]));
    at = 0;
    for (i32 i = 0; i < f->n && e >= 0 && room; at += ckpt_item_bytes(&f->item[i++]))
        memcpy(f->item[i].p, room + at, (size_t)ckpt_item_bytes(&f->item[i]));
    mem_free(room);
    return e;
}

err forecast_share_state(struct fit *t, i32 root, i64 held) {
    struct state_file f = {.member = t->at.done, .done = held, .phase = t->at.refitting, .slices = t->f->spec.cut.slices,
                           .rank = t->f->spec.slice_rank,
                           .lossless = true}; /* codecs start anew with the new group of ranks */
    const i64 P = t->step.engine.store.ntheta;
    if (held > 0) NEW(f.members, held * P);
    for (i64 m = 0; m < held && comm_rank(t->job->use.comm) == root; m++)
        memcpy(f.members + m * P, t->f->theta[m], sizeof(f32) * (size_t)P);
    list(t, &t->at.state, &f);
    err e = share_items(t->job->use.comm, root, &f);
    if (e >= 0) e = take_members(t, &f);
    if (e >= 0) store_go_on(t);
    mem_free(f.members);
    t->f->guard.a = t->f->weight;
    return e;
}

enum { NOTHING = -1, FAILED = -2 };

/* Rank 0 looks for the newest whole checkpoint; which one it is, or NOTHING. */
static err look(struct fit *t, const char *dir, i64 *number) {
    const struct events *ev = t->job->use.events;
    struct str passed = {0};
    err e = ckpt_newest(dir, &passed, &t->save.found);
    const struct err_record why = *err_last();
    if (e >= 0 && passed.len)
        event_note(ev, EVENT_WARNING, "%s\npassed over; continuing from %s", str_text(&passed), ckpt_name(t->save.found));
    str_free(&passed);
    *number = e >= 0 ? ckpt_number(t->save.found) : e == -E705 ? NOTHING : FAILED;
    if (*number == FAILED) err_put(&why);
    return *number == FAILED ? e : 0;
}

/* The others read what rank 0 has read; where they cannot, the folder is not the same on their host. */
static err follow(struct fit *t, const char *dir, i64 number) {
    struct comm *c = t->job->use.comm;
    const struct comm_rank_info *me = comm_rank_info(c, comm_rank(c)), *first = comm_rank_info(c, 0);
    char path[4096], what[600];
    TRY(ckpt_path(dir, number, CKPT_WHOLE, path));
    err e = ckpt_open(path, &t->save.found);
    if (e >= 0 || e == -E601) return e;
    snprintf(what, sizeof what, "%.500s", err_last()->text);
    return FAIL_AT(E804, path, "a run folder that all hosts see alike (--run-dir), or all ranks on one host",
                   "rank %d on host %s does not see the checkpoint that rank 0 on host %s has read: %s", me->rank, me->host,
                   first->host, what);
}

static err find(struct fit *t) {
    struct comm *c = t->job->use.comm;
    char dir[4096];
    enum fault none;
    i64 number = NOTHING;
    err e = 0;
    TRY(forecast_checkpoints(t, dir));
    TRY(ckpt_sweep(dir));
    if (!t->job->resume) return 0;
    TRY(fault_at("recovery", comm_rank(c), 0, &none));
    if (comm_rank(c) == 0) e = look(t, dir, &number);
    TRY(e);
    TRY(comm_broadcast_slow(c, "checkpoint", &number, sizeof number));
    return comm_rank(c) > 0 && number >= 0 ? follow(t, dir, number) : 0;
}

/* How many members the checkpoint holds, which it was training, and how long. */
static err read_head(struct fit *t, struct state_file *f) {
    const struct ckpt_item head[] = {{"member", DTYPE_I64, &f->member, 1},
                                     {"done", DTYPE_I64, &f->done, 1},
                                     {"phase", DTYPE_I64, &f->phase, 1},
                                     {"slices", DTYPE_I64, &f->slices, 1},
                                     {"slice_rank", DTYPE_I64, &f->rank, 1},
                                     {"best_steps", DTYPE_I64, t->at.best_steps, MEMBERS_MAX}};
    TRY(ckpt_take(t->save.found, head, COUNT(head)));
    if (f->member >= 0 && f->member < t->f->spec.members && f->done >= 0 && f->done <= MEMBERS_MAX && f->slices >= 0 &&
        f->slices <= forecast_steps(&t->f->spec) && f->rank >= 0 && f->rank <= SLICE_RANKS)
        return 0;
    return FAIL(E901, "the checkpoint in %s does not fit this run", ckpt_name(t->save.found));
}

err forecast_resume_point(struct fit *t) {
    struct state_file f = {0};
    if (!t->job->run_dir) return 0;
    TRY(find(t));
    if (!t->save.found) { /* stopped before the first checkpoint */
        if (t->job->resume)
            event_note(t->job->use.events, EVENT_NOTE, "there is no checkpoint in %s yet: training begins at step 0",
                       t->job->run_dir);
        return 0;
    }
    TRY(read_head(t, &f));
    t->at.done = (i32)f.member;
    t->at.refitting = f.phase != 0;
    t->save.held = f.done;
    t->f->spec.cut.slices = (i32)f.slices;
    t->f->spec.slice_rank = (i32)f.rank;
    if (t->at.refitting && t->f->spec.guard && t->f->base) {
        t->f->has_guard = true;
        t->f->guard.why = "weighed before the run was resumed";
    }
    return 0;
}

err forecast_restore(struct fit *t, i32 member, struct train_state *s) {
    struct state_file f = {.done = t->save.held};
    if (!t->save.found) return 0;
    TRY(read_state(t, s, &f));
    ckpt_close(t->save.found);
    t->save.found = NULL;
    t->f->guard.a = t->f->weight;
    event_note(t->job->use.events, EVENT_NOTE, "resumed member %d of %d at step %lld", member + 1, t->f->spec.members,
               (long long)s->step);
    return 0;
}
