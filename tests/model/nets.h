/* nets.h - small networks that cover every layer, for the tests of gradients, partitions and files. */
#ifndef STRETTO_TESTS_MODEL_NETS_H
#define STRETTO_TESTS_MODEL_NETS_H

#include "model/cell/cell.h"
#include "model/layer.h"
#include "model/loss/family.h"
#include "t.h"

struct shape {
    i32 B, grain, T, I, H, steps, w, vocab, nk; /* nk 0: no known-future input; vocab 0: no categories */
};

static enum precision nets_precision; /* of every cell of the nets that are built */

static inline i32 nets_add(struct net *n, const struct op_spec *s) {
    struct op_spec spec = *s;
    i32 l;
    if (!strcmp(s->layer, "recurrent") || !strcmp(s->layer, "unroll")) spec.precision = nets_precision;
    T_OK(net_op(n, &spec, &l));
    return l;
}

static inline i32 nets_input(struct net *n, const char *name, i32 T, i32 F, bool ids) {
    i32 b;
    T_OK(net_input(n, name, T, F, ids, &b));
    return b;
}

static inline i32 nets_dense(struct net *n, const char *name, i32 in, i32 units, enum activation act) {
    struct op_spec s = net_spec("dense", name, in);
    s.units = units;
    s.act = act;
    return n->op[nets_add(n, &s)].out;
}

/* Outputs for each value. */
static inline i32 nets_outputs(const char *loss) {
    const struct family *f = family_find(loss + strlen("loss_"));
    return f ? f->nparam : strcmp(loss, "loss_quantile") ? 1 : 3;
}

static inline void nets_loss(struct net *n, const char *loss, i32 pred, i32 T, i32 w, bool base) {
    struct op_spec s = net_spec(loss, "loss", pred);
    s.in[1] = nets_input(n, "target", T, w, false);
    if (base) s.in[2] = nets_input(n, "base", T, w, false);
    if (!strcmp(loss, "loss_quantile")) {
        s.nquantile = 3;
        s.quantile[0] = 0.1f, s.quantile[1] = 0.5f, s.quantile[2] = 0.8f;
    }
    if (family_find(loss + strlen("loss_"))) s.nquantile = nets_outputs(loss);
    nets_add(n, &s);
}

/* Preset long: x -> segments dense -> cell -> decode -> dropout -> head -> loss against target with a base. */
static inline void nets_long(struct net *n, struct shape s, enum cell_kind cell, const char *loss, f32 rate) {
    net_init(n);
    i32 x = nets_input(n, "x", s.T, s.w, false);
    i32 seg = nets_dense(n, "seg", x, s.I, ACT_RELU);
    struct op_spec c = net_spec("recurrent", "lstm.0", seg);
    c.cell = cell;
    c.hidden = s.H;
    i32 top = nets_add(n, &c);
    struct op_spec d = net_spec("decode", "decode", n->op[top].end);
    d.share = top;
    d.steps = s.steps;
    d.vocab = s.vocab;
    if (s.vocab) d.in[1] = nets_input(n, "column", 1, 1, true);
    if (s.nk) d.in[2] = nets_input(n, "known", s.steps, s.nk, false);
    i32 y = n->op[nets_add(n, &d)].out;
    if (rate > 0) {
        struct op_spec drop = net_spec("dropout", "dropout", y);
        drop.dropout = rate;
        y = n->op[nets_add(n, &drop)].out;
    }
    const i32 Q = nets_outputs(loss);
    nets_loss(n, loss, nets_dense(n, "head", y, s.w * Q, ACT_NONE), s.steps, s.w, true);
    T_OK(net_check(n));
}

/* Two stacked cells, the last state into a quantile head. */
static inline void nets_short(struct net *n, struct shape s, enum cell_kind cell, const char *loss) {
    net_init(n);
    i32 x = nets_input(n, "x", s.T, s.I, false), end = -1;
    for (i32 k = 0; k < 2; k++) {
        struct op_spec c = net_spec("recurrent", k ? "lstm.1" : "lstm.0", x);
        c.cell = cell;
        c.hidden = s.H + k;
        i32 l = nets_add(n, &c);
        x = n->op[l].out;
        end = n->op[l].end;
    }
    struct op_spec last = net_spec("last", "last", end);
    const i32 y = n->op[nets_add(n, &last)].out, Q = nets_outputs(loss);
    nets_loss(n, loss, nets_dense(n, "head", y, s.w * Q, ACT_NONE), 1, s.w, false);
    T_OK(net_check(n));
}

/* A large embedding beside x at every step, a cell, the last state into a head. */
static inline void nets_table(struct net *n, struct shape s, i32 units) {
    net_init(n);
    i32 x = nets_input(n, "x", s.T, s.I, false), ids = nets_input(n, "shop", s.T, 1, true);
    struct op_spec e = net_spec("embed", "embed.0", ids), both = net_spec("concat", "both", x);
    e.units = units;
    e.vocab = s.vocab;
    both.in[1] = n->op[nets_add(n, &e)].out;
    struct op_spec c = net_spec("recurrent", "lstm.0", n->op[nets_add(n, &both)].out);
    c.cell = CELL_LSTM;
    c.hidden = s.H;
    struct op_spec last = net_spec("last", "last", n->op[nets_add(n, &c)].end);
    i32 y = n->op[nets_add(n, &last)].out;
    nets_loss(n, "loss_mse", nets_dense(n, "head", y, s.w, ACT_NONE), 1, s.w, false);
    T_OK(net_check(n));
}

/* Everything else: embedding beside x, an initial state, norm, tanh, the end state added to every step. */
static inline void nets_mixed(struct net *n, struct shape s, enum cell_kind cell) {
    i32 states = cell_of(cell)->states;
    net_init(n);
    i32 x = nets_input(n, "x", s.T, s.I, false), ids = nets_input(n, "series", 1, 1, true),
        hour = nets_input(n, "hour", s.T, 1, true);
    i32 start = nets_input(n, "static", states, 3, false);
    struct op_spec e = net_spec("embed", "series", ids), f = net_spec("embed", "hour", hour);
    e.units = 3, e.vocab = 4, f.units = s.I + 3, f.vocab = 5;
    struct op_spec cat = net_spec("concat", "cat", x);
    cat.in[1] = n->op[nets_add(n, &e)].out;
    struct op_spec sum = net_spec("add", "sum", n->op[nets_add(n, &cat)].out);
    sum.in[1] = n->op[nets_add(n, &f)].out;
    struct op_spec norm = net_spec("norm", "norm", n->op[nets_add(n, &sum)].out);
    struct op_spec c = net_spec("recurrent", "cell", n->op[nets_add(n, &norm)].out);
    c.in[1] = nets_dense(n, "start", start, s.H, ACT_TANH);
    c.cell = cell;
    c.hidden = s.H;
    i32 l = nets_add(n, &c);
    struct op_spec last = net_spec("last", "last", n->op[l].end), both = net_spec("add", "both", n->op[l].out);
    both.in[1] = n->op[nets_add(n, &last)].out;
    i32 y = nets_dense(n, "mid", n->op[nets_add(n, &both)].out, s.H + 2, ACT_TANH);
    nets_loss(n, "loss_mae", nets_dense(n, "head", y, s.w, ACT_NONE), s.T, s.w, false);
    T_OK(net_check(n));
}

#endif
