/* loops.c - the inner loops of the wire codecs, compiled once per instruction set: plain loops that the compiler vectorizes, and
 * kern/simd.h where it does not. */
#include "codec/loops.h"
#include "codec/bytes.h"
#include "kern/simd.h"

#define PASTE(a, b) a##b
#define NAME(isa) PASTE(wire_loops_, isa)

typedef i32 vs __attribute__((vector_size(4 * VL)));
typedef u32 vu __attribute__((vector_size(4 * VL)));
typedef u16 vh __attribute__((vector_size(2 * VL)));

INLINE vu u_load(const void *p) {
    vu a;
    memcpy(&a, p, sizeof a);
    return a;
}
INLINE vu u_pick(vs mask, vu a, vu b) { return ((vu)mask & a) | (~(vu)mask & b); }
INLINE vu u_sizes(const f32 *p) { return u_load(p) & 0x7fffffffu; } /* below 2^31, so signed compares do */

/* ------------------------------------------------------------------ 16 bits ------------------------------------------------- */

static void to_bf16(i64 n, const f32 *restrict v, unsigned char *restrict out) {
    for (i64 i = 0; i < n; i++) put16(out + 2 * i, bf16_of(v[i]));
}

static void from_bf16(i64 n, const unsigned char *restrict in, f32 *restrict v) {
    for (i64 i = 0; i < n; i++) v[i] = of_bf16(get16(in + 2 * i));
}

/* Round to nearest even. Adding 0.5 to |x| < 2^-14 leaves the 10 bits of a subnormal fp16 at the end of the sum. */
INLINE vh fp16_of(vu u) {
    enum { SMALLEST = 113 << 23, LARGEST = 0x477fe000, REBIAS = 112 << 23, HALF = 0x3f000000 }; /* 2^-14, 65504, .., 0.5 */
    const vu size = u & 0x7fffffffu, least = u_pick((vs)size < LARGEST, size, (vu){0} + LARGEST);
    const vu normal = (least - REBIAS + 0xfffu + ((least >> 13) & 1u)) >> 13;
    const vu small = (vu)((vf)u_pick((vs)least < SMALLEST, least, (vu){0} + SMALLEST) + v_set1(0.5f)) - HALF;
    vu h = u_pick((vs)least < SMALLEST, small, normal);
    h = u_pick((vs)size < (i32)FLOAT_INF, h, u_pick((vs)size > (i32)FLOAT_INF, (vu){0} + 0x7e00u, (vu){0} + 0x7c00u));
    return __builtin_convertvector(h | ((u >> 16) & 0x8000u), vh);
}

INLINE vu of_fp16(vh half) {
    const vu w = __builtin_convertvector(half, vu), h = w & 0x7fffu, normal = (h << 13) + (112u << 23);
    const vu small = (vu)((vf) __builtin_convertvector((vs)h, vf) * v_set1(5.9604644775390625e-8f)); /* h * 2^-24 */
    const vu u = u_pick((vs)h < 0x400, small, u_pick((vs)h < 0x7c00, normal, normal + (112u << 23)));
    return u | ((w & 0x8000u) << 16);
}

static void to_fp16(i64 n, const f32 *restrict v, unsigned char *restrict out) {
    f32 tail[VL] = {0};
    vh h;
    i64 i = 0;
    for (; i + VL <= n; i += VL) h = fp16_of(u_load(v + i)), memcpy(out + 2 * i, &h, sizeof h);
    if (i == n) return;
    memcpy(tail, v + i, (size_t)(n - i) * 4);
    h = fp16_of(u_load(tail));
    memcpy(out + 2 * i, &h, (size_t)(n - i) * 2);
}

