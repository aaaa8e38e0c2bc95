/* viterbi.h - max-plus steps and backpointers of Viterbi decoding in int32 fixed point; knows no model.
 *
 *     v[t][j] = u[t][j] + max_i (v[t-1][i] + a[i][j])          back[t][j] = the smallest i that reaches the maximum
 *
 * Integers make max-plus exactly associative: a sequence may be cut anywhere, and any instruction set gives the same path.
 * The label goes along with its score: a score is stored as score << shift, and a transition from label i carries mask - i in
 * the bits below.  So one maximum finds the best score, and of equal ones the lowest label.  Every VITERBI_DRIFT steps the
 * score of label 0 is subtracted from all and added to an int64: a sequence of any length does not overflow.
 *
 * Layouts.  Lp = labels rounded up to 16.  trans [L][Lp] from `viterbi_pack`; a row of unary scores has Lp readable elements,
 * each a score << shift; a row of backpointers has Lb = labels rounded up to 32 bytes, and label j's byte is at at[j] of it:
 * mask - label before. */
#ifndef STRETTO_KERN_VITERBI_H
#define STRETTO_KERN_VITERBI_H

#include "kern/kern.h"

enum { VITERBI_LABELS = 256, VITERBI_STREAMS = 4, VITERBI_DRIFT = 8, VITERBI_PAD = 16, VITERBI_BACK = 32 };

struct viterbi {
    i32 L, Lp, Lb; /* labels, 1..VITERBI_LABELS; as above */
    i32 shift;     /* bits of a label; mask = (1 << shift) - 1 */
    const i32 *trans; /* [L][Lp] packed */
    u8 at[VITERBI_LABELS];
    const struct viterbi_set *set;
};

/* One sequence, or a slice of one. */
struct viterbi_stream {
    const i32 *unary; /* rows of unary scores << shift */
    i64 ld;           /* elements from row to row, at least Lp */
    const i32 *row;   /* [n] row of each step (an emission table); NULL = 0, 1, 2, .. */
    i32 *v;           /* [Lp] in and out: scores << shift, without what base took; v[0] = 0 on return */
    i64 base;         /* in and out */
    u8 *back;         /* [n][Lb] out */
};

/* The kernels of an instruction set. */
struct viterbi_set {
    /* n steps of k <= VITERBI_STREAMS independent streams. */
    void (*steps)(const struct viterbi *m, i32 k, struct viterbi_stream *s, i64 n);
    u8 (*at)(i32 label); /* place of a label in a row of backpointers */
};
#define VITERBI_SETS(isa) extern const struct viterbi_set viterbi_##isa;
VITERBI_SETS(ref)
VITERBI_SETS(base)
VITERBI_SETS(neon)
VITERBI_SETS(avx2)
VITERBI_SETS(avx512)

/* Largest |score| of a transition or a unary score that L labels allow. */
i32 viterbi_limit(i32 L);
i32 viterbi_shift(i32 L); /* bits of a label */
/* Scores of the first step: start[j] + unary[j] (a row as above).  Both may be NULL = 0. */
void viterbi_start(const struct viterbi *m, const i32 *start, const i32 *unary, struct viterbi_stream *s);
/* Fills *out for trans [L][L], scores; packed [L][Lp] is the caller's and stays with *out. */
void viterbi_pack(enum kern_arch arch, i32 L, const i32 *trans, i32 *packed, struct viterbi *out);
static inline i32 viterbi_padded(i32 L) { return round_up(L, VITERBI_PAD); }

/* The best label after the last step, of equal ones the lowest; *score in units of the fixed point. */
i32 viterbi_best(const struct viterbi *m, const struct viterbi_stream *s, i64 *score);
/* A way back through n rows of backpointers, from the label after the last of them. */
struct viterbi_walk {
    const u8 *back;
    i64 n;
    i32 label; /* in: the last label; out: the label before the first row */
    u8 *path;  /* [n] out: the labels of these steps */
};
/* Several of them side by side: each waits for its own loads only. */
void viterbi_trace(const struct viterbi *m, i32 k, struct viterbi_walk *w);
/* The number of rows, from the first on, whose path is the same whatever the last label is.  *label: that of the last of these
 * steps, or that before the first row where the number is 0.  -1 = not even that label is the same. */
i64 viterbi_meet(const struct viterbi *m, const u8 *back, i64 n, i32 *label);

#endif
