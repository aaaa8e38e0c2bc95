/* cross_entropy.c - the loss of classes: log sum_k exp u[k] - u[y] for scores u [T][B][K] and the true class y.
 *
 * in[0]  u [T][B][K]            in[1]  ids [T][B]: the true classes; outside of 0..K-1 = not known, which adds nothing
 *
 * As every loss it writes the sum of each micro-batch, in f64 over rows and steps, and backward the gradient of loss_scale times
 * that sum: softmax(u) - [y]. */
#include <math.h>

#include "model/layer.h"

static err shape(struct net *n, struct op *op) {
    const struct buf *u, *y = &n->buf[op->spec.in[1] < 0 ? 0 : op->spec.in[1]];
    TRY(layer_input(n, op, 0, &u));
    if (op->spec.in[1] < 0 || !y->ids || y->T != u->T)
        return FAIL(E1, "op \"%s\" (cross_entropy): input 1 must hold the class of every step", op->spec.name);
    op->T = u->T;
    op->I = op->F = u->F;
    return 0;
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    (void)n, (void)backward;
    return 12.0 * op->T * B * op->I;
}

static f32 largest(const f32 *u, i32 n) {
    f32 most = u[0];
    for (i32 k = 1; k < n; k++) most = u[k] > most ? u[k] : most;
    return most;
}

static f64 row_loss(const struct op *op, const f32 *u, i32 y) {
    f64 sum = 0;
    if (y < 0 || y >= op->I) return 0;
    const f32 most = largest(u, op->I);
    for (i32 k = 0; k < op->I; k++) sum += exp((f64)(u[k] - most));
    return log(sum) - (f64)(u[y] - most);
}

/* The parts of one micro-batch come in order of t. */
static void fwd(const struct op *op, const struct run *r, struct part p) {
    const i64 Kp = round_up(op->I, LANES);
    const i32 *y = run_ids(op, r, 1);
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++) {
        const struct part q = part_grain(r, p, g);
        f64 total = p.t0 == 0 ? 0 : r->loss[g];
        for (i32 t = q.t0; t < q.t1; t++)
            for (i32 b = q.b0; b < q.b1; b++) {
                const i64 at = (i64)t * r->B + b;
                total += row_loss(op, run_in(op, r, 0) + at * Kp, y[at]);
            }
        r->loss[g] = total;
    }
}

static void row_slope(const struct op *op, const f32 *u, i32 y, f32 scale, f32 *du) {
    f32 sum = 0;
    if (y < 0 || y >= op->I) return;
    const f32 most = largest(u, op->I);
    for (i32 k = 0; k < op->I; k++) sum += du[k] = expf(u[k] - most);
    for (i32 k = 0; k < op->I; k++) du[k] *= scale / sum;
    du[y] -= scale;
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    const i64 Kp = round_up(op->I, LANES);
    const i32 *y = run_ids(op, r, 1);
    f32 *du = run_din(op, r, 0);
    if (!du) return;
    for (i32 t = p.t0; t < p.t1; t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            const i64 at = (i64)t * r->B + b;
            memset(du + at * Kp, 0, (size_t)Kp * sizeof *du);
            row_slope(op, run_in(op, r, 0) + at * Kp, y[at], r->loss_scale, du + at * Kp);
        }
}

extern const struct layer layer_cross_entropy;
const struct layer layer_cross_entropy = {
    .name = "cross_entropy",
    .help = "cross-entropy of the softmax of scores [T][B][K] against classes [T][B]",
    .nin = 2,
    .shape = shape,
    .flops = flops,
    .fwd = fwd,
    .bwd = bwd,
};
