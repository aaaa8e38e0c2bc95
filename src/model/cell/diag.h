/* diag.h - layouts and execution modes that the kernels of diagonal cells share.
 *
 * The gates of a unit read x and the unit's own state only, so every (row, unit) is an independent recurrence of one or two
 * numbers.
 *
 *     z = bias + x Wx                    one product for all rows and steps of a chunk
 *     s[t] = F(s[t-1], z[t])             per (row, unit), vectorized over units
 *
 * Execution modes (cell_args.how):
 *     sequential     the state stays in registers from step to step, several (row, unit) vectors interleaved
 *     CELL_NEWTON    guess all s, then repeat: r[t] = F(s[t-1]) - s[t];  solve d[t] = J[t] d[t-1] + r[t];  s += d
 *     CELL_SCAN      cells linear in s: one such solve, no guess
 *
 * A solve splits a block of steps into chunks that communicate one affine map each. Blocks run in order, each from the exact
 * state before it. A block that does not converge is run step by step. Backward is linear: in both modes one solve with the
 * transposed J. Newton results are accurate to the tolerance below, scan results to rounding.
 *
 *     act    gates, then dz [T][B][NP][G][LANES] | keep [T][B][Hp] | counts [B][NP] of struct diag_count
 *     keep   paralstm: c;  paragru: r * h before the step, written by backward for dW;  minlstm: none */
#ifndef STRETTO_MODEL_CELL_DIAG_H
#define STRETTO_MODEL_CELL_DIAG_H

#include "model/cell/cell.h"

/* Newton statistics of the last forward pass for one row and panel. */
struct diag_count {
    i32 blocks, iterations, most, fallbacks; /* fallbacks: blocks that were finally run step by step */
};

enum {
    DIAG_BLOCK = 64,  /* steps per solved block */
    DIAG_CHUNK = 16,  /* steps of a chunk of a block */
    DIAG_CAP = 12     /* maximum iterations */
};
#define DIAG_RESIDUAL 1e-6f /* largest |F(s[t-1]) - s[t]| */
#define DIAG_CHANGE 4e-6f   /* largest |d| of the last iteration */

/* Floats of act that precede the counts. */
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

/* Sum over all panels of rows b0..b1. */
struct diag_count diag_total(const struct cell *c, const struct cell_args *x, i32 b0, i32 b1);

/* The kernel sets: diag_<cell>.c compiled once per instruction set, and diag_ref.c. */
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

/* Kernel arguments of one step that starts from h0, c0. */
static inline struct cell_args diag_rows_args(const struct cell_rows *r) {
    return (struct cell_args){
        .T = 1, .B = r->n, .I = r->I, .H = r->H, .w = r->w, .h0 = r->h0, .c0 = r->c0, .act = r->z, .y = r->h};
}

#endif
