/* gemm_tile.c - gemm_nn, gemm_tn and gemm_tn_runs over the register tiles of tile.h; compiled once per instruction set.
 *
 * B is read in place in strips of WIDE vectors without packing: its rows are contiguous, and the layers it serves are narrow. */
#include "kern/fill.h"
#include "kern/tile.h"

enum { STRIP = WIDE * VL, K_BLOCK = 512, TN_NV = 2 };

/* Computes MR rows x NV vectors of C; add: accumulate onto the partial sums in C. */
INLINE void nn_tile(const int MR, const int NV, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add) {
    vf acc[ROWS_MAX][ACC];
    const i64 group[1] = {0};
    UNROLL for (int r = 0; r < MR; r++)
        UNROLL for (int j = 0; j < NV; j++) acc[r][j] = add ? v_load(C + r * ldc + j * VL) : v_zero();
    mul_rows(MR, NV, acc, TO_SAME, A, lda, B, ldb, group, WIDE, VL, K, NULL);
    UNROLL for (int r = 0; r < MR; r++)
        UNROLL for (int j = 0; j < NV; j++) v_store(C + r * ldc + j * VL, acc[r][j]);
}

typedef void nn_fn(i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add);
#define NN(n, nv)                                                                                                                \
    static void nn_##nv##_##n(i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add) {                  \
        nn_tile(n, nv, K, A, lda, B, ldb, C, ldc, add);                                                                          \
    }
UP_TO_WIDE(NN)
static nn_fn *const nn_rows[WIDE + 1][ROWS_MAX + 1] = TILES_TO_WIDE(nn);

static void gemm_nn(i32 M, i32 N, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add) {
    const i32 Np = round_up(N, LANES);
    for (i32 k = 0; k < K || k == 0; k += K_BLOCK, add = true) {
        const i32 kn = imin(K_BLOCK, K - k);
        for (i32 j = 0; j < Np; j += STRIP) {
            nn_fn *const *tiles = nn_rows[imin(WIDE, (Np - j) / VL)];
            for (i32 i = 0; i < M;) {
                const i32 n = tile_rows(M - i);
                tiles[n](kn, A + i * lda + k, lda, B + k * ldb + j, ldb, C + i * ldc + j, ldc, add);
                i += n;
            }
        }
    }
}

/* n runs of K rows of A and B whose products are added up. */
struct runs {
    i32 n, K;
    i64 a, b; /* offset from one run to the next, in floats */
};
INLINE void tn_tile(const int MK, const int NV, struct runs r, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc,
                    bool add) {
    vf acc[COLS_MAX][WIDE];
    const i64 at[TN_NV] = {0, VL};
    UNROLL for (int i = 0; i < MK; i++)
        UNROLL for (int j = 0; j < NV; j++) acc[i][j] = add ? v_load(C + i * ldc + j * VL) : v_zero();
    for (i32 i = 0; i < r.n; i++) mul_cols(MK, NV, acc, A + i * r.a, lda, B + i * r.b, ldb, at, r.K);
    UNROLL for (int i = 0; i < MK; i++)
        UNROLL for (int j = 0; j < NV; j++) v_store(C + i * ldc + j * VL, acc[i][j]);
}

typedef void tn_fn(struct runs r, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add);
#define TN(n, nv)                                                                                                                \
    static void tn_##nv##_##n(struct runs r, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add) {          \
        tn_tile(n, nv, r, A, lda, B, ldb, C, ldc, add);                                                                          \
    }
#if REGS == 32
#define TN_MK 12
#elif defined(ISA_avx2)
#define TN_MK 6
#else
#define TN_MK 4
#endif
UP_TO(TN_MK, TN, 1) UP_TO(TN_MK, TN, 2)
static tn_fn *const tn_cols[TN_NV + 1][TN_MK + 1] = {{NULL}, TILES(TN_MK, tn_1_), TILES(TN_MK, tn_2_)};

static void tn_runs(i32 M, i32 N, struct runs r, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add) {
    const i32 Np = round_up(N, LANES);
    for (i32 j = 0; j < Np; j += TN_NV * VL) {
        tn_fn *const *tiles = tn_cols[imin(TN_NV, (Np - j) / VL)];
        for (i32 i = 0; i < M;) {
            const i32 n = tile_cols(M - i, TN_MK);
            tiles[n](r, A + i, lda, B + j, ldb, C + i * ldc + j, ldc, add);
            i += n;
        }
    }
}

static void gemm_tn(i32 M, i32 N, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add) {
    for (i32 k = 0; k < K || k == 0; k += K_BLOCK / 2, add = true)
        tn_runs(M, N, (struct runs){1, imin(K_BLOCK / 2, K - k), 0, 0}, A + k * lda, lda, B + k * ldb, ldb, C, ldc, add);
}

static void gemm_tn_runs(i32 M, i32 N, i32 K, i32 n, const f32 *A, i64 lda, i64 a, const f32 *B, i64 ldb, i64 b, f32 *C,
                         i64 ldc) {
    const i32 most = imax(1, K_BLOCK / 2 / K);
    for (i32 i = 0; i < n; i += most)
        tn_runs(M, N, (struct runs){imin(most, n - i), K, a, b}, A + i * a, lda, B + i * b, ldb, C, ldc, true);
}

void ISA_NAME(kern_fill_gemm)(struct kern *k) {
    k->gemm_nn = gemm_nn;
    k->gemm_tn = gemm_tn;
    k->gemm_tn_runs = gemm_tn_runs;
}
