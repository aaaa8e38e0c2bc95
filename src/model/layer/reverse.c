/* reverse.c - reverses x in time, for bidirectional networks.
 *
 * in[0]  x [T][B][F]            in[1]  ids [1][B]: steps of each row, or -1 = T
 * out    y [T][B][F]            row b: y[t] = x[n-1-t] for its n steps, 0 after them
 * end    copy of x [T][B][F]    only if x receives a gradient: a buffer gets its gradient from one consumer, so the layer that
 *                               reads x forwards reads this copy
 *
 * Rows that are time slices are reversed individually; the layer that reads them continues from the next row (recurrent.c,
 * in[3]). Parts hold all steps. */
#include "model/layer.h"

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    if (op->spec.in[1] >= 0) TRY(layer_is_lengths(n, op, 1));
    op->T = in->T;
    op->I = op->F = in->F;
    TRY(net_out(n, op->spec.name, op->T, op->F, in->grad, &op->out));
    return in->grad ? net_out(n, op->spec.name, op->T, op->F, true, &op->end) : 0;
}

static i32 length_of(const struct op *op, const struct run *r, i32 b) {
    return imax(0, imin(op->T, run_ids(op, r, 1)[b]));
}

/* to[t] of row b = from[n-1-t], 0 after the n steps of the row. */
static void reverse_rows(const struct op *op, const struct run *r, struct part p, const f32 *from, f32 *to) {
    i64 Fp = round_up(op->F, LANES), step = r->B * Fp, rows = (p.b1 - p.b0) * Fp;
    size_t bytes = (size_t)Fp * sizeof *to;
    for (i32 t = 0; t < op->T && op->spec.in[1] < 0; t++)
        r->kern->copy(1, rows, to + t * step + p.b0 * Fp, rows, from + (op->T - 1 - t) * step + p.b0 * Fp, rows);
    if (op->spec.in[1] < 0) return;
    for (i32 b = p.b0; b < p.b1; b++) {
        i32 n = length_of(op, r, b);
        for (i32 t = 0; t < n; t++) memcpy(to + t * step + b * Fp, from + (n - 1 - t) * step + b * Fp, bytes);
        for (i32 t = n; t < op->T; t++) memset(to + t * step + b * Fp, 0, bytes);
    }
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    const f32 *x = run_in(op, r, 0);
    i64 Fp = round_up(op->F, LANES);
    reverse_rows(op, r, p, x, r->buf[op->out]);
    for (i32 t = 0; t < op->T && op->end >= 0; t++) {
        i64 at = ((i64)t * r->B + p.b0) * Fp;
        r->kern->copy(1, (p.b1 - p.b0) * Fp, r->buf[op->end] + at, 0, x + at, 0);
    }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    f32 *dx = run_din(op, r, 0);
    const f32 *dy = run_dout(r, op->out), *dsame = run_dout(r, op->end);
    i64 Fp = round_up(op->F, LANES), n = (p.b1 - p.b0) * Fp;
    if (!dx) return;
    if (dy) reverse_rows(op, r, p, dy, dx);
    for (i32 t = 0; t < op->T; t++) {
        i64 at = ((i64)t * r->B + p.b0) * Fp;
        if (!dy) r->kern->copy(1, n, dx + at, n, NULL, 0);
        if (dsame) r->kern->add(n, dx + at, dsame + at);
    }
}

static bool on_device(const struct op *op, const struct net *n) {
    (void)n;
    return op->spec.in[1] < 0;
}

extern const struct layer layer_reverse;
const struct layer layer_reverse = {
    .name = "reverse",
    .help = "y [T][B][F] = x [T][B][F] with the steps of each row in reverse order",
    .nin = 2,
    .shape = shape,
    .flops = layer_value_flops,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = on_device,
};
