/* bf16_vec.h - vectors of 16 floats for the bf16 cells: conversions, a transpose, and activations of bf16 accuracy.
 *
 * sigmoid and tanh are 31 quadratic pieces centred on zero, with coefficients permuted in registers: 8 operations.
 *
 *     tanh      error <= 1.8e-4, for |x| >= 3.7 <= 6.8e-4; exactly +-1 for |x| >= 4, exactly 0 at 0
 *     sigmoid   error <= 9e-5,   for |x| >= 7.4 <= 3.4e-4; exactly 0 or 1 for |x| >= 8
 *
 * NaN stays NaN. Inner pieces interpolate at Chebyshev nodes, the outermost also at its saturation value. */
#ifndef STRETTO_KERN_BF16_VEC_H
#define STRETTO_KERN_BF16_VEC_H

#include "kern/simd.h"

enum { LINE = 32, TILE = 16 * LINE, ZTILE = 256 }; /* bf16 per line of 64 bytes, bf16 per tile of 16 lines; f32 per tile */

INLINE vi line_load(const u16 *p) { return _mm512_loadu_si512(p); }
INLINE void line_store(u16 *p, vi a) { _mm512_storeu_si512(p, a); }

/* The first n of 16 floats; the others are zero and are not read. */
INLINE vf v_load_n(const f32 *p, i32 n) {
    const u32 mask = n >= 16 ? 0xffffu : (1u << imax(n, 0)) - 1;
    return _mm512_maskz_loadu_ps((__mmask16)mask, p);
}

/* 32 bf16: 16 of lo, then 16 of hi. */
INLINE vi to_bf16(vf lo, vf hi) { return (vi)_mm512_cvtne2ps_pbh(hi, lo); }

/* 32 fp16 of lo and hi, and one half of them back. */
INLINE vi to_fp16(vf lo, vf hi) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(lo, 0)), _mm512_cvtps_ph(hi, 0), 1);
}
INLINE vf from_fp16(const u16 *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p)); }

/* Interleaves the words of the low and high half: the pairs of k of a product. */
INLINE vi in_pairs(vi lo_hi) {
    const vi order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
                                      19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, lo_hi);
}

/* 16 x 16 dwords */
INLINE void transpose16(vi v[16]) {
    vi w[16];
    UNROLL for (int i = 0; i < 16; i += 2) {
        w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4) {
        UNROLL for (int j = 0; j < 2; j++) {
            v[i + 2 * j] = _mm512_unpacklo_epi64(w[i + j], w[i + 2 + j]);
            v[i + 2 * j + 1] = _mm512_unpackhi_epi64(w[i + j], w[i + 2 + j]);
        }
    }
    UNROLL for (int i = 0; i < 16; i += 8) {
        UNROLL for (int j = 0; j < 4; j++) {
            w[i + j] = _mm512_shuffle_i32x4(v[i + j], v[i + 4 + j], 0x88);
            w[i + 4 + j] = _mm512_shuffle_i32x4(v[i + j], v[i + 4 + j], 0xdd);
        }
    }
    UNROLL for (int j = 0; j < 8; j++) {
        v[j] = _mm512_shuffle_i32x4(w[j], w[8 + j], 0x88);
        v[8 + j] = _mm512_shuffle_i32x4(w[j], w[8 + j], 0xdd);
    }
}

/* ------------------------------------------------------------------ activations --------------------------------------------- */

/* Piece n (-15..15) lies at n & 31: c[0] + c[1] x + c[2] x^2 around x = n / scale. */
struct pieces {
    f32 scale, limit, c[3][32];
};

