/* rig.h - a network bound manually for tests: plain memory, no plan, no threads. */
#ifndef STRETTO_TESTS_MODEL_RIG_H
#define STRETTO_TESTS_MODEL_RIG_H

#include <math.h>

#include "base/rng.h"
#include "model/layer.h"
#include "t.h"

struct rig {
    const struct net *n;
    struct run r;
    struct arena arena;
    f32 *theta, *derived, *grad; /* grad [ngrain][ntheta] */
    void **vector;               /* [ngrain] the vectors of grad */
    f32 *buf[NET_BUFS], *dbuf[NET_BUFS], *saved[NET_OPS], *scratch[NET_OPS];
};

static inline f32 *rig_floats(struct rig *g, i64 n) {
    f32 *p = arena_new(&g->arena, (size_t)lmax(1, n) * sizeof *p);
    assert_non_null(p);
    return p;
}

static inline f32 rig_random(u32 what, i64 i) { return 2 * rng_uniform(7, RNG_TEST, what, (u64)i) - 1; }

/* Inputs: numbers in [-1,1), categories 0..vocab-1 (vocab of the op that reads them). */
static inline void rig_input(struct rig *g, i32 b, i32 vocab) {
    const struct buf *u = &g->n->buf[b];
    for (i64 at = 0; at < (i64)u->T * g->r.B; at++) {
        if (u->ids)
            ((i32 *)(void *)g->buf[b])[at] = (i32)(rng_uniform(7, RNG_TEST, (u32)b, (u64)at) * (f32)vocab);
        else
            for (i32 i = 0; i < u->F; i++) g->buf[b][at * buf_fp(u) + i] = rig_random((u32)b, at * u->F + i);
    }
}

static inline i32 rig_vocab(const struct net *n, i32 b) {
    for (i32 l = 0; l < n->nop; l++)
        for (i32 i = 0; i < n->op[l].layer->nin; i++)
            if (n->op[l].spec.in[i] == b) return imax(1, n->op[l].spec.vocab);
    return 1;
}

/* Random parameters through canonical tensors, so that padded lanes stay zero. */
static inline void rig_theta(struct rig *g, f32 scale) {
    static f32 canonical[1 << 18];
    for (i32 l = 0; l < g->n->nop; l++) {
        const struct op *op = &g->n->op[l];
        struct tensor_info info[8];
        i32 count = op->layer->tensors ? op->layer->tensors(op, info) : 0;
        for (i32 t = 0; t < count; t++) {
            i64 size = (i64)info[t].rows * imax(1, info[t].cols);
            assert_true(size <= (i64)COUNT(canonical));
            for (i64 i = 0; i < size; i++) canonical[i] = scale * rig_random(1000 + (u32)(l * 8 + t), i);
            layer_load(op, t, canonical, g->theta + op->theta0);
        }
    }
}

static inline void rig_new(struct rig *g, const struct net *n, const struct kern *k, i32 B, i32 grain) {
    *g = (struct rig){.n = n};
    struct run *r = &g->r;
    *r = (struct run){.net = n, .kern = k, .B = B, .whole = B, .grain = grain, .seed = 3, .step = 5, .train = true};
    r->ngrain = ceil_div(B, grain);
    r->buf = g->buf, r->dbuf = g->dbuf, r->saved = g->saved, r->scratch = g->scratch;
    g->theta = rig_floats(g, n->ntheta);
    g->derived = rig_floats(g, n->nderived);
    r->theta = g->theta, r->derived = g->derived;
    g->grad = rig_floats(g, r->ngrain * n->ntheta);
    g->vector = arena_new(&g->arena, (size_t)r->ngrain * sizeof *g->vector);
    for (i32 i = 0; i < r->ngrain; i++) g->vector[i] = g->grad + i * n->ntheta;
    r->grad = g->vector;
    r->loss = arena_new(&g->arena, (size_t)r->ngrain * sizeof *r->loss);
    r->loss_scale = 1;
    for (i32 b = 0; b < n->nbuf; b++) {
        i64 floats = buf_floats(&n->buf[b], B);
        g->buf[b] = rig_floats(g, floats);
        if (buf_sends(&n->buf[b])) g->dbuf[b] = rig_floats(g, floats);
        if (n->buf[b].input) rig_input(g, b, rig_vocab(n, b));
    }
    for (i32 l = 0; l < n->nop; l++) {
        g->saved[l] = rig_floats(g, op_saved_floats(&n->op[l], n, rows_all(B)));
        g->scratch[l] = rig_floats(g, op_scratch_floats(&n->op[l], n, rows_all(B)));
    }
    rig_theta(g, 0.6f);
}

static inline void rig_free(struct rig *g) { arena_free(&g->arena); }

/* Fills buffers that a step overwrites with garbage first, so that missing writes are visible. */
static inline void rig_garbage(struct rig *g) {
    const struct net *n = g->n;
    for (i32 b = 0; b < n->nbuf; b++) {
        i64 floats = buf_floats(&n->buf[b], g->r.B);
        for (i64 i = 0; !n->buf[b].input && i < floats; i++) g->buf[b][i] = 77;
        for (i64 i = 0; g->dbuf[b] && i < floats; i++) g->dbuf[b][i] = 77;
    }
    memset(g->grad, 0, (size_t)(g->r.ngrain * n->ntheta) * sizeof(f32));
}

/* One step, parts of `width` rows (a multiple of grain, or >= B), last part first when backwards is set. */
static inline void rig_step(struct rig *g, i32 width, bool backwards) {
    const struct net *n = g->n;
    i32 B = g->r.B, parts = ceil_div(B, width);
    rig_garbage(g);
    for (const struct op *op = n->op; op < n->op + n->nop; op++)
        if (op->layer->prep) op->layer->prep(op, n, g->r.kern, g->theta, g->derived);
    for (i32 side = 0; side < 2; side++)
        for (i32 j = 0; j < n->nop; j++)
            for (i32 i = 0; i < parts; i++) {
                const struct op *op = &n->op[side ? n->nop - 1 - j : j];
                i32 k = backwards ? parts - 1 - i : i;
                struct part p = {.b0 = k * width, .b1 = imin(B, (k + 1) * width), .t1 = op->T, .n = 1};
                (side ? op->layer->bwd : op->layer->fwd)(op, &g->r, p);
            }
}

static inline f64 rig_loss(const struct rig *g) {
    f64 sum = 0;
    for (i32 k = 0; k < g->r.ngrain; k++) sum += g->r.loss[k];
    return sum * (f64)g->r.loss_scale;
}

#endif
