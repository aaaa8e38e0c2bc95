/* passes.c - the tasks of a step whose cuts order none themselves, by pieces of the rows and by ops, in one pass or several.
 *
 *     one pass      F[0,32) lstm  F[0,32) head  B[0,32) head  B[0,32) lstm
 *     two passes    F[0,16) lstm  F[0,16) head  B[0,16) head  B[0,16) lstm   F[16,32) lstm ..     room for 16 rows
 *
 * A pass is whole micro-batches, each with a gradient of its own, and these merge after the last pass: no bit depends on it. */
#include "model/layer.h"
#include "step/planner.h"

/* ------------------------------------------------------------------ rows of a pass ------------------------------------------ */

/* Do rows depend on others, or tasks of several devices meet in one row?  Then all of them are of one pass. */
static bool rows_meet(const struct planner *p) {
    bool meet = p->sliced || p->split;
    for (i32 l = 0; l < p->net->nop; l++) meet = meet || op_crosses(&p->net->op[l]);
    return meet;
}

static i32 passes_of(const struct planner *p, const struct piece *c) {
    if (p->q->passes < 2 || rows_meet(p)) return 1;
    return imin(p->q->passes, ceil_div(c->box.b1 - c->box.b0, p->grain));
}

static i32 most_passes(const struct planner *p) {
    i32 most = 1;
    for (i32 i = 0; i < p->npiece; i++) most = imax(most, passes_of(p, &p->piece[i]));
    return most;
}

/* The rows of pass k of a piece; false = it has fewer passes. */
static bool in_pass(const struct planner *p, const struct piece *c, i32 k, struct piece *out) {
    const i32 n = passes_of(p, c), grains = ceil_div(c->box.b1 - c->box.b0, p->grain);
    *out = *c;
    out->box.b0 = c->box.b0 + (i32)((i64)grains * k / n) * p->grain;
    out->box.b1 = imin(c->box.b1, c->box.b0 + (i32)((i64)grains * (k + 1) / n) * p->grain);
    return k < n;
}

static err in_op(struct planner *p, enum task_kind kind, i32 pass, i32 l) {
    struct piece c;
    for (i32 i = 0; i < p->npiece; i++) {
        const struct piece *whole = &p->piece[i]; /* a chain counts them */
        if (in_pass(p, whole, pass, &c)) TRY(planner_whole(p, kind, passes_of(p, whole) > 1 ? &c : whole, l));
    }
    return 0;
}

static err zero_in_pass(struct planner *p, i32 pass) {
    struct piece c;
    for (i32 i = 0; i < p->npiece; i++)
        if (in_pass(p, &p->piece[i], pass, &c)) TRY(planner_zero(p, &c));
    return 0;
}

/* ------------------------------------------------------------------ order -------------------------------------------------- */

static err parts_early(struct planner *p) {
    const i32 l = netplan(p->plan)->parted.op;
    for (i32 k = 0; k < netplan(p->plan)->parted.n; k++) {
        for (i32 i = 0; i < p->npiece; i++) {
            const struct piece *c = &p->piece[i];
            const struct task t = {.kind = TASK_DW, .op = (u16)l, .device = p->device[c->at], .box = c->box, .node_a = k};
            TRY(planner_task(p, t));
        }
        TRY(planner_merge_early(p, ALL_STAGES, planner_part(p, k), planner_part(p, k + 1)));
    }
    return 0;
}

/* The gradient of an op is summed and sent while the devices compute the next op. */
static err op_early(struct planner *p, i32 l) {
    const struct op *op = &p->net->op[l];
    if (netplan(p->plan)->parted.n > 0 && netplan(p->plan)->parted.op == l) return parts_early(p);
    return planner_merge_early(p, ALL_STAGES, op->theta0, op->theta0 + op->ntheta);
}

/* All pieces run an op before any runs the next one: time slices meet in every recurrent op, and ranks send early, in the last
 * pass.  Weights of a layer are copied when it is its turn: those that other ranks updated may still be under way
 * (exec/async_gather.c). */
err passes_op_by_op(struct planner *p) {
    const i32 n = netplan(p->plan)->passes = most_passes(p);
    for (i32 k = 0; k < n; k++) {
        for (i32 l = 0; l < p->net->nop; l++) {
            if (p->early && k == 0) TRY(planner_prepare(p, l));
            TRY(in_op(p, TASK_FWD, k, l));
        }
        if (p->q->train) TRY(zero_in_pass(p, k));
        for (i32 l = p->net->nop - 1; p->q->train && l >= 0; l--) {
            TRY(in_op(p, TASK_BWD, k, l));
            if (p->early && k == n - 1 && op_has_backward(p->net, &p->net->op[l])) TRY(op_early(p, l));
        }
    }
    return 0;
}

static err pass_of_piece(struct planner *p, const struct piece *c) {
    for (i32 l = 0; l < p->net->nop; l++) TRY(planner_whole(p, TASK_FWD, c, l));
    if (!p->q->train) return 0;
    TRY(planner_zero(p, c));
    for (i32 l = p->net->nop - 1; l >= 0; l--) TRY(planner_whole(p, TASK_BWD, c, l));
    return 0;
}

static err in_passes(struct planner *p) {
    struct piece c;
    for (i32 i = 0; i < p->npiece; i++)
        for (i32 k = 0; in_pass(p, &p->piece[i], k, &c); k++) TRY(pass_of_piece(p, &c));
    return 0;
}

err passes_piece_by_piece(struct planner *p) {
    netplan(p->plan)->passes = most_passes(p);
    if (netplan(p->plan)->passes > 1) return in_passes(p);
    for (i32 i = 0; i < p->npiece; i++)
        for (i32 l = 0; l < p->net->nop; l++) TRY(planner_whole(p, TASK_FWD, &p->piece[i], l));
    for (i32 i = 0; p->q->train && i < p->npiece; i++) {
        TRY(planner_zero(p, &p->piece[i]));
        for (i32 l = p->net->nop - 1; l >= 0; l--) TRY(planner_whole(p, TASK_BWD, &p->piece[i], l));
    }
    return 0;
}
