/* rig_layer.c - recurrent layers as a model runs them (src/model), without head, loss or optimizer: the overhead of
 * micro-batches and time ranges over bare kernels, and layers that consist of several kernels (projection).
 *
 *     x [T][B][I] -> lstm.0 -> ... -> y, dy given          rows are split at micro-batches; thread k runs [cut[k], cut[k+1])
 *
 * The step is bound manually: a `struct run` and no plan. A dense op after the last layer only makes its output receive a
 * gradient; it never runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "model/layer.h"
#include "step/netplan.h"
#include "rig.h"

struct layer_rig {
    struct rig rig; /* first */
    struct pool *pool;
    struct net net;
    struct run run;
    struct arena arena;
    f32 *buf[NET_BUFS], *dbuf[NET_BUFS], *saved[NET_OPS], *scratch[NET_OPS];
    f32 *theta, *derived, *grad; /* grad [ngrain][ntheta] */
    i32 in, out;
};

/* ------------------------------------------------------------------ files --------------------------------------------------- */

err rows_file(const char *dir, const char *name, i64 rows, i32 n, f32 *to) {
    f32 *v = mem_alloc((size_t)(rows * n) * sizeof *v);
    if (!v) return -E601;
    err e = 0;
    if (dir)
        e = raw_read(dir, name, rows * n, v);
    else
        raw_draw(rows * n, 2, v);
    for (i64 i = 0; i < rows && e >= 0; i++) memcpy(to + i * round_up(n, LANES), v + i * n, (size_t)n * sizeof *v);
    mem_free(v);
    return e;
}

static err one_file(const struct op *op, i32 i, const struct tensor_info *info, const char *dir, bool bare, f32 *theta,
                    const f32 *from) {
    const i64 size = (i64)info->rows * imax(1, info->cols);
    const char *dot = strchr(info->name, '.');
    char name[64];
    f32 *v = mem_alloc((size_t)size * sizeof *v);
    if (!v) return -E601;
    snprintf(name, sizeof name, "%s%.47s", from ? "ours." : "", bare && dot ? dot + 1 : info->name);
    err e;
    if (from) {
        layer_store(op, i, from + op->theta0, v);
        e = raw_write(dir, name, size, v);
    } else if ((e = raw_read(dir, name, size, v)) >= 0) {
        layer_load(op, i, v, theta + op->theta0);
    }
    mem_free(v);
    return e;
}

err net_files(const struct net *n, const char *dir, f32 *theta, const f32 *from) {
    const bool bare = net_find_op(n, "head") < 0;
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        struct tensor_info info[8];
        const i32 count = op->layer->tensors && strcmp(op->spec.name, "sink") != 0 ? op->layer->tensors(op, info) : 0;
        for (i32 i = 0; i < count; i++) TRY(one_file(op, i, &info[i], dir, bare, theta, from));
    }
    return 0;
}

static err load(struct rig *r, const char *dir) {
    struct layer_rig *c = (struct layer_rig *)(void *)r;
    const struct spec *s = &r->spec;
    const i64 TB = (i64)s->T * s->B;
    net_weights_init(&c->net, 1, c->theta);
    if (dir) TRY(net_files(&c->net, dir, c->theta, NULL));
    TRY(rows_file(dir, "x", TB, s->I, c->buf[c->in]));
    return rows_file(dir, "dy", TB, c->net.buf[c->out].F, c->dbuf[c->out]);
}

static err dump(struct rig *r, const char *dir) {
    struct layer_rig *c = (struct layer_rig *)(void *)r;
    const i64 TB = (i64)r->spec.T * r->spec.B, F = c->net.buf[c->out].F, Fp = round_up((i32)F, LANES);
    f32 *v = mem_alloc((size_t)(TB * F) * sizeof *v);
    if (!v) return -E601;
    for (i64 row = 0; row < TB; row++) memcpy(v + row * F, c->buf[c->out] + row * Fp, (size_t)F * sizeof *v);
    const err e = raw_write(dir, "ours.y", TB * F, v);
    mem_free(v);
    return e < 0 ? e : net_files(&c->net, dir, NULL, c->grad);
}

/* ------------------------------------------------------------------ one step ------------------------------------------------ */

static void work(void *arg, i32 id) {
    struct layer_rig *c = arg;
    const struct run *r = &c->run;
    const i32 g0 = r->ngrain * id / c->rig.spec.threads, g1 = r->ngrain * (id + 1) / c->rig.spec.threads;
    struct part p = {.b0 = g0 * r->grain, .b1 = imin(r->B, g1 * r->grain), .n = 1};
    if (g0 == g1) return;
    memset(c->grad + g0 * c->net.ntheta, 0, (size_t)((g1 - g0) * c->net.ntheta) * sizeof(f32));
    for (i32 l = 0; l < c->rig.spec.layers; l++) {
        p.t1 = c->net.op[l].T;
        c->net.op[l].layer->fwd(&c->net.op[l], r, p);
    }
    for (i32 l = c->rig.spec.layers - 1; l >= 0; l--) c->net.op[l].layer->bwd(&c->net.op[l], r, p);
}

