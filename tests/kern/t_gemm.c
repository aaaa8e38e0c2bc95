/* t_gemm.c - the dense products of every instruction set against plain f64 sums. */
#include "t.h"

#include "base/mem.h"
#include "base/rng.h"
#include "kern/kern.h"

#include <stdio.h>
#include <string.h>

static f32 *floats(i64 n) {
    f32 *p = mem_alloc((size_t)n * sizeof *p);
    assert_non_null(p);
    return p;
}

static f32 *drawn(i64 n, u32 what) {
    f32 *p = floats(n);
    for (i64 j = 0; j < n; j++) p[j] = 2 * rng_uniform(3, RNG_TEST, what, (u64)j) - 1;
    return p;
}

/* tn: A is [K][M].  Columns N..Np of B hold zero, as packed dense weights do. */
static void check(enum kern_arch arch, i32 M, i32 N, i32 K, bool tn, bool add) {
    const i64 Np = round_up(N, LANES), ldb = Np + 16, ldc = Np + 32, lda = (tn ? M : K) + 5;
    f32 *A = drawn(lda * (tn ? K : M), 1), *B = drawn(ldb * K, 2), *C = drawn(ldc * M, 3), *keep = floats(ldc * M);
    f64 *want = mem_alloc((size_t)(ldc * M) * sizeof *want);
    assert_non_null(want);
    for (i32 k = 0; k < K; k++)
        for (i64 j = N; j < Np; j++) B[k * ldb + j] = 0;
    for (i32 i = 0; i < M; i++)
        for (i64 j = N; j < Np; j++) C[i * ldc + j] = 0;
    memcpy(keep, C, (size_t)(ldc * M) * sizeof *C);
    for (i32 i = 0; i < M; i++)
        for (i64 j = 0; j < ldc; j++) {
            f64 sum = add || j >= Np ? (f64)C[i * ldc + j] : 0;
            for (i32 k = 0; k < K && j < Np; k++) sum += (f64)A[tn ? k * lda + i : i * lda + k] * (f64)B[k * ldb + j];
            want[i * ldc + j] = sum;
        }
    const struct kern *kern = kern_get(arch);
    (tn ? kern->gemm_tn : kern->gemm_nn)(M, N, K, A, lda, B, ldb, C, ldc, add);
    char label[100];
    snprintf(label, sizeof label, "%s gemm_%s M%d N%d K%d%s", kern->name, tn ? "tn" : "nn", M, N, K, add ? " add" : "");
    t_near64(label, C, want, ldc * M, 2e-6);
    for (i32 i = 0; i < M; i++) {
        for (i64 j = N; j < Np; j++) assert_true(C[i * ldc + j] == 0);
        assert_memory_equal(C + i * ldc + Np, keep + i * ldc + Np, (size_t)(ldc - Np) * sizeof *C);
    }
    mem_free(A), mem_free(B), mem_free(C), mem_free(keep), mem_free(want);
}

TEST(gemm_matches_f64_sums_at_odd_sizes) {
    const i32 M[] = {1, 2, 5, 6, 7, 13, 32, 97}, N[] = {1, 12, 16, 17, 48, 64, 100, 130}, K[] = {1, 3, 16, 50, 300};
    for (enum kern_arch a = 0; a < KERN_NARCH; a++)
        for (size_t m = 0; m < COUNT(M) && kern_get(a); m++)
            for (size_t n = 0; n < COUNT(N); n++)
                for (i32 tn = 0; tn < 2; tn++) check(a, M[m], N[n], K[(m + n) % COUNT(K)], tn, (m + n + (size_t)tn) % 2);
}

TEST(gemm_of_nothing_clears_or_keeps) {
    for (enum kern_arch a = 0; a < KERN_NARCH; a++)
        for (i32 tn = 0; tn < 2 && kern_get(a); tn++) check(a, 3, 20, 0, tn, false), check(a, 3, 20, 0, tn, true);
}

