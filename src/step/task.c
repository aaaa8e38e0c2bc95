/* task.c - adding tasks: the uses of a task follow from its kind, its op and its ranges.  Every member of a team has the uses of
 * the whole task, since it reads what the others write.  The same holds for the members of a chain, so the first of them may do
 * all of it.  A member of a split op writes its own panels. */
#include "model/layer.h"
#include "step/planner.h"

static bool sends(const struct net *n, i32 buf) { return buf >= 0 && buf_sends(&n->buf[buf]); }

/* A chunk uses only its own steps of a buffer that has as many steps as the op. */
static err use(struct planner *p, u32 buf, enum use_mode mode, i64 lo, i64 hi) {
    const struct plan *g = p->plan;
    const struct task *t = &g->task[g->ntask - 1];
    struct use u = {.buf = buf, .mode = (u8)mode, .lo = lo, .hi = hi};
    if (buf == PBUF_NONE) return 0;
    const struct pbuf *b = &g->buf[buf];
    const struct op *op = &p->net->op[t->op];
    const bool state = op->end >= 0 && (b->index == op->end || b->index == op->spec.in[1]); /* all of it, whatever the step */
    const bool steps = !state && (b->kind == PBUF_ACT || b->kind == PBUF_DACT || b->kind == PBUF_INPUT);
    if (task_is_chunk(t, p->net) && steps && p->net->buf[b->index].T == op->T) {
        u.t0 = t->box.t0;
        u.t1 = t->box.t1;
    }
    return build_use(&p->build, u);
}

/* The parameters that an op reads: its own and shared ones. */
static err use_weights(struct planner *p, const struct op *op, u32 buf, enum use_mode mode) {
    TRY(use(p, buf, mode, op->theta0, op->theta0 + op->ntheta));
    if (op->spec.share < 0) return 0;
    const struct op *s = &p->net->op[op->spec.share];
    return use(p, buf, mode, s->theta0, s->theta0 + s->ntheta);
}

static err use_derived(struct planner *p, const struct op *op, enum use_mode mode) {
    TRY(use(p, p->at->derived, mode, op->derived0, op->derived0 + op->nderived));
    if (op->spec.share < 0 || mode == USE_W) return 0;
    const struct op *s = &p->net->op[op->spec.share];
    return use(p, p->at->derived, mode, s->derived0, s->derived0 + s->nderived);
}

static err use_inputs(struct planner *p, const struct op *op, i32 b0, i32 b1) {
    for (i32 i = 0; i < op->layer->nin; i++)
        if (op->spec.in[i] >= 0) TRY(use(p, p->at->act[op->spec.in[i]], USE_R, b0, b1));
    return 0;
}

static err use_act(struct planner *p, const u32 *table, i32 buf, enum use_mode mode, i32 b0, i32 b1) {
    return buf < 0 ? 0 : use(p, table[buf], mode, b0, b1);
}

/* With time slices the kernels choose the execution mode. */
bool op_has_how(const struct op *op) { return op->layer->team && !op_is_chain(op); }

void plan_set_how(struct plan *p, const struct net *n, i32 op, u32 how) {
    for (u32 i = 0; i < p->ntask && op_has_how(&n->op[op]); i++)
        if (p->task[i].kind == TASK_FWD && p->task[i].op == op) p->task[i].how = (u8)how;
}

static i64 first_grain(const struct planner *p, i32 row) { return row / p->grain; }
static i64 last_grain(const struct planner *p, i32 row) { return ceil_div(row, p->grain); }

/* A chunk continues from what the previous chunk saved. */
static enum use_mode keeps(const struct planner *p, const struct task *t) {
    return task_is_chunk(t, p->net) ? USE_RW : USE_W;
}

/* Rows that a task writes, and rows that it reads. */
struct reach {
    i32 b0, b1, r0, r1;
};

/* A task of a chain uses the rows of all its members; a task of a layer that crosses rows (op_crosses) reads all rows.  Between
 * ranks uses cover weights, gradients and losses only: the states of slices are sent by the chain itself. */
static struct reach reach_of(const struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    const i32 B = p->q->B;
    if (op_is_chain(op) && p->machine->nrank == 1) return (struct reach){0, B, 0, B};
    const bool crosses = op_crosses(op);
    return (struct reach){t->box.b0, t->box.b1, crosses ? 0 : t->box.b0, crosses ? B : t->box.b1};
}

