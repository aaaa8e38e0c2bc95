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
    for (i32 t = p.t0; t < p.t1; t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            i64 at = (i64)t * r->B + b, second = c->T == 1 ? b : at;
            f32 *y = r->buf[op->out] + at * Fp;
            memcpy(y, run_in(op, r, 0) + at * Ap, (size_t)a->F * sizeof *y);
            memcpy(y + a->F, run_in(op, r, 1) + second * Cp, (size_t)c->F * sizeof *y);
            memset(y + op->F, 0, (size_t)(Fp - op->F) * sizeof *y);
        }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    const struct buf *a = &r->net->buf[op->spec.in[0]], *c = &r->net->buf[op->spec.in[1]];
    i64 Ap = buf_fp(a), Cp = buf_fp(c), Fp = round_up(op->F, LANES);
    f32 *da = run_din(op, r, 0), *dc = run_din(op, r, 1);
    const f32 *dy = run_dout(r, op->out);
    if (!dy) return;
    if (dc && c->T == 1) memset(dc + p.b0 * Cp, 0, (size_t)((p.b1 - p.b0) * Cp) * sizeof *dc);
    for (i32 t = p.t0; t < p.t1; t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            i64 at = (i64)t * r->B + b;
            const f32 *from = dy + at * Fp;
            if (da) {
                memcpy(da + at * Ap, from, (size_t)a->F * sizeof *da);
                memset(da + at * Ap + a->F, 0, (size_t)(Ap - a->F) * sizeof *da);
            }
            if (!dc) continue;
            f32 *to = dc + (c->T == 1 ? b : at) * Cp;
            if (c->T != 1) memset(to, 0, (size_t)Cp * sizeof *to);
            for (i32 i = 0; i < c->F; i++) to[i] += from[a->F + i];
        }
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
};