static void merge(void *arg, i32 id) {
    struct layer_rig *c = arg;
    const i64 n = c->net.ntheta, part = round_up64(n / c->rig.spec.threads + 1, LANES), lo = lmin(n, id * part);
    const i64 hi = lmin(n, lo + part);
    for (i32 g = 1; g < c->run.ngrain; g++) c->run.kern->add(hi - lo, c->grad + lo, c->grad + g * n + lo);
}

static void step(struct rig *r) {
    struct layer_rig *c = (struct layer_rig *)(void *)r;
    c->run.serial++;
    for (const struct op *op = c->net.op; op < c->net.op + r->spec.layers; op++)
        if (op->layer->prep) op->layer->prep(op, &c->net, c->run.kern, c->theta, c->derived);
    pool_run(c->pool, work, c);
    pool_run(c->pool, merge, c);
}

/* ------------------------------------------------------------------ making -------------------------------------------------- */

static err layers(struct layer_rig *c) {
    const struct spec *s = &c->rig.spec;
    i32 op;
    char name[24];
    net_init(&c->net);
    TRY(net_input(&c->net, "x", s->T, s->I, false, &c->in));
    c->out = c->in;
    for (i32 l = 0; l < s->layers; l++) {
        snprintf(name, sizeof name, "lstm.%d", (int)l);
        struct op_spec o = net_spec(s->proj ? "projected" : "recurrent", name, c->out);
        o.cell = s->cell, o.hidden = s->H, o.precision = s->prec, o.projection = s->proj, o.how = s->how;
        const f64 I = c->net.buf[c->out].F, H = s->H, P = s->proj ? s->proj : H, dx = l > 0 ? I : 0;
        TRY(net_op(&c->net, &o, &op));
        c->out = c->net.op[op].out;
        c->rig.flop += 2.0 * s->T * s->B * (cell_gates(s->cell) * H * (2 * I + 3 * P + dx) + (s->proj ? 3 * P * H : 0));
    }
    struct op_spec sink = net_spec("dense", "sink", c->out);
    sink.units = 1;
    TRY(net_op(&c->net, &sink, &op));
    return net_check(&c->net);
}

static err build(struct layer_rig *c) {
    const struct spec *s = &c->rig.spec;
    TRY(layers(c));
    const struct net *n = &c->net;
    const i32 grain = plan_grain(s->B, 0);
    c->run = (struct run){.net = n, .kern = s->kern, .B = s->B, .whole = s->B, .train = true};
    c->run.grain = grain;
    c->run.ngrain = ceil_div(s->B, grain);
    ARENA_NEW(&c->arena, c->theta, n->ntheta);
    ARENA_NEW(&c->arena, c->derived, imax(1, (i32)n->nderived));
    ARENA_NEW(&c->arena, c->grad, c->run.ngrain * n->ntheta);
    void **vector;
    ARENA_NEW(&c->arena, vector, c->run.ngrain);
    for (i32 g = 0; g < c->run.ngrain; g++) vector[g] = c->grad + g * n->ntheta;
    c->run.grad = vector;
    for (i32 i = 0; i < n->nbuf; i++) {
        ARENA_NEW(&c->arena, c->buf[i], buf_floats(&n->buf[i], s->B));
        if (buf_sends(&n->buf[i])) ARENA_NEW(&c->arena, c->dbuf[i], buf_floats(&n->buf[i], s->B));
    }
    for (i32 l = 0; l < s->layers; l++) {
        ARENA_NEW(&c->arena, c->saved[l], imax(1, (i32)op_saved_floats(&n->op[l], n, rows_all(s->B))));
        ARENA_NEW(&c->arena, c->scratch[l], imax(1, (i32)op_scratch_floats(&n->op[l], n, rows_all(s->B))));
    }
    c->run.buf = c->buf, c->run.dbuf = c->dbuf, c->run.saved = c->saved, c->run.scratch = c->scratch;
    c->run.theta = c->theta, c->run.derived = c->derived;
    return 0;
}

static const char *cannot(const struct spec *s) {
    if (!cell_at(s->kern, s->cell, s->prec)) return "no kernels of this cell and precision here";
    if (s->proj && s->prec != PREC_F32) return "a projection has fp32 products only";
    if (s->dirs == 2 || s->ragged || s->team || s->stepped) return "layers are measured in one direction, with equal lengths";
    return "";
}

static void layer_rig_free(struct rig *r) {
    struct layer_rig *c = (struct layer_rig *)(void *)r;
    arena_free(&c->arena);
    mem_free(c);
}

err layer_rig_new(const struct spec *s, struct pool *pool, struct rig **out) {
    struct layer_rig *c = mem_alloc(sizeof *c);
    if (!c) return -E601;
    c->rig = (struct rig){.spec = *s, .step = step, .load = load, .dump = dump, .free = layer_rig_free};
    c->pool = pool;
    c->rig.why = cannot(s);
    const err e = *c->rig.why ? 0 : build(c);
    if (e < 0)
        layer_rig_free(&c->rig);
    else
        *out = &c->rig;
    return e;
}
