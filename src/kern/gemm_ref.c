/* gemm_ref.c - the plain twins of the matrix products. */
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

void kern_fill_gemm_ref(struct kern *k) {
    k->gemm_nn = gemm_nn;
    k->gemm_tn = gemm_tn;
    k->gemm_tn_runs = gemm_tn_runs;
}