/* Uses of an op's task in both directions. */
static err use_op(struct planner *p, const struct task *t, const struct reach *at) {
    const struct op *op = &p->net->op[t->op];
    TRY(use_weights(p, op, p->at->theta, USE_R));
    TRY(use_derived(p, op, USE_R));
    return use_inputs(p, op, at->r0, at->r1);
}

static err uses_prep(struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    TRY(use_weights(p, op, p->at->theta, USE_R));
    return use_derived(p, op, USE_W);
}

static err uses_fwd(struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    const struct reach at = reach_of(p, t);
    TRY(use_op(p, t, &at));
    TRY(use_act(p, p->at->act, op->out, USE_W, at.b0, at.b1));
    TRY(use_act(p, p->at->act, op->end, USE_W, at.b0, at.b1));
    TRY(use(p, p->at->saved[t->op], keeps(p, t), at.b0, at.b1));
    TRY(use(p, p->at->scratch[t->op], USE_W, at.b0, at.b1));
    return op_is_loss(op) ? use(p, p->at->loss, USE_W, first_grain(p, at.b0), last_grain(p, at.b1)) : 0;
}

static err uses_zero(struct planner *p, const struct task *t) {
    for (i64 g = first_grain(p, t->box.b0); g < last_grain(p, t->box.b1); g++)
        TRY(use(p, p->at->grad0 + (u32)g, USE_W, t->lo, t->hi));
    return 0;
}

static err uses_bwd(struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    const struct reach at = reach_of(p, t);
    TRY(use_op(p, t, &at));
    TRY(use_act(p, p->at->act, op->out, USE_R, at.b0, at.b1));
    TRY(use_act(p, p->at->act, op->end, USE_R, at.b0, at.b1));
    TRY(use_act(p, p->at->dact, op->out, op_crosses(op) ? USE_R : USE_RW, at.r0, at.r1));
    TRY(use_act(p, p->at->dact, op->end, USE_RW, at.b0, at.b1));
    TRY(use(p, p->at->saved[t->op], USE_RW, at.b0, at.b1));
    TRY(use(p, p->at->scratch[t->op], keeps(p, t), at.b0, at.b1));
    for (i32 i = 0; i < op->layer->nin; i++) {
        const i32 in = op->spec.in[i];
        if (sends(p->net, in) && p->net->buf[in].consumer == t->op) TRY(use_act(p, p->at->dact, in, USE_W, at.b0, at.b1));
    }
    if (netplan(p->plan)->parted.n > 0 && netplan(p->plan)->parted.op == t->op) return 0;
    for (i64 g = first_grain(p, at.b0); g < last_grain(p, at.b1); g++) TRY(use_weights(p, op, p->at->grad0 + (u32)g, USE_SUM));
    return 0;
}

/* Part k of n of a weight gradient.  The block of the norm in which a part begins belongs to that part, and every part adds to
 * the biases.  So no range has two tasks that wrote it last. */
static err uses_dw(struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    const i64 end = op->theta0 + op->ntheta;
    const i32 part = t->node_a, n = t->node_b;
    TRY(use_inputs(p, op, t->box.b0, t->box.b1));
    TRY(use_act(p, p->at->act, op->out, USE_R, t->box.b0, t->box.b1));
    TRY(use(p, p->at->saved[t->op], USE_R, t->box.b0, t->box.b1));
    TRY(use(p, p->at->scratch[t->op], USE_W, t->box.b0, t->box.b1));
    for (i64 k = first_grain(p, t->box.b0); k < last_grain(p, t->box.b1); k++) {
        const u32 grad = p->at->grad0 + (u32)k;
        const bool last = part == n - 1;
        TRY(use(p, grad, USE_SUM, planner_part(p, part), last ? end : op->theta0 + op->layer->adds(op, part + 1, n)));
        if (!last) TRY(use(p, grad, USE_SUM, op->theta0 + op->layer->adds(op, n, n), end));
    }
    return 0;
}

/* ------------------------------------------------------------------ split ops ----------------------------------------------- */

/* Panels [p0,p1) of an entry of an exchange buffer. */
static err use_panels(struct planner *p, u32 buf, enum use_mode mode, const struct task *t, i32 entry, i32 p0, i32 p1) {
    const i32 n = op_panels(&p->net->op[t->op]), at = entry * n;
    return build_use(&p->build, (struct use){.buf = buf,
                                             .mode = (u8)mode,
                                             .t0 = at + p0,
                                             .t1 = at + p1,
                                             .lo = t->box.b0,
                                             .hi = t->box.b1});
}

