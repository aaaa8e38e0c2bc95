/* rig_step.c - a full training step with plan and executor: recurrent layers + linear head + MSE + Adam.
 *
 *     x [T][B][I] -> lstm.0 -> ... -> last -> head [B][1] -> loss_mse(target)
 *
 * Verified by the gradient of the first step and the loss after ten steps; files use PyTorch's names (lstm.weight_ih_l0,
 * head.bias). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "step/step.h"
#include "model/layer.h"
#include "rig.h"

enum { STEPS = 10 };

struct step_rig {
    struct rig rig; /* first */
    struct net net;
    struct machine machine;
    struct plan *plan;
    struct store store;
    struct step *x;
    struct arena arena;
    f32 *input[NET_BUFS];
    i32 in, target;
    struct step_args step;
    struct exec_result result;
};

static err layers(struct step_rig *c) {
    const struct spec *s = &c->rig.spec;
    i32 op, at, end = -1;
    char name[24];
    net_init(&c->net);
    TRY(net_input(&c->net, "x", s->T, s->I, false, &c->in));
    at = c->in;
    for (i32 l = 0; l < s->layers; l++) {
        snprintf(name, sizeof name, "lstm.%d", (int)l);
        struct op_spec o = net_spec("recurrent", name, at);
        o.cell = s->cell, o.hidden = s->H, o.precision = s->prec;
        TRY(net_op(&c->net, &o, &op));
        at = c->net.op[op].out, end = c->net.op[op].end;
    }
    struct op_spec last = net_spec("last", "last", end), head, loss;
    TRY(net_op(&c->net, &last, &op));
    head = net_spec("dense", "head", c->net.op[op].out);
    head.units = 1;
    TRY(net_op(&c->net, &head, &op));
    loss = net_spec("loss_mse", "loss", c->net.op[op].out);
    TRY(net_input(&c->net, "target", 1, 1, false, &c->target));
    loss.in[1] = c->target;
    TRY(net_op(&c->net, &loss, &op));
    return net_check(&c->net);
}

static err run_once(struct step_rig *c) {
    c->step.step++;
    c->step.hyper.step++;
    return step_run(c->x, &c->step, &c->result);
}

static void step(struct rig *r) { run_once((struct step_rig *)(void *)r); }

static err load(struct rig *r, const char *dir) {
    struct step_rig *c = (struct step_rig *)(void *)r;
    const struct spec *s = &r->spec;
    net_weights_init(&c->net, 1, c->store.theta);
    if (dir) TRY(net_files(&c->net, dir, c->store.theta, NULL));
    TRY(rows_file(dir, "x", (i64)s->T * s->B, s->I, c->input[c->in]));
    return rows_file(dir, "target", s->B, 1, c->input[c->target]);
}

static err dump(struct rig *r, const char *dir) {
    struct step_rig *c = (struct step_rig *)(void *)r;
    f32 loss[STEPS];
    TRY(load(r, dir));
    for (i32 k = 0; k < 2; k++) memset(c->store.state[k], 0, (size_t)c->store.ntheta * sizeof(f32));
    c->step.step = 0, c->step.hyper.step = 0;
    for (i32 k = 0; k < STEPS; k++) {
        TRY(run_once(c));
        loss[k] = (f32)c->result.loss;
        if (k == 0) TRY(net_files(&c->net, dir, NULL, step_grad(c->x)));
    }
    return raw_write(dir, "ours.y", STEPS, loss);
}

static void step_rig_free(struct rig *r) {
    struct step_rig *c = (struct step_rig *)(void *)r;
    step_free(c->x);
    store_free(&c->store);
    plan_free(c->plan);
    arena_free(&c->arena);
    mem_free(c);
}

static err build(struct step_rig *c, struct pool *pool) {
    const struct spec *s = &c->rig.spec;
    char text[32];
    TRY(layers(c));
    snprintf(text, sizeof text, "cpu*%d", (int)s->threads);
    TRY(machine_parse(text, &c->machine));
    const struct optim *adam = optim_find("adam");
    struct plan_request q = {
        .net = &c->net, .machine = &c->machine, .B = s->B, .train = true, .nstate = adam->nstate, .parallel = "auto"};
    TRY(plan_make(&q, &c->plan));
    TRY(store_new(&c->net, adam, &c->store));
    TRY(step_bind(c->plan, &c->net, s->kern, pool, &c->store, NULL, NULL, &c->x));
    for (i32 i = 0; i < c->net.nbuf; i++)
        if (c->net.buf[i].input) ARENA_NEW(&c->arena, c->input[i], buf_floats(&c->net.buf[i], s->B));
    c->step = (struct step_args){.input = c->input, .loss_scale = 1.0f / (f32)s->B, .seed = 1};
    c->step.hyper = (struct optim_hyper){.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1};
    for (const struct op *op = c->net.op; op < c->net.op + c->net.nop; op++)
        c->rig.flop += op->layer->flops(op, &c->net, s->B, false) + op->layer->flops(op, &c->net, s->B, true);
    return 0;
}

static const char *cannot(const struct spec *s) {
    if (!cell_at(s->kern, s->cell, s->prec)) return "no kernels of this cell and precision here";
    if (s->dirs == 2 || s->ragged || s->proj || s->team || s->stepped)
        return "a full step has one direction, equal lengths, no projection";
    return "";
}

err step_rig_new(const struct spec *s, struct pool *pool, struct rig **out) {
    struct step_rig *c = mem_alloc(sizeof *c);
    if (!c) return -E601;
    c->rig = (struct rig){.spec = *s, .step = step, .load = load, .dump = dump, .free = step_rig_free};
    c->rig.why = cannot(s);
    const err e = *c->rig.why ? 0 : build(c, pool);
    if (e < 0)
        step_rig_free(&c->rig);
    else
        *out = &c->rig;
    return e;
}
