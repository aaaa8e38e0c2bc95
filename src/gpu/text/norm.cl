/* norm.cl - layer norm, a group of 256 items for each row; the twin: model/layer/norm.c. */

/* Row r of a call, counted in [T][B]. */
INLINE i64 norm_row(struct norm_args a, int r) { return (i64)(a.t0 + r / (a.b1 - a.b0)) * a.B + a.b0 + r % (a.b1 - a.b0); }

/* The sum of a value of each item, in a fixed tree; every item gets it. */
INLINE float norm_sum(float v, ON_SHARED float *part) {
    part[LOCAL(0)] = v;
    BARRIER;
    for (int apart = 128; apart > 0; apart /= 2) {
        if (LOCAL(0) < apart) part[LOCAL(0)] += part[LOCAL(0) + apart];
        BARRIER;
    }
    v = part[0];
    BARRIER;
    return v;
}

KERNEL void norm_fwd(GLOBAL float *m, struct norm_args a) {
    SHARED float part[256];
    const i64 row = norm_row(a, GROUP(0));
    GLOBAL const float *x = m + a.at_x + row * a.Fp, *weight = m + a.at_weight;
    GLOBAL float *y = m + a.at_y + row * a.Fp;
    float sum = 0, squares = 0;
    for (int i = LOCAL(0); i < a.F; i += 256) sum += x[i];
    const float mean = norm_sum(sum, part) / (float)a.F;
    for (int i = LOCAL(0); i < a.F; i += 256) squares = FMA(x[i] - mean, x[i] - mean, squares);
    const float inverse = 1.0f / SQRT(norm_sum(squares, part) / (float)a.F + 1e-5f);
    for (int i = LOCAL(0); i < a.Fp; i += 256)
        y[i] = (i < a.F ? (x[i] - mean) * inverse : 0.0f) * weight[i] + weight[a.Fp + i];
    if (LOCAL(0) > 0) return;
    m[a.at_stat + 2 * row] = mean;
    m[a.at_stat + 2 * row + 1] = inverse;
}

/* With g = dy * weight: dx = (g - mean(g) - xn mean(g xn)) / deviation. */
KERNEL void norm_bwd(GLOBAL float *m, struct norm_args a) {
    SHARED float part[256];
    const i64 row = norm_row(a, GROUP(0));
    GLOBAL const float *x = m + a.at_x + row * a.Fp, *dy = m + a.at_dy + row * a.Fp, *weight = m + a.at_weight;
    GLOBAL float *dx = m + a.at_dx + row * a.Fp;
    const float mean = m[a.at_stat + 2 * row], inverse = m[a.at_stat + 2 * row + 1];
    float sum = 0, with = 0;
    for (int i = LOCAL(0); i < a.F; i += 256) {
        const float g = dy[i] * weight[i];
        sum += g;
        with = FMA(g, (x[i] - mean) * inverse, with);
    }
    const float level = norm_sum(sum, part) / (float)a.F, along = norm_sum(with, part) / (float)a.F;
    for (int i = LOCAL(0); i < a.Fp; i += 256)
        dx[i] = i < a.F ? (dy[i] * weight[i] - level - (x[i] - mean) * inverse * along) * inverse : 0.0f;
}

/* A group: 32 columns, 8 slices of the rows, which are added in order. */
KERNEL void norm_grad(GLOBAL float *m, struct norm_args a) {
    SHARED float scale[256], shift[256];
    const int i = GROUP(0) * 32 + LOCAL(0) % 32, slice = LOCAL(0) / 32;
    float sum = 0, plain = 0;
    for (int r = slice; r < a.rows && i < a.F; r += 8) {
        const i64 row = norm_row(a, r);
        const float dy = m[a.at_dy + row * a.Fp + i];
        sum = FMA(dy, (m[a.at_x + row * a.Fp + i] - m[a.at_stat + 2 * row]) * m[a.at_stat + 2 * row + 1], sum);
        plain += dy;
    }
    scale[LOCAL(0)] = sum;
    shift[LOCAL(0)] = plain;
    BARRIER;
    if (slice > 0 || i >= a.F) return;
    for (int k = 1; k < 8; k++) sum += scale[32 * k + LOCAL(0)], plain += shift[32 * k + LOCAL(0)];
    m[a.at_grad + i] += sum;
    m[a.at_grad + a.Fp + i] += plain;
}
