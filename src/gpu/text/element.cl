/* element.cl - copies, element-wise functions, sums of columns and of squares, dropout, optimisers, embedding tables. */

/* ------------------------------------------------------------------ rows --------------------------------------------------- */

/* A group copies 16 rows x 64 columns; GROUP(0) counts the blocks of columns first. */
KERNEL void copy_rows(GLOBAL float *m, struct rows_args a) {
    const i64 row = (i64)(GROUP(0) / a.blocks) * 16 + LOCAL(0) / 16, first = (i64)(GROUP(0) % a.blocks) * 64 + LOCAL(0) % 16;
    if (row >= a.rows) return;
    for (i64 i = first; i < first + 64 && i < a.n; i += 16)
        m[a.at_to + row * a.to_ld + i] = a.at_from >= 0 ? m[a.at_from + row * a.from_ld + i] : 0;
}

/* A group turns 32 x 32 values. */
KERNEL void transpose(GLOBAL float *m, struct rows_args a) {
    SHARED float tile[32 * 33];
    const i64 row0 = (i64)(GROUP(0) / a.blocks) * 32, column0 = (i64)(GROUP(0) % a.blocks) * 32;
    const int x = LOCAL(0) % 32, y = LOCAL(0) / 32;
    for (int i = y; i < 32; i += 8)
        if (row0 + i < a.rows && column0 + x < a.n) tile[i * 33 + x] = m[a.at_from + (row0 + i) * a.from_ld + column0 + x];
    BARRIER;
    for (int i = y; i < 32; i += 8)
        if (column0 + i < a.n && row0 + x < a.rows) m[a.at_to + (column0 + i) * a.to_ld + row0 + x] = tile[x * 33 + i];
}

/* A group sums 32 columns of a chunk of rows: item y every eighth row, then the eight sums in order. */
KERNEL void column_sum(GLOBAL float *m, struct rows_args a) {
    SHARED float part[256];
    const int x = LOCAL(0) % 32, y = LOCAL(0) / 32, first = GROUP(1) * a.chunk, end = least((int)a.rows, first + a.chunk);
    const i64 column = (i64)GROUP(0) * 32 + x;
    float sum = 0;
    if (column < a.n)
        for (int r = first + y; r < end; r += 8) sum += m[row_at(a.at_from, a.from_ld, a.run, a.nb, r) + column];
    part[LOCAL(0)] = sum;
    BARRIER;
    if (y > 0 || column >= a.n) return;
    for (int i = 1; i < 8; i++) sum += part[32 * i + x];
    if (a.splits > 1) m[a.at_part + GROUP(1) * a.n + column] = sum;
    else m[a.at_to + column] += sum;
}

/* ------------------------------------------------------------------ flat vectors -------------------------------------------- */

enum { EACH = 4 }; /* values of a work item, 256 apart */

INLINE float element(int how, float y, float x) {
    switch (how) {
        case ELEMENT_ADD:
            return y + x;
        case ELEMENT_RELU:
            return x > 0 ? x : 0;
        case ELEMENT_TANH:
            return TANH(x);
        case ELEMENT_SIGMOID:
            return sigmoid1(x);
        case ELEMENT_TANH_SLOPE:
            return y * (1.0f - x * x);
        case ELEMENT_RELU_SLOPE:
            return x > 0 ? y : 0;
        default:
            return x;
    }
}

KERNEL void elementwise(GLOBAL float *m, struct element_args a) {
    const bool in_place = a.how == ELEMENT_ADD || a.how >= ELEMENT_TANH_SLOPE;
    i64 i = (i64)GROUP(0) * (256 * EACH) + LOCAL(0);
    for (int e = 0; e < EACH; e++, i += 256)
        if (i < a.n) m[a.at_y + i] = element(a.how, in_place ? m[a.at_y + i] : 0, a.at_x >= 0 ? m[a.at_x + i] : 0);
}

