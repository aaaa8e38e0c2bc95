/* net.c - builds a network op by op; sizes, initial weights and derived copies of all ops. */
#include "model/net.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/layer.h"

enum { FEATURES_MAX = 1 << 20, STEPS_MAX = 1 << 20 };

struct op_spec net_spec(const char *layer, const char *name, i32 in) {
    struct op_spec s = {.layer = layer, .in = {in, -1, -1, -1, -1}, .share = -1};
    snprintf(s.name, sizeof s.name, "%s", name);
    return s;
}

void net_init(struct net *n) { *n = (struct net){0}; }

static err buf_new(struct net *n, const char *name, i32 T, i32 F, i32 *out) {
    if (n->nbuf == NET_BUFS) return FAIL(E1, "buffer \"%s\": a network has at most %d buffers", name, NET_BUFS);
    if (T < 1 || T > STEPS_MAX || F < 1 || F > FEATURES_MAX)
        return FAIL(E103, "\"%s\" would have %d steps of %d features; 1 to %d steps and 1 to %d features are possible", name, T,
                    F, STEPS_MAX, FEATURES_MAX);
    struct buf *b = &n->buf[n->nbuf];
    *b = (struct buf){.T = T, .F = F, .consumer = -1};
    snprintf(b->name, sizeof b->name, "%s", name);
    *out = n->nbuf++;
    return 0;
}

err net_input(struct net *n, const char *name, i32 T, i32 F, bool ids, i32 *out) {
    TRY(buf_new(n, name, T, F, out));
    if (ids && F != 1) return FAIL(E1, "input \"%s\" of category numbers has %d features, want 1", name, F);
    n->buf[*out].input = true;
    n->buf[*out].ids = ids;
    return 0;
}

err net_out(struct net *n, const char *name, i32 T, i32 F, bool grad, i32 *out) {
    TRY(buf_new(n, name, T, F, out));
    n->buf[*out].grad = grad;
    return 0;
}

static err find_layer(const struct op_spec *spec, const struct layer **out) {
    *out = layer_find(spec->layer);
    if (*out) return 0;
    const char *names[128];
    i32 count = 0;
    for (; count < layer_count() && count < (i32)COUNT(names); count++) names[count] = layer_at(count)->name;
    i32 near = str_nearest(spec->layer, names, count);
    if (near < 0) return FAIL(E103, "op \"%s\": there is no layer \"%s\"", spec->name, spec->layer);
    return FAIL(E103, "op \"%s\": there is no layer \"%s\"; did you mean \"%s\"?", spec->name, spec->layer, names[near]);
}

/* Registers this op as the consumer of every input that needs a gradient. */
static err claim_inputs(struct net *n, const struct op *op) {
    for (i32 i = 0; i < op->layer->nin; i++) {
        i32 in = op->spec.in[i];
        if (in < 0 || !n->buf[in].grad) continue;
        struct buf *b = &n->buf[in];
        if (b->consumer >= 0)
            return FAIL(E1, "buffer \"%s\" is read by \"%s\" and \"%s\": only one of them can send a gradient back", b->name,
                        n->op[b->consumer].spec.name, op->spec.name);
        b->consumer = op->l;
    }
    return 0;
}

