/* algebra.c - Cholesky factor and triangular solves in blocks of rows, over the inner loops of solve.c.
 *
 *     A = U'U, row-major, upper triangle:   | U11 U12 |   U11, U12 row by row; then A22 -= U12' U12 in register tiles
 *                                           |     A22 | */
#include <math.h>

#include "bases/linear.h"

extern const struct algebra algebra_base;
#if defined(__x86_64__)
extern const struct algebra algebra_avx2, algebra_avx512;
#endif

const struct algebra *algebra_best(void) {
#if defined(__x86_64__)
    switch (kern_best()->arch) { /* one choice for the whole program, STRETTO_ISA included */
    case KERN_AMX:
    case KERN_AVX512_BF16:
    case KERN_AVX512: return &algebra_avx512;
    case KERN_AVX2: return &algebra_avx2;
    default: break;
    }
#endif
    return &algebra_base;
}

enum { BLOCK = 32 };

/* Rows k0..k1-1 of U, all columns to the right. */
static bool factor_rows(i32 n, i32 k0, i32 k1, f64 *A) {
    for (i32 k = k0; k < k1; k++) {
        f64 *row = A + (i64)k * n, pivot = row[k];
        if (!(pivot > 0) || !isfinite(pivot)) return false;
        f64 d = sqrt(pivot);
        row[k] = d;
        for (i32 j = k + 1; j < n; j++) row[j] /= d;
        for (i32 i = k + 1; i < k1; i++) {
            f64 v = row[i], *to = A + (i64)i * n;
            for (i32 j = i; j < n; j++) to[j] -= v * row[j];
        }
    }
    return true;
}

bool cholesky(const struct algebra *g, i32 n, f64 *A) {
    for (i32 k0 = 0; k0 < n; k0 += BLOCK) {
        i32 k1 = imin(k0 + BLOCK, n);
        if (!factor_rows(n, k0, k1, A)) return false;
        for (i32 i = k1; i < n; i += BLOCK) {
            const f64 *u = A + (i64)k0 * n + i;
            g->sub(imin(BLOCK, n - i), n - i, k1 - k0, u, 1, n, u, n, A + (i64)i * n + i, n);
        }
    }
    return true;
}

/* x[k] = (x[k] - sum over the rows of the block already done) / U[k][k] */
static void finish_row(i32 n, const f64 *U, i32 N, f64 *X, i32 k, i32 from, i32 to, bool forward) {
    f64 *x = X + (i64)k * N;
    for (i32 i = from; i < to; i++) {
        f64 u = forward ? U[(i64)i * n + k] : U[(i64)k * n + i];
        const f64 *y = X + (i64)i * N;
        for (i32 j = 0; j < N; j++) x[j] -= u * y[j];
    }
    for (i32 j = 0; j < N; j++) x[j] /= U[(i64)k * n + k];
}

void cholesky_solve(const struct algebra *g, i32 n, const f64 *U, i32 N, f64 *X) {
    for (i32 k0 = 0; k0 < n; k0 += BLOCK) {
        i32 k1 = imin(k0 + BLOCK, n);
        if (k0) g->sub(k1 - k0, N, k0, U + k0, 1, n, X, N, X + (i64)k0 * N, N);
        for (i32 k = k0; k < k1; k++) finish_row(n, U, N, X, k, k0, k, true);
    }
    for (i32 k0 = (n - 1) / BLOCK * BLOCK; k0 >= 0; k0 -= BLOCK) {
        i32 k1 = imin(k0 + BLOCK, n);
        if (k1 < n) g->sub(k1 - k0, N, n - k1, U + (i64)k0 * n + k1, n, 1, X + (i64)k1 * N, N, X + (i64)k0 * N, N);
        for (i32 k = k1 - 1; k >= k0; k--) finish_row(n, U, N, X, k, k + 1, k1, false);
    }
}