static err use_own(struct planner *p, u32 buf, const struct task *t, i32 entry) {
    i32 p0, p1;
    task_share(t, op_panels(&p->net->op[t->op]), &p0, &p1);
    return use_panels(p, buf, USE_W, t, entry, p0, p1);
}

/* Steps [t0,t1) of a buffer of the net. */
static err use_steps(struct planner *p, const u32 *table, i32 buf, enum use_mode mode, const struct task *t, i32 t0, i32 t1) {
    const struct use u = {buf < 0 ? PBUF_NONE : table[buf], (u8)mode, t0, t1, t->box.b0, t->box.b1};
    return t1 > t0 ? build_use(&p->build, u) : 0;
}

/* The rows of a buffer of the net in all steps that it has. */
static err use_rows(struct planner *p, const u32 *table, i32 buf, enum use_mode mode, const struct task *t) {
    const struct use u = {.buf = buf < 0 ? PBUF_NONE : table[buf], .mode = (u8)mode, .lo = t->box.b0, .hi = t->box.b1};
    return build_use(&p->build, u);
}

/* The inputs besides x: the initial state, and how long rows are. */
static err use_rest(struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    for (i32 i = 1; i < op->layer->nin; i++) TRY(use_rows(p, p->at->act, op->spec.in[i], USE_R, t));
    return 0;
}

/* The weights, in the first step of a pass: later steps depend on that one by what the layer keeps. */
static err use_model(struct planner *p, const struct task *t, bool first) {
    const struct op *op = &p->net->op[t->op];
    if (first) TRY(use_weights(p, op, p->at->theta, USE_R));
    return first ? use_derived(p, op, USE_R) : 0;
}

/* What the layer keeps on this rank. */
static err use_kept(struct planner *p, const struct task *t) {
    TRY(use_rows(p, p->at->saved, t->op, USE_RW, t));
    return use_rows(p, p->at->scratch, t->op, USE_RW, t);
}

static err uses_split_fwd(struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    const i32 s = t->box.t0, end = s + 1 == op->T ? op->layer->split->entries(op) : s + 1;
    TRY(use_model(p, t, s == 0));
    TRY(use_kept(p, t));
    TRY(use_inputs(p, op, t->box.b0, t->box.b1));
    TRY(use_steps(p, p->at->act, op->out, USE_R, t, imax(0, s - 1), s));
    TRY(use_steps(p, p->at->act, op->out, USE_W, t, s, s + 1));
    if (s + 1 == op->T) TRY(use_rows(p, p->at->act, op->end, USE_W, t));
    for (i32 e = s; e < end; e++) TRY(use_own(p, p->at->units[t->op], t, e));
    return 0;
}

static err uses_gather(struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    const i32 n = op_panels(op), end = t->box.t1 == op->T ? op->layer->split->entries(op) : t->box.t1;
    for (i32 e = t->box.t0; e < end; e++) TRY(use_panels(p, p->at->units[t->op], USE_R, t, e, 0, n));
    TRY(use_kept(p, t));
    TRY(use_rest(p, t));
    TRY(use_steps(p, p->at->act, op->out, USE_RW, t, t->box.t0, t->box.t1));
    return t->box.t1 == op->T ? use_rows(p, p->at->act, op->end, USE_RW, t) : 0;
}

static err uses_split_bwd(struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    const i32 s = t->box.t0;
    TRY(use_model(p, t, s + 1 == op->T));
    TRY(use_kept(p, t));
    TRY(use_rest(p, t));
    TRY(use_steps(p, p->at->act, op->out, USE_R, t, s, s + 1));
    TRY(use_steps(p, p->at->dact, op->out, USE_R, t, s, s + 1));
    TRY(use_rows(p, p->at->dact, op->end, USE_R, t));
    return use_own(p, p->at->dunits[t->op], t, s & 1);
}

static err uses_dgather(struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    TRY(use_panels(p, p->at->dunits[t->op], USE_R, t, t->box.t0 & 1, 0, op_panels(op)));
    TRY(use_kept(p, t));
    return use_rest(p, t);
}

