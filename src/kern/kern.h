/* kern.h - the table of kernels and the contracts they keep.
 *
 * Kernels are pure: pointers and sizes in, numbers out; no allocation, no errors, no globals.  Every slot has a plain reference
 * twin (*_ref.c) which is the specification; kern.c fills a table with the twins and overwrites the slots that an instruction set
 * has (one C source compiled per set).  STRETTO_ISA=NAME overrides the choice, for tests.
 *
 * Layouts.  LANES = 16 units make a panel on every instruction set (AVX2 walks half panels), so packed weights, optimiser state
 * and checkpoints do not depend on the machine.  Hp = H rounded up to LANES; NP = Hp / LANES panels.  Padded lanes hold zero,
 * always.
 *
 *   cell weights   w [NP][I+H][G][LANES]      k over x then h; G gates of a unit side by side (lstm i,f,g,o; gru r,z,n; rnn 1)
 *   cell bias      bias [NP][GB][LANES]       GB = G but for gru: 4 = r, z, n from x, n from h
 *   transposed     wt                          private to the kernels, made from w by cell.prep once per optimiser step
 *   gates, dz      act                         private to the kernels; forward writes, backward overwrites with dz in place
 *   dense weights  w [K][Np]                   Np = N rounded up to LANES: the transpose of PyTorch's [N,K]
 *   activations    [T][B][F]                   time-major, F a multiple of LANES
 *
 * Rows of the batch are the unit of everything: state in and state out per row, live rows per step; no kernel assumes that rows
 * are different sequences.  The result of a row does not depend on which other rows are computed in the same call, nor on the
 * thread count (a batch of one row has kernels of its own, which sum dh in several chains: its gradients may differ from those of
 * the same row among others in the last bits).  dW sums rows in chunks that depend on b0, b1, t0, t1 alone: the cut of a layer
 * into slices of time, which must not depend on the number of threads, is part of its last bits. */
#ifndef STRETTO_KERN_KERN_H
#define STRETTO_KERN_KERN_H

#include "base/err.h"

enum { LANES = 16, NARROW = 4 };
/* In order of preference.  avx512_bf16 and amx are avx512 with bf16 cells besides; their fp32 kernels are those of avx512. */
enum kern_arch { KERN_REF, KERN_BASE, KERN_NEON, KERN_AVX2, KERN_AVX512, KERN_AVX512_BF16, KERN_AMX, KERN_NARCH };
enum cell_kind { CELL_LSTM, CELL_GRU, CELL_RNN, CELL_NKIND };
enum precision { PREC_F32, PREC_BF16, PREC_N };

/* How a layer is walked: a choice of speed alone, the bits are the same.  0 = the kernel's own guess by shape. */
enum cell_how {
    CELL_FOLD = 1, /* forward: x and h in one product per step */
    CELL_AHEAD = 2, /* forward: the x side of many steps first, as one product */
    /* Diagonal cells (model/cell/diag.h), bits differ: equal to the step by step walk to 1e-5, or to rounding. */
    CELL_NEWTON = 3, /* blocks of steps at once by Newton's method, backward by a scan */
    CELL_SCAN = 4    /* cells linear in h: by a scan, both ways */
};

/* Workers that share the rows of one call by units (panels): for batches too small to be cut.  Every member calls fwd, bwd or dw
 * with the same box, rows and steps and its own `me`, all at the same time; member k of n computes panels [NP*k/n, NP*(k+1)/n)
 * of every step and waits for the others between steps (the plain twin: member 0 computes all).  fwd and bwd return when everyone
 * is done, so that anything may follow; dw does not wait: a member adds to its own panels, and whoever reads dw, or writes x, y
 * or act again, waits for all.  Members write each its own line of `flag` only; values rise and never fall: a call uses base+1 ..
 * base+T+1, so callers pass a base that is larger by more than T from call to call (flags of fwd and bwd are separate arrays).
 * The bits are those of a call without a team. */
enum { TEAM_MAX = 16, TEAM_LINE = 64 };
struct cell_team {
    i32 me, n;
    u64 base;
    char *flag; /* [n] lines of TEAM_LINE bytes, 64-byte aligned, a u64 at the start of each, zero at first */
};

