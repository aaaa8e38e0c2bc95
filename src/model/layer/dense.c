/* dense.c - y = act(x W^T + b) for every row of [T][B].
 *
 * theta    w [I][Np], b [Np]      the transpose of PyTorch's weight [N,I]
 * derived  wt [N][Ip]             for dx = dz W; absent if the input needs no gradient
 *
 * Backward turns the gradient of y into dz in place. */
#include <math.h>

#include "kern/device.h"
#include "model/layer.h"

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    op->T = in->T;
    op->I = in->F;
    op->F = op->spec.units;
    i32 Np = round_up(op->F, LANES);
    op->ntheta = (i64)op->I * Np + Np;
    op->nderived = in->grad ? (i64)op->F * buf_fp(in) : 0;
    return net_out(n, op->spec.name, op->T, op->F, true, &op->out);
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    f64 one = 2.0 * op->T * B * op->I * op->F;
    return backward ? one * (n->buf[op->spec.in[0]].grad ? 2 : 1) : one;
}

static void init(const struct op *op, u64 seed, f32 *theta) {
    i32 Np = round_up(op->F, LANES);
    f64 a = 1 / sqrt(op->I);
    for (i32 j = 0; j < op->F; j++) {
        for (i32 k = 0; k < op->I; k++) theta[(i64)k * Np + j] = layer_uniform(op, seed, (i64)j * op->I + k, a);
        theta[(i64)op->I * Np + j] = layer_uniform(op, seed, (i64)op->F * op->I + j, a);
    }
}

static void prep(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived) {
    (void)n;
    const i32 Np = round_up(op->F, LANES), Ip = round_up(op->I, LANES);
    if (op->nderived) k->transpose(op->I, op->F, theta + op->theta0, Np, derived + op->derived0, Ip);
}

static void activate(enum activation act, const struct kern *k, i64 n, f32 *y) {
    if (act == ACT_TANH) k->tanh(n, y, y);
    if (act == ACT_RELU) k->relu(n, y, y);
}

/* Few outputs: vectorized along the inputs, with the derived copy. */
enum { NARROW_INPUTS = 1024 };
static bool is_narrow(const struct op *op, const struct kern *k) {
    return op->F <= NARROW && op->I <= NARROW_INPUTS && op->nderived > 0 && k->narrow_fwd;
}

/* y = x B + bias for all runs of a part at once: a device would launch a kernel for each. */
static void on_device_rows(const struct op *op, const struct run *r, struct part part, bool backward) {
    const i32 Np = round_up(op->F, LANES), Ip = round_up(op->I, LANES);
    const f32 *w = r->theta + op->theta0;
    i32 rows;
    const i64 first = part_run(r, part, 0, &rows);
    struct device_product a = {.runs = part_runs(r, part), .M = rows};
    if (backward) {
        a.N = op->I, a.K = op->F, a.lda = Np, a.ldb = a.ldc = Ip;
        a.A = r->dbuf[op->out] + first * Np, a.B = r->derived + op->derived0, a.C = run_din(op, r, 0) + first * Ip;
    } else {
        a.N = op->F, a.K = op->I, a.lda = Ip, a.ldb = a.ldc = Np;
        a.A = run_in(op, r, 0) + first * Ip, a.B = w, a.bias = w + (i64)op->I * Np, a.C = r->buf[op->out] + first * Np;
    }
    a.run_a = r->B * a.lda;
    a.run_c = r->B * a.ldc;
    r->kern->device->product(&a);
}

static void fwd(const struct op *op, const struct run *r, struct part part) {
    i32 Np = round_up(op->F, LANES), Ip = round_up(op->I, LANES);
    const f32 *w = r->theta + op->theta0, *bias = w + (i64)op->I * Np, *x = run_in(op, r, 0);
    if (r->kern->device) on_device_rows(op, r, part, false);
    if (r->kern->device && op->spec.act == ACT_NONE) return;
    for (i32 i = 0; i < part_runs(r, part); i++) {
        i32 rows;
        i64 first = part_run(r, part, i, &rows);
        f32 *y = r->buf[op->out] + first * Np;
        if (is_narrow(op, r->kern)) {
            r->kern->narrow_fwd(op->F, rows, Ip, x + first * Ip, Ip, r->derived + op->derived0, Ip, bias, y, Np);
        } else if (!r->kern->device) {
            r->kern->copy(rows, Np, y, Np, bias, 0);
            r->kern->gemm_nn(rows, op->F, op->I, x + first * Ip, Ip, w, Np, y, Np, true);
        }
        activate(op->spec.act, r->kern, (i64)rows * Np, y);
    }
}

