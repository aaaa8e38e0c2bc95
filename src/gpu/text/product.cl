/* product.cl - matrix products in tiles of 64 x 64 of C.
 *
 *     a group: 256 work items, each 4 x 4 values of C          A tile [16 k][64 rows], B tile [16 k][64 columns] in shared memory
 *
 * While a tile is multiplied, the next one is on its way to registers.  Each sum runs over k in ascending order, so the bits of a
 * row depend neither on the other rows of a call nor on the device's scheduling.  Rows and columns beyond the edge repeat the
 * last one and are not stored. */
enum { TILE = 64, DEPTH = 16, PITCH = 17, PITCH_TN = 20 }; /* pitch of shared rows, in float4: against bank conflicts */

/* c += s v */
#define FMA4(s, v, c)                                                                                                      \
    c.x = FMA(s, v.x, c.x), c.y = FMA(s, v.y, c.y), c.z = FMA(s, v.z, c.z), c.w = FMA(s, v.w, c.w)

INLINE float4 zero4(void) {
    float4 v;
    v.x = v.y = v.z = v.w = 0;
    return v;
}

INLINE float4 add4(float4 a, float4 b) {
    a.x += b.x, a.y += b.y, a.z += b.z, a.w += b.w;
    return a;
}

INLINE int least(int a, int b) { return a < b ? a : b; }

/* Offset of row r of a matrix in runs. */
INLINE i64 row_at(i64 at, i64 ld, i64 run, int nb, int r) { return at + (r / nb) * run + (r % nb) * ld; }

/* acc[i] += row 4 y + i of A times columns 4 x .. 4 x + 3 of B, for the k of a tile. */
INLINE void multiply(ON_SHARED const float4 *a, int a_pitch, ON_SHARED const float4 *b, float4 acc[4]) {
    const int x = LOCAL(0) % 16, y = LOCAL(0) / 16;
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        const float4 u = a[k * a_pitch + y], v = b[k * PITCH + x];
        FMA4(u.x, v, acc[0]);
        FMA4(u.y, v, acc[1]);
        FMA4(u.z, v, acc[2]);
        FMA4(u.w, v, acc[3]);
    }
}

/* Rows of k values, read 16 k at a time by 16 work items, go to a tile with k as its row. */
struct four {
    float v[4];
};

INLINE struct four load_rows(GLOBAL const float *m, const i64 from[4], i64 k, bool inside) {
    struct four f;
#pragma unroll
    for (int i = 0; i < 4; i++) f.v[i] = inside ? m[from[i] + k] : 0;
    return f;
}

INLINE void put_rows(ON_SHARED float4 *tile, struct four f) {
    ON_SHARED float *to = (ON_SHARED float *)tile + LOCAL(0) % 16 * (4 * PITCH) + LOCAL(0) / 16;
#pragma unroll
    for (int i = 0; i < 4; i++) to[16 * i] = f.v[i];
}

KERNEL void product(GLOBAL float *m, struct product_args a) {
    SHARED float4 sa[DEPTH * PITCH], sb[DEPTH * PITCH];
    const int x = LOCAL(0) % 16, y = LOCAL(0) / 16, row0 = GROUP(0) * TILE, column = GROUP(1) * TILE + 4 * x;
    const int inner = least(column, a.N - 4), p = inner / a.W, j = inner % a.W;
    const i64 from_b = a.at_b + p * a.b_panel + j;
    float4 acc[4], b;
    i64 from_a[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        acc[i] = zero4();
        from_a[i] = row_at(a.at_a, a.lda, a.run_a, a.nb, least(row0 + y + 16 * i, a.M - 1));
    }
    struct four r = load_rows(m, from_a, x, x < a.K);
    b = y < a.K ? *(GLOBAL const float4 *)(m + from_b + y * a.ldb) : zero4();
    for (int k = DEPTH; k < a.K + DEPTH; k += DEPTH) {
        put_rows(sa, r);
        sb[y * PITCH + x] = b;
        BARRIER;
        r = load_rows(m, from_a, k + x, k + x < a.K);
        b = k + y < a.K ? *(GLOBAL const float4 *)(m + from_b + (k + y) * a.ldb) : zero4();
        multiply(sa, PITCH, sb, acc);
        BARRIER;
    }
    if (column >= a.N) return;
    const float4 bias = a.at_bias >= 0 ? *(GLOBAL const float4 *)(m + a.at_bias + p * a.c_panel + j) : zero4();
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = row0 + 4 * y + i;
        if (row >= a.M) return;
        GLOBAL float4 *c = (GLOBAL float4 *)(m + row_at(a.at_c, a.ldc, a.run_c, a.nb, row) + p * a.c_panel + j);
        *c = add4(a.add ? *c : bias, acc[i]);
    }
}

