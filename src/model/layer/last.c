/* last.c - outputs the hidden state after the last step as one step: end [states][B][H] -> y [1][B][H].
 *
 * in[1]  ids [1][B]: the row whose final state to output, -1 in it = none (zeros); or -1 = the same row. If rows are time slices,
 *        a reverse layer finishes a sequence in the row of its first slice, but the targets are in another row. */
#include "model/layer.h"

enum { LAST_FROM = 1 };

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    if (op->spec.in[LAST_FROM] >= 0) TRY(layer_is_lengths(n, op, LAST_FROM));
    op->T = 1;
    op->I = op->F = in->F;
    return net_out(n, op->spec.name, 1, op->F, in->grad, &op->out);
}

/* The row from which row b is copied, where ids say it; -1 = none. */
static i32 from_row(const struct op *op, const struct run *r, i32 b) {
    const i32 from = run_ids(op, r, LAST_FROM)[b];
    return from < r->B ? from : -1;
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    const i64 Fp = round_up(op->F, LANES);
    const f32 *end = run_in(op, r, 0);
    if (!op_crosses(op)) {
        r->kern->copy(p.b1 - p.b0, Fp, r->buf[op->out] + p.b0 * Fp, Fp, end + p.b0 * Fp, Fp);
        return;
    }
    for (i32 b = p.b0; b < p.b1; b++) {
        const i32 from = from_row(op, r, b);
        f32 *y = r->buf[op->out] + b * Fp;
        if (from >= 0)
            memcpy(y, end + from * Fp, (size_t)Fp * sizeof *y);
        else
            memset(y, 0, (size_t)Fp * sizeof *y);
    }
}

/* Each part writes the gradient of its own rows, wherever they were copied to. */
static void bwd(const struct op *op, const struct run *r, struct part p) {
    f32 *dend = run_din(op, r, 0);
    const f32 *dy = run_dout(r, op->out);
    if (!dend || !dy) return;
    const i64 Fp = round_up(op->F, LANES);
    for (i32 s = 0; s < r->net->buf[op->spec.in[0]].T; s++)
        r->kern->copy(p.b1 - p.b0, Fp, dend + ((i64)s * r->B + p.b0) * Fp, Fp, op_crosses(op) || s > 0 ? NULL : dy + p.b0 * Fp,
                      Fp);
    for (i32 b = 0; b < r->B && op_crosses(op); b++) {
        const i32 from = from_row(op, r, b);
        if (from >= p.b0 && from < p.b1) r->kern->add(Fp, dend + from * Fp, dy + b * Fp);
    }
}

static bool on_device(const struct op *op, const struct net *n) {
    (void)n;
    return !op_crosses(op);
}

extern const struct layer layer_last;
const struct layer layer_last = {
    .name = "last",
    .help = "y [1][B][H] = h of an end state [states][B][H], of this row or of the one that ids say",
    .nin = 2,
    .from = LAST_FROM,
    .shape = shape,
    .flops = layer_value_flops,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = on_device,
};
