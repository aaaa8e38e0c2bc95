/* kernel.h - the loops of a linear-chain CRF: scores of tokens, forward-backward, sums of weight rows, Viterbi.
 *
 *     u_t = sum of rows w[f] over the attributes f of token t         a row holds the L labels, padded to Lp (a multiple of 8)
 *     alpha_t = (alpha_{t-1} E) .* e^{u_t} / s_t     E = e^{A - top}   log Z = sum of log s_t, maxima and tops
 *     beta_{t-1} = E (beta_t .* e^{u_t} / s_t)       P_t = alpha_t .* beta_t
 *
 * Labels are the vector lanes: 22 labels fill 92 % of three vectors of 8, and one sentence at a time needs no buckets by length.
 * The source is compiled per instruction set; kernel_ref.c is the plain specification in f64 with logarithms.
 *
 * Sources: Lafferty, McCallum, Pereira (ICML 2001); Rabiner (Proc. IEEE 1989) for the scaling. */
#ifndef STRETTO_LEARN_CRF_KERNEL_H
#define STRETTO_LEARN_CRF_KERNEL_H

#include "base/err.h"

enum { CRF_PAD = 8, CRF_AHEAD = 16 }; /* CRF_AHEAD: readable attributes after the last one */

struct crf_pass {
    i32 L, Lp;
    const f32 *w;         /* [rows][Lp]; the transitions A are rows nattr .. nattr + L - 1: row = label before */
    f32 scale;            /* u is this times the sum of rows of w: 1, but with the weights of sgd.h */
    const f32 *A;         /* [L][Lp] of w, not scaled */
    const f32 *E, *back;  /* [L][Lp] e^{A - top}, 0 in the padding; and its transpose */
    f32 top;              /* max A */
    const f32 *mask;      /* [Lp] 1 for labels, 0 for the padding */
    const i64 *at;        /* [ntoken + 1] attributes of token t: attribute[at[t] .. at[t + 1] - 1] */
    const i32 *attribute;
    const i32 *gold;      /* [ntoken] labels of the training */
    f32 *u, *a, *inverse; /* scratch for the longest sentence: [T][Lp], [T][Lp], [T] */
};

/* Sums of columns: rows [lo, hi) of the gradient from the tokens that have the attribute. */
struct crf_columns {
    i32 Lp;
    const i64 *at;     /* [rows + 1] */
    const i32 *token;
    const f32 *d;      /* [ntoken][Lp] P - Y */
    const f32 *w;
    f32 decay;         /* 1 / C */
    f32 *g;            /* gradient: sum + decay w */
};

/* The other direction: rows [lo, hi) of `to` += factor * d_t, for the attributes of each token t in order. */
struct crf_spread {
    i32 Lp;
    const i64 *at;     /* as in struct crf_pass */
    const i32 *attribute;
    f32 *to;           /* [rows][Lp] */
    f32 factor;
    i32 lo, hi;
};

struct crf_kern {
    const char *isa;
    /* u [T][Lp] of tokens t0 .. t0 + T - 1 */
    void (*score)(const struct crf_pass *p, i64 t0, i32 T, f32 *u);
    /* Negative log-likelihood of a sentence; INFINITY where it cannot be represented.  d [T][Lp] = P - Y.
     * pair [Lp][Lp] += alpha_{t-1} x (beta_t .* e^{u_t} / s_t): times E it is the expected number of label pairs. */
    f64 (*sentence)(const struct crf_pass *p, i64 t0, i32 T, f32 *d, f32 *pair);
    void (*columns)(const struct crf_columns *c, i64 lo, i64 hi);
    void (*spread)(const struct crf_spread *s, i64 t0, i32 T, const f32 *d); /* d [T][Lp] of tokens t0 .. t0 + T - 1 */
    f64 (*dot)(const f32 *a, const f32 *b, i64 n);             /* n a multiple of 8 */
    void (*add)(f32 *to, f32 factor, const f32 *from, i64 n);  /* to += factor * from */
    /* Best path of T tokens with scores u; best [T]; ties go to the lowest label.  from: scratch [T][Lp], v: [2][Lp]. */
    void (*decode)(const f32 *u, const f32 *A, i32 L, i32 Lp, i32 T, i32 *from, f32 *v, i32 *best);
};

/* E[i][j] = back[j][i] = e^{A[i][j] - top} for L labels; returns top, the largest of A. Padding of E and back stays. */
f32 crf_transitions(i32 L, i32 Lp, const f32 *A, f32 *E, f32 *back);

/* What a thread needs for sentences of up to `longest` tokens, beside the weights and the data. */
struct crf_scratch {
    f32 *E, *back, *pair;  /* [Lp][Lp] */
    f32 *u, *a, *inverse;
    f32 *mask;             /* [Lp] */
};
err crf_scratch_new(i32 L, i32 Lp, i32 longest, struct crf_scratch *out); /* E601 */
void crf_scratch_free(struct crf_scratch *c); /* allowed after a failure, and on {0} */
/* The pass in this scratch, with exponentials of the transitions p->A; p: sizes, weights and data. */
struct crf_pass crf_scratch_pass(const struct crf_scratch *c, const struct crf_pass *p);

extern const struct crf_kern crf_kern_ref, crf_kern_base, crf_kern_neon, crf_kern_avx2;
const struct crf_kern *crf_kern_for(i32 arch); /* enum kern_arch; AVX-512 takes vectors of 8, which waste less of a row */
bool crf_kern_fuses(i32 arch); /* .. with fused products and sums, and so the bits of a device */

#endif