/* Adds what the items hold as a binary tree. */
INLINE f64 group_sum(ON_SHARED f64 *part, f64 sum) {
    const int t = LOCAL(0);
    part[t] = sum;
    for (int width = 128; width > 0; width /= 2) {
        BARRIER;
        if (t < width) part[t] += part[t + width];
    }
    BARRIER;
    return part[0];
}

/* A group a block: item t adds values t, t + 256, .. */
KERNEL void sum_squares(GLOBAL float *m, struct square_args a) {
    SHARED f64 part[256];
    const i64 first = (i64)GROUP(0) * a.block, end = first + a.block < a.n ? first + a.block : a.n;
    f64 sum = 0;
    for (i64 i = first + LOCAL(0); i < end; i += 256) sum += (f64)m[a.at_x + i] * (f64)m[a.at_x + i];
    sum = group_sum(part, sum);
    if (LOCAL(0) == 0) ((GLOBAL f64 *)m)[a.at_sum + GROUP(0)] = sum;
}

/* ------------------------------------------------------------------ dropout ------------------------------------------------- */

/* Whether the low and the high half of a word are >= drop. */
INLINE u32 two_bits(u32 w, u32 drop) { return (u32)((w & 0xffff) >= drop) | (u32)((w >> 16) >= drop) << 1; }