/* clang-format off */
static const struct pieces tanh_pieces = {
    .scale = 3.87249994f, .limit = 4,
    .c = {
        {0, -0.00395028945f, -0.0220162328f, -0.0232239701f, 0.0314183906f, 0.145411611f, 0.293084234f, 0.444813788f,
         0.580938041f, 0.693027556f, 0.78021574f, 0.845410705f, 0.892793953f, 0.926507115f, 0.950101912f, 1.37834001f, 0,
         -1.37834001f, -0.950101912f, -0.926507115f, -0.892793953f, -0.845410705f, -0.78021574f, -0.693027556f, -0.580938041f,
         -0.444813788f, -0.293084234f, -0.145411611f, -0.0314183906f, 0.0232239701f, 0.0220162328f, 0.00395028945f},
        {0.995853007f, 1.05426502f, 1.15119946f, 1.15855134f, 1.0393306f, 0.843308747f, 0.634874463f, 0.453489274f,
         0.312428355f, 0.209946945f, 0.138636142f, 0.0904017761f, 0.0584002696f, 0.0374567136f, 0.0238870792f, -0.199968442f,
         0, -0.199968442f, 0.0238870792f, 0.0374567136f, 0.0584002696f, 0.0904017761f, 0.138636142f, 0.209946945f,
         0.312428355f, 0.453489274f, 0.634874463f, 0.843308747f, 1.0393306f, 1.15855134f, 1.15119946f, 1.05426502f},
        {0, -0.234743208f, -0.365795702f, -0.374319553f, -0.309194535f, -0.224839166f, -0.151239768f, -0.0970043018f,
         -0.0604469962f, -0.0370162651f, -0.0224318337f, -0.0135086887f, -0.00810461398f, -0.00485152006f, -0.0029002931f,
         0.0263458602f, 0, -0.0263458602f, 0.0029002931f, 0.00485152006f, 0.00810461398f, 0.0135086887f, 0.0224318337f,
         0.0370162651f, 0.0604469962f, 0.0970043018f, 0.151239768f, 0.224839166f, 0.309194535f, 0.374319553f, 0.365795702f,
         0.234743208f},
    },
};

static const struct pieces sigmoid_pieces = {
    .scale = 1.93624997f, .limit = 8,
    .c = {
        {0.5f, 0.498024851f, 0.488991886f, 0.488388002f, 0.515709221f, 0.572705805f, 0.646542132f, 0.722406864f, 0.790468991f,
         0.846513808f, 0.89010787f, 0.922705352f, 0.946396947f, 0.963253558f, 0.975050926f, 1.18917f, 0, -0.189170003f,
         0.0249490514f, 0.0367464423f, 0.053603027f, 0.0772946551f, 0.10989213f, 0.153486207f, 0.209530994f, 0.277593106f,
         0.353457868f, 0.427294195f, 0.484290808f, 0.511611998f, 0.511008143f, 0.501975119f},
        {0.248963252f, 0.263566256f, 0.287799865f, 0.289637834f, 0.25983265f, 0.210827187f, 0.158718616f, 0.113372318f,
         0.0781070888f, 0.0524867363f, 0.0346590355f, 0.022600444f, 0.0146000674f, 0.0093641784f, 0.0059717698f,
         -0.0499921106f, 0, -0.0499921106f, 0.0059717698f, 0.0093641784f, 0.0146000674f, 0.022600444f, 0.0346590355f,
         0.0524867363f, 0.0781070888f, 0.113372318f, 0.158718616f, 0.210827187f, 0.25983265f, 0.289637834f, 0.287799865f,
         0.263566256f},
        {0, -0.029342901f, -0.0457244627f, -0.0467899442f, -0.0386493169f, -0.0281048957f, -0.018904971f, -0.0121255377f,
         -0.00755587453f, -0.00462703314f, -0.00280397921f, -0.00168858608f, -0.00101307675f, -0.000606440008f,
         -0.000362536637f, 0.00329323253f, 0, -0.00329323253f, 0.000362536637f, 0.000606440008f, 0.00101307675f,
         0.00168858608f, 0.00280397921f, 0.00462703314f, 0.00755587453f, 0.0121255377f, 0.018904971f, 0.0281048957f,
         0.0386493169f, 0.0467899442f, 0.0457244627f, 0.029342901f},
    },
};
/* clang-format on */

/* The coefficients in registers. */
struct curve {
    vf c[3][2], scale, limit;
};

INLINE struct curve curve_of(const struct pieces *p) {
    struct curve t = {.scale = v_set1(p->scale), .limit = v_set1(p->limit)};
    UNROLL for (int i = 0; i < 3; i++) {
        t.c[i][0] = v_load(p->c[i]);
        t.c[i][1] = v_load(p->c[i] + 16);
    }
    return t;
}

INLINE vf curve_at(const struct curve *t, vf x) {
    x = _mm512_max_ps(v_zero() - t->limit, _mm512_min_ps(t->limit, x)); /* both return their second operand if one is NaN */
    const vi n = (vi)v_fma(x, t->scale, v_set1(12582912.0f)); /* 1.5 * 2^23: the nearest integer lands in the low bits */
    vf y = _mm512_permutex2var_ps(t->c[2][0], n, t->c[2][1]);
    y = v_fma(y, x, _mm512_permutex2var_ps(t->c[1][0], n, t->c[1][1]));
    return v_fma(y, x, _mm512_permutex2var_ps(t->c[0][0], n, t->c[0][1]));
}

#endif
