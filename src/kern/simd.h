/* simd.h - the vector type vf of the tile kernels: VL floats, as wide as the instruction set for which the file is compiled.
 *
 *     avx512  VL 16, a whole panel      avx2  VL 8, half a panel      neon  VL 4      base  VL 4 (GNU vectors, any machine)
 *
 * REGS is the number of vector registers; it limits the tile sizes. The compiler provides + - * on vf. Loads and stores need no
 * alignment. Only v_fma and v_fnma fuse a multiplication and an addition. */
#ifndef STRETTO_KERN_SIMD_H
#define STRETTO_KERN_SIMD_H

#include "kern/kern.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif

#if defined(ISA_avx512) || defined(ISA_avx512_bf16) || defined(ISA_amx)
#define HAS_AVX512
#include <immintrin.h>
typedef __m512 vf;
typedef __m512i vi;
enum { VL = 16 };
#define REGS 32
INLINE vf v_set1(f32 x) { return _mm512_set1_ps(x); }
INLINE vf v_load(const f32 *p) { return _mm512_loadu_ps(p); }
INLINE void v_store(f32 *p, vf a) { _mm512_storeu_ps(p, a); }
INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
/* x clamped to [lo, hi]. NaN stays NaN: both instructions return their second operand if one is NaN. */
INLINE vf v_clamp(vf x, f32 lo, f32 hi) { return _mm512_max_ps(v_set1(lo), _mm512_min_ps(v_set1(hi), x)); }
INLINE vf v_at_most(vf x, f32 hi) { return _mm512_min_ps(v_set1(hi), x); }
/* 1/d to about one ulp for normal d: 14-bit estimate and one Newton step. */
INLINE vf v_recip(vf d) {
    vf r = _mm512_rcp14_ps(d);
    return v_fma(r, v_fnma(d, r, v_set1(1)), r);
}
/* x2 >= limit ? copysign(1, x) : b */
INLINE vf v_saturate(vf x, vf x2, f32 limit, vf b) {
    const __mmask16 m = _mm512_cmp_ps_mask(x2, v_set1(limit), _CMP_GE_OQ);
    return _mm512_mask_range_ps(b, m, x, v_set1(1), 2); /* range: smaller magnitude, sign of x */
}

#elif defined(ISA_avx2)
#include <immintrin.h>
typedef __m256 vf;
typedef __m256i vi;
enum { VL = 8 };
#define REGS 16
INLINE vf v_set1(f32 x) { return _mm256_set1_ps(x); }
INLINE vf v_load(const f32 *p) { return _mm256_loadu_ps(p); }
INLINE void v_store(f32 *p, vf a) { _mm256_storeu_ps(p, a); }
INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
INLINE vf v_clamp(vf x, f32 lo, f32 hi) { return _mm256_max_ps(v_set1(lo), _mm256_min_ps(v_set1(hi), x)); }
INLINE vf v_at_most(vf x, f32 hi) { return _mm256_min_ps(v_set1(hi), x); }
INLINE vf v_recip(vf d) { return v_set1(1) / d; }
INLINE vf v_saturate(vf x, vf x2, f32 limit, vf b) {
    const vf one = _mm256_or_ps(_mm256_and_ps(x, v_set1(-0.0f)), v_set1(1));
    return _mm256_blendv_ps(b, one, _mm256_cmp_ps(x2, v_set1(limit), _CMP_GE_OQ));
}

#elif defined(ISA_neon)
#include <arm_neon.h>
typedef float32x4_t vf;
enum { VL = 4 };
#define REGS 32
INLINE vf v_set1(f32 x) { return vdupq_n_f32(x); }
INLINE vf v_load(const f32 *p) { return vld1q_f32(p); }
INLINE void v_store(f32 *p, vf a) { vst1q_f32(p, a); }
INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
INLINE vf v_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
INLINE vf v_clamp(vf x, f32 lo, f32 hi) { return vmaxq_f32(v_set1(lo), vminq_f32(v_set1(hi), x)); } /* both propagate NaN */
INLINE vf v_at_most(vf x, f32 hi) { return vminq_f32(v_set1(hi), x); }
/* 1/d to about one ulp for normal d: 8-bit estimate and two Newton steps. */
INLINE vf v_recip(vf d) {
    vf r = vrecpeq_f32(d);
    r = r * vrecpsq_f32(d, r);
    return v_fma(r, v_fnma(d, r, v_set1(1)), r);
}
INLINE vf v_saturate(vf x, vf x2, f32 limit, vf b) {
    return vbslq_f32(vcgeq_f32(x2, v_set1(limit)), vbslq_f32(vdupq_n_u32(1u << 31), x, v_set1(1)), b);
}

