/* net_state.c - see net_state.h. */
#include "learn/net_state.h"

#include "plan/exchange.h"
#include "step/sent.h"

void net_state_list(struct train_state *s, const struct store *st, struct snapshot *to) {
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
}

/* The range of one rank, of all vectors, to all ranks: what they replace there is equal or not used. */
static err share_range(struct comm *c, const struct store *st, const struct train_state *s, const struct plan_share *part) {
    const i64 bytes = (part->hi - part->lo) * (i64)sizeof(f32);
    TRY(comm_broadcast_from(c, part->rank, "theta", st->theta + part->lo, bytes));
    TRY(comm_broadcast_from(c, part->rank, "best", s->best_theta + part->lo, bytes));
    for (i32 k = 0; k < st->optim->nstate; k++) TRY(comm_broadcast_from(c, part->rank, "state", st->state[k] + part->lo, bytes));
    for (i32 k = 0; k <= st->optim->nstate; k++)
        TRY(comm_broadcast_from(c, part->rank, "good", s->good + k * st->ntheta + part->lo, bytes));
    return 0;
}

err net_state_gather(struct comm *c, const struct engine *e, const struct train_state *s) {
    struct arena a = {0};
    struct plan_share *part;
    i32 n;
    if (comm_size(c) == 1) return 0;
    err got = exec_quiet(step_exec(e->exec));
    if (got >= 0) got = plan_shares(e->plan, &a, &part, &n);
    for (i32 k = 0; got >= 0 && k < n; k++) got = share_range(c, &e->store, s, &part[k]);
    arena_free(&a);
    return got;
}

bool net_state_sound(const struct train_state *s) {
    const i64 count[] = {s->step, s->best_step, s->bad, s->rollbacks, s->good_step, s->loss_count, s->end};
    bool good = s->lr_factor > 0 && s->lr_factor <= 1;
    for (size_t i = 0; i < COUNT(count); i++) good = good && count[i] >= 0 && count[i] <= NET_STATE_MOST;
    return good;
}