static void from_fp16(i64 n, const unsigned char *restrict in, f32 *restrict v) {
    vh h = {0};
    vu u;
    i64 i = 0;
    for (; i + VL <= n; i += VL) memcpy(&h, in + 2 * i, sizeof h), u = of_fp16(h), memcpy(v + i, &u, sizeof u);
    if (i == n) return;
    memcpy(&h, in + 2 * i, (size_t)(n - i) * 2);
    u = of_fp16(h);
    memcpy(v + i, &u, (size_t)(n - i) * 4);
}

/* ------------------------------------------------------------------ int8 ---------------------------------------------------- */

/* Adding 1.5 * 2^23 rounds |x| < 2^22 to the nearest integer, half to even. */
static inline f32 round_even(f32 x) { return (x + 12582912.0f) - 12582912.0f; }

static void to_int8(i32 n, const f32 *restrict v, f32 *restrict e, unsigned char *restrict out) {
    f32 p[INT8_BLOCK];
    u32 most[LANES] = {0};
    for (i32 i = 0; i < n; i++) p[i] = v[i] + e[i];
    for (i32 i = n; i < round_up(n, LANES); i++) p[i] = 0;
    for (i32 i = 0; i < n; i += LANES)
        UNROLL for (i32 j = 0; j < LANES; j++) most[j] = size_bits(p[i + j]) > most[j] ? size_bits(p[i + j]) : most[j];
    for (i32 j = 1; j < LANES; j++) most[0] = most[j] > most[0] ? most[j] : most[0];
    const bool finite = most[0] < FLOAT_INF, some = finite && most[0] >= 1u << 27; /* 2^-111; 127 / less could overflow */
    const f32 max = some ? of_bits(most[0]) : 1, scale = max / 127, inverse = some ? 127 / max : 0;
    put32(out, finite ? some ? bits_of(scale) : 0 : 0x7fc00000u);
    for (i32 i = 0; i < n; i++) {
        const f32 q = finite ? round_even(p[i] * inverse) : 0;
        out[4 + i] = (unsigned char)(i32)q;
        e[i] = finite ? p[i] - q * scale : 0;
    }
}

static void from_int8(i32 n, const unsigned char *restrict in, f32 *restrict v) {
    const f32 scale = of_bits(get32(in));
    for (i32 i = 0; i < n; i++) v[i] = (f32)(signed char)in[4 + i] * scale;
}

/* ------------------------------------------------------------------ masks of LANES values ----------------------------------- */

/* Bit j of the results is about p[j]: its sign; whether it is zero; whether the bits of |p[j]| are at least t. Integer compares,
 * so a denormal is no zero in any mode of the processor. */
#if defined(HAS_AVX512)
INLINE __m512i sizes(const f32 *p) { return _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(0x7fffffff)); }
INLINE u32 signs(const f32 *p) { return _mm512_movepi32_mask(_mm512_loadu_si512(p)); }
INLINE u32 zeros(const f32 *p) { return _mm512_cmpeq_epi32_mask(sizes(p), _mm512_setzero_si512()); }
INLINE u32 at_least(const f32 *p, u32 t) { return _mm512_cmpge_epu32_mask(sizes(p), _mm512_set1_epi32((i32)t)); }
#elif defined(ISA_avx2)
INLINE __m256i half(const f32 *p, i32 h) { return _mm256_castps_si256(v_load(p + 8 * h)); }
INLINE __m256i sizes(const f32 *p, i32 h) { return _mm256_and_si256(half(p, h), _mm256_set1_epi32(0x7fffffff)); }
INLINE u32 mask(__m256i a, __m256i b) {
    return (u32)_mm256_movemask_ps(_mm256_castsi256_ps(a)) | (u32)_mm256_movemask_ps(_mm256_castsi256_ps(b)) << 8;
}
INLINE u32 signs(const f32 *p) { return mask(half(p, 0), half(p, 1)); }
INLINE u32 zeros(const f32 *p) {
    const __m256i z = _mm256_setzero_si256();
    return mask(_mm256_cmpeq_epi32(sizes(p, 0), z), _mm256_cmpeq_epi32(sizes(p, 1), z));
}
INLINE u32 at_least(const f32 *p, u32 t) { /* sizes and t are below 2^31, so signed compares do */
    const __m256i below = _mm256_set1_epi32((i32)t - 1);
    return mask(_mm256_cmpgt_epi32(sizes(p, 0), below), _mm256_cmpgt_epi32(sizes(p, 1), below));
}
#else
INLINE u32 bits_at(const vs mask[SUB]) {
    const vu bit = {1, 2, 4, 8};
    vu any = {0};
    UNROLL for (i32 h = 0; h < SUB; h++) any |= (vu)mask[h] & (bit << 4 * h);
    return any[0] | any[1] | any[2] | any[3];
}
INLINE u32 signs(const f32 *p) {
    vs m[SUB];
    UNROLL for (i32 h = 0; h < SUB; h++) m[h] = (vs)u_load(p + h * VL) < 0;
    return bits_at(m);
}
INLINE u32 at_least(const f32 *p, u32 t) {
    vs m[SUB];
    UNROLL for (i32 h = 0; h < SUB; h++) m[h] = (vs)u_sizes(p + h * VL) >= (i32)t;
    return bits_at(m);
}
INLINE u32 zeros(const f32 *p) { return 0xffff & ~at_least(p, 1); }
#endif

