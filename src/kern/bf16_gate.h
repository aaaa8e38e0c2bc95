/* bf16_gate.h - the vector type of the forward cell: gates of WIDE cells at once, a cell being 16 units of one row.
 *
 *     amx           WIDE 2     32 elements of fp16 (every CPU with AMX has AVX512_FP16)
 *     avx512_bf16   WIDE 1     16 elements of f32
 *
 * fp16 has 11 significant bits, the bf16 products 8. The state is f32 in both (struct state). Values beyond 65504 become
 * infinite in fp16: pre-activations, which saturate long before, and c as the argument of tanh. */
#ifndef STRETTO_KERN_BF16_GATE_H
#define STRETTO_KERN_BF16_GATE_H

#include "kern/bf16_vec.h"

#if defined(ISA_amx)
typedef __m512h vg;
enum { WIDE = 2 };
#else
typedef vf vg;
enum { WIDE = 1 };
#endif

struct state {
    vf of[WIDE];
};

#if defined(ISA_amx)
INLINE vg g_set1(f32 x) { return _mm512_set1_ph((_Float16)x); }
INLINE vg g_zero(void) { return _mm512_setzero_ph(); }
INLINE vg g_fma(vg a, vg b, vg c) { return _mm512_fmadd_ph(a, b, c); }
INLINE vg g_fnma(vg a, vg b, vg c) { return _mm512_fnmadd_ph(a, b, c); }
INLINE vg g_narrow(struct state s) { return (vg)to_fp16(s.of[0], s.of[1]); }
INLINE struct state g_widen(vg a) {
    const vi v = (vi)a;
    return (struct state){{_mm512_cvtph_ps(_mm512_castsi512_si256(v)), _mm512_cvtph_ps(_mm512_extracti64x4_epi64(v, 1))}};
}

/* One line of fp16 for cell 0 or 1: its values of a, then of b. */
INLINE vi g_line(vg a, vg b, int cell) {
    if (cell == 0) return _mm512_inserti64x4((vi)a, _mm512_castsi512_si256((vi)b), 1);
    return _mm512_shuffle_i64x2((vi)a, (vi)b, 0xee);
}
/* One line of fp16: a[0] of cell 0, then of cell 1. */
INLINE vi g_both(const vg *a) { return (vi)a[0]; }

/* tanh and sigmoid (shifted by 1/2) are odd functions: 32 linear pieces over the positive half, coefficients permuted in
 * registers; 7 or 8 operations for 32 elements.
 *
 *     tanh      error <= 1.1e-3, rms 3e-4; exactly +-1 for |x| >= 4
 *     sigmoid   error <= 8e-4, rms 2.4e-4; exactly 0 or 1 for |x| >= 8
 *
 * Piece n: a[n] + b[n] |x| around |x| = n / scale, in fp16. NaN stays NaN. */
struct linear_pieces {
    u16 scale, limit, middle, a[32], b[32];
};

static const struct linear_pieces tanh_linear = {
    .scale = 0x47dd,
    .limit = 0x4400,
    .middle = 0,
    .a = {0x0000, 0x14bf, 0x2127, 0x282a, 0x2c94, 0x300b, 0x3237, 0x3456, 0x35a1, 0x36ec, 0x3814,
          0x38a7, 0x392b, 0x39a0, 0x3a06, 0x3a5d, 0x3aa7, 0x3ae5, 0x3b19, 0x3b44, 0x3b67, 0x3b84,
          0x3b9c, 0x3baf, 0x3bbf, 0x3bcc, 0x3bd6, 0x3bde, 0x3be5, 0x3beb, 0x3bef, 0x3bcf},
    .b = {0x3bfe, 0x3bde, 0x3b80, 0x3af0, 0x3a3d, 0x3979, 0x38b2, 0x37e7, 0x368c, 0x355a, 0x3454,
          0x32f0, 0x3186, 0x305f, 0x2ee3, 0x2d68, 0x2c3c, 0x2a9e, 0x2929, 0x2805, 0x2642, 0x24de,
          0x2390, 0x21e0, 0x208f, 0x1f14, 0x1d7e, 0x1c43, 0x1a9d, 0x1921, 0x17f5, 0x1e11},
};
static const struct linear_pieces sigmoid_linear = {
    .scale = 0x43dd,
    .limit = 0x4800,
    .middle = 0x3800,
    .a = {0x0000, 0x10bf, 0x1d27, 0x242a, 0x2894, 0x2c0b, 0x2e37, 0x3056, 0x31a1, 0x32ec, 0x3414,
          0x34a7, 0x352b, 0x35a0, 0x3606, 0x365d, 0x36a7, 0x36e5, 0x3719, 0x3744, 0x3767, 0x3784,
          0x379c, 0x37af, 0x37bf, 0x37cc, 0x37d6, 0x37de, 0x37e5, 0x37eb, 0x37ef, 0x37cf},
    .b = {0x33fe, 0x33de, 0x3380, 0x32f0, 0x323d, 0x3179, 0x30b2, 0x2fe7, 0x2e8c, 0x2d5a, 0x2c54,
          0x2af0, 0x2986, 0x285f, 0x26e3, 0x2568, 0x243c, 0x229e, 0x2129, 0x2005, 0x1e42, 0x1cde,
          0x1b90, 0x19e0, 0x188f, 0x1714, 0x157e, 0x1443, 0x129d, 0x1121, 0x0ff5, 0x1611},
};

