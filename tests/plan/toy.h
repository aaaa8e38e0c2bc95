/* toy.h - a small net of toy layers for tests of plan and exec: they must not know what a layer computes.
 *
 *     x [3][B][20] --> a tanh(x W) --> b tanh(. W of a) --> c tanh(. W) --> loss: sum (c - target)^2
 *
 * toy_team_net has layers that can be shared by units, and whose every step needs all units of the step before:
 *
 *     x [3][B][20] --> a, b  y[t] = tanh(x W + y[t-1] turned by 17 / 2), 48 and 41 units --> c tanh(. W) --> loss
 */
#ifndef STRETTO_TESTS_PLAN_TOY_H
#define STRETTO_TESTS_PLAN_TOY_H

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "model/layer.h"
#include "model/optim/optim.h"

enum { TOY_T = 3, TOY_F = 20, TOY_OUT = 7, TOY_UNITS = 48, TOY_TURN = 17 };

static const struct op *toy_weights(const struct op *op, const struct net *n) {
    return op->spec.share >= 0 ? &n->op[op->spec.share] : op;
}

static void toy_prep(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived) {
    (void)n;
    (void)k;
    i32 Fp = round_up(op->F, LANES), Ip = round_up(op->I, LANES);
    for (i32 i = 0; i < op->I; i++)
        for (i32 f = 0; f < op->F; f++) derived[op->derived0 + f * Ip + i] = theta[op->theta0 + i * Fp + f];
}

static void toy_fwd(const struct op *op, const struct run *r, struct part p) {
    i32 Ip = round_up(op->I, LANES), Fp = round_up(op->F, LANES);
    const f32 *w = r->theta + toy_weights(op, r->net)->theta0;
    for (i32 t = p.t0; t < p.t1; t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            const f32 *x = r->buf[op->spec.in[0]] + ((i64)t * r->B + b) * Ip;
            f32 *y = r->buf[op->out] + ((i64)t * r->B + b) * Fp;
            for (i32 f = 0; f < op->F; f++) {
                f32 z = 0;
                for (i32 i = 0; i < op->I; i++) z += x[i] * w[i * Fp + f];
                y[f] = tanhf(z);
            }
        }
}

static void toy_bwd(const struct op *op, const struct run *r, struct part p) {
    i32 Ip = round_up(op->I, LANES), Fp = round_up(op->F, LANES), in = op->spec.in[0];
    const struct op *own = toy_weights(op, r->net);
    const f32 *wt = r->derived + own->derived0;
    f32 *din = buf_sends(&r->net->buf[in]) ? r->dbuf[in] : NULL;
    for (i32 b = p.b0; b < p.b1; b++)
        for (i32 t = p.t1 - 1; t >= p.t0; t--) {
            i64 row = (i64)t * r->B + b;
            const f32 *x = r->buf[in] + row * Ip, *y = r->buf[op->out] + row * Fp;
            f32 *dz = r->dbuf[op->out] + row * Fp, *g = grain_grad(r, b / r->grain, own->theta0);
            for (i32 f = 0; f < op->F; f++) dz[f] *= 1 - y[f] * y[f];
            for (i32 i = 0; i < op->I; i++)
                for (i32 f = 0; f < op->F; f++) g[i * Fp + f] += x[i] * dz[f];
            for (i32 i = 0; din && i < op->I; i++) {
                f32 s = 0;
                for (i32 f = 0; f < op->F; f++) s += dz[f] * wt[f * Ip + i];
                din[row * Ip + i] = s;
            }
        }
}

static f64 toy_flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    (void)n;
    return 2.0 * B * op->T * op->I * op->F * (backward ? 2 : 1);
}

/* Members publish a step and wait for the others, as teams of kern.h do. */
static void toy_meet(const struct run *r, struct part p, i32 step) {
    char *line = p.flags;
    u64 want = r->serial * (TOY_T + 2) + (u64)step + 1;
    if (p.n < 2) return;
    atomic_store_explicit((_Atomic u64 *)(void *)(line + p.me * TEAM_LINE), want, memory_order_release);
    for (i32 k = 0; k < p.n; k++)
        while (atomic_load_explicit((_Atomic u64 *)(void *)(line + k * TEAM_LINE), memory_order_acquire) < want) sched_yield();
}