/* One recurrent layer bound to its buffers: T steps, B rows, I inputs, H hidden units. */
struct cell_args {
    i32 T, B, I, H;
    const f32 *x; /* x[t][b] at x + (t*B + b) * x_ld, I values */
    i64 x_ld;
    f32 *y;             /* [T][B][Hp] hidden state of every step */
    f32 *act;           /* cell.act_floats(T,B,I,H) floats; kept for backward */
    const f32 *h0, *c0; /* [B][Hp] initial state, NULL = zero (c0 unused but for lstm) */
    f32 *hT, *cT;       /* [B][Hp] out: state after the row's last live step; NULL = not wanted */
    const i32 *live;    /* [T] rows live at step t: rows 0..live[t]-1; must not increase with t.  NULL = all B.
                         * y and dx of rows that are not live are set to zero; a row that never lives hands its state through */
    const f32 *w, *bias, *wt;
    /* backward */
    const f32 *dy;        /* [T][B][Hp] gradient of y, or NULL = zero */
    const f32 *dhT, *dcT; /* [B][Hp] gradient of the end state, or NULL */
    f32 *dx;              /* as x, overwritten, or NULL = not wanted */
    i64 dx_ld;
    f32 *dh0, *dc0; /* [B][Hp] out: gradient of the initial state; NULL = not wanted */
    f32 *carry;     /* [2][B][Hp] scratch: dh and dc between steps; needed by bwd */
    u32 how;                      /* enum cell_how */
    bool part;                    /* the B rows are some of a larger batch: sums are grouped as those of that are */
    i32 slice;                    /* a promise that lets kernels keep dz in a cache: bwd and dw of the same rows take turns, on
                                   * slices of at most so many steps (one number for all rows); no bits depend on it.  0 = none */
    const struct cell_team *team; /* NULL = alone */
};

/* One row is summed in an order of its own, and rows of all of a batch in one sum. */
static inline bool cell_is_one_row(const struct cell_args *x) { return x->B == 1 && !x->part; }
static inline bool cell_is_whole_batch(const struct cell_args *x, i32 rows) { return rows == x->B && !x->part; }

/* The kernels of one cell kind.  b0..b1 rows, t0..t1 steps, half-open.  When t0 > 0 the state before t0 is read from y and act;
 * when t1 < T backward continues from dz of step t1 and carry: time slices of the same box may be run one after another, forward
 * ones in order, backward ones in reverse.  Every call of fwd that is given hT, cT writes there the state after its last step (of
 * rows that ended before: their last state); every call of bwd that is given dh0, dc0 the gradient of the state before its first.
 * Rows may go over their steps again, with another initial state or another dhT, dcT: forward from step 0 on; backward from T on,
 * at once where bwd_again is set, else each slice right after fwd has gone over it anew (from any t0 on: y and c are still
 * there). */
struct cell_kern {
    bool bwd_again; /* bwd leaves what fwd kept */
    i64 (*act_floats)(i32 T, i32 B, i32 I, i32 H);
    i64 (*wt_floats)(i32 I, i32 H);
    void (*prep)(i32 I, i32 H, const f32 *w, f32 *wt);
    void (*fwd)(const struct cell_args *box, i32 b0, i32 b1, i32 t0, i32 t1);
    void (*bwd)(const struct cell_args *box, i32 b0, i32 b1, i32 t0, i32 t1);
    /* dw [NP][I+H][G][LANES] += , dbias [NP][GB][LANES] += ; after bwd of the same rows and steps */
    void (*dw)(const struct cell_args *box, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias);
    /* The element-wise cell over n rows, for one step fed by other products (decoders).  z [n][NP][GB][LANES] holds
     * pre-activations with bias; it becomes the activated gates (for gru the fourth stays the pre-activation).  s_prev = c (lstm)
     * or h (gru, rnn) before the step; s receives c or h; h the output, all [n][Hp]; for gru and rnn s may be h.  point_bwd turns
     * the gates in z into dz and reads dh, which holds the whole gradient of h.  ds is read and written: for lstm it comes in as
     * dc, the gradient of s from the steps after (gru, rnn: not read), and it leaves as the gradient of s_prev through the
     * element-wise part only. For gru dz's fourth gate is the gradient of the h-side n pre-activation. */
    void (*point_fwd)(i32 n, i32 H, f32 *z, const f32 *s_prev, f32 *s, f32 *h);
    void (*point_bwd)(i32 n, i32 H, f32 *z, const f32 *s_prev, const f32 *s, const f32 *dh, f32 *ds);
};