/* dz = dy * act'(z), expressed in y = act(z). */
static void deactivate(enum activation act, const struct kern *k, i64 n, const f32 *y, f32 *dy) {
    if (act == ACT_TANH) k->tanh_slope(n, dy, y);
    if (act == ACT_RELU) k->relu_slope(n, dy, y);
}

static void narrow_grad(const struct op *op, const struct run *r, struct part part, f32 *dw) {
    f32 sum[NARROW * NARROW_INPUTS] __attribute__((aligned(64)));
    i32 Np = round_up(op->F, LANES), Ip = round_up(op->I, LANES);
    memset(sum, 0, (size_t)op->F * (size_t)Ip * sizeof *sum);
    for (i32 i = 0; i < part_runs(r, part); i++) {
        i32 rows;
        i64 first = part_run(r, part, i, &rows);
        r->kern->narrow_dw(op->F, rows, Ip, run_in(op, r, 0) + first * Ip, Ip, r->dbuf[op->out] + first * Np, Np, sum, Ip);
    }
    for (i32 n = 0; n < op->F; n++)
        for (i32 k = 0; k < op->I; k++) dw[(i64)k * Np + n] += sum[n * Ip + k];
}

static void grad(const struct op *op, const struct run *r, struct part part, f32 *dw) {
    i32 Np = round_up(op->F, LANES), Ip = round_up(op->I, LANES), rows, n = part_runs(r, part);
    i64 first = part_run(r, part, 0, &rows);
    f32 *db = dw + (i64)op->I * Np;
    const f32 *x = run_in(op, r, 0) + first * Ip, *dz = r->dbuf[op->out] + first * Np;
    if (is_narrow(op, r->kern))
        narrow_grad(op, r, part, dw);
    else
        r->kern->gemm_tn_runs(op->I, op->F, rows, n, x, Ip, (i64)r->B * Ip, dz, Np, (i64)r->B * Np, dw, Np);
    r->kern->add_rows(n, (i64)r->B * Np, rows, Np, db, dz, Np);
}

static void bwd(const struct op *op, const struct run *r, struct part part) {
    if (!run_dout(r, op->out)) return;
    i32 Np = round_up(op->F, LANES), Ip = round_up(op->I, LANES);
    f32 *dx = run_din(op, r, 0);
    const bool skips = r->kern->device && op->spec.act == ACT_NONE;
    for (i32 i = 0; i < part_runs(r, part) && !skips; i++) {
        i32 rows;
        i64 first = part_run(r, part, i, &rows);
        f32 *dz = r->dbuf[op->out] + first * Np;
        deactivate(op->spec.act, r->kern, (i64)rows * Np, r->buf[op->out] + first * Np, dz);
        const f32 *wt = r->derived + op->derived0;
        if (dx && is_narrow(op, r->kern))
            r->kern->narrow_dx(op->F, rows, Ip, dz, Np, wt, Ip, dx + first * Ip, Ip);
        else if (dx && !r->kern->device)
            r->kern->gemm_nn(rows, op->I, op->F, dz, Np, wt, Ip, dx + first * Ip, Ip, false);
    }
    if (dx && r->kern->device) on_device_rows(op, r, part, true);
    for (i32 g = grain_first(r, part); g < grain_end(r, part); g++)
        grad(op, r, part_grain(r, part, g), grain_grad(r, g, op->theta0));
}

static i32 tensors(const struct op *op, struct tensor_info out[8]) {
    layer_tensor(&out[0], op, "weight", op->F, op->I);
    layer_tensor(&out[1], op, "bias", op->F, 0);
    return 2;
}

static i64 place(const struct op *op, i32 tensor, i32 row, i32 col) {
    return (i64)(tensor == 1 ? op->I : col) * round_up(op->F, LANES) + row;
}

extern const struct layer layer_dense;
const struct layer layer_dense = {
    .name = "dense",
    .help = "y [T][B][units] = act(x [T][B][I] W^T + b)",
    .nin = 1,
    .shape = shape,
    .flops = flops,
    .init = init,
    .prep = prep,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = layer_on_device,
    .tensors = tensors,
    .place = place,
};