KERNEL void product_nt(GLOBAL float *m, struct product_args a) {
    SHARED float4 sa[DEPTH * PITCH], sb[DEPTH * PITCH];
    const int x = LOCAL(0) % 16, y = LOCAL(0) / 16, row0 = GROUP(0) * TILE, column0 = GROUP(1) * TILE;
    float4 acc[4];
    i64 from_a[4], from_b[4];
    struct four r, s;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        acc[i] = zero4();
        from_a[i] = row_at(a.at_a, a.lda, a.run_a, a.nb, least(row0 + y + 16 * i, a.M - 1)) + x;
        from_b[i] = a.at_b + least(column0 + y + 16 * i, a.N - 1) * a.ldb + x;
    }
    r = load_rows(m, from_a, 0 < a.gap_at ? 0 : a.gap, true);
    s = load_rows(m, from_b, 0, true);
    for (int k = DEPTH; k < a.K + DEPTH; k += DEPTH) {
        const int p = k / a.W, j = k % a.W;
        put_rows(sa, r);
        put_rows(sb, s);
        BARRIER;
        r = load_rows(m, from_a, p * a.a_panel + (j < a.gap_at ? j : j + a.gap), k < a.K);
        s = load_rows(m, from_b, p * a.b_panel + j, k < a.K);
        multiply(sa, PITCH, sb, acc);
        BARRIER;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = row0 + 4 * y + i, column = column0 + 4 * x;
        if (row >= a.M) return;
        GLOBAL float *c = m + row_at(a.at_c, a.ldc, a.run_c, a.nb, row) + column;
        if (column < a.N) c[0] = (a.add ? c[0] : 0) + acc[i].x;
        if (column + 1 < a.N) c[1] = (a.add ? c[1] : 0) + acc[i].y;
        if (column + 2 < a.N) c[2] = (a.add ? c[2] : 0) + acc[i].z;
        if (column + 3 < a.N) c[3] = (a.add ? c[3] : 0) + acc[i].w;
    }
}

/* Row k of the sum, or zeros: values x, x + 16, .. of the A tile. */
INLINE struct four load_tn(GLOBAL const float *m, struct product_args a, int k, int end, const int column[4]) {
    struct four f;
    const i64 from = row_at(a.at_a, a.lda, a.run_a, a.nb, least(k, end - 1));
#pragma unroll
    for (int i = 0; i < 4; i++) f.v[i] = k < end ? m[from + column[i]] : 0;
    return f;
}

INLINE float4 load4_tn(GLOBAL const float *m, struct product_args a, int k, int end, i64 column) {
    if (k >= end) return zero4();
    return *(GLOBAL const float4 *)(m + row_at(a.at_b, a.ldb, a.run_b, a.nb, k) + column);
}

KERNEL void product_tn(GLOBAL float *m, struct product_args a) {
    SHARED float4 sa[DEPTH * PITCH_TN], sb[DEPTH * PITCH];
    const int x = LOCAL(0) % 16, y = LOCAL(0) / 16, row0 = GROUP(0) * TILE, column = GROUP(1) * TILE + 4 * x;
    const int inner = least(column, a.N - 4), p = inner / a.W, j = inner % a.W;
    const i64 from_b = p * a.b_panel + (j < a.gap_at ? j : j + a.gap);
    const int first = GROUP(2) * a.chunk, end = least(a.K, first + a.chunk);
    ON_SHARED float *to = (ON_SHARED float *)sa + y * (4 * PITCH_TN) + x;
    float4 acc[4];
    int from_a[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        acc[i] = zero4();
        from_a[i] = least(row0 + x + 16 * i, a.M - 1);
    }
    struct four r = load_tn(m, a, first + y, end, from_a);
    float4 b = load4_tn(m, a, first + y, end, from_b);
    for (int k = first + DEPTH; k < end + DEPTH; k += DEPTH) {
#pragma unroll
        for (int i = 0; i < 4; i++) to[16 * i] = r.v[i];
        sb[y * PITCH + x] = b;
        BARRIER;
        r = load_tn(m, a, k + y, end, from_a);
        b = load4_tn(m, a, k + y, end, from_b);
        multiply(sa, PITCH_TN, sb, acc);
        BARRIER;
    }
    if (column >= a.N) return;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = row0 + 4 * y + i;
        if (row >= a.M) return;
        const i64 at = a.splits > 1 ? a.at_part + ((i64)GROUP(2) * a.M + row) * a.N + column
                                    : a.at_c + row * a.ldc + p * a.c_panel + j;
        GLOBAL float4 *c = (GLOBAL float4 *)(m + at);
        *c = add4(a.splits <= 1 && a.add ? *c : zero4(), acc[i]);
    }
}

/* A work item adds one value of C; W and N may have any size here. */
KERNEL void product_tn_sum(GLOBAL float *m, struct product_args a) {
    const i64 all = (i64)a.M * a.N, i = (i64)GROUP(0) * 256 + LOCAL(0);
    if (i >= all) return;
    const int row = (int)(i / a.N), column = (int)(i % a.N);
    GLOBAL float *c = m + a.at_c + row * a.ldc + column / a.W * a.c_panel + column % a.W;
    float sum = a.add ? *c : 0;
    for (int s = 0; s < a.splits; s++) sum += m[a.at_part + s * all + i];
    *c = sum;
}