/* ------------------------------------------------------------------ sign ---------------------------------------------------- */

static f32 tree_sum(f32 s[LANES]) {
    for (i32 half_ = LANES / 2; half_ > 0; half_ /= 2)
        for (i32 j = 0; j < half_; j++) s[j] += s[j + half_];
    return s[0];
}

static u32 to_sign(i32 n, const f32 *restrict v, f32 *restrict e, unsigned char *restrict out) {
    f32 p[SIGN_BLOCK], up[LANES], down[LANES];
    vf sum_up[SUB] = {0}, sum_down[SUB] = {0};
    u16 zero[SIGN_BLOCK / LANES];
    const i32 groups = ceil_div(n, LANES);
    i32 nup = 0, ndown = 0;
    u32 with_zeros = 0, bytes = 4;
    for (i32 i = 0; i < n; i++) p[i] = v[i] + e[i];
    for (i32 i = n; i < groups * LANES; i++) p[i] = 0;
    for (i32 g = 0; g < groups; g++, bytes += 2) {
        const f32 *x = p + g * LANES;
        const u32 s = signs(x), z = zeros(x), beyond = g + 1 < groups ? 0 : 0xffff & ~0u << (n - g * LANES);
        put16(out + bytes, (u16)s);
        ndown += __builtin_popcount(s & ~z);
        nup += __builtin_popcount(0xffff & ~(s | z));
        zero[g] = (u16)(z & ~beyond);
        with_zeros |= (u32)(zero[g] != 0) << g;
        UNROLL for (i32 h = 0; h < SUB; h++) {
            const vu negative = (vu)((vs)u_load(x + h * VL) < 0), size = u_sizes(x + h * VL);
            sum_up[h] += (vf)(size & ~negative);
            sum_down[h] += (vf)(size & negative);
        }
    }
    UNROLL for (i32 h = 0; h < SUB; h++) v_store(up + h * VL, sum_up[h]), v_store(down + h * VL, sum_down[h]);
    u16 mean_up = bf16_of(tree_sum(up) / (f32)(nup ? nup : 1)), mean_down = bf16_of(tree_sum(down) / (f32)(ndown ? ndown : 1));
    const f32 a = of_bf16(mean_up), b = -of_bf16(mean_down);
    const bool finite = size_bits(a) < FLOAT_INF && size_bits(b) < FLOAT_INF;
    if (!finite) mean_up = mean_down = 0x7fc0;
    for (i32 i = 0; i < groups * LANES; i += VL) { /* p - p': zero where p is zero, or everywhere */
        const vu x = u_load(p + i), d = u_pick((vs)x < 0, (vu){0} + bits_of(b), (vu){0} + bits_of(a));
        const vu left = (vu)((vf)x - (vf)d) & (vu)((vs)u_sizes(p + i) > 0) & -(u32)finite;
        memcpy(p + i, &left, sizeof left);
    }
    memcpy(e, p, (size_t)n * sizeof *e);
    put16(out, (u16)(mean_up | (with_zeros ? 0x8000 : 0)));
    put16(out + 2, mean_down);
    if (!with_zeros) return bytes;
    put32(out + bytes, with_zeros);
    bytes += 4;
    for (i32 g = 0; g < groups; g++)
        if (zero[g]) put16(out + bytes, zero[g]), bytes += 2;
    return bytes;
}

