/* forecast_state.c - checkpoints of a fit: the member in training, the members that are done, and the counters of the loop.
 *
 *     RUN/checkpoints/N.ckpt    N = steps done over all members: grows through the run */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "ckpt/checkpoint.h"
#include "learn/forecast_fit.h"

enum { ITEMS = 32, KEEP = 2 };

struct state_file {
    struct ckpt_item item[ITEMS];
    i32 n;
    i64 member, done, phase, params;  /* phase 1 = refit */
    i64 slices;
    f32 *members;                     /* [done][ntheta] */
    char dir[4096];
};

static void add(struct state_file *s, const char *name, enum ckpt_kind kind, void *p, i64 n) {
    s->item[s->n++] = (struct ckpt_item){name, kind, p, n};
}

/* Residual quantiles are measured before a refit and kept through it. */
static i64 spread_floats(const struct fit *t) {
    return (i64)t->job->series->ntarget * t->f->spec.nband * t->f->spec.horizon;
}

/* Every item in a fixed order; `done` members are part of it, so that count must be known. */
static void list(struct fit *t, struct train_state *s, struct state_file *f) {
    struct store *st = &t->engine.store;
    i64 P = st->ntheta;
    add(f, "member", CKPT_I64, &f->member, 1);
    add(f, "done", CKPT_I64, &f->done, 1);
    add(f, "phase", CKPT_I64, &f->phase, 1);
    add(f, "slices", CKPT_I64, &f->slices, 1);
    add(f, "watch", CKPT_BYTES, &t->f->watch, (i64)sizeof t->f->watch);
    add(f, "best_steps", CKPT_I64, t->best_steps, MEMBERS_MAX);
    add(f, "steps_done", CKPT_I64, &t->f->steps_done, 1);
    add(f, "seconds_done", CKPT_F64, &t->f->seconds, 1);
    add(f, "weight", CKPT_F64, &t->f->weight, 1);
    add(f, "guard.t", CKPT_F64, &t->f->guard.t, 1);
    add(f, "guard.base", CKPT_F64, &t->f->guard.loss_base, 1);
    add(f, "guard.both", CKPT_F64, &t->f->guard.loss_both, 1);
    add(f, "guard.blocks", CKPT_BYTES, &t->f->guard.nblock, (i64)sizeof t->f->guard.nblock);
    add(f, "step", CKPT_I64, &s->step, 1);
    add(f, "best_step", CKPT_I64, &s->best_step, 1);
    add(f, "best", CKPT_F64, &s->best, 1);
    add(f, "bad", CKPT_I64, &s->bad, 1);
    add(f, "lr_factor", CKPT_F64, &s->lr_factor, 1);
    add(f, "rollbacks", CKPT_I64, &s->rollbacks, 1);
    add(f, "seconds", CKPT_F64, &s->seconds, 1);
    add(f, "good_step", CKPT_I64, &s->good_step, 1);
    if (t->job->use.pipe == PIPE_DELAY1) { /* due or not: a file of one form */
        add(f, "ahead.due", CKPT_I64, &s->due, 1);
        add(f, "ahead.loss", CKPT_F64, &s->ahead_loss, 1);
        add(f, "ahead.norm", CKPT_F64, &s->ahead_norm, 1);
        add(f, "ahead", CKPT_F32, s->ahead, P);
    }
    add(f, "theta", CKPT_F32, st->theta, P);
    for (i32 k = 0; k < st->optim->nstate; k++) add(f, st->optim->state_name[k], CKPT_F32, st->state[k], P);
    add(f, "best_theta", CKPT_F32, s->best_theta, P);
    add(f, "good", CKPT_F32, s->good, (1 + st->optim->nstate) * P);
    if (f->done > 0) add(f, "members", CKPT_F32, f->members, f->done * P);
    if (t->f->spread) add(f, "spread", CKPT_F32, t->f->spread, spread_floats(t));
}

static err open_state(const struct fit *t, struct state_file *f) {
    i32 n = snprintf(f->dir, sizeof f->dir, "%s/checkpoints", t->job->run_dir);
    return n < (i32)sizeof f->dir ? 0 : FAIL(E702, "the path of the run folder is too long");
}

