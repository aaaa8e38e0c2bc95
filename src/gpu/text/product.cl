/* product.cl - matrix products in tiles of 64 x 64 or 128 x 128 of C.
 *
 *     a group: 256 work items, each 4 x 4 values of C          A tile [16 k][64 rows], B tile [16 k][64 columns] in shared memory
 *     .._128   8 x 8 values: 4 x 4 of each quarter of C        [16 k][128 ..]; half the reads of shared memory for a product
 *
 * While a tile is multiplied, the next one is on its way to registers; it is then stored in the half of the shared memory that is
 * not read.  Each sum runs over k in ascending order, so the bits of a row depend neither on the other rows of a call nor on the
 * device's scheduling.  Rows and columns beyond the edge repeat the last one and are not stored.  size: 1 for tiles of 64, 2. */
enum { TILE = 64, DEPTH = 16 };
#define PITCH(size) (16 * (size) + 1) /* of shared rows, in float4: against bank conflicts */
#define PITCH_TN(size) (16 * (size) + 4)

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

/* acc[size i + j]: row i of the item, columns 4 x .. 4 x + 3 of half j.  Row i lies in half i / 4 at 4 y + i % 4. */
INLINE int row_of(int row0, int i) { return row0 + 4 * (LOCAL(0) / 16) + i % 4 + i / 4 * TILE; }

/* The k of a tile. */
INLINE void multiply(ON_SHARED const float4 *a, const int a_pitch, ON_SHARED const float4 *b, float4 *acc, const int size) {
    a += LOCAL(0) / 16, b += LOCAL(0) % 16;
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
#pragma unroll
        for (int j = 0; j < size; j++) {
            const float4 v = b[k * PITCH(size) + 16 * j];
#pragma unroll
            for (int i = 0; i < size; i++) {
                const float4 u = a[k * a_pitch + 16 * i];
                FMA4(u.x, v, acc[4 * size * i + j]);
                FMA4(u.y, v, acc[4 * size * i + size + j]);
                FMA4(u.z, v, acc[4 * size * i + 2 * size + j]);
                FMA4(u.w, v, acc[4 * size * i + 3 * size + j]);
            }
        }
    }
}

INLINE void clear(float4 *acc, const int n) {
#pragma unroll
    for (int i = 0; i < n; i++) acc[i] = zero4();
}

/* What an item loads of a tile: values of A, and values or float4 of B. */
struct loads {
    float a[8], b[8];
};

/* Rows of k values, read 16 k at a time by 16 work items, go to a tile with k as its row. */
INLINE void load_rows(GLOBAL const float *m, const i64 *from, i64 k, bool inside, float *v, const int size) {
#pragma unroll
    for (int i = 0; i < 4 * size; i++) v[i] = inside ? m[from[i] + k] : 0;
}

INLINE void put_rows(ON_SHARED float4 *tile, const float *v, const int size) {
    ON_SHARED float *to = (ON_SHARED float *)tile + LOCAL(0) % 16 * (4 * PITCH(size)) + LOCAL(0) / 16;
#pragma unroll
    for (int i = 0; i < 4 * size; i++) to[16 * i] = v[i];
}

INLINE void load_fours(GLOBAL const float *m, i64 row, const i64 *column, bool inside, float *v, const int size) {
#pragma unroll
    for (int j = 0; j < size; j++) {
        const float4 f = inside ? *(GLOBAL const float4 *)(m + row + column[j]) : zero4();
        v[4 * j] = f.x, v[4 * j + 1] = f.y, v[4 * j + 2] = f.z, v[4 * j + 3] = f.w;
    }
}

INLINE void put_fours(ON_SHARED float4 *tile, const float *v, const int size) {
#pragma unroll
    for (int j = 0; j < size; j++) {
        float4 f;
        f.x = v[4 * j], f.y = v[4 * j + 1], f.z = v[4 * j + 2], f.w = v[4 * j + 3];
        tile[LOCAL(0) / 16 * PITCH(size) + LOCAL(0) % 16 + 16 * j] = f;
    }
}

/* ------------------------------------------------------------------ A B ----------------------------------------------------- */

INLINE struct loads load_product(GLOBAL const float *m, struct product_args a, const i64 *from_a, const i64 *from_b, int k,
                                 const int size) {
    const int x = LOCAL(0) % 16, y = LOCAL(0) / 16;
    struct loads v;
    load_rows(m, from_a, k + x, k + x < a.K, v.a, size);
    load_fours(m, (k + y) * a.ldb, from_b, k + y < a.K, v.b, size);
    return v;
}

