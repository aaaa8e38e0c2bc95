/* kern.h - the table of compute kernels of this machine, and the contract of each kernel.
 *
 * Kernels are pure functions: pointers and sizes in, numbers out. They allocate nothing, return no error and keep no state.
 * Every slot has a scalar reference implementation (*_ref.c), which is the specification. kern.c fills a table with the
 * references, then overwrites the slots for which an instruction set has a faster version (one C source, compiled once per
 * set). STRETTO_ISA=NAME overrides the choice, for tests.
 *
 * Layouts. LANES = 16 is the panel width: 16 hidden units make a panel on every instruction set (AVX2 processes half panels).
 * So packed weights, optimizer state and checkpoints do not depend on the machine. Hp = H rounded up to LANES; NP = Hp / LANES
 * panels. Padding always holds zero.
 *
 *   cell weights   w [NP][I+H][G][LANES]      row k over x, then h; G gates side by side (lstm i,f,g,o; gru r,z,n; rnn 1)
 *   cell bias      bias [NP][GB][LANES]       GB = G, except for gru: 4 = r, z, n from x, n from h
 *   transposed     wt                         private to the kernels; cell.prep makes it from w once per optimizer step
 *   gates, dz      act                        private to the kernels; forward writes gates, backward overwrites them with dz
 *   dense weights  w [K][Np]                  Np = N rounded up to LANES; the transpose of PyTorch's [N,K]
 *   activations    [T][B][F]                  time-major, F a multiple of LANES
 *
 * Batch rows are independent: state goes in and out per row, and the number of live rows is given per step. Two rows may belong
 * to the same sequence. The result of a row depends neither on the other rows of the call nor on the number of threads. One
 * exception: a batch of one row has its own backward kernel, which sums dh in several chains, so its gradients may differ in
 * the last bits. dW sums rows in chunks that depend only on b0, b1, t0, t1. The partition of a layer into time slices therefore
 * affects the last bits and must not depend on the number of threads. */
#ifndef STRETTO_KERN_KERN_H
#define STRETTO_KERN_KERN_H

#include "base/err.h"

#include <string.h>

enum { LANES = 16, NARROW = 4 };
/* In increasing order of preference. avx512_bf16 and amx add bf16 cells; their fp32 kernels are those of avx512. */
enum kern_arch { KERN_REF, KERN_BASE, KERN_NEON, KERN_AVX2, KERN_AVX512, KERN_AVX512_BF16, KERN_AMX, KERN_NARCH };
enum cell_kind { CELL_LSTM, CELL_GRU, CELL_RNN, CELL_NKIND };
enum precision { PREC_F32, PREC_BF16, PREC_N };

/* Execution mode of a recurrent layer: changes the speed, not the bits. 0 = the kernel chooses by shape. */
enum cell_how {
    CELL_FOLD = 1, /* forward: one product [x;h] W per step */
    CELL_AHEAD = 2, /* forward: x Wx of many steps first, as one product; then h Wh step by step */
    /* Diagonal cells (model/cell/diag.h). These change bits: they agree with the sequential mode to 1e-5 (Newton) or to
     * rounding (scan). */
    CELL_NEWTON = 3, /* solves a block of steps at once by Newton's method; backward is a parallel scan */
    CELL_SCAN = 4    /* cells linear in h: parallel scan, forward and backward */
};

/* A team: threads that compute one kernel call together, each its own panels of hidden units. For batches too small to split by
 * rows.
 *
 * Every member calls fwd, bwd or dw with the same arguments except its own `me`, at the same time. Member k of n computes
 * panels [NP*k/n, NP*(k+1)/n) of every step and waits for the others between steps. (In the reference implementation member 0
 * computes everything.) fwd and bwd return when all members are done. dw does not wait: a member adds to its own panels, and
 * the caller must synchronize before it reads dw or writes x, y or act.
 *
 * Each member writes only its own cache line of `flag`. Flags only increase: one call uses the values base+1 .. base+T+1, so
 * the caller increases base by more than T from call to call. fwd and bwd use separate flag arrays. The bits equal those of a
 * call without a team.
 *
 * Members in different processes have no flags: flag = NULL. They call fwd and bwd for one step at a time, bwd without dx, and
 * the caller brings y of the step before and dz of the step after from the other members (cell.dz). */
