/* kernels.c - the kernels of a network's step: one per kind of task (netplan.h). */
#include <math.h>
#include <string.h>

#include "kern/device.h"
#include "model/layer.h"
#include "step/bound.h"

/* Loss and gradient norm of the step, from the partial sums in their fixed order: the same number on every worker. */
struct exec_result step_result(void *step, void *const *mem) {
    const struct step *s = step;
    struct exec_result r = {0};
    bool has_loss = false;
    for (i32 l = 0; l < s->net->nop; l++) has_loss = has_loss || (s->net->op[l].out < 0 && !s->skip[l]);
    const f64 *loss = mem[s->at->loss], *norm = s->at->norm == PBUF_NONE ? NULL : mem[s->at->norm];
    for (i32 g = 0; has_loss && g < s->run.ngrain; g++) r.loss += loss[g];
    r.loss *= (f64)s->summed.loss_scale;
    f64 sum = 0;
    for (i64 i = 0; norm && i < s->plan->buf[s->at->norm].extent; i++) sum += norm[i];
    r.norm = sqrt(sum);
    r.finite = isfinite(r.loss) && isfinite(r.norm);
    return r;
}

/* The run for a task; *own: memory for that of a device, where tasks find their rows at different places. */
static const struct run *run_of(const struct step *s, const struct kernel_call *c, struct run *own) {
    if (!c->on_device) return &s->run;
    *own = s->device;
    own->row0 = c->row0;
    return own;
}

static const struct kern *kern_of(const struct step *s, const struct kernel_call *c) {
    return c->on_device ? s->device.kern : s->run.kern;
}

static struct part part_of(const struct step *s, const struct kernel_call *c) {
    const struct task *t = c->task;
    const i32 row0 = c->on_device ? c->row0 : s->run.row0;
    const bool parted = netplan(s->plan)->parted.n > 0 && netplan(s->plan)->parted.op == t->op;
    struct part p = {.b0 = t->box.b0 - row0, .b1 = t->box.b1 - row0, .t0 = t->box.t0, .t1 = t->box.t1, .n = 1, .how = t->how};
    p.apart = parted && t->kind == TASK_BWD;
    if (t->kind == TASK_DW && !t->split) p.me = t->node_a, p.n = t->node_b;
    if (t->split) {
        p.me = t->member;
        p.n = t->members;
    } else if (t->members > 1 && !c->alone) {
        p.me = t->member;
        p.n = t->members;
        p.flags = s->flags + (i64)s->flag_line[t - t->member - s->plan->task] * TEAM_LINE;
    }
    return p;
}

static void forward(void *step, const struct kernel_call *c) {
    struct step *s = step;
    struct run own;
    const struct op *op = &s->net->op[c->task->op];
    if (op_is_chain(op))
        slices_solve(s->slices, c->task, c->alone);
    else if (c->task->split)
        op->layer->split->fwd(op, run_of(s, c, &own), part_of(s, c));
    else if (!s->skip[c->task->op])
        op->layer->fwd(op, run_of(s, c, &own), part_of(s, c));
}

static void backward(void *step, const struct kernel_call *c) {
    struct step *s = step;
    struct run own;
    const struct op *op = &s->net->op[c->task->op];
    if (op_is_chain(op))
        slices_solve(s->slices, c->task, c->alone);
    else if (c->task->split)
        op->layer->split->bwd(op, run_of(s, c, &own), part_of(s, c));
    else
        op->layer->bwd(op, run_of(s, c, &own), part_of(s, c));
}

static void weight_gradient(void *step, const struct kernel_call *c) {
    struct step *s = step;
    struct run own;
    const struct op *op = &s->net->op[c->task->op];
    op->layer->dw(op, run_of(s, c, &own), part_of(s, c));
}

static void gather(void *step, const struct kernel_call *c) {
    struct step *s = step;
    struct run own;
    const struct op *op = &s->net->op[c->task->op];
    op->layer->split->gather(op, run_of(s, c, &own), part_of(s, c));
}

static void dgather(void *step, const struct kernel_call *c) {
    struct step *s = step;
    struct run own;
    const struct op *op = &s->net->op[c->task->op];
    op->layer->split->dgather(op, run_of(s, c, &own), part_of(s, c));
}

/* A member's share of the steps, as in its uses (task.c). */
static void input_gradient(void *step, const struct kernel_call *c) {
    struct step *s = step;
    struct run own;
    const struct op *op = &s->net->op[c->task->op];
    struct part p = part_of(s, c);
    i32 lo, hi;
    task_share(c->task, p.t1 - p.t0, &lo, &hi);
    p.t1 = p.t0 + hi;
    p.t0 += lo;
    op->layer->split->dx(op, run_of(s, c, &own), p);
}

/* The gradient vector of a micro-batch from element `at` on; marks NULL if the plan has no table. */
static struct sparse_rows sparse_at(const struct step *s, void *const *mem, i32 grain, i64 at) {
    f32 *grad = mem[s->at->grad0 + (u32)grain];
    u8 *mark = s->at->marks0 == PBUF_NONE ? NULL : mem[s->at->marks0 + (u32)grain];
    return (struct sparse_rows){grad + at, mark ? mark + at / LINE_FLOATS : NULL};
}

