/* linear.h - private parts of the bases: forecasts of the ridge map, and the f64 algebra that fits it.
 *
 * X_init allocates the arrays of a struct from an arena, which frees them. */
#ifndef STRETTO_BASES_LINEAR_H
#define STRETTO_BASES_LINEAR_H

#include "base/arena.h"
#include "bases/base.h"


void ridge_add(const struct ridge *r, f64 weight, const struct series *s, i32 col, i64 origin, i32 H, f32 *out);
err ridge_add_rows(const struct ridge *r, f64 weight, const struct series *s, const struct row_list *rows, i32 H, f32 *out,
                   i64 ldo, const struct kern *k);

/* --- inputs from columns that are known ahead (ahead.c) --- */
enum { AHEAD_MOST = 512 };
struct ahead_inputs ahead_of(const struct series *s, i32 L, i32 H); /* those that a ridge of this shape may have */
i32 ahead_count(const struct ahead_inputs *a, i32 H);
/* u[ahead_count]: 0 (the mean of training) for what is missing or lies outside of the series. */
void ahead_take(const struct ahead_inputs *a, const struct series *s, i32 col, i64 origin, i32 H, f32 *u);

/* --- sums over windows: the fit, the choice of the penalty and the loss of a ridge need only these ---
 *
 *   A window at origin o is L + H consecutive values z[o-L .. o+H); G[i][j] = sum over windows of z[o-L+i] z[o-L+j].
 *   Neighbouring windows overlap: G[i+1][j+1] = G[i][j] + (one product at the end) - (one at the start), so only the first row is
 *   summed over the rows of the series. Calendar inputs are one-hot, so their products are sums of the windows with that mark. */
struct moments {
    i32 marks;      /* of a window: 3, 2 = without its month, whose weights are then 0, or 0 = no calendar */
    i32 L, H, C, X; /* C calendar rows, 0 or RIDGE_CALENDAR; X inputs from columns known ahead; extras: C + X */
    i64 n;          /* windows */
    i64 size;       /* numbers in G, D, S, M, N and SX, which follow each other in memory */
    f64 *G;         /* [L][L+H], entries j >= i only */
    f64 *D;         /* [L+H] diagonal */
    f64 *S;         /* [L+H] sums */
    f64 *M;         /* [C+X][L+H] sums of windows times an extra */
    f64 *N;         /* [C+X][C+X] sums of products of extras; a mark comes before an input that is known ahead */
    f64 *SX;        /* [X] sums */
    f64 *row;       /* [L+H] scratch */
    f64 *block;     /* [2][MOMENTS_BLOCK][X] scratch: the inputs known ahead of some windows, and their negatives */
    f32 *input;     /* [X] scratch */
};
enum { MOMENTS_BLOCK = 64 };
struct windows;
err moments_init(struct arena *a, i32 L, i32 H, i32 marks, i32 X, struct moments *m);
void moments_clear(struct moments *m);
/* Adds the windows of a column with origins in [a, b), all of which count. */
void moments_take(struct moments *m, const struct windows *w, i32 col, i64 a, i64 b);

f64 mark_scale(i32 c); /* calendar row c of w belongs to an input of this size */

/* The inputs of one ridge, among those that moments hold. */
struct input_set {
    bool constant, calendar, ahead;
};
i32 moments_inputs(const struct moments *m, struct input_set set); /* a constant is none of them */

/* Normal equations of inputs u = (window - last, marks, known ahead) and targets v = future - last, every `stride`-th step only:
 * K = moments_inputs, N targets. */
struct system {
    i32 K, N, stride;
    bool constant;
    i64 n;
    f64 *UU;        /* [K][K] sums, full */
    f64 *UV;        /* [K][N] */
    f64 *SU, *SV;   /* [K], [N] sums */
    f64 VV;         /* sum of all squared targets */
};
err system_init(struct arena *a, i32 K, i32 N, i32 stride, struct system *q);
void system_from(struct system *q, const struct moments *m, struct input_set set); /* K follows from the set */

/* A ridge solution: W [K][N] and constant b [N] for penalty x windows. */
struct solution {
    i32 K, N;
    f64 *W, *b;
    f64 *A, *T;     /* [K][K], [K][N] scratch */
};
err solution_init(struct arena *a, i32 K, i32 N, struct solution *x);
err ridge_solve(const struct system *q, f64 penalty, struct solution *x); /* sets K of x */
err ridge_from(const struct moments *m, struct input_set set, const struct ahead_inputs *ahead, f64 penalty, struct ridge **out);
f64 ridge_loss(const struct system *q, struct solution *x); /* mean squared error of x over the windows of q; x->T is scratch */