enum { TEAM_MAX = 16, TEAM_LINE = 64 };
struct cell_team {
    i32 me, n;
    u64 base;
    char *flag; /* [n] cache lines of TEAM_LINE bytes, 64-byte aligned; each starts with a u64, initially zero; or NULL */
};

/* The arguments of a recurrent layer's kernels: T steps, B batch rows, I inputs, H hidden units, and its buffers. The caller
 * owns all memory. */
struct cell_args {
    i32 T, B, I, H;
    const f32 *x; /* x[t][b] starts at x + (t*B + b) * x_ld and has I values */
    i64 x_ld;
    f32 *y;             /* [T][B][Hp] out: hidden state after every step */
    f32 *act;           /* cell.act_floats(T,B,I,H) floats; the caller keeps it from forward to backward */
    const f32 *h0, *c0; /* [B][Hp] initial state, NULL = zero (only lstm reads c0) */
    f32 *hT, *cT;       /* [B][Hp] out: state after the row's last live step; NULL = not needed */
    const i32 *live;    /* [T] live rows: rows 0..live[t]-1 have a step t. Must not increase with t. NULL = all B. For other
                         * rows y and dx become zero; a row without any step passes its state through */
    const f32 *w, *bias, *wt;
    /* backward */
    const f32 *dy;        /* [T][B][Hp] gradient of y, or NULL = zero */
    const f32 *dhT, *dcT; /* [B][Hp] gradient of the final state, or NULL = zero */
    f32 *dx;              /* laid out as x, overwritten; NULL = not needed */
    i64 dx_ld;
    f32 *dh0, *dc0; /* [B][Hp] out: gradient of the initial state; NULL = not needed */
    f32 *carry;     /* [2][B][Hp] scratch: dh and dc between steps; needed by bwd */
    u32 how;                      /* enum cell_how */
    bool part;                    /* the B rows are part of a larger batch: group the sums as for the whole batch */
    i32 slice;                    /* promise of the caller: bwd and dw of the same rows alternate, on at most this many steps at
                                   * a time (the same number for all rows). Kernels may then keep dz in a small buffer. Changes
                                   * no bits. 0 = no promise */
    f32 *gather;                  /* [B][gather_rows][cell_gather_row(I, H)] scratch of dw: copies of x and h if the rows of the
                                   * call are part of a batch and so lie far apart. Changes no bits. NULL = no copies */
    i32 gather_rows;              /* cell_gather_rows(T, B) of the whole layer */
    const struct cell_team *team; /* NULL = one thread computes the call */
};

/* A batch of one row has its own order of summation; a whole batch may be summed as one block of rows. */
static inline bool cell_is_one_row(const struct cell_args *x) { return x->B == 1 && !x->part; }
static inline bool cell_is_whole_batch(const struct cell_args *x, i32 rows) { return rows == x->B && !x->part; }

/* Number of rows that have a step t. */
static inline i32 cell_live(const struct cell_args *x, i32 t) { return t >= x->T ? 0 : x->live ? x->live[t] : x->B; }

/* First step from t0 on that row b lacks, at most t1. */
static inline i32 cell_end(const struct cell_args *x, i32 b, i32 t0, i32 t1) {
    i32 t = t1;
    while (t > t0 && b >= cell_live(x, t - 1)) t--;
    return t;
}

/* Copies n floats; from NULL = zeros. */
static inline void copy_or_zero(f32 *to, const f32 *from, i64 n) {
    if (from)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        memset(to, 0, (size_t)n * sizeof *to);
}