/* The units of a member: whole panels. */
static i32 toy_share(i32 F, i32 me, i32 n) { return imin(F, ceil_div(F, LANES) * me / n * LANES); }

static void toy_chain_fwd(const struct op *op, const struct run *r, struct part p) {
    i32 Ip = round_up(op->I, LANES), F = op->F, Fp = round_up(F, LANES);
    const f32 *w = r->theta + op->theta0;
    for (i32 t = p.t0; t < p.t1; t++) {
        for (i32 b = p.b0; b < p.b1; b++) {
            const f32 *x = r->buf[op->spec.in[0]] + ((i64)t * r->B + b) * Ip;
            f32 *y = r->buf[op->out] + ((i64)t * r->B + b) * Fp;
            for (i32 f = toy_share(F, p.me, p.n); f < toy_share(F, p.me + 1, p.n); f++) {
                f32 z = t > 0 ? 0.5f * y[(f + TOY_TURN) % F - (i64)r->B * Fp] : 0;
                for (i32 i = 0; i < op->I; i++) z += x[i] * w[i * Fp + f];
                y[f] = tanhf(z);
            }
        }
        toy_meet(r, p, t - p.t0);
    }
}

static void toy_chain_row(const struct op *op, const struct run *r, struct part p, i32 t, i32 b, bool dz_done) {
    i32 in = op->spec.in[0], Ip = round_up(op->I, LANES), F = op->F, Fp = round_up(F, LANES);
    i64 row = (i64)t * r->B + b, later = (i64)r->B * Fp;
    const f32 *x = r->buf[in] + row * Ip, *y = r->buf[op->out] + row * Fp, *w = r->theta + op->theta0;
    f32 *dz = r->dbuf[op->out] + row * Fp, *g = grain_grad(r, b / r->grain, op->theta0);
    f32 *din = buf_sends(&r->net->buf[in]) ? r->dbuf[in] + row * Ip : NULL;
    for (i32 f = toy_share(F, p.me, p.n); !dz_done && f < toy_share(F, p.me + 1, p.n); f++) {
        if (t + 1 < TOY_T) dz[f] += 0.5f * dz[(f + F - TOY_TURN) % F + later];
        dz[f] *= 1 - y[f] * y[f];
        for (i32 i = 0; i < op->I; i++) g[i * Fp + f] += x[i] * dz[f];
    }
    for (i32 i = toy_share(op->I, p.me, p.n); dz_done && din && i < toy_share(op->I, p.me + 1, p.n); i++) {
        din[i] = 0;
        for (i32 f = 0; f < F; f++) din[i] += dz[f] * w[i * Fp + f];
    }
}

static void toy_chain_bwd(const struct op *op, const struct run *r, struct part p) {
    for (i32 t = p.t1 - 1; t >= p.t0; t--) {
        for (i32 b = p.b0; b < p.b1; b++) toy_chain_row(op, r, p, t, b, false);
        toy_meet(r, p, p.t1 - 1 - t);
        for (i32 b = p.b0; b < p.b1; b++) toy_chain_row(op, r, p, t, b, true);
    }
}

static i64 toy_saved(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    return (i64)op->T * B.n * 4;
}

static void toy_loss_fwd(const struct op *op, const struct run *r, struct part p) {
    i32 Fp = round_up(op->I, LANES);
    const f32 *y = r->buf[op->spec.in[0]], *want = r->buf[op->spec.in[1]];
    for (i32 g = p.b0 / r->grain; g * r->grain < p.b1; g++) {
        f64 sum = 0;
        for (i32 b = g * r->grain; b < imin((g + 1) * r->grain, p.b1); b++)
            for (i32 t = 0; t < op->T; t++)
                for (i32 f = 0; f < op->I; f++) {
                    i64 at = ((i64)t * r->B + b) * Fp + f;
                    f64 d = (f64)y[at] - (f64)want[at];
                    sum += d * d;
                }
        r->loss[g] = sum;
    }
}

