/* chain.cl - forward-backward and best paths of the sentences of a linear-chain CRF (the twin: learn/crf/kernel.c, whose order of
 * every sum this keeps); args.h has the layouts.  A group has 256 / width tokens or sentences, each with an item for each label. */
enum { CHAIN_KEPT = 64, CHAIN_LANES = 8 }; /* CHAIN_LANES: lanes of the vectors of the twin */

/* 2^t for t <= 0, as v_exp2 of kern/simd.h. */
INLINE float chain_exp2(float t) {
    t = t < -126.0f ? -126.0f : t;
    const float whole = t + 12582912.0f, f = t - (whole - 12582912.0f);
    float p = 1.5403530e-4f;
    p = FMA(p, f, 1.3333558e-3f);
    p = FMA(p, f, 9.6181291e-3f);
    p = FMA(p, f, 5.5504109e-2f);
    p = FMA(p, f, 2.4022651e-1f);
    p = FMA(p, f, 6.9314718e-1f);
    p = FMA(p, f, 1.0f);
    return FLOAT_OF((int)((u32)BITS_OF(p) + ((u32)BITS_OF(whole) << 23)));
}

/* Of width items: the rows of the attributes of a token, added up in their order. */
KERNEL void chain_score(GLOBAL float *m, struct chain_args a) {
    SHARED float row[256];
    const int i = LOCAL(0), per = 256 / a.width, q = i / a.width, j = i % a.width, t = GROUP(0) * per + q;
    GLOBAL const i64 *at = (GLOBAL const i64 *)(m + a.at_at) + a.token0;
    GLOBAL const int *attribute = (GLOBAL const int *)(m + a.at_attribute);
    GLOBAL const int *gold = (GLOBAL const int *)(m + a.at_gold) + a.token0;
    GLOBAL float *u = m + a.at_u + (i64)t * a.Lp, *note = m + a.at_note + (i64)t * 4;
    float s = 0;
    if (t < a.n && j < a.Lp)
        for (i64 k = at[t]; k < at[t + 1]; k++) s = s + m[a.at_w + (i64)attribute[k] * a.Lp + j];
    row[i] = s;
    BARRIER;
    float top = row[q * a.width];
    for (int k = 1; k < a.L; k++) top = row[q * a.width + k] > top ? row[q * a.width + k] : top;
    if (t >= a.n || j >= a.Lp) return;
    u[j] = a.raw ? s : j < a.L ? chain_exp2(MUL(s - top, 1.44269504f)) : 0;
    if (!a.raw && j == 0) {
        note[0] = top;
        note[1] = row[q * a.width + gold[t]];
    }
}

/* out = the sum over y < L of x[y] M[y][j], in four partial sums, of which the first one goes on with the rows behind the last
 * four.  A macro: as a function it gives wrong sums on PoCL 3.1 (not on Oclgrind), and t_gpu_chain fails. */
#define CHAIN_PRODUCT(out, x, M, ld, L, j)                                                       \
    do {                                                                                         \
        const int fours_ = (L) / 4 * 4;                                                          \
        float low_ = 0, high_ = 0;                                                               \
        for (int k_ = 0; k_ < 4; k_++) {                                                         \
            float s_ = 0;                                                                        \
            for (int y_ = k_; y_ < (k_ == 0 ? (L) : fours_); y_ += y_ < fours_ ? 4 : 1)          \
                s_ = FMA((x)[y_], (M)[y_ * (ld) + (j)], s_);                                     \
            low_ = k_ == 0 ? s_ : k_ == 1 ? low_ + s_ : low_;                                    \
            high_ = k_ == 2 ? s_ : k_ == 3 ? high_ + s_ : high_;                                 \
        }                                                                                        \
        out = low_ + high_;                                                                      \
    } while (0)

/* The sum of a row: lanes first, then over them. */
INLINE float chain_sum(ON_SHARED const float *x, int Lp) {
    float s = 0;
    for (int l = 0; l < CHAIN_LANES; l++) {
        float lane = 0;
        for (int i = l; i < Lp; i += CHAIN_LANES) lane = lane + x[i];
        s = s + lane;
    }
    return s;
}

INLINE int chain_longest(GLOBAL const int *first, int row0, int per, int n) {
    int longest = 0;
    for (int r = row0; r < row0 + per && r < n; r++)
        longest = first[r + 1] - first[r] > longest ? first[r + 1] - first[r] : longest;
    return longest;
}