/* The kernels of one kind of cell. b0..b1 batch rows, t0..t1 steps, half-open.
 *
 * Time slices of the same arguments may run one after another: forward slices in order, backward slices in reverse. With t0 > 0
 * forward reads the state before t0 from y and act; with t1 < T backward continues from dz of step t1 and carry. A call of fwd
 * that has hT, cT writes the state after its last step there (for rows that ended earlier: their final state). A call of bwd
 * that has dh0, dc0 writes the gradient of the state before its first step.
 *
 * Steps may be repeated with another initial state or other dhT, dcT. Forward restarts at step 0. Backward restarts at T: at
 * once if bwd_again is set, otherwise each slice only after fwd has recomputed it (from any t0 on, since y and c are still
 * there). */
struct cell_kern {
    bool bwd_again; /* bwd does not overwrite what fwd stored */
    i64 (*act_floats)(i32 T, i32 B, i32 I, i32 H);
    i64 (*wt_floats)(i32 I, i32 H);
    void (*prep)(i32 I, i32 H, const f32 *w, f32 *wt);
    void (*fwd)(const struct cell_args *box, i32 b0, i32 b1, i32 t0, i32 t1);
    void (*bwd)(const struct cell_args *box, i32 b0, i32 b1, i32 t0, i32 t1);
    /* dw [NP][I+H][G][LANES] and dbias [NP][GB][LANES] are added to; call after bwd of the same rows and steps. */
    void (*dw)(const struct cell_args *box, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias);
    /* The element-wise part of the cell for n rows of one step, for callers with their own products (decoders). z
     * [n][NP][GB][LANES] holds pre-activations with bias and becomes the activated gates (gru: the fourth stays the
     * pre-activation). s_prev = c (lstm) or h (gru, rnn) before the step; s receives c or h; h is the output; all [n][Hp]. For
     * gru and rnn s may be h. point_bwd turns the gates in z into dz; dh holds the whole gradient of h. ds is in/out: on entry,
     * lstm only, the gradient of s from later steps; on return the gradient of s_prev through the element-wise part. gru: the
     * fourth gate of dz is the gradient of the h-side n pre-activation. */
    void (*point_fwd)(i32 n, i32 H, f32 *z, const f32 *s_prev, f32 *s, f32 *h);
    void (*point_bwd)(i32 n, i32 H, f32 *z, const f32 *s_prev, const f32 *s, const f32 *dh, f32 *ds);
    /* For teams without flags, NULL if a cell cannot have them (bf16). dz: the GB * LANES floats of panel p that bwd leaves in
     * act for row b and step t. dx: of steps t0..t1, from dz of all panels; writes all columns. */
    f32 *(*dz)(const struct cell_args *box, i32 b, i32 t, i32 p);
    void (*dx)(const struct cell_args *box, i32 b0, i32 b1, i32 t0, i32 t1);
};