/* Member k of n writes the k-th n-th of the steps. */
static err uses_dx(struct planner *p, const struct task *t) {
    i32 lo, hi;
    task_share(t, t->box.t1 - t->box.t0, &lo, &hi);
    TRY(use_model(p, t, true));
    TRY(use_kept(p, t));
    TRY(use_rest(p, t));
    return use_steps(p, p->at->dact, p->net->op[t->op].spec.in[0], USE_W, t, t->box.t0 + lo, t->box.t0 + hi);
}

static err uses_split_dw(struct planner *p, const struct task *t) {
    const struct op *op = &p->net->op[t->op];
    struct plan_range own[2];
    split_weights(op, t->member, t->members, own);
    TRY(use_kept(p, t));
    TRY(use_inputs(p, op, t->box.b0, t->box.b1));
    TRY(use_rows(p, p->at->act, op->out, USE_R, t));
    for (i64 g = first_grain(p, t->box.b0); g < last_grain(p, t->box.b1); g++)
        for (i32 i = 0; i < 2; i++) TRY(use(p, p->at->grad0 + (u32)g, USE_SUM, own[i].lo, own[i].hi));
    return 0;
}

static err uses_split(struct planner *p, const struct task *t) {
    return t->kind == TASK_FWD ? uses_split_fwd(p, t) : t->kind == TASK_BWD ? uses_split_bwd(p, t) : uses_split_dw(p, t);
}

/* ------------------------------------------------------------------ sums and updates ---------------------------------------- */

static err uses_merge(struct planner *p, const struct task *t) {
    TRY(use(p, p->at->grad0 + (u32)t->node_a, USE_RW, t->lo, t->hi));
    return use(p, p->at->grad0 + (u32)t->node_b, USE_R, t->lo, t->hi);
}

static err uses_norm(struct planner *p, const struct task *t) {
    const i64 block = netplan(p->plan)->norm_block;
    TRY(use(p, p->at->grad0, USE_R, t->lo, t->hi));
    return use(p, p->at->norm, USE_W, t->lo / block, (t->hi + block - 1) / block);
}

/* The clip factor and the NaN check need the whole norm and loss. */
static err uses_update(struct planner *p, const struct task *t) {
    const struct plan *g = p->plan;
    TRY(use(p, p->at->grad0, USE_R, t->lo, t->hi));
    TRY(use(p, p->at->norm, USE_R, 0, g->buf[p->at->norm].extent));
    TRY(use(p, p->at->loss, USE_R, 0, g->buf[p->at->loss].extent));
    TRY(use(p, p->at->theta, USE_RW, t->lo, t->hi));
    for (i32 s = 0; s < netplan(g)->nstate; s++) TRY(use(p, p->at->state0 + (u32)s, USE_RW, t->lo, t->hi));
    return 0;
}

static err (*const uses[TASK_NKIND])(struct planner *p, const struct task *t) = {
    [TASK_PREP] = uses_prep, [TASK_FWD] = uses_fwd,     [TASK_ZERO] = uses_zero, [TASK_BWD] = uses_bwd,
    [TASK_DW] = uses_dw,     [TASK_MERGE] = uses_merge, [TASK_NORM] = uses_norm, [TASK_UPDATE] = uses_update,
    [TASK_GATHER] = uses_gather, [TASK_DGATHER] = uses_dgather, [TASK_DX] = uses_dx};

/* Ranks make for themselves what they can from what they have. */
static u8 runs(u8 kind) {
    return kind == TASK_PREP || kind == TASK_GATHER || kind == TASK_DGATHER ? RUN_AT_USERS : RUN_ONCE;
}

err planner_task(struct planner *p, struct task t) {
    const bool of_op = task_forms[t.kind].op;
    t.everywhere = runs(t.kind);
    if (t.kind == TASK_PREP) t.box.b1 = p->q->B;
    if (t.kind == TASK_ZERO && t.hi == 0) t.hi = netplan(p->plan)->ntheta; /* all of it, unless a range is given */
    if (t.kind == TASK_DW && !t.split) t.node_b = netplan(p->plan)->parted.n;
    if (t.box.b1 > 0 && t.box.t1 == 0) t.box.t1 = of_op ? p->net->op[t.op].T : 1;
    TRY(build_task(&p->build, t));
    const struct task *added = &p->plan->task[p->plan->ntask - 1];
    return t.split && t.kind != TASK_DX ? uses_split(p, added) : uses[t.kind](p, added);
}