/* Few rows of every step in one call: the bits of a call for each. */
TEST(gemm_runs_are_one_product_after_another) {
    enum { M = 37, N = 20, ld = 32, runs = 41, apart = 9 };
    f32 *A = drawn(runs * apart * M, 1), *B = drawn(runs * apart * ld, 2), *C = floats(M * ld), *D = floats(M * ld);
    for (enum kern_arch a = 0; a < KERN_NARCH; a++)
        for (i32 K = 1; K <= apart && kern_get(a); K += 4) {
            const struct kern *k = kern_get(a);
            for (i32 i = 0; i < M * ld; i++) C[i] = D[i] = 1;
            k->gemm_tn_runs(M, N, K, runs, A, M, apart * M, B, ld, apart * ld, C, ld);
            for (i32 i = 0; i < runs; i++) k->gemm_tn(M, N, K, A + i * apart * M, M, B + i * apart * ld, ld, D, ld, true);
            assert_memory_equal(C, D, M * ld * sizeof *C);
        }
    mem_free(A), mem_free(B), mem_free(C), mem_free(D);
}

/* Matrices of few columns, against sums in f64. */
TEST(narrow_products_match_f64_sums) {
    const i32 Ks[] = {16, 48, 128, 208}, rows[] = {1, 5, 300};
    for (enum kern_arch a = 0; a < KERN_NARCH; a++)
        for (i32 c = 0; c < 4 * 4 * 3 && kern_get(a); c++) {
            const struct kern *k = kern_get(a);
            const i32 N = 1 + c % 4, K = Ks[c / 4 % 4], M = rows[c / 16];
            f32 *x = drawn(M * K, 1), *w = drawn(N * K, 2), *dz = drawn(M * LANES, 3), *bias = drawn(LANES, 4);
            f32 *y = floats(M * LANES), *dx = floats(M * K), *dw = floats(N * K);
            f64 *ywant = mem_alloc((size_t)(M * LANES) * 8), *dxwant = mem_alloc((size_t)(M * K) * 8),
                *dwwant = mem_alloc((size_t)(N * K) * 8);
            for (i32 i = 0; i < N * K; i++) dw[i] = 1, dwwant[i] = 1;
            for (i32 r = 0; r < M; r++)
                for (i32 n = 0; n < N; n++) {
                    ywant[r * LANES + n] = (f64)bias[n];
                    for (i32 i = 0; i < K; i++) {
                        ywant[r * LANES + n] += (f64)x[r * K + i] * (f64)w[n * K + i];
                        dxwant[r * K + i] += (f64)dz[r * LANES + n] * (f64)w[n * K + i];
                        dwwant[n * K + i] += (f64)dz[r * LANES + n] * (f64)x[r * K + i];
                    }
                }
            k->narrow_fwd(N, M, K, x, K, w, K, bias, y, LANES);
            k->narrow_dx(N, M, K, dz, LANES, w, K, dx, K);
            k->narrow_dw(N, M, K, x, K, dz, LANES, dw, K);
            t_near64("y", y, ywant, M * LANES, 1e-5), t_near64("dx", dx, dxwant, M * K, 2e-6);
            t_near64("dw", dw, dwwant, N * K, 5e-6);
            mem_free(x), mem_free(w), mem_free(dz), mem_free(bias), mem_free(y), mem_free(dx), mem_free(dw);
            mem_free(ywant), mem_free(dxwant), mem_free(dwwant);
        }
}

TEST(gemm_row_does_not_depend_on_the_other_rows) {
    enum { M = 31, N = 40, K = 70, ld = 48 };
    f32 *A = drawn(M * K, 1), *B = drawn(K * ld, 2), *C = floats(M * ld), *D = floats(ld);
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
        if (!kern_get(a)) continue;
        kern_get(a)->gemm_nn(M, N, K, A, K, B, ld, C, ld, false);
        for (i32 i = 0; i < M; i++) {
            kern_get(a)->gemm_nn(1, N, K, A + i * K, K, B, ld, D, ld, false);
            assert_memory_equal(D, C + i * ld, ld * sizeof *D);
        }
    }
    mem_free(A), mem_free(B), mem_free(C), mem_free(D);
}

T_MAIN(cmocka_unit_test(gemm_matches_f64_sums_at_odd_sizes), cmocka_unit_test(gemm_of_nothing_clears_or_keeps),
       cmocka_unit_test(gemm_row_does_not_depend_on_the_other_rows),
       cmocka_unit_test(gemm_runs_are_one_product_after_another),
       cmocka_unit_test(narrow_products_match_f64_sums))
