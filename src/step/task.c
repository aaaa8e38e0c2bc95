/* task.c - adding tasks: the uses of a task follow from its kind, its op and its ranges.  Every member of a team has the uses of
 * the whole task: it reads what the others write.  So have those who run a chain, and so the first of them may do it all. */
#include "model/layer.h"
#include "step/planner.h"

static bool sends(const struct net *n, i32 buf) { return buf >= 0 && buf_sends(&n->buf[buf]); }

static err add(struct planner *p, struct task t) { return build_task(&p->build, t); }

/* In a chunk buffers of as many steps as the op has are used in its steps only. */
static err use(struct planner *p, u32 buf, enum use_mode mode, i64 lo, i64 hi) {
    const struct plan *g = p->plan;
    const struct task *t = &g->task[g->ntask - 1];
    struct use u = {.buf = buf, .mode = (u8)mode, .lo = lo, .hi = hi};
    if (buf == PBUF_NONE) return 0;
    const struct pbuf *b = &g->buf[buf];
    const bool steps = b->kind == PBUF_ACT || b->kind == PBUF_DACT || b->kind == PBUF_INPUT;
    if (task_is_chunk(t, p->net) && steps && p->net->buf[b->index].T == p->net->op[t->op].T) {
        u.t0 = t->box.t0;
        u.t1 = t->box.t1;
    }
    return build_use(&p->build, u);
}

/* The parameters that an op reads: its own and those it shares. */
static err use_weights(struct planner *p, const struct op *op, u32 buf, enum use_mode mode) {
    TRY(use(p, buf, mode, op->theta0, op->theta0 + op->ntheta));
    if (op->spec.share < 0) return 0;
    const struct op *s = &p->net->op[op->spec.share];
    return use(p, buf, mode, s->theta0, s->theta0 + s->ntheta);
}

static err use_derived(struct planner *p, const struct op *op, enum use_mode mode) {
    TRY(use(p, p->derived, mode, op->derived0, op->derived0 + op->nderived));
    if (op->spec.share < 0 || mode == USE_W) return 0;
    const struct op *s = &p->net->op[op->spec.share];
    return use(p, p->derived, mode, s->derived0, s->derived0 + s->nderived);
}

static err use_inputs(struct planner *p, const struct op *op, i32 b0, i32 b1) {
    for (i32 i = 0; i < op->layer->nin; i++)
        if (op->spec.in[i] >= 0) TRY(use(p, p->act[op->spec.in[i]], USE_R, b0, b1));
    return 0;
}

static err use_act(struct planner *p, const u32 *table, i32 buf, enum use_mode mode, i32 b0, i32 b1) {
    return buf < 0 ? 0 : use(p, table[buf], mode, b0, b1);
}

/* Slices of time are walked chunk by chunk, as the kernels think best. */
bool op_has_how(const struct op *op) { return op->layer->team && !op_is_chain(op); }

void plan_set_how(struct plan *p, const struct net *n, i32 op, u32 how) {
    for (u32 i = 0; i < p->ntask && op_has_how(&n->op[op]); i++)
        if (p->task[i].kind == TASK_FWD && p->task[i].op == op) p->task[i].how = (u8)how;
}

static struct slice box_of(const struct op *op, i32 b0, i32 b1) { return (struct slice){b0, b1, 0, op->T, op->l, op->l + 1}; }

static i64 first_grain(const struct planner *p, i32 row) { return row / p->grain; }
static i64 last_grain(const struct planner *p, i32 row) { return ceil_div(row, p->grain); }

err task_prep(struct planner *p, u32 device, i32 l) {
    const struct op *op = &p->net->op[l];
    TRY(add(p,
            (struct task){.kind = TASK_PREP, .everywhere = true, .op = (u16)l, .device = device, .box = box_of(op, 0, p->q->B)}));
    TRY(use_weights(p, op, p->theta, USE_R));
    return use_derived(p, op, USE_W);
}

static struct task box_task(enum task_kind kind, u32 device, const struct op *op, struct work w) {
    struct slice box = box_of(op, w.b0, w.b1);
    if (w.t1 > 0) box.t0 = w.t0, box.t1 = w.t1;
    return (struct task){
        .kind = (u8)kind, .op = (u16)op->l, .device = device, .box = box, .member = (u16)w.member, .members = (u16)w.members};
}

/* Rows of others are a task's too: those of a chain in all it does, those that rows are made of where it reads.  Between ranks
 * nothing but weights, gradients and losses is a matter of uses: what slices tell each other, chains do. */
static void all_rows(const struct planner *p, bool all, i32 *b0, i32 *b1) {
    if (!all) return;
    *b0 = 0;
    *b1 = p->q->B;
}

/* A chunk goes on from what the one before kept, whatever rows and steps that is. */
static enum use_mode keeps(const struct planner *p, enum use_mode whole) {
    return task_is_chunk(&p->plan->task[p->plan->ntask - 1], p->net) ? USE_RW : whole;
}

/* Rows that a task does, and those that it reads. */
struct reach {
    i32 b0, b1, r0, r1;
};

/* A task of an op, and what it reads either way. */
static err begin(struct planner *p, enum task_kind kind, u32 device, struct work w, struct reach *at) {
    const struct op *op = &p->net->op[w.op];
    const bool chain = op_is_chain(op) && p->machine->nrank == 1;
    *at = (struct reach){w.b0, w.b1, w.b0, w.b1};
    TRY(add(p, box_task(kind, device, op, w)));
    all_rows(p, chain, &at->b0, &at->b1);
    all_rows(p, chain || op_crosses(op), &at->r0, &at->r1);
    TRY(use_weights(p, op, p->theta, USE_R));
    TRY(use_derived(p, op, USE_R));
    return use_inputs(p, op, at->r0, at->r1);
}

