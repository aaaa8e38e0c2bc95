/* dropout.c - in training zeroes each value with probability `rate` and scales the others; otherwise passes x through.
 *
 * The mask is a pure function of (seed, step, op, position in the buffer), so it does not depend on the partition, and a
 * recomputation sees the same mask. Saved: one bit per value, a u32 per panel. One Philox call serves 8 values with 16-bit
 * thresholds; the scale uses the rounded threshold, so the mean is exact. */
#include <math.h>

#include "kern/device.h"
#include "model/layer.h"
#include "model/layer/dropout_mask.h"

enum { ONE = 1 << 16 };

static u32 threshold(const struct op *op) { return (u32)lround((f64)op->spec.dropout * ONE); }

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    op->T = in->T;
    op->I = op->F = in->F;
    return net_out(n, op->spec.name, op->T, op->F, in->grad, &op->out);
}

static i64 saved(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    return (i64)op->T * B.n * (round_up(op->F, LANES) / LANES);
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    (void)n;
    return (backward ? 1.0 : 8.0) * op->T * B * op->F;
}

static void mask_ref(u64 seed, u32 step, u64 place, u32 drop, u32 mask[MASK_PANELS]) {
    for (u32 p = 0; p < MASK_PANELS; p++) {
        u32 w[8];
        rng_words(seed, RNG_DROPOUT, step, place + 2 * p, w);
        rng_words(seed, RNG_DROPOUT, step, place + 2 * p + 1, w + 4);
        mask[p] = 0;
        for (u32 i = 0; i < LANES; i++) mask[p] |= (u32)((w[i / 2] >> (i % 2 * 16) & 0xffff) >= drop) << i;
    }
}

static void scale_ref(i64 n, const u32 *mask, f32 scale, const f32 *x, f32 *y) {
    for (i64 i = 0; i < n * LANES; i++) y[i] = (mask[i / LANES] >> (i % LANES) & 1) ? x[i] * scale : 0;
}

const struct dropout_kern dropout_ref = {mask_ref, scale_ref};

static const struct dropout_kern *kern_of(const struct kern *k) {
#if defined(__x86_64__)
    if (k->arch >= KERN_AVX512) return &dropout_avx512; /* the bf16 sets include avx512 */
    if (k->arch == KERN_AVX2) return &dropout_avx2;
#endif
    return k->arch == KERN_REF ? &dropout_ref : &dropout_base;
}

/* Masks of n consecutive panels; first: number of the first one in the buffer of the whole batch. */
static void draw(const struct op *op, const struct run *r, i64 first, i64 n, u32 *mask) {
    const struct dropout_kern *k = kern_of(r->kern);
    for (i64 i = 0; i < n; i += MASK_PANELS) {
        u32 some[MASK_PANELS];
        k->mask(r->seed, r->step, (u64)op->l << 48 | 2 * (u64)(first + i), threshold(op), some);
        memcpy(mask + i, some, (size_t)lmin(MASK_PANELS, n - i) * sizeof *some);
    }
}

/* Masks of consecutive local rows, split where they are not consecutive in the whole batch. */
static void masks(const struct op *op, const struct run *r, i64 first, i64 rows, u32 *mask) {
    const i64 panels = round_up(op->F, LANES) / LANES;
    for (i64 at = first, n; at < first + rows; at += n) {
        n = r->B == r->whole ? rows : lmin(first + rows - at, r->B - at % r->B);
        draw(op, r, run_place(r, at) * panels, n * panels, mask + at * panels);
    }
}

/* On a device the masks of consecutive rows of the whole batch are drawn together with the product. */
static void on_device_rows(const struct op *op, const struct run *r, const f32 *x, f32 *y, i64 first, i64 rows, bool draws) {
    const i64 Fp = round_up(op->F, LANES), panels = Fp / LANES;
    const u32 drop = threshold(op);
    for (i64 at = first, n; at < first + rows; at += n) {
        n = r->B == r->whole ? rows : lmin(first + rows - at, r->B - at % r->B);
        const struct device_dropout a = {.panels = n * panels,
                                         .place = (i64)((u64)op->l << 48 | 2 * (u64)(run_place(r, at) * panels)),
                                         .x = x + (at - first) * Fp,
                                         .y = y + (at - first) * Fp,
                                         .mask = (u32 *)(void *)r->saved[op->l] + at * panels,
                                         .seed = r->seed,
                                         .step = r->step,
                                         .drop = drop,
                                         .scale = (f32)ONE / (f32)(ONE - drop),
                                         .draw = draws};
        r->kern->device->dropout(&a);
    }
}

static bool identity(const struct op *op, const struct run *r) { return !r->train || threshold(op) == 0; }

static void fwd(const struct op *op, const struct run *r, struct part p) {
    i64 Fp = round_up(op->F, LANES), panels = Fp / LANES;
    u32 drop = threshold(op), *mask = (u32 *)(void *)r->saved[op->l];
    f32 scale = (f32)ONE / (f32)(ONE - drop);
    for (i32 i = 0; i < part_runs(r, p); i++) {
        i32 rows;
        i64 first = part_run(r, p, i, &rows);
        const f32 *x = run_in(op, r, 0) + first * Fp;
        f32 *y = r->buf[op->out] + first * Fp;
        if (identity(op, r)) {
            r->kern->copy(rows, Fp, y, Fp, x, Fp);
            continue;
        }
        if (r->kern->device) {
            on_device_rows(op, r, x, y, first, rows, true);
            continue;
        }
        masks(op, r, first, rows, mask);
        kern_of(r->kern)->scale(rows * panels, mask + first * panels, scale, x, y);
    }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    i64 Fp = round_up(op->F, LANES), panels = Fp / LANES;
    u32 drop = threshold(op);
    const u32 *mask = (const u32 *)(const void *)r->saved[op->l];
    f32 scale = (f32)ONE / (f32)(ONE - drop), *dx = run_din(op, r, 0);
    const f32 *dy = run_dout(r, op->out);
    if (!dx || !dy) return;
    for (i32 i = 0; i < part_runs(r, p); i++) {
        i32 rows;
        i64 first = part_run(r, p, i, &rows);
        if (identity(op, r)) {
            r->kern->copy(rows, Fp, dx + first * Fp, Fp, dy + first * Fp, Fp);
            continue;
        }
        if (r->kern->device) {
            on_device_rows(op, r, dy + first * Fp, dx + first * Fp, first, rows, false);
            continue;
        }
        kern_of(r->kern)->scale(rows * panels, mask + first * panels, scale, dy + first * Fp, dx + first * Fp);
    }
}

extern const struct layer layer_dropout;
const struct layer layer_dropout = {
    .name = "dropout",
    .help = "y [T][B][F] = x with a share `rate` of its values dropped in training",
    .steps = true,
    .draws = true,
    .nin = 1,
    .shape = shape,
    .saved = saved,
    .flops = flops,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = layer_on_device,
};
