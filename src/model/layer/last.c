/* last.c - the hidden state after the last step as one step of output: end [states][B][H] -> y [1][B][H]. */
#include "model/layer.h"

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    op->T = 1;
    op->I = op->F = in->F;
    return net_out(n, op->spec.name, 1, op->F, in->grad, &op->out);
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    (void)n, (void)backward;
    return (f64)B * op->F;
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    i64 Fp = round_up(op->F, LANES);
    memcpy(r->buf[op->out] + p.b0 * Fp, run_in(op, r, 0) + p.b0 * Fp, (size_t)((p.b1 - p.b0) * Fp) * sizeof(f32));
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    f32 *dend = run_din(op, r, 0);
    const f32 *dy = run_dout(r, op->out);
    if (!dend || !dy) return;
    i64 Fp = round_up(op->F, LANES);
    size_t bytes = (size_t)((p.b1 - p.b0) * Fp) * sizeof(f32);
    memcpy(dend + p.b0 * Fp, dy + p.b0 * Fp, bytes);
    for (i32 s = 1; s < r->net->buf[op->spec.in[0]].T; s++) memset(dend + ((i64)s * r->B + p.b0) * Fp, 0, bytes);
}

extern const struct layer layer_last;
const struct layer layer_last = {
    .name = "last",
    .help = "y [1][B][H] = h of an end state [states][B][H]",
    .nin = 1,
    .shape = shape,
    .flops = flops,
    .fwd = fwd,
    .bwd = bwd,
};