/* LANES values: a, or b where s is set, or zero where z is set. */
INLINE void spread(u32 s, u32 z, u32 a, u32 b, f32 *v) {
    vu bit;
    UNROLL for (i32 j = 0; j < VL; j++) bit[j] = 1u << j;
    UNROLL for (i32 h = 0; h < SUB; h++) {
        const vs second = (vs)((bit & (s >> h * VL)) != 0), zero = (vs)((bit & (z >> h * VL)) != 0);
        const vu x = u_pick(second, (vu){0} + b, (vu){0} + a) & ~(vu)zero;
        memcpy(v + h * VL, &x, sizeof x);
    }
}

static u32 from_sign(i32 n, const unsigned char *restrict in, u32 bytes, f32 *restrict v) {
    const i32 groups = ceil_div(n, LANES);
    u32 at = 4 + 2 * (u32)groups, with_zeros = 0;
    if (bytes < at) return 0;
    const u16 first = get16(in);
    const f32 a = of_bf16(first & 0x7fff), b = -of_bf16(get16(in + 2));
    if (first & 0x8000) {
        if (bytes < at + 4) return 0;
        with_zeros = get32(in + at);
        at += 4;
        if (groups < 32 && with_zeros >> groups) return 0;
        if (bytes < at + 2 * (u32)__builtin_popcount(with_zeros)) return 0;
    }
    for (i32 g = 0; g < groups; g++) {
        const u32 s = get16(in + 4 + 2 * g);
        u32 z = 0;
        if (with_zeros >> g & 1) z = get16(in + at), at += 2;
        if (g + 1 < groups || n % LANES == 0) {
            spread(s, z, bits_of(a), bits_of(b), v + g * LANES);
        } else {
            f32 tail[LANES];
            spread(s, z, bits_of(a), bits_of(b), tail);
            memcpy(v + g * LANES, tail, (size_t)(n % LANES) * sizeof *v);
        }
    }
    return at;
}

/* ------------------------------------------------------------------ topk ---------------------------------------------------- */

static bool all_finite(i64 n, const f32 *x) {
    i32 most = 0; /* signed: SSE2 has no other compare */
    for (i64 i = 0; i < n; i++) most = (i32)size_bits(x[i]) > most ? (i32)size_bits(x[i]) : most;
    return most < (i32)FLOAT_INF;
}

static void add(i64 n, f32 *restrict y, const f32 *restrict x) {
    for (i64 i = 0; i < n; i++) y[i] += x[i];
}

static void momentum(i64 n, f32 m, f32 *restrict u, const f32 *restrict g, f32 *restrict v) {
    for (i64 i = 0; i < n; i++) {
        u[i] = m * u[i] + g[i];
        v[i] += u[i];
    }
}

static i64 find(i64 n, const f32 *restrict v, u32 least, u32 *restrict list) {
    f32 tail[LANES] = {0};
    i64 i = 0, found = 0;
    for (; i + LANES <= n; i += LANES) {
        u32 m = at_least(v + i, least);
#if defined(HAS_AVX512) /* no branch: half of the groups have a value, which no processor predicts */
        const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        const __m512i at = _mm512_add_epi32(lane, _mm512_set1_epi32((i32)i));
        _mm512_storeu_si512(list + found, _mm512_maskz_compress_epi32((__mmask16)m, at));
        found += __builtin_popcount(m);
#else
        for (; m; m &= m - 1) list[found++] = (u32)i + (u32)__builtin_ctz(m);
#endif
    }
    if (i == n) return found;
    memcpy(tail, v + i, (size_t)(n - i) * sizeof *v);
    for (u32 m = at_least(tail, least); m; m &= m - 1) list[found++] = (u32)i + (u32)__builtin_ctz(m);
    return found;
}

