/* gemm_ref.c - scalar reference implementations of the matrix products in kern.h. */
#include "kern/fill.h"

/* One row of C: c = (add ? c : 0) + sum over k of a[k * step] B[k]. */
static void row(i32 N, i32 K, const f32 *a, i64 step, const f32 *B, i64 ldb, f32 *c, bool add) {
    const i32 Np = round_up(N, LANES);
    for (i32 j = 0; j < Np && !add; j++) c[j] = 0;
    for (i32 k = 0; k < K; k++)
        for (i32 j = 0; j < Np; j++) c[j] += a[k * step] * B[k * ldb + j];
}

static void gemm_nn(i32 M, i32 N, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add) {
    for (i32 i = 0; i < M; i++) row(N, K, A + i * lda, 1, B, ldb, C + i * ldc, add);
}

static void gemm_tn(i32 M, i32 N, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add) {
    for (i32 i = 0; i < M; i++) row(N, K, A + i, lda, B, ldb, C + i * ldc, add);
}

static void gemm_tn_runs(i32 M, i32 N, i32 K, i32 n, const f32 *A, i64 lda, i64 a, const f32 *B, i64 ldb, i64 b, f32 *C,
                         i64 ldc) {
    for (i32 i = 0; i < n; i++) gemm_tn(M, N, K, A + i * a, lda, B + i * b, ldb, C, ldc, true);
}

static void narrow_fwd(i32 N, i32 rows, i32 K, const f32 *x, i64 ldx, const f32 *wt, i64 ldw, const f32 *bias, f32 *y, i64 ldy) {
    for (i32 r = 0; r < rows; r++)
        for (i32 n = 0; n < LANES; n++) {
            f32 sum = 0;
            for (i32 k = 0; k < K && n < N; k++) sum += x[r * ldx + k] * wt[n * ldw + k];
            y[r * ldy + n] = n < N ? bias[n] + sum : 0;
        }
}

static void narrow_dx(i32 N, i32 rows, i32 K, const f32 *dz, i64 ldz, const f32 *wt, i64 ldw, f32 *dx, i64 ldx) {
    for (i32 r = 0; r < rows; r++)
        for (i32 k = 0; k < K; k++) {
            f32 sum = 0;
            for (i32 n = 0; n < N; n++) sum += dz[r * ldz + n] * wt[n * ldw + k];
            dx[r * ldx + k] = sum;
        }
}

static void narrow_dw(i32 N, i32 rows, i32 K, const f32 *x, i64 ldx, const f32 *dz, i64 ldz, f32 *dwt, i64 ldw) {
    for (i32 n = 0; n < N; n++)
        for (i32 k = 0; k < K; k++) {
            f32 sum = 0;
            for (i32 r = 0; r < rows; r++) sum += dz[r * ldz + n] * x[r * ldx + k];
            dwt[n * ldw + k] += sum;
        }
}

void kern_fill_gemm_ref(struct kern *k) {
    k->gemm_nn = gemm_nn;
    k->gemm_tn = gemm_tn;
    k->gemm_tn_runs = gemm_tn_runs;
    k->narrow_fwd = narrow_fwd;
    k->narrow_dx = narrow_dx;
    k->narrow_dw = narrow_dw;
}
