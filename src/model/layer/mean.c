/* mean.c - the mean of a row's states over its steps: x [T][B][F] -> y [1][B][F].
 *
 * in[1]  ids [1][B]: steps of each row, or -1 = T.  A row without a step gives zeros.  Parts hold all steps. */
#include "model/layer.h"

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    if (op->spec.in[1] >= 0) TRY(layer_is_lengths(n, op, 1));
    op->T = in->T;
    op->I = op->F = in->F;
    return net_out(n, op->spec.name, 1, op->F, in->grad, &op->out);
}

static i32 steps_of(const struct op *op, const struct run *r, i32 b) {
    return op->spec.in[1] < 0 ? op->T : imax(0, imin(op->T, run_ids(op, r, 1)[b]));
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    const i64 Fp = round_up(op->F, LANES), step = r->B * Fp;
    for (i32 b = p.b0; b < p.b1; b++) {
        const i32 n = steps_of(op, r, b);
        const f32 *x = run_in(op, r, 0) + b * Fp, by = 1.f / (f32)imax(1, n);
        f32 *y = r->buf[op->out] + b * Fp;
        memset(y, 0, (size_t)Fp * sizeof *y);
        for (i32 t = 0; t < n; t++)
            for (i64 i = 0; i < Fp; i++) y[i] += x[t * step + i];
        for (i64 i = 0; i < Fp; i++) y[i] *= by;
    }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    const i64 Fp = round_up(op->F, LANES), step = r->B * Fp;
    const f32 *dy = run_dout(r, op->out);
    f32 *dx = run_din(op, r, 0);
    if (!dx || !dy) return;
    for (i32 b = p.b0; b < p.b1; b++) {
        const i32 n = steps_of(op, r, b);
        const f32 by = 1.f / (f32)imax(1, n);
        for (i32 t = 0; t < op->T; t++)
            for (i64 i = 0; i < Fp; i++) dx[t * step + b * Fp + i] = t < n ? by * dy[b * Fp + i] : 0;
    }
}

extern const struct layer layer_mean;
const struct layer layer_mean = {
    .name = "mean",
    .help = "y [1][B][F] = mean of x [T][B][F] over the steps of each row",
    .nin = 2,
    .shape = shape,
    .flops = layer_value_flops,
    .fwd = fwd,
    .bwd = bwd,
};