struct kern {
    enum kern_arch arch;
    const char *name; /* "avx512" */
    struct cell_kern cell[CELL_NKIND];
    /* The same contract in bf16: x, h and w are rounded to bf16 as they enter a product, dz and the factors of backward are kept
     * in 16 bits; c, sums, y, dx and all gradients are f32.  Slots are NULL where the set has no bf16 products (cell_at).
     * Besides the contract above: box.y may be NULL when nobody reads it (hT is written all the same); how is not read, nor is
     * carry; member 0 of a team computes everything while the others wait (as in the plain twin). */
    struct cell_kern bf16[CELL_NKIND];
    /* C[M,N] = (add ? C : 0) + A[M,K] B[K,N]; B and C rows 64-byte aligned, ldb, ldc multiples of LANES, columns up to
     * round_up(N, LANES) are read and written. */
    void (*gemm_nn)(i32 M, i32 N, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add);
    /* C[M,N] = (add ? C : 0) + A[K,M]^T B[K,N]; same rules (the weight gradient of a dense layer). */
    void (*gemm_tn)(i32 M, i32 N, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add);
    /* The same, added up over n runs of K >= 1 rows, a floats of A and b of B from a run to the next: few rows of every step. */
    void (*gemm_tn_runs)(i32 M, i32 N, i32 K, i32 n, const f32 *A, i64 lda, i64 a, const f32 *B, i64 ldb, i64 b, f32 *C, i64 ldc);
    /* The same for 1 <= N <= NARROW, along the long side: rows of x, of dx and of wt [N] have K values, a multiple of LANES (what
     * pads them is zero).  y[r][n] = bias[n] + x[r] wt[n], up to LANES of a row written;  dx[r] = sum of dz[r][n] wt[n]; dwt[n]
     * += sum of dz[r][n] x[r]. */
    void (*narrow_fwd)(i32 N, i32 rows, i32 K, const f32 *x, i64 ldx, const f32 *wt, i64 ldw, const f32 *bias, f32 *y, i64 ldy);
    void (*narrow_dx)(i32 N, i32 rows, i32 K, const f32 *dz, i64 ldz, const f32 *wt, i64 ldw, f32 *dx, i64 ldx);
    void (*narrow_dw)(i32 N, i32 rows, i32 K, const f32 *x, i64 ldx, const f32 *dz, i64 ldz, f32 *dwt, i64 ldw);
    void (*add)(i64 n, f32 *y, const f32 *x); /* y += x */
    void (*sigmoid)(i64 n, f32 *y, const f32 *x);
    void (*tanh)(i64 n, f32 *y, const f32 *x);
    f64 (*sumsq)(i64 n, const f32 *x); /* fixed order of summation on every instruction set path */
    f64 (*fma_rate)(i64 n);            /* runs n register-only FMA rounds, returns GF/s: calibration */
};

/* The table of this machine (made once; immutable after; any thread).  kern_get(arch) gives NULL where the CPU lacks it.
 * STRETTO_ISA is a demand: kern_init says E103 when this machine or build cannot meet it; kern_best then gives the best there is.
 */
err kern_init(void);
const struct kern *kern_best(void);
const struct kern *kern_get(enum kern_arch arch);
const char *kern_arch_name(enum kern_arch arch);

/* The kernels of a cell in a precision, or NULL where this table has none. */
static inline const struct cell_kern *cell_at(const struct kern *k, enum cell_kind kind, enum precision p) {
    if (kind >= CELL_NKIND) return NULL; /* it brings its own: model/cell/cell.h */
    const struct cell_kern *c = p == PREC_BF16 ? &k->bf16[kind] : &k->cell[kind];
    return c->fwd ? c : NULL;
}

/* Gates of a kind: w panels hold cell_gates, bias and z panels cell_bias_gates (4 for gru), states 2 for lstm, else 1. */
i32 cell_gates(enum cell_kind kind);
i32 cell_bias_gates(enum cell_kind kind);
i64 cell_w_floats(enum cell_kind kind, i32 I, i32 H);
i64 cell_bias_floats(enum cell_kind kind, i32 H);

/* One layer in PyTorch's layout: w_ih [G*H][I], w_hh [G*H][H], b_ih, b_hh [G*H]; gates lstm i,f,g,o, gru r,z,n.  Pack sums the
 * two biases but for gru's n; unpack (of weights or gradients of them) puts sums into b_ih and zero into b_hh, but for gru's n.
 * (Gradients: PyTorch's db_hh equals db_ih wherever the two are summed.) */
struct cell_canon {
    f32 *w_ih, *w_hh, *b_ih, *b_hh;
};
void cell_pack(enum cell_kind kind, i32 I, i32 H, const struct cell_canon *from, f32 *w, f32 *bias);
void cell_unpack(enum cell_kind kind, i32 I, i32 H, const f32 *w, const f32 *bias, const struct cell_canon *to);

#endif
