/* concat.c - concatenation of two buffers: [T][B][F0] and [T or 1][B][F1] -> [T][B][F0+F1]. A second buffer of one step (a
 * static feature, an embedding of the series) is broadcast; its gradient sums over the steps, so parts must then hold all of
 * them. */
#include "model/layer.h"

static err shape(struct net *n, struct op *op) {
    const struct buf *a, *b;
    TRY(layer_input(n, op, 0, &a));
    TRY(layer_input(n, op, 1, &b));
    if (b->T != a->T && b->T != 1) return FAIL(E1, "op \"%s\" (concat): %d steps beside %d steps", op->spec.name, a->T, b->T);
    op->T = a->T;
    op->I = op->F = a->F + b->F;
    return net_out(n, op->spec.name, op->T, op->F, a->grad || b->grad, &op->out);
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    const struct buf *a = &r->net->buf[op->spec.in[0]], *c = &r->net->buf[op->spec.in[1]];
    i64 Ap = buf_fp(a), Cp = buf_fp(c), Fp = round_up(op->F, LANES);
    const i32 rows = p.b1 - p.b0;
    for (i32 t = p.t0; t < p.t1; t++) {
        i64 at = (i64)t * r->B + p.b0, second = c->T == 1 ? p.b0 : at;
        f32 *y = r->buf[op->out] + at * Fp;
        r->kern->copy(rows, a->F, y, Fp, run_in(op, r, 0) + at * Ap, Ap);
        r->kern->copy(rows, c->F, y + a->F, Fp, run_in(op, r, 1) + second * Cp, Cp);
        r->kern->copy(rows, Fp - op->F, y + op->F, Fp, NULL, 0);
    }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    const struct buf *a = &r->net->buf[op->spec.in[0]], *c = &r->net->buf[op->spec.in[1]];
    i64 Ap = buf_fp(a), Cp = buf_fp(c), Fp = round_up(op->F, LANES);
    f32 *da = run_din(op, r, 0), *dc = run_din(op, r, 1);
    const f32 *dy = run_dout(r, op->out);
    if (!dy) return;
    const i32 rows = p.b1 - p.b0;
    const bool once = c->T == 1 && a->T > 1;
    if (dc && once) memset(dc + p.b0 * Cp, 0, (size_t)(rows * Cp) * sizeof *dc);
    for (i32 t = p.t0; t < p.t1; t++) {
        const i64 at = (i64)t * r->B + p.b0;
        const f32 *from = dy + at * Fp;
        if (da) r->kern->copy(rows, a->F, da + at * Ap, Ap, from, Fp);
        if (da) r->kern->copy(rows, Ap - a->F, da + at * Ap + a->F, Ap, NULL, 0);
        if (dc && !once) r->kern->copy(rows, c->F, dc + at * Cp, Cp, from + a->F, Fp);
        if (dc && !once) r->kern->copy(rows, Cp - c->F, dc + at * Cp + c->F, Cp, NULL, 0);
        for (i32 b = 0; dc && once && b < rows; b++)
            for (i32 i = 0; i < c->F; i++) dc[(p.b0 + b) * Cp + i] += from[b * Fp + a->F + i];
    }
}

static bool on_device(const struct op *op, const struct net *n) {
    return n->buf[op->spec.in[1]].T == op->T; /* a broadcast buffer sums its gradient over the steps */
}

extern const struct layer layer_concat;
const struct layer layer_concat = {
    .name = "concat",
    .help = "y [T][B][F0+F1] = x0 [T][B][F0] beside x1 [T or 1][B][F1]",
    .nin = 2,
    .shape = shape,
    .flops = layer_value_flops,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = on_device,
};
