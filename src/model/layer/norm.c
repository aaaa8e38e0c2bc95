/* norm.c - layer normalization over the F values of every row: y = (x - mean) / sqrt(variance + 1e-5) * weight + bias.
 *
 * theta  weight [Fp], bias [Fp]        saved  mean and 1/deviation of every row        scratch  one normalized row per row of B
 */
#include <math.h>

#include "kern/device.h"
#include "model/layer.h"

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    op->T = in->T;
    op->I = op->F = in->F;
    op->ntheta = 2 * (i64)round_up(op->F, LANES);
    return net_out(n, op->spec.name, op->T, op->F, true, &op->out);
}

static i64 saved(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    return 2 * (i64)op->T * B.n;
}

static i64 scratch(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    return (i64)B.n * round_up(op->F, LANES);
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    (void)n;
    return (backward ? 14.0 : 8.0) * op->T * B * op->F;
}

static void init(const struct op *op, u64 seed, f32 *theta) {
    (void)seed;
    for (i32 i = 0; i < op->F; i++) theta[i] = 1;
}

/* Sum of n values (or products) in 16 partial sums, then over these: fixed order, vectorizable. n is a multiple of LANES. */
static f32 sum(i64 n, const f32 *x) {
    f32 lane[LANES] = {0}, s = 0;
    for (i64 i = 0; i < n; i += LANES)
        for (i32 j = 0; j < LANES; j++) lane[j] += x[i + j];
    for (i32 j = 0; j < LANES; j++) s += lane[j];
    return s;
}

static f32 dot(i64 n, const f32 *x, const f32 *y) {
    f32 lane[LANES] = {0}, s = 0;
    for (i64 i = 0; i < n; i += LANES)
        for (i32 j = 0; j < LANES; j++) lane[j] += x[i + j] * y[i + j];
    for (i32 j = 0; j < LANES; j++) s += lane[j];
    return s;
}

static void row_fwd(i32 F, i64 Fp, const f32 *x, const f32 *weight, f32 *y, f32 *stat) {
    f32 mean = sum(Fp, x) / (f32)F;
    for (i32 i = 0; i < F; i++) y[i] = x[i] - mean;
    for (i64 i = F; i < Fp; i++) y[i] = 0;
    f32 inverse = 1 / sqrtf(dot(Fp, y, y) / (f32)F + 1e-5f);
    for (i64 i = 0; i < Fp; i++) y[i] = y[i] * inverse * weight[i] + weight[Fp + i];
    stat[0] = mean;
    stat[1] = inverse;
}

static struct device_norm rows_on_device(const struct op *op, const struct run *r, struct part p) {
    return (struct device_norm){.F = op->F,
                                .t0 = p.t0,
                                .t1 = p.t1,
                                .b0 = p.b0,
                                .b1 = p.b1,
                                .B = r->B,
                                .x = run_in(op, r, 0),
                                .weight = r->theta + op->theta0,
                                .stat = r->saved[op->l],
                                .y = r->buf[op->out],
                                .dy = run_dout(r, op->out),
                                .dx = run_din(op, r, 0)};
}

static void bwd_on_device(const struct op *op, const struct run *r, struct part p) {
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++) {
        struct device_norm a = rows_on_device(op, r, part_grain(r, p, g));
        a.grad = grain_grad(r, g, op->theta0);
        r->kern->device->norm_grad(&a);
    }
    const struct device_norm a = rows_on_device(op, r, p);
    if (a.dx) r->kern->device->norm_bwd(&a);
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    i64 Fp = round_up(op->F, LANES);
    if (r->kern->device) {
        const struct device_norm a = rows_on_device(op, r, p);
        r->kern->device->norm_fwd(&a);
        return;
    }
    for (i32 t = p.t0; t < p.t1; t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            i64 at = (i64)t * r->B + b;
            row_fwd(op->F, Fp, run_in(op, r, 0) + at * Fp, r->theta + op->theta0, r->buf[op->out] + at * Fp,
                    r->saved[op->l] + 2 * at);
        }
}

/* Operands of backward for one row: input, statistics, buffer for the normalized row, parameter gradient. */
struct row {
    const f32 *x, *stat, *weight;
    f32 *xn, *dw;
};

/* With g = dy * weight and xn the normalized row: dx = (g - mean(g) - xn mean(g xn)) / deviation. Overwrites dy with g. */
static void row_bwd(i32 F, i64 Fp, const struct row *row, f32 *dy, f32 *dx) {
    f32 *xn = row->xn, *dw = row->dw, mean = row->stat[0], inverse = row->stat[1];
    for (i32 i = 0; i < F; i++) xn[i] = (row->x[i] - mean) * inverse;
    for (i64 i = 0; i < Fp; i++) {
        dw[i] += dy[i] * xn[i];
        dw[Fp + i] += dy[i];
        dy[i] *= row->weight[i];
    }
    if (!dx) return;
    f32 level = sum(Fp, dy) / (f32)F, along = dot(Fp, dy, xn) / (f32)F;
    for (i32 i = 0; i < F; i++) dx[i] = (dy[i] - level - xn[i] * along) * inverse;
    for (i64 i = F; i < Fp; i++) dx[i] = 0;
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    i64 Fp = round_up(op->F, LANES);
    f32 *dy = run_dout(r, op->out), *dx = run_din(op, r, 0);
    if (!dy) return;
    if (r->kern->device) {
        bwd_on_device(op, r, p);
        return;
    }
    for (i32 t = p.t0; t < p.t1; t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            i64 at = (i64)t * r->B + b;
            struct row row = {run_in(op, r, 0) + at * Fp, r->saved[op->l] + 2 * at, r->theta + op->theta0,
                              r->scratch[op->l] + b * Fp, grain_grad(r, grain_of(r, b), op->theta0)};
            for (i64 i = op->F; i < Fp; i++) row.xn[i] = 0;
            row_bwd(op->F, Fp, &row, dy + at * Fp, dx ? dx + at * Fp : NULL);
        }
}

static i32 tensors(const struct op *op, struct tensor_info out[8]) {
    layer_tensor(&out[0], op, "weight", op->F, 0);
    layer_tensor(&out[1], op, "bias", op->F, 0);
    return 2;
}

static i64 place(const struct op *op, i32 tensor, i32 row, i32 col) {
    (void)col;
    return tensor * round_up(op->F, LANES) + row;
}

extern const struct layer layer_norm;
const struct layer layer_norm = {
    .name = "norm",
    .help = "y [T][B][F] = layer norm of x [T][B][F]",
    .nin = 1,
    .shape = shape,
    .saved = saved,
    .scratch = scratch,
    .flops = flops,
    .init = init,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = layer_on_device,
    .tensors = tensors,
    .place = place,
};