/* ------------------------------------------------------------------ powersgd ------------------------------------------------ */

enum { ROW_TILE = 8, RANK_TILE = 4, COL_TILE = REGS == 32 ? 4 * VL : 2 * VL };

/* Sums of nr <= ROW_TILE rows from k on with nj <= RANK_TILE columns of q, in LANES partial sums each. */
INLINE void dot_tile(const struct wire_shape *s, const f32 *m, const f32 *q, i32 k, i32 nr, i32 nj,
                     f32 part[][RANK_TILE][LANES]) {
    const i64 cols = (i64)s->panels * s->width;
    for (i32 p = 0; p < s->panels; p++) {
        for (i32 i = 0; i < nr; i++) {
            const f32 *row = m + ((i64)p * s->rows + k + i) * s->width, *qp = q + (i64)p * s->width;
            for (i32 h = 0; h < LANES; h += VL) {
                vf sum[RANK_TILE];
                UNROLL for (i32 j = 0; j < nj; j++) sum[j] = v_load(&part[i][j][h]);
                for (i32 c = h; c < s->width; c += LANES) {
                    const vf x = v_load(row + c);
                    UNROLL for (i32 j = 0; j < nj; j++) sum[j] += x * v_load(qp + j * cols + c);
                }
                UNROLL for (i32 j = 0; j < nj; j++) v_store(&part[i][j][h], sum[j]);
            }
        }
    }
}

static void m_by_q(const struct wire_shape *s, const f32 *m, const f32 *q, f32 *p) {
    const i64 cols = (i64)s->panels * s->width;
    for (i32 k = 0; k < s->rows; k += ROW_TILE) {
        const i32 nr = imin(ROW_TILE, s->rows - k);
        for (i32 j = 0; j < s->rank;) {
            f32 part[ROW_TILE][RANK_TILE][LANES] = {0};
            const i32 nj = s->rank - j >= RANK_TILE ? RANK_TILE : 1;
            if (nj == RANK_TILE)
                dot_tile(s, m, q + j * cols, k, nr, RANK_TILE, part);
            else
                dot_tile(s, m, q + j * cols, k, nr, 1, part);
            for (i32 i = 0; i < nr; i++)
                for (i32 l = 0; l < nj; l++) p[(i64)(j + l) * s->rows + k + i] = tree_sum(part[i][l]);
            j += nj;
        }
    }
}

/* Columns [c, c + w VL) of a panel of m with nj rows of p: each element is summed over the rows in ascending order. */
INLINE void column_tile(const struct wire_shape *s, const f32 *m, const f32 *p, f32 *q, i32 w, i32 nj) {
    const i64 cols = (i64)s->panels * s->width;
    vf sum[RANK_TILE][COL_TILE / VL];
    UNROLL for (i32 j = 0; j < nj; j++) UNROLL for (i32 l = 0; l < w; l++) sum[j][l] = v_zero();
    for (i32 k = 0; k < s->rows; k++) {
        vf x[COL_TILE / VL];
        UNROLL for (i32 l = 0; l < w; l++) x[l] = v_load(m + (i64)k * s->width + l * VL);
        UNROLL for (i32 j = 0; j < nj; j++) {
            const vf f = v_set1(p[(i64)j * s->rows + k]);
            UNROLL for (i32 l = 0; l < w; l++) sum[j][l] += x[l] * f;
        }
    }
    UNROLL for (i32 j = 0; j < nj; j++) UNROLL for (i32 l = 0; l < w; l++) v_store(q + j * cols + l * VL, sum[j][l]);
}

