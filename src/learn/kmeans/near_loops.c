/* near_loops.c - the inner loops of k-means, compiled once per instruction set; see near.h.
 *
 * A tile is ROWS rows times one panel.  Its sums fill the registers, so that each load of the panel serves ROWS rows. */
#include "learn/kmeans/near.h"

#include "kern/simd.h"

#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)

#if defined(HAS_AVX512)
enum { ROWS = 12 };
INLINE vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
INLINE f32 v_least(vf a) { return _mm512_reduce_min_ps(a); }
INLINE f32 v_sum(vf a) { return _mm512_reduce_add_ps(a); }
INLINE u32 v_reaches(vf u, vf a, vf b) {
    return _mm512_cmp_ps_mask(u, a, _CMP_GE_OQ) & (u32)_mm512_cmp_ps_mask(u, b, _CMP_GE_OQ);
}
INLINE u32 v_above(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
#elif defined(ISA_avx2)
enum { ROWS = 6 };
INLINE vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
INLINE f32 v_least(vf a) {
    __m128 m = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_min_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_min_ss(m, _mm_movehdup_ps(m)));
}
INLINE f32 v_sum(vf a) {
    __m128 m = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_add_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_add_ss(m, _mm_movehdup_ps(m)));
}
INLINE u32 v_reaches(vf u, vf a, vf b) {
    return (u32)_mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(u, a, _CMP_GE_OQ), _mm256_cmp_ps(u, b, _CMP_GE_OQ)));
}
INLINE u32 v_above(vf a, vf b) { return (u32)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)); }
#else
enum { ROWS = REGS / 8 };
#if defined(ISA_neon)
INLINE vf v_min(vf a, vf b) { return vminq_f32(a, b); }
#else
INLINE vf v_min(vf a, vf b) { return v_pick(a < b, a, b); }
#endif
INLINE f32 v_least(vf a) {
    const f32 x = a[0] < a[1] ? a[0] : a[1], y = a[2] < a[3] ? a[2] : a[3];
    return x < y ? x : y;
}
INLINE f32 v_sum(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }
INLINE u32 v_reaches(vf u, vf a, vf b) {
    u32 mask = 0;
    for (i32 k = 0; k < VL; k++) mask |= (u32)(u[k] >= a[k] && u[k] >= b[k]) << k;
    return mask;
}
INLINE u32 v_above(vf a, vf b) {
    u32 mask = 0;
    for (i32 k = 0; k < VL; k++) mask |= (u32)(a[k] > b[k]) << k;
    return mask;
}
#endif

INLINE void chain(const i32 rows, i32 j0, i32 j1, const f32 *const *row, const f32 *panel, vf acc[ROWS][SUB]) {
    for (i32 j = j0; j < j1; j++) {
        vf c[SUB];
        UNROLL for (i32 s = 0; s < SUB; s++) c[s] = v_load(panel + (i64)j * LANES + s * VL);
        UNROLL for (i32 r = 0; r < rows; r++) {
            const vf x = v_set1(row[r][j]);
            UNROLL for (i32 s = 0; s < SUB; s++) acc[r][s] = v_fma(x, c[s], acc[r][s]);
        }
    }
}

/* The first chain starts from `start`; each further one is added to the sums in `out`. */
INLINE void tile(const i32 rows, i32 d, const f32 *const *row, const f32 *panel, const f32 *start, f32 *out, f32 *least) {
    vf acc[ROWS][SUB];
    UNROLL for (i32 r = 0; r < rows; r++) UNROLL for (i32 s = 0; s < SUB; s++) acc[r][s] = v_load(start + s * VL);
    chain(rows, 0, imin(d, NEAR_CHAIN), row, panel, acc);
    for (i32 j = NEAR_CHAIN; j < d; j += NEAR_CHAIN) {
        UNROLL for (i32 r = 0; r < rows; r++) UNROLL for (i32 s = 0; s < SUB; s++) {
            v_store(out + r * LANES + s * VL, acc[r][s]);
            acc[r][s] = v_zero();
        }
        chain(rows, j, imin(d, j + NEAR_CHAIN), row, panel, acc);
        UNROLL for (i32 r = 0; r < rows; r++) UNROLL for (i32 s = 0; s < SUB; s++) acc[r][s] += v_load(out + r * LANES + s * VL);
    }
    UNROLL for (i32 r = 0; r < rows; r++) {
        vf low = acc[r][0];
        UNROLL for (i32 s = 0; s < SUB; s++) {
            v_store(out + r * LANES + s * VL, acc[r][s]);
            low = v_min(low, acc[r][s]);
        }
        least[r] = v_least(low);
    }
}

static void product(i32 n, i32 d, const f32 *const *row, const f32 *panel, const f32 *start, f32 *out, f32 *least) {
    i32 r = 0;
    for (; r + ROWS <= n; r += ROWS) tile(ROWS, d, row + r, panel, start, out + r * LANES, least + r);
    for (; r + ROWS / 2 <= n; r += ROWS / 2) tile(ROWS / 2, d, row + r, panel, start, out + r * LANES, least + r);
    for (; r < n; r++) tile(1, d, row + r, panel, start, out + r * LANES, least + r);
}

static f32 distance(i32 d, const f32 *a, const f32 *b) {
    enum { CHAINS = 4 };
    vf acc[CHAINS] = {v_zero(), v_zero(), v_zero(), v_zero()};
    i32 j = 0;
    f32 rest = 0;
    for (; j + CHAINS * VL <= d; j += CHAINS * VL) UNROLL for (i32 c = 0; c < CHAINS; c++) {
        const vf e = v_load(a + j + c * VL) - v_load(b + j + c * VL);
        acc[c] = v_fma(e, e, acc[c]);
    }
    for (; j + VL <= d; j += VL) {
        const vf e = v_load(a + j) - v_load(b + j);
        acc[0] = v_fma(e, e, acc[0]);
    }
    for (; j < d; j++) rest += (a[j] - b[j]) * (a[j] - b[j]);
    return v_sum((acc[0] + acc[1]) + (acc[2] + acc[3])) + rest;
}

static i32 open_groups(i32 n, f32 u, const f32 *bound, const f32 *drift, const f32 *half, i32 *list) {
    const vf uu = v_set1(u);
    i32 found = 0;
    for (i32 g = 0; g < n; g += VL) {
        u32 mask = v_reaches(uu, v_load(bound + g) - v_load(drift + g), v_load(half + g));
        if (n - g < VL) mask &= (1u << (n - g)) - 1;
        for (; mask; mask &= mask - 1) list[found++] = g + __builtin_ctz(mask);
    }
    return found;
}

static void pick(i32 n, const f32 *value, const f32 *least, f32 margin, f32 share, u32 *mask) {
    for (i32 r = 0; r < n; r++) {
        const vf limit = v_set1(least[r] + margin + share * (least[r] < 0 ? -least[r] : least[r]));
        u32 above = 0;
        UNROLL for (i32 s = 0; s < SUB; s++) above |= v_above(v_load(value + r * LANES + s * VL), limit) << (s * VL);
        mask[r] = ~above & 0xffff;
    }
}

extern const struct near_ops JOIN(near_, ISA);
const struct near_ops JOIN(near_, ISA) = {.product = product, .distance = distance, .open = open_groups, .pick = pick};
