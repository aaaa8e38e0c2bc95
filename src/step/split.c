/* split.c - the tasks of a layer whose hidden units ranks share: a team whose members may be in different processes.
 *
 *     rank 0   fwd t[0,1) 0/2 | gather t[0,1) | fwd t[1,2) 0/2 | gather ..      units of 0/2 --> rank 1 after each step
 *     rank 1   fwd t[0,1) 1/2 | gather t[0,1) | fwd t[1,2) 1/2 | gather ..      units of 1/2 --> rank 0
 *
 *     bwd t[T-1,T) k/2 | dgather | .. | bwd t[0,1) k/2 | dgather | dx k/2 of some steps | dw k/2 of its panels
 *
 * gather and dgather run on every rank that needs their result.  A member zeroes, sums and updates the weights of its panels. Of
 * their gradient only norm blocks that two members share, biases and sums over pieces of the batch are sent; all ranks have the
 * weights.
 * Column-parallel products: Shoeybi et al., Megatron-LM, arXiv 1909.08053; here without a sum over ranks, so bits are those of
 * `serial`. */
#include "model/layer.h"
#include "step/planner.h"

/* One task for each member of a team. */
static err members(struct planner *p, struct task t, const struct piece *c, i32 j) {
    t.split = true;
    t.members = (u16)split_members(p, t.op);
    for (i32 k = 0; k < t.members; k++) {
        t.member = (u16)k;
        t.device = planner_device(p, c, k, j);
        TRY(planner_task(p, t));
    }
    return 0;
}

static struct task at(struct task t, u8 kind, i32 t0, i32 t1) {
    t.kind = kind;
    t.box.t0 = t0;
    t.box.t1 = t1;
    return t;
}

static err step(struct planner *p, struct task t, const struct piece *c, i32 j, u8 gather) {
    TRY(members(p, t, c, j));
    t.kind = gather;
    t.device = planner_device(p, c, 0, j);
    return planner_task(p, t);
}

err split_op(struct planner *p, struct task t, const struct piece *c, i32 j) {
    const struct op *op = &p->net->op[t.op];
    const i32 t0 = t.box.t0, t1 = t.box.t1 ? t.box.t1 : op->T;
    t.box.b0 = c->box.b0;
    t.box.b1 = c->box.b1;
    for (i32 s = t0; t.kind == TASK_FWD && s < t1; s++) TRY(step(p, at(t, TASK_FWD, s, s + 1), c, j, TASK_GATHER));
    if (t.kind == TASK_FWD) return 0;
    for (i32 s = t1 - 1; s >= t0; s--) TRY(step(p, at(t, TASK_BWD, s, s + 1), c, j, TASK_DGATHER));
    if (op_sends_dx(p->net, op)) TRY(members(p, at(t, TASK_DX, t0, t1), c, j));
    return t0 == 0 ? members(p, at(t, TASK_DW, 0, op->T), c, j) : 0;
}

static err zero(struct planner *p, const struct piece *c, u32 device, i64 lo, i64 hi) {
    const struct task t = {.kind = TASK_ZERO, .device = device, .box = c->box, .lo = lo, .hi = hi};
    return hi > lo ? planner_task(p, t) : 0;
}

err split_zero(struct planner *p, const struct piece *c, i32 l0, i32 l1, i32 j) {
    const struct net *n = p->net;
    struct plan_range part[2];
    i64 from = l0 == 0 ? 0 : n->op[l0].theta0;
    for (i32 l = l0; l < l1; l++) {
        const struct op *op = &n->op[l];
        if (!planner_splits(p, l)) continue;
        TRY(zero(p, c, planner_device(p, c, 0, j), from, op->theta0));
        for (i32 k = 0; k < split_members(p, l); k++) {
            split_weights(op, k, split_members(p, l), part);
            for (i32 i = 0; i < 2; i++) TRY(zero(p, c, planner_device(p, c, k, j), part[i].lo, part[i].hi));
        }
        from = op->theta0 + op->ntheta;
    }
    return zero(p, c, planner_device(p, c, 0, j), from, l1 < n->nop ? n->op[l1].theta0 : n->ntheta);
}
