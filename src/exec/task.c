/* task.c - what a worker does for one task. */
#include <math.h>
#include <string.h>

#include "exec/bound.h"
#include "model/layer.h"

/* PyTorch's rule: gradients are scaled by clip / (norm + 1e-6) when that is below 1. */
static f64 clip_factor(f64 clip, f64 norm) { return clip > 0 ? dmin(1, clip / (norm + 1e-6)) : 1; }

struct totals exec_totals(const struct exec *x) {
    struct totals t = {0};
    bool has_loss = false;
    for (i32 l = 0; l < x->net->nop; l++) has_loss = has_loss || (x->net->op[l].out < 0 && !x->skip[l]);
    for (i32 g = 0; has_loss && g < x->run.ngrain; g++) t.loss += x->sums.loss[g];
    t.loss *= (f64)x->sums.loss_scale;
    f64 sum = 0;
    for (i64 i = 0; i < x->nnorm; i++) sum += x->norm[i];
    t.norm = sqrt(sum);
    t.finite = isfinite(t.loss) && isfinite(t.norm);
    return t;
}

static struct part part_of(const struct exec *x, const struct task *t) {
    const i32 row0 = x->run.row0;
    const bool parted = netplan(x->plan)->parted.n > 0 && netplan(x->plan)->parted.op == t->op;
    struct part p = {.b0 = t->box.b0 - row0, .b1 = t->box.b1 - row0, .t0 = t->box.t0, .t1 = t->box.t1, .n = 1, .how = t->how};
    p.apart = parted && t->kind == TASK_BWD;
    if (t->kind == TASK_DW) p.me = t->node_a, p.n = t->node_b;
    if (t->members > 1 && !x->alone) {
        p.me = t->member;
        p.n = t->members;
    }
    return p;
}

/* The op's chain over the rows of its task; alone, the first member has those of all of this process.  Where rounds are limited
 * forward says little of backward: warm begins are forgotten sooner than cold ones. */
static void solve(struct exec *x, const struct task *t, bool backward) {
    const struct op *op = &x->net->op[t->op];
    struct chain c;
    op->layer->chain(op, &x->run, backward, &c);
    const struct chain_course *how = &netplan(x->plan)->course;
    if (backward) c.forgets = how->stale ? -(how->stale_back > 1) : x->chain[t->op][0]->forgets;
    struct chain_solver *s = x->chain[t->op][backward];
    i32 n;
    const struct task *first = exec_team(x, t, &n);
    const bool all = x->alone || n == 1;
    if (x->apart && all) {
        s->apart = first;
        s->napart = n;
    }
    if (s->peers && t == first) peers_begin(s->peers, x->serial);
    if (all)
        chain_solve(s, &c, how, 0, 1, first->box.b0, first[n - 1].box.b1);
    else
        chain_solve(s, &c, how, (i32)(t - first), n, t->box.b0, t->box.b1);
}

f64 exec_waited(const struct exec *x, const struct task *t) {
    i32 n;
    if (t->kind != TASK_FWD && t->kind != TASK_BWD) return 0;
    struct chain_solver *c = x->chain[t->op][t->kind == TASK_BWD];
    if (!c) return 0;
    const i32 me = (i32)(t - exec_team(x, t, &n));
    return x->alone && me > 0 ? 0 : chain_waited(c, me);
}

static void zero(struct exec *x, const struct task *t) {
    i64 P = netplan(x->plan)->ntheta;
    i32 g0 = t->box.b0 / x->run.grain, g1 = ceil_div(t->box.b1, x->run.grain);
    if (g0 == 0 && x->pending) g0 = 1; /* vector 0 holds the gradient that this step adds to */
    for (i32 g = g0; g < g1 && x->run.touched; g++) touched_zero(x->plan, exec_grads(x), g);
    if (g1 > g0 && !x->run.touched) memset(x->run.grad + g0 * P, 0, (size_t)((g1 - g0) * P) * sizeof(f32));
}

static void norm(struct exec *x, const struct task *t) {
    i64 block = netplan(x->plan)->norm_block;
    const f32 *grad = x->sums.of.grad;
    for (i64 at = t->lo; at < t->hi; at += block) x->norm[at / block] = x->kern->sumsq(lmin(block, t->hi - at), grad + at);
}

static void update(struct exec *x, const struct task *t) {
    if (!exchange_updates(x)) return;
    struct totals sum = exec_totals(x);
    struct store *s = x->store;
    f32 *theta = late_theta(x);
    if (theta) memcpy(theta + t->lo, s->theta + t->lo, sizeof(f32) * (size_t)(t->hi - t->lo));
    if (!sum.finite || x->sums.accumulate) return;
    struct optim_hyper h = x->sums.hyper;
    h.grad_scale = (f32)clip_factor(x->sums.clip, sum.norm);
    s->optim->update(&h, t->hi - t->lo, (theta ? theta : s->theta) + t->lo, x->sums.of.grad + t->lo,
                     s->state[0] ? s->state[0] + t->lo : NULL, s->state[1] ? s->state[1] + t->lo : NULL);
}

static void prep(struct exec *x, const struct task *t) {
    const struct op *op = &x->net->op[t->op];
    if (op->layer->prep) op->layer->prep(op, x->net, x->kern, x->store->theta, x->store->derived);
}

void exec_task(struct exec *x, const struct task *t) {
    const struct op *op = &x->net->op[t->op];
    if (t->member > 0 && x->alone && exec_is_ours(x, t - 1)) return;
    switch (t->kind) {
        case TASK_FWD:
            if (op_is_chain(op))
                solve(x, t, false);
            else if (!x->skip[t->op])
                op->layer->fwd(op, &x->run, part_of(x, t));
            break;
        case TASK_BWD:
            if (op_is_chain(op))
                solve(x, t, true);
            else
                op->layer->bwd(op, &x->run, part_of(x, t));
            break;
        case TASK_DW:
            op->layer->dw(op, &x->run, part_of(x, t));
            break;
        case TASK_ZERO:
            zero(x, t);
            break;
        case TASK_NORM:
            norm(x, t);
            break;
        case TASK_UPDATE:
            update(x, t);
            break;
        case TASK_PREP:
            prep(x, t);
            break;
        default:
            break; /* merges: exec_merges */
    }
}

void exec_merges(struct exec *x, struct grads g, const struct item *first, u32 n) {
    const struct task *t0 = &x->plan->task[first->task];
    i64 P = netplan(x->plan)->ntheta;
    for (i64 at = t0->lo; at < t0->hi; at += MERGE_BLOCK) {
        i64 len = lmin(MERGE_BLOCK, t0->hi - at);
        for (u32 i = 0; i < n; i++) {
            const struct task *t = &x->plan->task[first[i].task];
            if (g.touched) touched_merge(x, g, t->node_a, t->node_b, at, at + len);
            else x->kern->add(len, g.grad + t->node_a * P + at, g.grad + t->node_b * P + at);
        }
    }
}