KERNEL void chain_pass(GLOBAL float *m, struct chain_args a) {
    SHARED float alpha[256], x[2 * 256];
    SHARED float kept[CHAIN_KEPT * CHAIN_KEPT];
    const int i = LOCAL(0), per = 256 / a.width, q = i / a.width, j = i % a.width, row0 = GROUP(0) * per, row = row0 + q;
    GLOBAL const int *first = (GLOBAL const int *)(m + a.at_first);
    const int from = row < a.n ? first[row] : 0, n = row < a.n ? first[row + 1] - from : 0;
    const int longest = chain_longest(first, row0, per, a.n), mine = q * a.width;
    GLOBAL const float *M = m + a.at_M, *back = m + a.at_back;
    const int is_label = j < a.L, is_column = j < a.Lp;
    if (a.L <= CHAIN_KEPT)
        for (int k = i; k < a.L * a.L; k += 256) kept[k] = M[k / a.L * a.Lp + k % a.L];
    for (int t = 0; t < longest; t++) {
        BARRIER;
        float v = 0;
        if (t < n && is_column) v = m[a.at_u + (i64)(from + t) * a.Lp + j];
        if (t > 0 && t < n && is_label) {
            float sum;
            if (a.L <= CHAIN_KEPT) CHAIN_PRODUCT(sum, alpha + mine, kept, a.L, a.L, j);
            else CHAIN_PRODUCT(sum, alpha + mine, M, a.Lp, a.L, j);
            v = MUL(sum, v);
        }
        x[i] = v;
        BARRIER;
        const float s = chain_sum(x + mine, a.Lp);
        alpha[i] = MUL(x[i], INVERSE(s));
        if (t < n && is_column) m[a.at_a + (i64)(from + t) * a.Lp + j] = alpha[i];
        if (t < n && j == 0) m[a.at_note + (i64)(from + t) * 4 + 2] = s;
    }
    BARRIER;
    if (a.L <= CHAIN_KEPT)
        for (int k = i; k < a.L * a.L; k += 256) kept[k] = back[k / a.L * a.Lp + k % a.L];
    ON_SHARED float *beta = alpha;
    beta[i] = 1;
    BARRIER_ALL;
    for (int k = 0; k < longest; k++) {
        const int t = n - 1 - k;
        if (t >= 0 && is_column) {
            const i64 at = (i64)(from + t) * a.Lp + j;
            const int gold = ((GLOBAL const int *)(m + a.at_gold))[a.token0 + from + t];
            m[a.at_d + at] = MUL(m[a.at_a + at], beta[i]) - (j == gold ? 1.0f : 0.0f);
            x[k % 2 * 256 + i] = MUL(MUL(beta[i], m[a.at_u + at]), INVERSE(m[a.at_note + (i64)(from + t) * 4 + 2]));
            m[a.at_u + at] = x[k % 2 * 256 + i];
        }
        BARRIER;
        if (n - 1 - k > 0 && is_column) {
            ON_SHARED const float *b = x + k % 2 * 256 + mine;
            float sum = 0;
            if (is_label && a.L <= CHAIN_KEPT) CHAIN_PRODUCT(sum, b, kept, a.L, a.L, j);
            else if (is_label) CHAIN_PRODUCT(sum, b, back, a.Lp, a.L, j);
            beta[i] = sum;
        }
    }
}

/* A group for each block of sentences and 256 pairs. */
KERNEL void chain_pairs(GLOBAL float *m, struct chain_args a) {
    const int b = GROUP(0), i = GROUP(1) * 256 + LOCAL(0);
    GLOBAL const int *first = (GLOBAL const int *)(m + a.at_first), *block = (GLOBAL const int *)(m + a.at_block);
    if (i >= a.L * a.Lp) return;
    GLOBAL const float *al = m + a.at_a + i / a.Lp, *u = m + a.at_u + i % a.Lp;
    float s = 0;
    for (int k = block[b]; k < block[b + 1]; k++)
        for (int t = first[k] + 1; t < first[k + 1]; t++) s = FMA(al[(i64)(t - 1) * a.Lp], u[(i64)t * a.Lp], s);
    m[a.at_pair + (i64)b * a.L * a.Lp + i] = s;
}

/* Writes the path of n tokens backwards, from the best label after the last one, of equal ones the lowest. */
INLINE void chain_walk(ON_SHARED const float *v, GLOBAL const unsigned char *from, int n, int L, GLOBAL unsigned char *path) {
    int label = 0;
    for (int j = 1; j < L; j++)
        if (v[j] > v[label]) label = j;
    for (int t = n - 1; t >= 0; t--) {
        path[t] = (unsigned char)label;
        if (t > 0) label = from[(i64)t * L + label];
    }
}

KERNEL void chain_paths(GLOBAL float *m, struct chain_args a) {
    SHARED float v[2 * 256];
    SHARED float kept[CHAIN_KEPT * CHAIN_KEPT];
    const int i = LOCAL(0), per = 256 / a.width, q = i / a.width, j = i % a.width, row0 = GROUP(0) * per, row = row0 + q;
    GLOBAL const int *first = (GLOBAL const int *)(m + a.at_first);
    const int begin = row < a.n ? first[row] : 0, n = row < a.n ? first[row + 1] - begin : 0;
    const int longest = chain_longest(first, row0, per, a.n), is_kept = a.L <= CHAIN_KEPT;
    GLOBAL const float *M = m + a.at_M, *u = m + a.at_u + (i64)begin * a.Lp + j;
    GLOBAL unsigned char *from = (GLOBAL unsigned char *)m + a.at_from + (i64)begin * a.L;
    if (a.L <= CHAIN_KEPT)
        for (int k = i; k < a.L * a.L; k += 256) kept[k] = M[k / a.L * a.Lp + k % a.L];
    v[i] = n > 0 && j < a.L ? u[0] : 0;
    for (int t = 1; t < longest; t++) {
        ON_SHARED const float *old = v + (t + 1) % 2 * 256 + q * a.width;
        BARRIER;
        float next = old[j];
        if (t < n && j < a.L) {
            int best = 0;
            next = old[0] + (is_kept ? kept[j] : M[j]);
            for (int y = 1; y < a.L; y++) {
                const float s = old[y] + (is_kept ? kept[y * a.L + j] : M[y * a.Lp + j]);
                best = s > next ? y : best;
                next = s > next ? s : next;
            }
            from[(i64)t * a.L + j] = (unsigned char)best;
            next = next + u[(i64)t * a.Lp];
        }
        v[t % 2 * 256 + i] = next;
    }
    BARRIER_ALL;
    if (j == 0 && n > 0)
        chain_walk(v + (longest + 1) % 2 * 256 + q * a.width, from, n, a.L, (GLOBAL unsigned char *)m + a.at_path + begin);
}