err task_fwd(struct planner *p, u32 device, struct work w) {
    const struct op *op = &p->net->op[w.op];
    struct reach at;
    TRY(begin(p, TASK_FWD, device, w, &at));
    const i32 b0 = at.b0, b1 = at.b1;
    TRY(use_act(p, p->act, op->out, USE_W, b0, b1));
    TRY(use_act(p, p->act, op->end, USE_W, b0, b1));
    TRY(use(p, p->saved[w.op], keeps(p, USE_W), b0, b1));
    TRY(use(p, p->scratch[w.op], USE_W, b0, b1));
    return op_is_loss(op) ? use(p, p->loss, USE_W, first_grain(p, b0), last_grain(p, b1)) : 0;
}

err task_zero(struct planner *p, u32 device, i32 b0, i32 b1) {
    TRY(add(p, (struct task){.kind = TASK_ZERO, .device = device, .box = {b0, b1, 0, 1, 0, p->net->nop}}));
    for (i64 g = first_grain(p, b0); g < last_grain(p, b1); g++)
        TRY(use(p, p->grad0 + (u32)g, USE_W, 0, netplan(p->plan)->ntheta));
    return 0;
}

err task_bwd(struct planner *p, u32 device, struct work w) {
    const struct op *op = &p->net->op[w.op];
    struct reach at;
    TRY(begin(p, TASK_BWD, device, w, &at));
    const i32 b0 = at.b0, b1 = at.b1;
    TRY(use_act(p, p->act, op->out, USE_R, b0, b1));
    TRY(use_act(p, p->act, op->end, USE_R, b0, b1));
    TRY(use_act(p, p->dact, op->out, op_crosses(op) ? USE_R : USE_RW, at.r0, at.r1));
    TRY(use_act(p, p->dact, op->end, USE_RW, b0, b1));
    TRY(use(p, p->saved[w.op], USE_RW, b0, b1));
    TRY(use(p, p->scratch[w.op], keeps(p, USE_W), b0, b1));
    for (i32 i = 0; i < op->layer->nin; i++) {
        i32 in = op->spec.in[i];
        if (sends(p->net, in) && p->net->buf[in].consumer == w.op) TRY(use_act(p, p->dact, in, USE_W, b0, b1));
    }
    if (netplan(p->plan)->parted.n > 0 && netplan(p->plan)->parted.op == w.op) return 0;
    for (i64 g = first_grain(p, b0); g < last_grain(p, b1); g++) TRY(use_weights(p, op, p->grad0 + (u32)g, USE_SUM));
    return 0;
}

/* The block of the norm in which a part begins is this one's too, and the biases are everybody's: so no range has two that wrote
 * it last. */
err task_dw(struct planner *p, u32 device, i32 b0, i32 b1, i32 part) {
    const struct plan *g = p->plan;
    const struct op *op = &p->net->op[netplan(g)->parted.op];
    const i64 end = op->theta0 + op->ntheta;
    const bool last = part == netplan(g)->parted.n - 1;
    TRY(add(p, (struct task){.kind = TASK_DW,
                             .op = (u16)op->l,
                             .device = device,
                             .box = box_of(op, b0, b1),
                             .node_a = part,
                             .node_b = netplan(g)->parted.n}));
    TRY(use_inputs(p, op, b0, b1));
    TRY(use_act(p, p->act, op->out, USE_R, b0, b1));
    TRY(use(p, p->saved[op->l], USE_R, b0, b1));
    TRY(use(p, p->scratch[op->l], USE_W, b0, b1));
    for (i64 k = first_grain(p, b0); k < last_grain(p, b1); k++) {
        const u32 grad = p->grad0 + (u32)k;
        TRY(use(p, grad, USE_SUM, planner_part(p, part),
                last ? end : op->theta0 + op->layer->adds(op, part + 1, netplan(g)->parted.n)));
        if (!last) TRY(use(p, grad, USE_SUM, op->theta0 + op->layer->adds(op, netplan(g)->parted.n, netplan(g)->parted.n), end));
    }
    return 0;
}

err task_merge(struct planner *p, u32 device, i32 a, i32 b, i64 lo, i64 hi) {
    TRY(add(p, (struct task){.kind = TASK_MERGE, .device = device, .node_a = a, .node_b = b, .lo = lo, .hi = hi}));
    TRY(use(p, p->grad0 + (u32)a, USE_RW, lo, hi));
    return use(p, p->grad0 + (u32)b, USE_R, lo, hi);
}

err task_norm(struct planner *p, u32 device, i64 lo, i64 hi) {
    i64 block = netplan(p->plan)->norm_block;
    TRY(add(p, (struct task){.kind = TASK_NORM, .device = device, .lo = lo, .hi = hi}));
    TRY(use(p, p->grad0, USE_R, lo, hi));
    return use(p, p->norm, USE_W, lo / block, (hi + block - 1) / block);
}

/* The clip factor and the check for NaN need all of the norm and all of the loss. */
err task_update(struct planner *p, u32 device, i64 lo, i64 hi) {
    const struct plan *g = p->plan;
    TRY(add(p, (struct task){.kind = TASK_UPDATE, .device = device, .lo = lo, .hi = hi}));
    TRY(use(p, p->grad0, USE_R, lo, hi));
    TRY(use(p, p->norm, USE_R, 0, g->buf[p->norm].extent));
    TRY(use(p, p->loss, USE_R, 0, g->buf[p->loss].extent));
    TRY(use(p, p->theta, USE_RW, lo, hi));
    for (i32 s = 0; s < netplan(g)->nstate; s++) TRY(use(p, p->state0 + (u32)s, USE_RW, lo, hi));
    return 0;
}