#else
typedef f32 vf __attribute__((vector_size(16)));
typedef i32 vi __attribute__((vector_size(16)));
enum { VL = 4 };
#define REGS 16
INLINE vf v_set1(f32 x) { return (vf){x, x, x, x}; }
INLINE vf v_load(const f32 *p) {
    vf a;
    memcpy(&a, p, sizeof a);
    return a;
}
INLINE void v_store(f32 *p, vf a) { memcpy(p, &a, sizeof a); }
INLINE vf v_fma(vf a, vf b, vf c) { return a * b + c; }
INLINE vf v_fnma(vf a, vf b, vf c) { return c - a * b; }
INLINE vf v_pick(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }
INLINE vf v_at_most(vf x, f32 hi) { return v_pick(x > v_set1(hi), v_set1(hi), x); }
INLINE vf v_clamp(vf x, f32 lo, f32 hi) { return v_pick(x < v_set1(lo), v_set1(lo), v_at_most(x, hi)); }
INLINE vf v_recip(vf d) { return v_set1(1) / d; }
INLINE vf v_saturate(vf x, vf x2, f32 limit, vf b) {
    const vi one = ((vi)x & (vi)v_set1(-0.0f)) | (vi)v_set1(1);
    return v_pick(x2 >= v_set1(limit), (vf)one, b);
}
#endif

enum { SUB = LANES / VL }; /* vectors in a panel */

INLINE vf v_zero(void) { return v_set1(0); }
INLINE vf v_load_or_zero(const f32 *p, i64 at) { return p ? v_load(p + at) : v_zero(); }

/* ------------------------------------------------------------------ activations --------------------------------------------- */

/* 2^t for t <= 126; below -126 the result may be 0. 2^t = 2^n 2^f with a polynomial in f; relative error 2e-8 before rounding. */
INLINE vf v_exp2(vf t) {
#if defined(HAS_AVX512)
    const vf f = _mm512_reduce_ps(t, 0x09); /* t - floor(t), in [0,1) */
    vf p = v_set1(2.1702255e-4f);
    p = v_fma(p, f, v_set1(1.2439688e-3f));
    p = v_fma(p, f, v_set1(9.6788410e-3f));
    p = v_fma(p, f, v_set1(5.5483342e-2f));
    p = v_fma(p, f, v_set1(2.4022984e-1f));
    p = v_fma(p, f, v_set1(6.9314698e-1f));
    p = v_fma(p, f, v_set1(1.0f));
    return _mm512_scalef_ps(p, t);
#else
    /* Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits, from where a shift moves it to the exponent. */
    t = v_clamp(t, -126, 126);
    const vf magic = v_set1(12582912.0f), whole = t + magic, f = t - (whole - magic); /* f in [-0.5,0.5] */
    vf p = v_set1(1.5403530e-4f);
    p = v_fma(p, f, v_set1(1.3333558e-3f));
    p = v_fma(p, f, v_set1(9.6181291e-3f));
    p = v_fma(p, f, v_set1(5.5504109e-2f));
    p = v_fma(p, f, v_set1(2.4022651e-1f));
    p = v_fma(p, f, v_set1(6.9314718e-1f));
    p = v_fma(p, f, v_set1(1.0f));
#if defined(ISA_avx2)
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(whole), 23)));
#else
    typedef u32 vu __attribute__((vector_size(16)));
    return (vf)((vu)p + ((vu)whole << 23));
#endif
#endif
}

/* 1 / (1 + e^-x): relative error below 2e-7 + 5e-8 |x|; exactly 1 for x >= 17; 2^-126 for x <= -87. */
INLINE vf v_sigmoid(vf x) { return v_recip(v_set1(1) + v_exp2(v_at_most(x * v_set1(-1.44269504f), 126))); }

/* Odd rational function of degree 13 over 6 (the coefficients of Eigen's tanh): relative error below 5e-7; exactly +-1 for x^2
 * >= 62.5, where the quotient is not used. */
INLINE vf v_tanh(vf x) {
    const vf x2 = x * x;
    vf p = v_set1(-2.76076847742355e-16f), q = v_set1(1.19825839466702e-06f);
    p = v_fma(p, x2, v_set1(2.00018790482477e-13f));
    p = v_fma(p, x2, v_set1(-8.60467152213735e-11f));
    p = v_fma(p, x2, v_set1(5.12229709037114e-08f));
    p = v_fma(p, x2, v_set1(1.48572235717979e-05f));
    p = v_fma(p, x2, v_set1(6.37261928875436e-04f));
    p = v_fma(p, x2, v_set1(4.89352455891786e-03f));
    q = v_fma(q, x2, v_set1(1.18534705686654e-04f));
    q = v_fma(q, x2, v_set1(2.26843463243900e-03f));
    q = v_fma(q, x2, v_set1(4.89352518554385e-03f));
    return v_saturate(x, x2, 62.5f, p * x * v_recip(q));
}

#endif