static void toy_loss_bwd(const struct op *op, const struct run *r, struct part p) {
    i32 Fp = round_up(op->I, LANES);
    const f32 *y = r->buf[op->spec.in[0]], *want = r->buf[op->spec.in[1]];
    for (i32 t = 0; t < op->T; t++)
        for (i64 at = ((i64)t * r->B + p.b0) * Fp; at < ((i64)t * r->B + p.b1) * Fp; at++)
            r->dbuf[op->spec.in[0]][at] = 2 * (y[at] - want[at]) * r->loss_scale;
}

static const struct layer toy_dense = {
    .name = "toy", .nin = 1, .saved = toy_saved, .flops = toy_flops, .prep = toy_prep, .fwd = toy_fwd, .bwd = toy_bwd};
static const struct layer toy_chain = {.name = "chain",
                                       .team = true,
                                       .nin = 1,
                                       .flops = toy_flops,
                                       .fwd = toy_chain_fwd,
                                       .bwd = toy_chain_bwd};
static const struct layer toy_tied = {.name = "tied", .nin = 1, .flops = toy_flops, .fwd = toy_fwd, .bwd = toy_bwd};
static const struct layer toy_loss = {.name = "loss_toy", .nin = 2, .flops = toy_flops, .fwd = toy_loss_fwd, .bwd = toy_loss_bwd};

static inline i32 toy_buf(struct net *n, const char *name, i32 F, bool input) {
    struct buf *b = &n->buf[n->nbuf];
    *b = (struct buf){.T = TOY_T, .F = F, .input = input, .grad = !input, .consumer = -1};
    snprintf(b->name, sizeof b->name, "%s", name);
    return n->nbuf++;
}

static inline i32 toy_op(struct net *n, const struct layer *layer, const char *name, i32 in, i32 F, i32 share) {
    struct op *op = &n->op[n->nop];
    *op = (struct op){.layer = layer, .l = n->nop, .out = -1, .end = -1, .T = TOY_T, .I = n->buf[in].F, .F = F};
    op->spec = (struct op_spec){.layer = layer->name, .in = {in, -1, -1}, .share = share};
    snprintf(op->spec.name, sizeof op->spec.name, "%s", name);
    op->theta0 = n->ntheta;
    op->derived0 = n->nderived;
    if (n->buf[in].grad) n->buf[in].consumer = op->l;
    if (layer == &toy_dense || layer == &toy_chain) op->ntheta = (i64)op->I * round_up(F, LANES);
    if (layer == &toy_dense) op->nderived = (i64)F * round_up(op->I, LANES);
    n->ntheta += round_up64(op->ntheta, LANES);
    n->nderived += round_up64(op->nderived, LANES);
    if (layer != &toy_loss) op->out = toy_buf(n, name, F, false);
    n->nop++;
    return op->out;
}

static inline void toy_net(struct net *n) {
    memset(n, 0, sizeof *n);
    i32 x = toy_buf(n, "x", TOY_F, true), want = toy_buf(n, "target", TOY_OUT, true);
    i32 a = toy_op(n, &toy_dense, "a", x, TOY_F, -1);
    i32 b = toy_op(n, &toy_tied, "b", a, TOY_F, 0);
    i32 c = toy_op(n, &toy_dense, "c", b, TOY_OUT, -1);
    toy_op(n, &toy_loss, "loss", c, 1, -1);
    n->op[n->nop - 1].spec.in[1] = want;
}

static inline void toy_team_net(struct net *n) {
    memset(n, 0, sizeof *n);
    i32 x = toy_buf(n, "x", TOY_F, true), want = toy_buf(n, "target", TOY_OUT, true);
    i32 a = toy_op(n, &toy_chain, "a", x, TOY_UNITS, -1);
    i32 b = toy_op(n, &toy_chain, "b", a, TOY_UNITS - 7, -1);
    i32 c = toy_op(n, &toy_dense, "c", b, TOY_OUT, -1);
    toy_op(n, &toy_loss, "loss", c, 1, -1);
    n->op[n->nop - 1].spec.in[1] = want;
}

#endif