err net_op(struct net *n, const struct op_spec *spec, i32 *out) {
    if (n->nop == NET_OPS) return FAIL(E1, "op \"%s\": a network has at most %d ops", spec->name, NET_OPS);
    if (net_find_op(n, spec->name) >= 0) return FAIL(E1, "two ops are named \"%s\"", spec->name);
    const struct layer *layer;
    TRY(find_layer(spec, &layer));
    for (i32 i = 0; i < layer->nin; i++)
        if (spec->in[i] >= n->nbuf)
            return FAIL(E1, "op \"%s\": input %d is buffer %d of %d", spec->name, i, spec->in[i], n->nbuf);
    if (spec->share >= n->nop) return FAIL(E1, "op \"%s\" shares op %d, which does not exist yet", spec->name, spec->share);
    struct op *op = &n->op[n->nop];
    *op = (struct op){
        .spec = *spec, .layer = layer, .l = n->nop, .out = -1, .end = -1, .theta0 = n->ntheta, .derived0 = n->nderived};
    op->spec.layer = layer->name; /* points to static text instead of the caller's */
    TRY(layer->shape(n, op));
    TRY(claim_inputs(n, op));
    n->ntheta += round_up64(op->ntheta, LANES);
    n->nderived += round_up64(op->nderived, LANES);
    n->nop++;
    if (out) *out = op->l;
    return 0;
}

err net_check(const struct net *n) {
    if (n->nop == 0) return FAIL(E1, "the network has no ops");
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        bool needed = op->out < 0 || l == n->nop - 1;
        if (op->out >= 0) needed |= n->buf[op->out].consumer >= 0 || !n->buf[op->out].grad;
        if (op->end >= 0) needed |= n->buf[op->end].consumer >= 0;
        if (!needed) return FAIL(E1, "nothing reads the output of op \"%s\"", op->spec.name);
    }
    return 0;
}

static bool has_bf16(const struct kern *k, enum cell_kind cell) { return k && cell < CELL_NKIND && cell_at(k, cell, PREC_BF16); }

/* The best instruction set of this machine with bf16 kernels for the cell, NULL = none (the reference does not count). */
static const char *bf16_here(enum cell_kind cell) {
    const char *name = NULL;
    for (i32 a = KERN_NEON; a < KERN_NARCH; a++)
        if (has_bf16(kern_get((enum kern_arch)a), cell)) name = kern_arch_name((enum kern_arch)a);
    return name;
}

err net_cell_runs(enum cell_kind cell, enum precision p, const struct kern *k) {
    if (p == PREC_F32 || has_bf16(k, cell)) return 0;
    const char *here = bf16_here(cell);
    if (here)
        return FAIL_AT(E103, "--precision", "--kernel auto without STRETTO_ISA   or   --precision fp32",
                       "the kernels \"%s\" have no bf16 products for this cell, those of \"%s\" have", k->name, here);
    if (cell >= CELL_NKIND) return FAIL_AT(E103, "--precision", "--precision fp32", "this cell has no bf16 products");
    return FAIL_AT(
        E103, "--precision", "--precision fp32",
        "this processor has no bf16 products: they need AMX (Intel from Sapphire Rapids on) or AVX512_BF16 (Intel from "
        "Cooper Lake on, AMD from Zen 4 on)");
}

err net_runs(const struct net *n, const struct kern *k) {
    for (i32 l = 0; l < n->nop; l++) TRY(net_cell_runs(n->op[l].spec.cell, n->op[l].spec.precision, k));
    return 0;
}

bool net_recomputes(const struct net *n) {
    for (i32 l = 0; l < n->nop; l++)
        if (n->op[l].spec.recompute) return true;
    return false;
}

i32 net_find_op(const struct net *n, const char *name) {
    for (i32 l = 0; l < n->nop; l++)
        if (!strcmp(n->op[l].spec.name, name)) return l;
    return -1;
}

i64 op_saved_floats(const struct op *op, const struct net *n, struct rows B) {
    return op->layer->saved ? round_up64(op->layer->saved(op, n, B), LANES) : 0;
}

i64 op_scratch_floats(const struct op *op, const struct net *n, struct rows B) {
    return op->layer->scratch ? round_up64(op->layer->scratch(op, n, B), LANES) : 0;
}

void net_weights_init(const struct net *n, u64 seed, f32 *theta) {
    memset(theta, 0, (size_t)n->ntheta * sizeof *theta);
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        if (op->layer->init && !op->spec.zero_init) op->layer->init(op, seed, theta + op->theta0);
    }
}

