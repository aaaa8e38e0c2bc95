/* state.c - what a checkpoint of a tagger holds: the counters of the loop, weights, the optimiser's state, and in the second fit
 * the figures of the first.  On ranks each brings the range that it updates. */
#include "learn/tagger/fit.h"
#include "plan/exchange.h"
#include "step/sent.h"

#define COUNT_MOST 1000000000000 /* steps, and what there is one of in each */
#define FIRST_MOST 100000000000  /* steps of the first fit, in the numbers of checkpoints */

static void list_first(struct tag_first *f, struct snapshot *to) {
    snapshot_add(to, "refit", DTYPE_I64, &f->ended, 1);
    snapshot_add(to, "first.best_step", DTYPE_I64, &f->best_step, 1);
    snapshot_add(to, "first.valid_error", DTYPE_F64, &f->valid_error, 1);
    snapshot_add(to, "first.seconds", DTYPE_F64, &f->seconds, 1);
}

static err list(void *self, struct snapshot *to) {
    struct tag_fit *f = self;
    struct train_state *s = &f->state;
    const struct store *st = &f->engine.store;
    list_first(f->first, to);
    snapshot_add(to, "step", DTYPE_I64, &s->step, 1);
    snapshot_add(to, "best_step", DTYPE_I64, &s->best_step, 1);
    snapshot_add(to, "best", DTYPE_F64, &s->best, 1);
    snapshot_add(to, "bad", DTYPE_I64, &s->bad, 1);
    snapshot_add(to, "end", DTYPE_I64, &s->end, 1);
    snapshot_add(to, "mark", DTYPE_F64, &s->mark, 1);
    snapshot_add(to, "lr_factor", DTYPE_F64, &s->lr_factor, 1);
    snapshot_add(to, "rollbacks", DTYPE_I64, &s->rollbacks, 1);
    snapshot_add(to, "seconds", DTYPE_F64, &s->seconds, 1);
    snapshot_add(to, "good_step", DTYPE_I64, &s->good_step, 1);
    snapshot_add(to, "loss_sum", DTYPE_F64, &s->loss_sum, 1);
    snapshot_add(to, "loss_count", DTYPE_I64, &s->loss_count, 1);
    snapshot_add(to, "theta", DTYPE_F32, st->theta, st->ntheta);
    for (i32 k = 0; k < st->optim->nstate; k++) snapshot_add(to, st->optim->state_name[k], DTYPE_F32, st->state[k], st->ntheta);
    snapshot_add(to, "best_theta", DTYPE_F32, s->best_theta, st->ntheta);
    snapshot_add(to, "good", DTYPE_F32, s->good, (1 + st->optim->nstate) * st->ntheta);
    return 0;
}

/* The range of one rank, of all vectors, to all ranks: what they replace there is equal or not used. */
static err share_range(struct tag_fit *f, const struct plan_share *part) {
    struct comm *c = f->job->use.comm;
    const struct store *st = &f->engine.store;
    const i64 bytes = (part->hi - part->lo) * (i64)sizeof(f32);
    TRY(comm_broadcast_from(c, part->rank, "theta", st->theta + part->lo, bytes));
    TRY(comm_broadcast_from(c, part->rank, "best", f->state.best_theta + part->lo, bytes));
    for (i32 k = 0; k < st->optim->nstate; k++)
        TRY(comm_broadcast_from(c, part->rank, "state", st->state[k] + part->lo, bytes));
    for (i32 k = 0; k <= st->optim->nstate; k++)
        TRY(comm_broadcast_from(c, part->rank, "good", f->state.good + k * st->ntheta + part->lo, bytes));
    return 0;
}

static err gather(struct tag_fit *f) {
    struct arena a = {0};
    struct plan_share *part;
    i32 n;
    if (comm_size(f->job->use.comm) == 1) return 0;
    err e = exec_quiet(step_exec(f->engine.exec));
    if (e >= 0) e = plan_shares(f->engine.plan, &a, &part, &n);
    for (i32 k = 0; e >= 0 && k < n; k++) e = share_range(f, &part[k]);
    arena_free(&a);
    return e;
}

err tag_fit_checkpoint(void *self, const struct train_state *s, bool last) {
    struct tag_fit *f = self;
    TRY(gather(f));
    return snapshots_save(f->shots, f->first->ended * FIRST_MOST + s->step, list, f, last);
}

err tag_fit_begin(struct snapshots *shots, struct tag_first *first) {
    struct snapshot head = {0};
    if (!shots->resumes) return 0;
    list_first(first, &head);
    TRY(snapshots_take(shots, &head));
    if (first->ended >= 0 && first->ended <= 1 && first->best_step >= 0 && first->best_step <= COUNT_MOST) return 0;
    return snapshots_unsound(shots);
}

err tag_fit_restore(struct tag_fit *f) {
    struct train_state *s = &f->state;
    struct snapshot all = {0};
    if (!f->shots->resumes) return 0;
    TRY(list(f, &all));
    TRY(snapshots_take(f->shots, &all));
    const i64 count[] = {s->step, s->best_step, s->bad, s->rollbacks, s->good_step, s->loss_count, s->end};
    bool good = s->lr_factor > 0 && s->lr_factor <= 1;
    for (size_t i = 0; i < COUNT(count); i++) good = good && count[i] >= 0 && count[i] <= COUNT_MOST;
    f->shots->resumes = false; /* a second fit begins anew */
    return good ? 0 : snapshots_unsound(f->shots);
}
