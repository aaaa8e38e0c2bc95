/* diag.h - what the kernels of the diagonal cells have in common: where things are, and how they are walked.
 *
 * A unit's gates read x and the unit's own state, nothing of other units: every (row, unit) is a recurrence of one or two
 * numbers.
 *
 *     z = bias + x Wx                    one product for all rows and steps of a chunk
 *     s[t] = F(s[t-1], z[t])             per (row, unit), units in the lanes of a vector
 *
 * Walks (cell_args.how):
 *     sequential     the state stays in registers from step to step, a few (row, unit) vectors side by side
 *     CELL_NEWTON    guess all s, then repeat: r[t] = F(s[t-1]) - s[t];  solve d[t] = J[t] d[t-1] + r[t];  s += d
 *     CELL_SCAN      cells linear in s: one such solve and no guess
 *
 * The solve goes over chunks of a block of steps that know nothing of each other but a sum; blocks come in order, each from the
 * true state before it.  A block that does not converge is walked step by step.  Backward is linear: with either word it is one
 * solve with J transposed.  What came by Newton is as near as its tolerance, what came by a scan as near as rounding.
 *
 *     act    gates, then dz [T][B][NP][G][LANES] | keep [T][B][Hp] | counts [B][NP] of struct diag_count
 *     keep   paralstm: c;  paragru: r * h before the step, written by backward for dW;  minlstm: none */
#ifndef STRETTO_MODEL_CELL_DIAG_H
#define STRETTO_MODEL_CELL_DIAG_H

#include "model/cell/cell.h"

/* What Newton did in the last forward walk of a panel of units. */
struct diag_count {
    i32 blocks, iterations, most, fallbacks; /* fallbacks: blocks that were walked step by step in the end */
};

enum {
    DIAG_BLOCK = 64,  /* steps that are solved at once */
    DIAG_CHUNK = 16,  /* steps of a chunk of a block */
    DIAG_CAP = 12     /* iterations */
};
#define DIAG_RESIDUAL 1e-6f /* largest |F(s[t-1]) - s[t]| */
#define DIAG_CHANGE 4e-6f   /* largest |d| of the last iteration */

/* Floats of act before the counts. */
static inline i64 diag_kept(const struct cell_args *x, i32 G, bool keep) {
    return (i64)x->T * x->B * round_up(x->H, LANES) * (G + (keep ? 1 : 0));
}
static inline i64 diag_act_floats(i32 T, i32 B, i32 H, i32 G, bool keep) {
    i64 count = (i64)sizeof(struct diag_count) / (i64)sizeof(f32);
    return (i64)B * round_up(H, LANES) * ((i64)T * (G + (keep ? 1 : 0))) + (i64)B * (round_up(H, LANES) / LANES) * count;
}
static inline struct diag_count *diag_counts(const struct cell_args *x, i32 G, bool keep, i32 b, i32 panel) {
    f32 *at = x->act + diag_kept(x, G, keep);
    return (struct diag_count *)(void *)at + (i64)b * (round_up(x->H, LANES) / LANES) + panel;
}

/* All panels of rows b0..b1 together. */
struct diag_count diag_total(const struct cell *c, const struct cell_args *x, i32 b0, i32 b1);

/* The sets of kernels: diag_<cell>.c once per instruction set, diag_ref.c. */
#define DIAG_SETS(isa) extern const struct cell_set diag_paragru_##isa, diag_paralstm_##isa, diag_minlstm_##isa;
DIAG_SETS(ref)
DIAG_SETS(base)
DIAG_SETS(neon)
DIAG_SETS(avx2)
DIAG_SETS(avx512)
#if defined(__x86_64__)
#define DIAG_CHOOSE(cell, arch) \
    ((arch) >= KERN_AVX512 ? &diag_##cell##_avx512 : (arch) == KERN_AVX2 ? &diag_##cell##_avx2 : DIAG_PLAIN(cell, arch))
#elif defined(__aarch64__)
#define DIAG_CHOOSE(cell, arch) ((arch) == KERN_NEON ? &diag_##cell##_neon : DIAG_PLAIN(cell, arch))
#else
#define DIAG_CHOOSE(cell, arch) DIAG_PLAIN(cell, arch)
#endif
#define DIAG_PLAIN(cell, arch) ((arch) == KERN_REF ? &diag_##cell##_ref : &diag_##cell##_base)

/* Rows of the batch that are live at step t, of b0..b1. */
static inline i32 diag_live(const struct cell_args *x, i32 t) { return t >= x->T ? 0 : x->live ? x->live[t] : x->B; }

/* The first step from t0 on that row b does not live, at most t1. */
static inline i32 diag_end(const struct cell_args *x, i32 b, i32 t0, i32 t1) {
    i32 t = t1;
    if (x->live)
        while (t > t0 && b >= x->live[t - 1]) t--;
    return t;
}

#endif