struct kern {
    enum kern_arch arch;
    const char *name; /* "avx512" */
    struct cell_kern cell[CELL_NKIND];
    /* The same contract in bf16. Products read x, h and w rounded to bf16; dz and the saved factors of backward have 16 bits;
     * c, sums, y, dx and all gradients are f32. Slots are NULL if the set has no bf16 products (cell_at). Differences: y may be
     * NULL if nobody reads it (hT is still written); `how` and carry are not read; member 0 of a team computes everything. */
    struct cell_kern bf16[CELL_NKIND];
    /* C[M,N] = (add ? C : 0) + A[M,K] B[K,N]. Rows of B and C are 64-byte aligned, ldb and ldc multiples of LANES; columns up
     * to round_up(N, LANES) are read and written. */
    void (*gemm_nn)(i32 M, i32 N, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add);
    /* C[M,N] = (add ? C : 0) + A[K,M]^T B[K,N], same alignment rules: the weight gradient of a dense layer. */
    void (*gemm_tn)(i32 M, i32 N, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add);
    /* C += sum over i < n of A_i^T B_i, K >= 1 rows each; A_i starts at A + i*a, B_i at B + i*b. For few rows of every time
     * step. */
    void (*gemm_tn_runs)(i32 M, i32 N, i32 K, i32 n, const f32 *A, i64 lda, i64 a, const f32 *B, i64 ldb, i64 b, f32 *C, i64 ldc);
    /* The products of a dense layer with 1 <= N <= NARROW outputs. Vectors run along K, a multiple of LANES (padding is zero);
     * wt has N rows.
     *   y[r][n] = bias[n] + x[r] . wt[n] (LANES values of a row are written)
     *   dx[r] = sum over n of dz[r][n] wt[n]
     *   dwt[n] += sum over r of dz[r][n] x[r] */
    void (*narrow_fwd)(i32 N, i32 rows, i32 K, const f32 *x, i64 ldx, const f32 *wt, i64 ldw, const f32 *bias, f32 *y, i64 ldy);
    void (*narrow_dx)(i32 N, i32 rows, i32 K, const f32 *dz, i64 ldz, const f32 *wt, i64 ldw, f32 *dx, i64 ldx);
    void (*narrow_dw)(i32 N, i32 rows, i32 K, const f32 *x, i64 ldx, const f32 *dz, i64 ldz, f32 *dwt, i64 ldw);
    void (*add)(i64 n, f32 *y, const f32 *x); /* y += x */
    /* Rows of n floats each. copy: to = from; from NULL = zeros, from_ld 0 = one row for all. transpose: to [n][to_ld] from
     * [rows][from_ld]. add_rows: y += every row of x, in order; of `runs` runs of rows, which begin `run` floats apart. */
    void (*copy)(i64 rows, i64 n, f32 *to, i64 to_ld, const f32 *from, i64 from_ld);
    void (*transpose)(i64 rows, i32 n, const f32 *from, i64 from_ld, f32 *to, i64 to_ld);
    void (*add_rows)(i32 runs, i64 run, i64 rows, i32 n, f32 *y, const f32 *x, i64 ldx);
    void (*relu)(i64 n, f32 *y, const f32 *x);
    /* dy *= the slope of an activation, from y = act(x). */
    void (*tanh_slope)(i64 n, f32 *dy, const f32 *y);
    void (*relu_slope)(i64 n, f32 *dy, const f32 *y);
    void (*sigmoid)(i64 n, f32 *y, const f32 *x);
    void (*tanh)(i64 n, f32 *y, const f32 *x);
    f64 (*sumsq)(i64 n, const f32 *x); /* same order of summation, so the same bits, on every instruction set */
    void (*sumsq_blocks)(i64 n, i64 block, const f32 *x, f64 *sum); /* sum[k] = sumsq of block k of x */
    f64 (*fma_rate)(i64 n);            /* runs n rounds of register-only FMAs, returns GFLOP/s; for calibration */
    const struct kern_device *device;  /* of a device with memory of its own (device.h); NULL = addresses are the host's */
};
struct kern_device;

/* The tables are made once and are immutable; any thread may call. kern_get returns NULL if the CPU lacks `arch`. kern_init
 * fails with E103 if this machine or build lacks the set that STRETTO_ISA names; kern_best then returns the best available. */
err kern_init(void);
const struct kern *kern_best(void);
const struct kern *kern_get(enum kern_arch arch);
const char *kern_arch_name(enum kern_arch arch);

/* The kernels of a cell in a precision, or NULL if this table has none. */
static inline const struct cell_kern *cell_at(const struct kern *k, enum cell_kind kind, enum precision p) {
    if (kind >= CELL_NKIND) return NULL; /* a cell with its own kernels: model/cell/cell.h */
    const struct cell_kern *c = p == PREC_BF16 ? &k->bf16[kind] : &k->cell[kind];
    return c->fwd ? c : NULL;
}

/* Gates of a kind: a panel of w holds cell_gates, a panel of bias and z cell_bias_gates (gru: 4). */
i32 cell_gates(enum cell_kind kind);
i32 cell_bias_gates(enum cell_kind kind);
i64 cell_w_floats(enum cell_kind kind, i32 I, i32 H);
i64 cell_bias_floats(enum cell_kind kind, i32 H);

/* Sizes of cell_args.gather: floats of one copied row [x;h], and copied rows for each row of the batch. */
i64 cell_gather_row(i32 I, i32 H);
i32 cell_gather_rows(i32 T, i32 B);

#endif
