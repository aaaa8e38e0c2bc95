/* piece.c - the tasks of an op for a piece of the rows, the zeroing of its gradients, the copies of weights that they need. */
#include "model/layer.h"
#include "step/planner.h"

/* Copies of weights, largest first, each to the device with the least to copy so far: the order in `op`, the number of them. */
static i32 prepared_by(const struct planner *p, i32 op[NET_OPS], u32 device[NET_OPS]) {
    i64 load[MACHINE_DEVICES] = {0};
    bool done[NET_OPS] = {0};
    for (i32 n = 0;; n++) {
        i32 best = -1, least = -1;
        for (i32 l = 0; l < p->net->nop; l++)
            if (!done[l] && p->net->op[l].nderived > 0 && (best < 0 || p->net->op[l].nderived > p->net->op[best].nderived))
                best = l;
        if (best < 0) return n;
        for (i32 i = 0; i < p->nsharer; i++)
            if (planner_in_stage(p, i, planner_stage(p, best)) && (least < 0 || load[i] < load[least])) least = i;
        done[best] = true;
        load[least] += p->net->op[best].nderived;
        op[n] = best;
        device[n] = p->sharer[least];
    }
}

/* Copies the weights of op l, or of all ops if l < 0. */
err planner_prepare(struct planner *p, i32 l) {
    i32 op[NET_OPS];
    u32 device[NET_OPS];
    const i32 n = prepared_by(p, op, device);
    for (i32 k = 0; k < n; k++)
        if (l < 0 || op[k] == l) TRY(planner_task(p, (struct task){.kind = TASK_PREP, .device = device[k], .op = (u16)op[k]}));
    return 0;
}

/* A team has at most one member per panel of units. Pieces of time slices share a chain. */
err planner_op(struct planner *p, struct task t, const struct piece *c, i32 j) {
    const struct op *op = &p->net->op[t.op];
    const i32 members = p->team.n > 1 && !p->split ? imin(p->team.n, op_panels(op)) : 1;
    if (planner_splits(p, t.op)) return split_op(p, t, c, j);
    t.box.b0 = c->box.b0;
    t.box.b1 = c->box.b1;
    if (op_is_chain(op)) {
        t.member = (u16)(c - p->piece);
        t.members = (u16)p->npiece;
        t.device = p->device[c->at];
        return planner_task(p, t);
    }
    t.members = (u16)members;
    for (i32 k = 0; k < members; k++) {
        t.member = (u16)k;
        t.device = planner_device(p, c, k, j);
        TRY(planner_task(p, t));
    }
    return 0;
}

err planner_whole(struct planner *p, enum task_kind kind, const struct piece *c, i32 l) {
    if (kind == TASK_BWD && !op_has_backward(p->net, &p->net->op[l])) return 0;
    return planner_op(p, (struct task){.kind = (u8)kind, .op = (u16)l}, c, 0);
}

/* The last device of a group zeroes gradients: it is idle while the first one runs the head and the loss. */
err planner_zero(struct planner *p, const struct piece *c) {
    if (p->split) return split_zero(p, c, 0, p->net->nop, 0);
    const u32 device = planner_member(p, c, planner_group(p) - 1);
    return planner_task(p, (struct task){.kind = TASK_ZERO, .device = device, .box = c->box});
}