/* --- the windows of a series that a ridge may be fitted on ---
 *
 * z: values with gaps filled by the last observed one, as a forecast sees them. Cells that --gaps interpolate filled are gaps: a
 * forecast knows them from some origins only, and all origins share z. A window counts if all its targets are observed and some
 * value L or more rows before them is. */
struct windows {
    const struct series *s;
    struct ahead_inputs ahead;
    i64 nrow;
    i32 ncol, L, H;
    f64 *z;          /* [ncol][nrow + 1], the last one is padding */
    i32 *clear;      /* [ncol][nrow] observed rows from here on, up to H */
    i64 *first;      /* [ncol] first observed row */
};
/* Adds the windows with origins in [from, to) to m. */
err windows_take(const struct windows *w, i64 from, i64 to, struct moments *m, struct workload *work);
static inline bool window_counts(const struct windows *w, i32 col, i64 o) {
    return o >= w->first[col] + w->L && o + w->H <= w->nrow && w->clear[(i64)col * w->nrow + o] >= w->H;
}

/* --- forward chaining: fit on the rows before a fold, measure on the fold, continue with the next fold --- */
enum { PENALTIES = 13, PENALTY_USUAL = 10, STEPS_MEASURED = 96, WINDOWS_MIN = 20 };
enum { SETS = 8 };                        /* without and with a constant, the calendar, columns known ahead */
enum { INPUTS_MANY = 512 };               /* with more, which take time: every second penalty, always a constant */
extern const f64 penalty_grid[PENALTIES]; /* 1e-6 .. 1 in half decades */
struct chain {
    struct arena memory;
    struct windows w;
    struct moments past, fold;
    struct system fit, test;
    struct solution x;
    i32 step;                /* distance in penalty_grid between penalties that are tried */
    i64 upto;                /* past holds the windows inside [0, upto) */
    i32 nset;
    struct input_set set[SETS];      /* that are tried */
    f64 loss[SETS][PENALTIES];       /* sums over folds so far */
    i64 measured;                    /* windows of these folds */
    struct workload *work;     /* progress, as in base_spec */
};
err chain_new(const struct series *s, const struct base_spec *spec, struct chain **out); /* ncol, L, H, calendar, ahead */
void chain_free(struct chain *c);

/* The best of a chain so far: of the first set and 0.1 before any fold was measured. */
struct chain_best {
    i32 set, penalty; /* indices */
};
struct chain_best chain_best(const struct chain *c);
/* Fitted on `past` with the best inputs; penalty 0 = the best one. */
err chain_ridge(const struct chain *c, f64 penalty, struct ridge **out);
f64 chain_cost(const struct chain *c, i32 folds); /* estimated work of all folds in the unit of struct workload */
/* Fits on [0, from); *loss = MSE over the windows of [from, to) with the penalty that was best before, NaN if there are too few
 * windows. *fitted (fitted may be NULL): the fitted map, which the caller frees with mem_free, or NULL. */
err chain_fold(struct chain *c, i64 from, i64 to, f64 *loss, struct ridge **fitted);

/* The lag of the highest peak of the autocorrelation over rows [0, rows), mean over columns (0 = none), and whether the season
 * given shows in it beyond chance. */
err season_scan(const struct series *s, i32 ncol, i64 rows, i32 season, i32 *peak, bool *strong);

/* Squared errors, one row ahead, of smoothing rows [0, rows) with a season taken out: how the theta method finds its alpha. */
f64 smooth_error(const struct series *s, i32 col, i64 rows, i32 season, f64 alpha);

/* --- f64 algebra, one copy per instruction set (solve.c) --- */
struct algebra {
    /* C[M][N] -= A B, element (m,k) of A at a[m * am + k * ak], rows of B and C ldb and ldc apart */
    void (*sub)(i32 M, i32 N, i32 K, const f64 *a, i64 am, i64 ak, const f64 *b, i64 ldb, f64 *c, i64 ldc);
    void (*add_lags)(i64 n, i32 m, const f64 *z, f64 *acc);  /* acc[d] += sum over t < n of z[t] z[t+d], d < m */
    void (*shift)(i32 m, f64 zb, const f64 *b, f64 za, const f64 *a, f64 *row, f64 *to); /* row += zb b - za a; to += row */
};
const struct algebra *algebra_best(void);

/* A = U'U in the upper triangle of A [n][n]; false when A is not positive definite. */
bool cholesky(const struct algebra *g, i32 n, f64 *A);
/* X [n][N] := solution of U'U X = X. */
void cholesky_solve(const struct algebra *g, i32 n, const f64 *U, i32 N, f64 *X);

#endif