/* Zeroes ranges without a table completely, tables only in the rows that were touched. */
static void zero_vector(const struct step *s, const struct kernel_call *c, i32 grain) {
    const i64 hi = c->task->hi;
    for (i64 at = c->task->lo, end; at < hi; at = end) {
        const bool table = plan_table_at(s->plan, at, &end) != NULL;
        end = lmin(end, hi);
        const struct sparse_rows v = sparse_at(s, c->mem, grain, at);
        if (table)
            sparse_clear((end - at) / LINE_FLOATS, v);
        else
            kern_of(s, c)->copy(1, end - at, v.value, 0, NULL, 0);
    }
}

static void zero(void *step, const struct kernel_call *c) {
    struct step *s = step;
    const struct task *t = c->task;
    i32 g0 = t->box.b0 / s->run.grain, g1 = ceil_div(t->box.b1, s->run.grain);
    if (g0 == 0 && s->pending) g0 = 1; /* vector 0 holds the gradient that this step adds to */
    for (i32 g = g0; g < g1; g++) zero_vector(s, c, g);
}

static void merge(void *step, const struct kernel_call *c) {
    struct step *s = step;
    const i32 a = c->task->node_a, b = c->task->node_b;
    for (i64 at = c->lo, end; at < c->hi; at = end) {
        const bool table = plan_table_at(s->plan, at, &end) != NULL;
        const struct sparse_rows to = sparse_at(s, c->mem, a, at), from = sparse_at(s, c->mem, b, at);
        end = lmin(end, c->hi);
        if (table)
            sparse_add((end - at) / LINE_FLOATS, to, from, s->kern->add);
        else
            kern_of(s, c)->add(end - at, to.value, from.value);
    }
}

static void norm(void *step, const struct kernel_call *c) {
    struct step *s = step;
    const i64 block = netplan(s->plan)->norm_block;
    const f32 *grad = c->mem[s->at->grad0];
    f64 *sum = c->mem[s->at->norm];
    kern_of(s, c)->sumsq_blocks(c->hi - c->lo, block, grad + c->lo, sum + c->lo / block);
}

static void update_on_device(const struct step *s, const struct kernel_call *c, const struct optim_hyper *h) {
    const i64 lo = c->lo;
    f32 *state[2] = {NULL, NULL};
    for (i32 k = 0; k < s->store->optim->nstate; k++) state[k] = (f32 *)c->mem[s->at->state0 + (u32)k] + lo;
    const struct device_optim a = {.rule = s->store->optim->rule,
                                   .n = c->hi - lo,
                                   .theta = (f32 *)c->mem[s->at->theta] + lo,
                                   .grad = (const f32 *)c->mem[s->at->grad0] + lo,
                                   .s0 = state[0],
                                   .s1 = state[1],
                                   .lr = h->lr,
                                   .grad_scale = h->grad_scale,
                                   .weight_decay = h->weight_decay,
                                   .momentum = h->momentum,
                                   .beta1 = h->beta1,
                                   .beta2 = h->beta2,
                                   .eps = h->eps,
                                   .step = h->step};
    kern_of(s, c)->device->optimise(&a);
}

/* If the policy keeps a second copy of the weights, the update writes that copy. */
static void update(void *step, const struct kernel_call *c) {
    struct step *s = step;
    struct store *store = s->store;
    const i64 lo = c->lo, n = c->hi - c->lo;
    const struct exec_result sum = step_result(s, c->host);
    f32 *theta = c->mem[s->at->theta];
    const f32 *grad = c->mem[s->at->grad0];
    if (!c->on_device && theta != store->theta) memcpy(theta + lo, store->theta + lo, sizeof(f32) * (size_t)n);
    if (!sum.finite || s->summed.accumulate || s->summed.hold) return;
    struct optim_hyper h = s->summed.hyper;
    h.grad_scale = (f32)optim_clip(s->summed.clip, sum.norm);
    if (c->on_device) {
        update_on_device(s, c, &h);
        return;
    }
    store->optim->update(&h, n, theta + lo, grad + lo, store->state[0] ? store->state[0] + lo : NULL,
                         store->state[1] ? store->state[1] + lo : NULL);
}

static void prepare(void *step, const struct kernel_call *c) {
    struct step *s = step;
    struct run own;
    const struct op *op = &s->net->op[c->task->op];
    const struct run *r = run_of(s, c, &own);
    if (op->layer->prep) op->layer->prep(op, s->net, r->kern, r->theta, (f32 *)(uintptr_t)r->derived);
}

const struct kernel step_kernels[TASK_NKIND] = {
    [TASK_FWD] = {.name = "fwd", .run = forward, .rows = true, .compute = true},
    [TASK_BWD] = {.name = "bwd", .run = backward, .rows = true, .compute = true},
    [TASK_DW] = {.name = "dw", .run = weight_gradient, .rows = true, .compute = true},
    [TASK_ZERO] = {.name = "zero", .run = zero, .rows = true},
    [TASK_MERGE] = {.name = "merge", .run = merge, .blocks = true},
    [TASK_NORM] = {.name = "norm", .run = norm},
    [TASK_UPDATE] = {.name = "update", .run = update, .commits = true},
    [TASK_PREP] = {.name = "prep", .run = prepare},
    [TASK_GATHER] = {.name = "gather", .run = gather, .compute = true},
    [TASK_DGATHER] = {.name = "dgather", .run = dgather, .compute = true},
    [TASK_DX] = {.name = "dx", .run = input_gradient, .rows = true, .compute = true},
};