struct gate_curve {
    vi a, b;
    vg scale, limit, middle;
};

INLINE struct gate_curve gate_curve_of(const struct linear_pieces *p) {
    return (struct gate_curve){line_load(p->a), line_load(p->b), (vg)_mm512_set1_epi16((short)p->scale),
                               (vg)_mm512_set1_epi16((short)p->limit), (vg)_mm512_set1_epi16((short)p->middle)};
}

INLINE vg gate_curve_at(const struct gate_curve *t, vg x, bool middle) {
    const vi size = _mm512_set1_epi16(0x7fff), sign = _mm512_set1_epi16((short)0x8000);
    const vg m = _mm512_min_ph(t->limit, (vg)_mm512_and_si512((vi)x, size)); /* min returns its second operand if one is NaN */
    const vi n = (vi)g_fma(m, t->scale, g_set1(1024));                       /* the nearest integer lands in the low bits */
    const vg y = g_fma((vg)_mm512_permutexvar_epi16(n, t->b), m, (vg)_mm512_permutexvar_epi16(n, t->a));
    const vg odd = (vg)_mm512_ternarylogic_epi64((vi)x, sign, (vi)y, 0xea); /* (x & sign) | y */
    if (middle) return odd + t->middle;
    return odd;
}

struct cell_curves {
    struct gate_curve t, s;
};
INLINE struct cell_curves cell_curves(void) {
    return (struct cell_curves){gate_curve_of(&tanh_linear), gate_curve_of(&sigmoid_linear)};
}
INLINE vg g_tanh(const struct cell_curves *k, vg x) { return gate_curve_at(&k->t, x, false); }
INLINE vg g_sigmoid(const struct cell_curves *k, vg x) { return gate_curve_at(&k->s, x, true); }

#else
INLINE vg g_set1(f32 x) { return v_set1(x); }
INLINE vg g_zero(void) { return v_zero(); }
INLINE vg g_fma(vg a, vg b, vg c) { return v_fma(a, b, c); }
INLINE vg g_fnma(vg a, vg b, vg c) { return v_fnma(a, b, c); }
INLINE vg g_narrow(struct state s) { return s.of[0]; }
INLINE struct state g_widen(vg a) { return (struct state){{a}}; }
INLINE vi g_line(vg a, vg b, int cell) { return (void)cell, to_fp16(a, b); }
INLINE vi g_both(const vg *a) { return to_fp16(a[0], a[1]); }

struct cell_curves {
    struct curve t, s;
};
INLINE struct cell_curves cell_curves(void) { return (struct cell_curves){curve_of(&tanh_pieces), curve_of(&sigmoid_pieces)}; }
INLINE vg g_tanh(const struct cell_curves *k, vg x) { return curve_at(&k->t, x); }
INLINE vg g_sigmoid(const struct cell_curves *k, vg x) { return curve_at(&k->s, x); }
#endif

/* a s + b in f32, cell by cell. */
INLINE struct state g_move(vg a, struct state s, vg b) {
    const struct state x = g_widen(a), y = g_widen(b);
    UNROLL for (int i = 0; i < WIDE; i++) s.of[i] = v_fma(x.of[i], s.of[i], y.of[i]);
    return s;
}

#endif