err forecast_checkpoint(struct fit *t, const struct train_state *s) {
    struct state_file f = {.member = t->member, .done = t->refitting ? t->f->spec.members : t->member, .phase = t->refitting,
                           .slices = t->f->spec.slices};
    i64 P = t->engine.store.ntheta;
    struct train_state copy = *s;
    if (t->job->use.pipe == PIPE_DELAY1 && !copy.due) copy.ahead = t->engine.store.theta;
    TRY(open_state(t, &f));
    if (f.done > 0) NEW(f.members, f.done * P);
    for (i64 m = 0; m < f.done; m++) memcpy(f.members + m * P, t->f->theta[m], sizeof(f32) * (size_t)P);
    list(t, &copy, &f);
    i64 number = (f.phase * t->f->spec.members + f.member) * (t->steps + 1) + s->step;
    err e = ckpt_write(f.dir, number, f.item, f.n, NULL, KEEP);
    mem_free(f.members);
    if (e >= 0) event_note(t->job->use.events, EVENT_SAVED, "%s", f.dir);
    return e;
}

/* How many members the newest checkpoint holds, which it was training, and how long. */
static err read_head(struct state_file *f, i64 *best_steps) {
    struct ckpt_item head[] = {{"member", CKPT_I64, &f->member, 1},
                               {"done", CKPT_I64, &f->done, 1},
                               {"phase", CKPT_I64, &f->phase, 1},
                               {"slices", CKPT_I64, &f->slices, 1},
                               {"best_steps", CKPT_I64, best_steps, MEMBERS_MAX}};
    i64 number;
    return ckpt_resume(f->dir, head, COUNT(head), NULL, &number);
}

static err take_members(struct fit *t, const struct state_file *f) {
    i64 P = t->engine.store.ntheta;
    for (i64 m = 0; m < f->done; m++) {
        if (!t->f->theta[m]) NEW(t->f->theta[m], P);
        memcpy(t->f->theta[m], f->members + m * P, sizeof(f32) * (size_t)P);
        t->f->nmember = imax(t->f->nmember, (i32)m + 1);
    }
    return 0;
}

static err read_state(struct fit *t, struct train_state *s, struct state_file *f) {
    i64 number;
    if (t->job->use.pipe == PIPE_DELAY1) TRY(train_state_ahead(s, t->engine.store.ntheta));
    if (f->done > 0) NEW(f->members, f->done * t->engine.store.ntheta);
    if (t->refitting && t->f->spec.nband > 0 && window_origins(&t->valid_all) >= SPREAD_WINDOWS)
        NEW(t->f->spread, spread_floats(t));
    list(t, s, f);
    err e = ckpt_resume(f->dir, f->item, f->n, NULL, &number);
    if (e >= 0) e = take_members(t, f);
    mem_free(f->members);
    return e;
}

err forecast_resume_point(struct fit *t) {
    struct state_file f = {0};
    i64 number;
    char path[4096];
    if (!t->job->resume || !t->job->run_dir) return 0;
    TRY(open_state(t, &f));
    if (ckpt_find(f.dir, 0, path, &number) < 0) return 0; /* stopped before the first checkpoint: begin again */
    TRY(read_head(&f, t->best_steps));
    if (f.member < 0 || f.member >= t->f->spec.members || f.done < 0 || f.done > MEMBERS_MAX || f.slices < 0 ||
        f.slices > forecast_steps(&t->f->spec))
        return FAIL(E901, "the checkpoint in %s does not fit this run", f.dir);
    t->resuming = true;
    t->done = (i32)f.member;
    t->refitting = f.phase != 0;
    t->held = f.done;
    t->f->spec.slices = (i32)f.slices;
    if (t->refitting && t->f->spec.guard && t->f->base) {
        t->f->has_guard = true;
        t->f->guard.why = "weighed before the run was resumed";
    }
    return 0;
}

err forecast_restore(struct fit *t, i32 member, struct train_state *s) {
    struct state_file f = {.done = t->held};
    if (!t->resuming) return 0;
    t->resuming = false;
    TRY(open_state(t, &f));
    TRY(read_state(t, s, &f));
    t->f->guard.a = t->f->weight;
    event_note(t->job->use.events, EVENT_NOTE, "resumed member %d of %d at step %lld", member + 1, t->f->spec.members,
               (long long)s->step);
    return 0;
}