INLINE void product_of(GLOBAL float *m, struct product_args a, ON_SHARED float4 *sa, ON_SHARED float4 *sb, float4 *acc,
                       i64 *from_a, const int size) {
    const int row0 = GROUP(0) * (TILE * size), column0 = GROUP(1) * (TILE * size) + 4 * (LOCAL(0) % 16), n = DEPTH * PITCH(size);
    i64 from_b[2];
    clear(acc, 4 * size * size);
#pragma unroll
    for (int i = 0; i < 4 * size; i++)
        from_a[i] = row_at(a.at_a, a.lda, a.run_a, a.nb, least(row0 + LOCAL(0) / 16 + 16 * i, a.M - 1));
#pragma unroll
    for (int j = 0; j < size; j++) {
        const int column = least(column0 + TILE * j, a.N - 4);
        from_b[j] = a.at_b + column / a.W * a.b_panel + column % a.W;
    }
    struct loads v = load_product(m, a, from_a, from_b, 0, size);
    put_rows(sa, v.a, size);
    put_fours(sb, v.b, size);
    BARRIER;
    for (int k = DEPTH, at = 0; k < a.K + DEPTH; k += DEPTH) {
        v = load_product(m, a, from_a, from_b, k, size);
        multiply(sa + at, PITCH(size), sb + at, acc, size);
        at = n - at;
        put_rows(sa + at, v.a, size);
        put_fours(sb + at, v.b, size);
        BARRIER;
    }
#pragma unroll
    for (int j = 0; j < size; j++) {
        const int column = column0 + TILE * j, p = column / a.W, from = column % a.W;
        if (column >= a.N) return;
        const float4 bias = a.at_bias >= 0 ? *(GLOBAL const float4 *)(m + a.at_bias + p * a.c_panel + from) : zero4();
#pragma unroll
        for (int i = 0; i < 4 * size; i++) {
            const int row = row_of(row0, i);
            if (row >= a.M) continue;
            GLOBAL float4 *c = (GLOBAL float4 *)(m + row_at(a.at_c, a.ldc, a.run_c, a.nb, row) + p * a.c_panel + from);
            *c = add4(a.add ? *c : bias, acc[size * i + j]);
        }
    }
}

/* ------------------------------------------------------------------ A B^T --------------------------------------------------- */

INLINE struct loads load_nt(GLOBAL const float *m, struct product_args a, const i64 *from_a, const i64 *from_b, int k,
                            const int size) {
    const int p = k / a.W, j = k % a.W;
    struct loads v;
    load_rows(m, from_a, p * a.a_panel + (j < a.gap_at ? j : j + a.gap), k < a.K, v.a, size);
    load_rows(m, from_b, p * a.b_panel + j, k < a.K, v.b, size);
    return v;
}

INLINE void product_nt_of(GLOBAL float *m, struct product_args a, ON_SHARED float4 *sa, ON_SHARED float4 *sb, float4 *acc,
                          i64 *from_a, i64 *from_b, const int size) {
    const int x = LOCAL(0) % 16, y = LOCAL(0) / 16, row0 = GROUP(0) * (TILE * size), column0 = GROUP(1) * (TILE * size);
    const int n = DEPTH * PITCH(size);
    clear(acc, 4 * size * size);
#pragma unroll
    for (int i = 0; i < 4 * size; i++) {
        from_a[i] = row_at(a.at_a, a.lda, a.run_a, a.nb, least(row0 + y + 16 * i, a.M - 1)) + x;
        from_b[i] = a.at_b + least(column0 + y + 16 * i, a.N - 1) * a.ldb + x;
    }
    struct loads v = load_nt(m, a, from_a, from_b, 0, size);
    put_rows(sa, v.a, size);
    put_rows(sb, v.b, size);
    BARRIER;
    for (int k = DEPTH, at = 0; k < a.K + DEPTH; k += DEPTH) {
        v = load_nt(m, a, from_a, from_b, k, size);
        multiply(sa + at, PITCH(size), sb + at, acc, size);
        at = n - at;
        put_rows(sa + at, v.a, size);
        put_rows(sb + at, v.b, size);
        BARRIER;
    }
#pragma unroll
    for (int i = 0; i < 4 * size; i++) {
        const int row = row_of(row0, i);
        if (row >= a.M) continue;
#pragma unroll
        for (int j = 0; j < size; j++) {
            const int column = column0 + 4 * x + TILE * j;
            const float4 f = acc[size * i + j];
            GLOBAL float *c = m + row_at(a.at_c, a.ldc, a.run_c, a.nb, row) + column;
            if (column < a.N) c[0] = (a.add ? c[0] : 0) + f.x;
            if (column + 1 < a.N) c[1] = (a.add ? c[1] : 0) + f.y;
            if (column + 2 < a.N) c[2] = (a.add ? c[2] : 0) + f.z;
            if (column + 3 < a.N) c[3] = (a.add ? c[3] : 0) + f.w;
        }
    }
}

/* ------------------------------------------------------------------ A^T B --------------------------------------------------- */