/* The eight bits of a counter. */
INLINE u32 philox_byte(struct dropout_args a, u64 place) {
    u32 c0 = (u32)place, c1 = (u32)(place >> 32), c2 = a.stream, c3 = a.step, k0 = (u32)a.seed, k1 = (u32)(a.seed >> 32);
#pragma unroll
    for (int i = 0; i < 10; i++) {
        const u32 high0 = MULHI(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        const u32 high2 = MULHI(0xCD9E8D57u, c2), low2 = 0xCD9E8D57u * c2;
        c0 = high2 ^ c1 ^ k0;
        c1 = low2;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return two_bits(c0, a.drop) | two_bits(c1, a.drop) << 2 | two_bits(c2, a.drop) << 4 | two_bits(c3, a.drop) << 6;
}

/* A group has 128 panels: each item draws half a mask, then 16 items scale a panel. */
KERNEL void dropout(GLOBAL float *m, struct dropout_args a) {
    SHARED u32 half_mask[256];
    GLOBAL u32 *masks = (GLOBAL u32 *)m + a.at_mask;
    const int t = LOCAL(0);
    const i64 panel0 = (i64)GROUP(0) * 128;
    if (a.draw) half_mask[t] = philox_byte(a, a.place + 2 * (u64)panel0 + (u64)t);
    BARRIER;
    for (int i = t / 16; i < 128; i += 16) {
        const i64 panel = panel0 + i, at = panel * 16 + t % 16;
        if (panel >= a.panels) return;
        const u32 mask = a.draw ? half_mask[2 * i] | half_mask[2 * i + 1] << 8 : masks[panel];
        if (a.draw && t % 16 == 0) masks[panel] = mask;
        m[a.at_y + at] = (mask >> (t % 16) & 1) ? m[a.at_x + at] * a.scale : 0;
    }
}

/* ------------------------------------------------------------------ optimisers ---------------------------------------------- */

enum { SGD, ADAM, ADAMW, RMSPROP, ADAGRAD };

INLINE void adam_step(GLOBAL float *m, struct optim_args a, i64 i, float g, float theta) {
    const float m1 = a.beta1 * m[a.at_s0 + i] + (1 - a.beta1) * g, v = a.beta2 * m[a.at_s1 + i] + (1 - a.beta2) * g * g;
    const float change = a.rate * m1 / (SQRT(v) * a.root + a.eps);
    m[a.at_s0 + i] = m1;
    m[a.at_s1 + i] = v;
    m[a.at_theta + i] = a.rule == ADAM ? theta - change : theta - (a.decay * theta + change);
}

INLINE void optimise_one(GLOBAL float *m, struct optim_args a, i64 i) {
    const float theta = m[a.at_theta + i], g0 = m[a.at_grad + i] * a.grad_scale;
    const float g = a.rule == ADAMW ? g0 : g0 + a.weight_decay * theta;
    if (a.rule == ADAM || a.rule == ADAMW) {
        adam_step(m, a, i, g, theta);
        return;
    }
    const float s0 = m[a.at_s0 + i];
    float s, change;
    if (a.rule == SGD) {
        s = a.momentum * s0 + g;
        change = a.lr * s;
    } else {
        s = a.rule == RMSPROP ? a.beta2 * s0 + (1 - a.beta2) * g * g : s0 + g * g;
        change = a.lr * g / (SQRT(s) + a.eps);
    }
    m[a.at_s0 + i] = s;
    m[a.at_theta + i] = theta - change;
}

KERNEL void optimise(GLOBAL float *m, struct optim_args a) {
    i64 i = (i64)GROUP(0) * (256 * EACH) + LOCAL(0);
    for (int e = 0; e < EACH; e++, i += 256)
        if (i < a.n) optimise_one(m, a, i);
}

/* ------------------------------------------------------------------ embedding tables ---------------------------------------- */

/* Place in [T][B] of sample r of the rows [b0,b1) of steps from t0 on. */
INLINE i64 sample(int t0, int b0, int b1, int B, int r) { return (i64)(t0 + r / (b1 - b0)) * B + b0 + r % (b1 - b0); }
#define SAMPLE(a, r) sample(a.t0, a.b0, a.b1, a.B, r)

/* A group copies 16 samples. */
KERNEL void embed_fwd(GLOBAL float *m, struct embed_args a) {
    const int r = GROUP(0) * 16 + LOCAL(0) / 16;
    if (r >= (a.t1 - a.t0) * (a.b1 - a.b0)) return;
    const i64 at = SAMPLE(a, r);
    const int id = ((GLOBAL const int *)m)[a.at_ids + at];
    const bool known = id >= 0 && id < a.vocab;
    for (int i = LOCAL(0) % 16; i < a.Fp; i += 16) m[a.at_y + at * a.Fp + i] = known ? m[a.at_table + (i64)id * a.Fp + i] : 0;
}

/* A group a sample: the first sample with an id adds all of them to the row of the table, in order.  So no two groups write the
 * same row, and the sum has a fixed order without atomics. */
KERNEL void embed_bwd(GLOBAL float *m, struct embed_args a) {
    SHARED int ids[256], seen[256];
    GLOBAL const int *all = (GLOBAL const int *)m + a.at_ids;
    const int t = LOCAL(0), r = GROUP(0), rows = (a.t1 - a.t0) * (a.b1 - a.b0), id = all[SAMPLE(a, r)];
    seen[t] = 0;
    for (int i = t; i < r; i += 256)
        if (all[SAMPLE(a, i)] == id) seen[t] = 1;
    for (int width = 128; width > 0; width /= 2) {
        BARRIER;
        if (t < width) seen[t] |= seen[t + width];
    }
    BARRIER;
    if (seen[0] || id < 0 || id >= a.vocab) return;
    const i64 row = a.at_table + (i64)id * a.Fp;
    for (int i = t; i < a.Fp / 16 && a.at_marks >= 0; i += 256)
        ((GLOBAL unsigned char *)m)[a.at_marks + (i64)id * (a.Fp / 16) + i] = 1;
    for (int i = r; i < rows; i += 256) {
        ids[t] = i + t < rows ? all[SAMPLE(a, i + t)] : -1;
        BARRIER;
        for (int f = t; f < a.Fp; f += 256) {
            float sum = m[row + f];
            for (int k = 0; k < 256; k++)
                if (ids[k] == id) sum += m[a.at_y + SAMPLE(a, i + k) * a.Fp + f];
            m[row + f] = sum;
        }
        BARRIER;
    }
}
