/* add.c - sum of two buffers: [T][B][F] and [T or 1][B][F] -> [T][B][F]. A second buffer of one step (an embedding of the
 * series) is broadcast over the steps; its gradient sums over the steps, so parts must then hold all of them. */
#include "model/layer.h"

static err shape(struct net *n, struct op *op) {
    const struct buf *a, *b;
    TRY(layer_input(n, op, 0, &a));
    TRY(layer_input(n, op, 1, &b));
    if (b->F != a->F || (b->T != a->T && b->T != 1))
        return FAIL(E1, "op \"%s\" (add): [%d][B][%d] and [%d][B][%d] have no sum", op->spec.name, a->T, a->F, b->T, b->F);
    op->T = a->T;
    op->I = op->F = a->F;
    return net_out(n, op->spec.name, op->T, op->F, a->grad || b->grad, &op->out);
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    i64 Fp = round_up(op->F, LANES), n = (p.b1 - p.b0) * Fp;
    bool once = r->net->buf[op->spec.in[1]].T == 1;
    for (i32 t = p.t0; t < p.t1; t++) {
        i64 at = ((i64)t * r->B + p.b0) * Fp;
        f32 *y = r->buf[op->out] + at;
        r->kern->copy(1, n, y, n, run_in(op, r, 0) + at, n);
        r->kern->add(n, y, run_in(op, r, 1) + (once ? p.b0 * Fp : at));
    }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    i64 Fp = round_up(op->F, LANES), n = (p.b1 - p.b0) * Fp;
    bool once = r->net->buf[op->spec.in[1]].T == 1;
    f32 *da = run_din(op, r, 0), *dc = run_din(op, r, 1);
    const f32 *dy = run_dout(r, op->out);
    if (!dy) return;
    if (dc && once) r->kern->copy(1, n, dc + p.b0 * Fp, n, NULL, 0);
    for (i32 t = p.t0; t < p.t1; t++) {
        i64 at = ((i64)t * r->B + p.b0) * Fp;
        if (da) r->kern->copy(1, n, da + at, n, dy + at, n);
        if (dc && once) r->kern->add(n, dc + p.b0 * Fp, dy + at);
        if (dc && !once) r->kern->copy(1, n, dc + at, n, dy + at, n);
    }
}

extern const struct layer layer_add;
const struct layer layer_add = {
    .name = "add",
    .help = "y [T][B][F] = x0 [T][B][F] + x1 [T or 1][B][F]",
    .nin = 2,
    .shape = shape,
    .flops = layer_value_flops,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = layer_on_device,
};