/* Row k of the sum, or zeros: values x, x + 16, .. of the A tile. */
INLINE struct loads load_tn(GLOBAL const float *m, struct product_args a, const int *from_a, const i64 *from_b, int k, int end,
                            const int size) {
    const int row = least(k + LOCAL(0) / 16, end - 1), run = row / a.nb, in_run = row % a.nb;
    const bool inside = k + LOCAL(0) / 16 < end;
    const i64 from = a.at_a + run * a.run_a + in_run * a.lda;
    struct loads v;
#pragma unroll
    for (int i = 0; i < 4 * size; i++) v.a[i] = inside ? m[from + from_a[i]] : 0;
    load_fours(m, a.at_b + run * a.run_b + in_run * a.ldb, from_b, inside, v.b, size);
    return v;
}

INLINE void put_tn(ON_SHARED float4 *tile, const float *v, const int size) {
    ON_SHARED float *to = (ON_SHARED float *)tile + LOCAL(0) / 16 * (4 * PITCH_TN(size)) + LOCAL(0) % 16;
#pragma unroll
    for (int i = 0; i < 4 * size; i++) to[16 * i] = v[i];
}

INLINE void product_tn_of(GLOBAL float *m, struct product_args a, ON_SHARED float4 *sa, ON_SHARED float4 *sb, float4 *acc,
                          const int size) {
    const int row0 = GROUP(0) * (TILE * size), column0 = GROUP(1) * (TILE * size) + 4 * (LOCAL(0) % 16);
    const int first = GROUP(2) * a.chunk, end = least(a.K, first + a.chunk);
    const int na = DEPTH * PITCH_TN(size), nb = DEPTH * PITCH(size);
    i64 from_b[2];
    int from_a[8];
    clear(acc, 4 * size * size);
#pragma unroll
    for (int i = 0; i < 4 * size; i++) from_a[i] = least(row0 + LOCAL(0) % 16 + 16 * i, a.M - 1);
#pragma unroll
    for (int j = 0; j < size; j++) {
        const int column = least(column0 + TILE * j, a.N - 4), in_panel = column % a.W;
        from_b[j] = column / a.W * a.b_panel + (in_panel < a.gap_at ? in_panel : in_panel + a.gap);
    }
    struct loads v = load_tn(m, a, from_a, from_b, first, end, size);
    put_tn(sa, v.a, size);
    put_fours(sb, v.b, size);
    BARRIER;
    for (int k = first + DEPTH, odd = 0; k < end + DEPTH; k += DEPTH) {
        v = load_tn(m, a, from_a, from_b, k, end, size);
        multiply(sa + odd * na, PITCH_TN(size), sb + odd * nb, acc, size);
        odd ^= 1;
        put_tn(sa + odd * na, v.a, size);
        put_fours(sb + odd * nb, v.b, size);
        BARRIER;
    }
#pragma unroll
    for (int j = 0; j < size; j++) {
        const int column = column0 + TILE * j;
        if (column >= a.N) return;
#pragma unroll
        for (int i = 0; i < 4 * size; i++) {
            const int row = row_of(row0, i);
            if (row >= a.M) continue;
            const i64 at = a.splits > 1 ? a.at_part + ((i64)GROUP(2) * a.M + row) * a.N + column
                                        : a.at_c + row * a.ldc + column / a.W * a.c_panel + column % a.W;
            GLOBAL float4 *c = (GLOBAL float4 *)(m + at);
            *c = add4(a.splits <= 1 && a.add ? *c : zero4(), acc[size * i + j]);
        }
    }
}

#define PRODUCTS(suffix, size)                                                                           \
    KERNEL void product##suffix(GLOBAL float *m, struct product_args a) {                                \
        SHARED float4 sa[2 * DEPTH * PITCH(size)], sb[2 * DEPTH * PITCH(size)];                          \
        float4 acc[4 * size * size];                                                                     \
        i64 from_a[4 * size];                                                                            \
        product_of(m, a, sa, sb, acc, from_a, size);                                                     \
    }                                                                                                    \
    KERNEL void product_nt##suffix(GLOBAL float *m, struct product_args a) {                             \
        SHARED float4 sa[2 * DEPTH * PITCH(size)], sb[2 * DEPTH * PITCH(size)];                          \
        float4 acc[4 * size * size];                                                                     \
        i64 from_a[4 * size], from_b[4 * size];                                                          \
        product_nt_of(m, a, sa, sb, acc, from_a, from_b, size);                                          \
    }                                                                                                    \
    KERNEL void product_tn##suffix(GLOBAL float *m, struct product_args a) {                             \
        SHARED float4 sa[2 * DEPTH * PITCH_TN(size)], sb[2 * DEPTH * PITCH(size)];                       \
        float4 acc[4 * size * size];                                                                     \
        product_tn_of(m, a, sa, sb, acc, size);                                                          \
    }
PRODUCTS(, 1)
#ifndef HOST_DEVICE /* tiles for large devices: seconds to compile where kernels run on the host */
PRODUCTS(_128, 2)
#endif

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
