/* loss.cl - losses and their slopes (the twins: model/loss).  An error is that of one value; a missing target has error 0. */
enum { MSE, MAE, QUANTILE };

/* Place `at` in [T][B], value i = quantile * F + f. */
INLINE float loss_error(GLOBAL const float *m, struct loss_args a, i64 at, int i) {
    const i64 cell = at * a.Fp + i % a.F;
    const float target = m[a.at_target + cell], pred = m[a.at_pred + at * a.Ip + i];
    const float e = (a.at_base >= 0 ? pred + m[a.at_base + cell] : pred) - target;
    return target != target ? 0 : e;
}

/* e > 0: the forecast is too high and costs 2 (1 - q) per unit; too low costs 2 q. */
INLINE float loss_value(struct loss_args a, float e, float q) {
    if (a.kind == MSE) return e * e;
    if (a.kind == MAE) return ABS(e);
    return e * (e > 0 ? 2 * (1 - q) : -2 * q);
}

INLINE float slope_of(struct loss_args a, float e, float q) {
    if (a.kind == MSE) return 2 * e;
    const float above = a.kind == MAE ? 1 : 2 * (1 - q), below = a.kind == MAE ? -1 : -2 * q;
    return e > 0 ? above : e < 0 ? below : 0;
}

/* A group a micro-batch: item t adds values t, t + 256, .. of its rows. */
KERNEL void loss_sum(GLOBAL float *m, struct loss_args a) {
    SHARED f64 part[256];
    const int g = a.g0 + GROUP(0), row = g * a.grain - a.row0;
    const int b0 = row > a.b0 ? row : a.b0, n = least(a.b1, row + a.grain) - b0, I = a.F * a.Q, all = (a.t1 - a.t0) * n * I;
    f64 sum = 0;
    for (int k = LOCAL(0); k < all; k += 256) {
        const int r = k / I, i = k % I;
        const i64 at = (i64)(a.t0 + r / n) * a.B + b0 + r % n;
        sum += (f64)loss_value(a, loss_error(m, a, at, i), a.quantile[i / a.F]);
    }
    sum = group_sum(part, sum) / a.Q;
    GLOBAL f64 *to = (GLOBAL f64 *)m + a.at_sum + g;
    if (LOCAL(0) == 0) *to = a.t0 > 0 ? *to + sum : sum;
}

/* A group has 16 rows. */
KERNEL void loss_slope(GLOBAL float *m, struct loss_args a) {
    const int r = GROUP(0) * 16 + LOCAL(0) / 16, n = a.b1 - a.b0;
    if (r >= (a.t1 - a.t0) * n) return;
    const i64 at = (i64)(a.t0 + r / n) * a.B + a.b0 + r % n;
    for (int i = LOCAL(0) % 16; i < a.Ip; i += 16) {
        const bool real = i < a.F * a.Q;
        m[a.at_d + at * a.Ip + i] = real ? slope_of(a, loss_error(m, a, at, i), a.quantile[i / a.F]) * a.scale : 0;
    }
}
