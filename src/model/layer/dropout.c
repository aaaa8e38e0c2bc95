/* dropout.c - drops each value with probability rate in training and scales the others up; hands x through otherwise.
 *
 * The mask is a pure function of (seed, step, op, place in the buffer), so it does not depend on how the box was cut and a re-run
 * sees the same.  Saved: one bit a value, a u16 per 16 lanes.  One Philox call serves 8 values with thresholds of 16 bits; the scale
 * is that of the rounded threshold, so the mean is kept exactly. */
#include <math.h>

#include "base/rng.h"
#include "model/layer.h"

enum { ONE = 1 << 16 };

static u32 threshold(const struct op *op) { return (u32)lround((f64)op->spec.rate * ONE); }

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    TRY(layer_range(op, "rate", (f64)op->spec.rate, 0, 0.99));
    op->T = in->T;
    op->I = op->F = in->F;
    return net_out(n, op->spec.name, op->T, op->F, in->grad, &op->out);
}

static i64 saved(const struct op *op, const struct net *n, i32 B) {
    (void)n;
    return (i64)op->T * B * (round_up(op->F, LANES) / LANES); /* twice what the u16 need, so rows stay apart in steps of 4 bytes */
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    (void)n;
    return (backward ? 1.0 : 8.0) * op->T * B * op->F;
}

/* The bits of panel `index` of the buffer: bit i set = lane i is kept. */
static u32 mask_of(const struct op *op, const struct run *r, u32 drop, u64 index) {
    u32 w[8], bits = 0;
    u64 place = (u64)op->l << 48 | 2 * index;
    rng_words(r->seed, RNG_DROPOUT, r->step, place, w);
    rng_words(r->seed, RNG_DROPOUT, r->step, place + 1, w + 4);
    for (u32 i = 0; i < 8; i++) {
        bits |= (u32)((w[i] & 0xffff) >= drop) << (2 * i);
        bits |= (u32)((w[i] >> 16) >= drop) << (2 * i + 1);
    }
    return bits;
}

static void scale_panel(u32 bits, f32 scale, const f32 *x, f32 *y) {
    for (u32 i = 0; i < LANES; i++) y[i] = (bits >> i & 1) ? x[i] * scale : 0;
}

static bool identity(const struct op *op, const struct run *r) { return !r->train || threshold(op) == 0; }

static void fwd(const struct op *op, const struct run *r, struct part p) {
    i64 Fp = round_up(op->F, LANES), panels = Fp / LANES;
    u32 drop = threshold(op), *mask = (u32 *)(void *)r->saved[op->l];
    f32 scale = (f32)ONE / (f32)(ONE - drop);
    for (i32 i = 0; i < part_runs(p, r->B); i++) {
        i32 rows;
        i64 first = part_run(p, r->B, i, &rows);
        const f32 *x = run_in(op, r, 0) + first * Fp;
        f32 *y = r->buf[op->out] + first * Fp;
        if (identity(op, r)) {
            memcpy(y, x, (size_t)(rows * Fp) * sizeof *y);
            continue;
        }
        for (i64 j = 0; j < rows * panels; j++) {
            i64 at = first * panels + j;
            mask[at] = mask_of(op, r, drop, (u64)at);
            scale_panel(mask[at], scale, x + j * LANES, y + j * LANES);
        }
    }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    i64 Fp = round_up(op->F, LANES), panels = Fp / LANES;
    u32 drop = threshold(op);
    const u32 *mask = (const u32 *)(const void *)r->saved[op->l];
    f32 scale = (f32)ONE / (f32)(ONE - drop), *dx = run_din(op, r, 0);
    const f32 *dy = run_dout(r, op->out);
    if (!dx || !dy) return;
    for (i32 i = 0; i < part_runs(p, r->B); i++) {
        i32 rows;
        i64 first = part_run(p, r->B, i, &rows);
        if (identity(op, r)) {
            memcpy(dx + first * Fp, dy + first * Fp, (size_t)(rows * Fp) * sizeof *dx);
            continue;
        }
        for (i64 at = first * panels; at < (first + rows) * panels; at++)
            scale_panel(mask[at], scale, dy + at * LANES, dx + at * LANES);
    }
}

extern const struct layer layer_dropout;
const struct layer layer_dropout = {
    .name = "dropout",
    .help = "y [T][B][F] = x with a share `rate` of its values dropped in training",
    .nin = 1,
    .shape = shape,
    .saved = saved,
    .flops = flops,
    .fwd = fwd,
    .bwd = bwd,
};