static void mt_by_p(const struct wire_shape *s, const f32 *m, const f32 *p, f32 *q) {
    const i64 cols = (i64)s->panels * s->width;
    for (i32 panel = 0; panel < s->panels; panel++) {
        const f32 *mp = m + (i64)panel * s->rows * s->width;
        for (i32 j = 0; j < s->rank;) {
            const bool wide = s->rank - j >= RANK_TILE;
            const f32 *pj = p + (i64)j * s->rows;
            f32 *qj = q + j * cols + (i64)panel * s->width;
            i32 c = 0;
            for (; c + COL_TILE <= s->width; c += COL_TILE) {
                if (wide)
                    column_tile(s, mp + c, pj, qj + c, COL_TILE / VL, RANK_TILE);
                else
                    column_tile(s, mp + c, pj, qj + c, COL_TILE / VL, 1);
            }
            for (; c < s->width; c += VL) {
                if (wide)
                    column_tile(s, mp + c, pj, qj + c, 1, RANK_TILE);
                else
                    column_tile(s, mp + c, pj, qj + c, 1, 1);
            }
            j += wide ? RANK_TILE : 1;
        }
    }
}

/* Columns of one tile of every row: m (-)= p^T q, summed over the rank in ascending order; q [rank][COL_TILE]. */
INLINE void product_tile(const struct wire_shape *s, const unsigned char *p, const f32 *q, f32 *m, i32 w, bool subtract) {
    for (i32 k = 0; k < s->rows; k++) {
        f32 *to = m + (i64)k * s->width;
        vf sum[COL_TILE / VL];
        UNROLL for (i32 l = 0; l < w; l++) sum[l] = v_zero();
        for (i32 j = 0; j < s->rank; j++) {
            const vf f = v_set1(of_bits(get32(p + 4 * ((i64)j * s->rows + k))));
            UNROLL for (i32 l = 0; l < w; l++) sum[l] += f * v_load(q + j * COL_TILE + l * VL);
        }
        if (subtract) UNROLL for (i32 l = 0; l < w; l++) sum[l] = v_load(to + l * VL) - sum[l];
        UNROLL for (i32 l = 0; l < w; l++) v_store(to + l * VL, sum[l]);
    }
}

static void p_by_q(const struct wire_shape *s, const unsigned char *p, const unsigned char *q, f32 *m, bool subtract) {
    const i64 cols = (i64)s->panels * s->width;
    f32 tile[RANK_MAX * COL_TILE];
    for (i32 panel = 0; panel < s->panels; panel++) {
        for (i32 c = 0; c < s->width; c += COL_TILE) {
            const i32 w = imin(COL_TILE, s->width - c);
            f32 *to = m + (i64)panel * s->rows * s->width + c;
            for (i32 j = 0; j < s->rank; j++)
                memcpy(tile + j * COL_TILE, q + 4 * (j * cols + (i64)panel * s->width + c), (size_t)w * sizeof *tile);
            if (w == COL_TILE)
                product_tile(s, p, tile, to, COL_TILE / VL, subtract);
            else
                for (i32 l = 0; l < w; l += VL) product_tile(s, p, tile + l, to + l, 1, subtract);
        }
    }
}

extern const struct wire_loops NAME(ISA);
const struct wire_loops NAME(ISA) = {
    .to_fp16 = to_fp16,
    .from_fp16 = from_fp16,
    .to_bf16 = to_bf16,
    .from_bf16 = from_bf16,
    .to_int8 = to_int8,
    .from_int8 = from_int8,
    .to_sign = to_sign,
    .from_sign = from_sign,
    .finite = all_finite,
    .add = add,
    .momentum = momentum,
    .find = find,
    .m_by_q = m_by_q,
    .mt_by_p = mt_by_p,
    .p_by_q = p_by_q,
};
