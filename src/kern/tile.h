/* tile.h - the register tiles from which all products in this folder are built, and the split of rows into tiles.
 *
 *     mul_rows    acc[MR][NV]  +=  a[MR rows][K]  x  w[K][NV vectors]       forward, dh, dx, gemm_nn
 *     mul_cols    acc[MK][NV]  +=  a[rows][MK]'   x  d[rows][NV vectors]    dW, gemm_tn
 *
 * MR, NV and MK are constants at every call, so the loops unroll and acc stays in registers: 24 accumulators of 32 registers
 * (avx512, neon), 12 of 16 on avx2, 8 on base. One chain of v_fma sums each element over k (or rows) in increasing order, so
 * the tile sizes change no bits. */
#ifndef STRETTO_KERN_TILE_H
#define STRETTO_KERN_TILE_H

#include "kern/simd.h"

#if defined(ISA_avx2)
#define ROWS_MAX 6
#define FEW_ROWS 3
#define WIDE 2
#elif REGS == 32
#define ROWS_MAX 6
#define FEW_ROWS 6
#define WIDE 4
#else
#define ROWS_MAX 2
#define FEW_ROWS 1
#define WIDE 4
#endif
enum { COLS_MAX = 16 }; /* WIDE: vectors per row of a tile; COLS_MAX: maximum rows of a mul_cols tile */

enum { ACC = 16 }; /* allocated columns of the accumulator array */

/* to_value: the accumulator column that column j of a product adds to. An expression rather than a table: clang keeps acc in
 * memory if it cannot resolve the index before scalar replacement. */
enum to { TO_SAME, TO_R_Z_NX, TO_R_Z_NH }; /* gru: maps the three gates of one side to a unit's four values r, z, n_x, n_h */
INLINE int to_value(const enum to to, const int j) {
    return to == TO_SAME ? j : j / 3 * 4 + j % 3 + (to == TO_R_Z_NH && j % 3 == 2);
}

/* mul_rows with (FETCH) or without prefetch. */
INLINE void add_rows(const int MR, const int NV, vf (*acc)[ACC], const enum to to, const f32 *a, i64 lda, const f32 *w, i64 ldw,
                     const i64 *group, const int PER, const int STEP, i32 K, const f32 *ahead, const bool FETCH) {
    for (i32 k = 0; k < K; k++, w += ldw) {
        if (FETCH) __builtin_prefetch(ahead + k * LANES, 0, 2);
        if (REGS == 16 && MR < NV) { /* the fewer values stay in registers */
            vf s[ROWS_MAX];
            UNROLL for (int r = 0; r < MR; r++) s[r] = v_set1(a[r * lda + k]);
            UNROLL for (int j = 0; j < NV; j++) {
                const vf b = v_load(w + group[j / PER] + j % PER * STEP);
                UNROLL for (int r = 0; r < MR; r++) acc[r][to_value(to, j)] = v_fma(s[r], b, acc[r][to_value(to, j)]);
            }
        } else {
            vf b[ACC];
            UNROLL for (int j = 0; j < NV; j++) b[j] = v_load(w + group[j / PER] + j % PER * STEP);
            UNROLL for (int r = 0; r < MR; r++) {
                const vf s = v_set1(a[r * lda + k]);
                UNROLL for (int j = 0; j < NV; j++) acc[r][to_value(to, j)] = v_fma(s, b[j], acc[r][to_value(to, j)]);
            }
        }
    }
}

/* acc[r][to(j)] += sum over k < K of a[r*lda + k] * w[k*ldw + at(j)], with at(j) = group[j / PER] + j % PER * STEP: columns lie
 * in groups of PER vectors, STEP floats apart. If `ahead` is not NULL, each k prefetches one of its cache lines into L2:
 * weights larger than L2 would otherwise arrive too late. */
INLINE void mul_rows(const int MR, const int NV, vf (*acc)[ACC], const enum to to, const f32 *a, i64 lda, const f32 *w, i64 ldw,
                     const i64 *group, const int PER, const int STEP, i32 K, const f32 *ahead) {
    if (ahead)
        add_rows(MR, NV, acc, to, a, lda, w, ldw, group, PER, STEP, K, ahead, true);
    else
        add_rows(MR, NV, acc, to, a, lda, w, ldw, group, PER, STEP, K, NULL, false);
}

/* acc[i][j] += sum over n rows of a[i] * d[at[j]]; a and d advance by lda and ldd per row */
INLINE void mul_cols(const int MK, const int NV, vf (*acc)[WIDE], const f32 *a, i64 lda, const f32 *d, i64 ldd, const i64 *at,
                     i32 n) {
    for (i32 row = 0; row < n; row++, a += lda, d += ldd) {
        vf b[WIDE];
        UNROLL for (int j = 0; j < NV; j++) b[j] = v_load(d + at[j]);
        UNROLL for (int i = 0; i < MK; i++) {
            const vf s = v_set1(a[i]);
            UNROLL for (int j = 0; j < NV; j++) acc[i][j] = v_fma(s, b[j], acc[i][j]);
        }
    }
}

/* F(1, tag) .. F(n, tag) for a macro n: defines the tile functions of 1 to n rows or columns. TILES: their table, by number. */
#define UP_TO_1(F, tag) F(1, tag)
#define UP_TO_2(F, tag) UP_TO_1(F, tag) F(2, tag)
#define UP_TO_3(F, tag) UP_TO_2(F, tag) F(3, tag)
#define UP_TO_4(F, tag) UP_TO_3(F, tag) F(4, tag)
#define UP_TO_6(F, tag) UP_TO_4(F, tag) F(5, tag) F(6, tag)
#define UP_TO_8(F, tag) UP_TO_6(F, tag) F(7, tag) F(8, tag)
#define UP_TO_12(F, tag) UP_TO_8(F, tag) F(9, tag) F(10, tag) F(11, tag) F(12, tag)
#define UP_TO_16(F, tag) UP_TO_12(F, tag) F(13, tag) F(14, tag) F(15, tag) F(16, tag)
#define UP_TO_N(n, F, tag) UP_TO_##n(F, tag)
#define UP_TO(n, F, tag) UP_TO_N(n, F, tag)
#define TILE_ENTRY(n, tag) tag##n,
#define TILES(n, tag) {NULL, UP_TO(n, TILE_ENTRY, tag)}

/* The same for 1 to WIDE vectors per row: F(rows, vectors) defines tag_VECTORS_ROWS. */
#if WIDE == 2
#define UP_TO_WIDE(F) UP_TO(ROWS_MAX, F, 1) UP_TO(ROWS_MAX, F, 2)
#define TILES_TO_WIDE(tag) {{NULL}, TILES(ROWS_MAX, tag##_1_), TILES(ROWS_MAX, tag##_2_)}
#else
#define UP_TO_WIDE(F) UP_TO(ROWS_MAX, F, 1) UP_TO(ROWS_MAX, F, 2) UP_TO(ROWS_MAX, F, 3) UP_TO(ROWS_MAX, F, 4)
#define TILES_TO_WIDE(tag)                                                                                                       \
    {{NULL}, TILES(ROWS_MAX, tag##_1_), TILES(ROWS_MAX, tag##_2_), TILES(ROWS_MAX, tag##_3_), TILES(ROWS_MAX, tag##_4_)}
#endif

/* Rows of the next tile when `left` rows remain. Avoids a last tile of one row where two fuller tiles are possible. */
static inline i32 tile_rows(i32 left) {
    if (left <= ROWS_MAX) return left;
    const i32 tail = left % ROWS_MAX;
    if (left < 2 * ROWS_MAX) return (left + 1) / 2;
    return tail == 0 || tail > ROWS_MAX / 2 ? ROWS_MAX : ROWS_MAX - (ROWS_MAX > 3);
}

typedef f32 quad __attribute__((vector_size(16)));
typedef i32 quad_index __attribute__((vector_size(16)));
#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (quad_index){__VA_ARGS__})
#endif

/* to[lane][u] = from[u][lane] for LANES lanes and n rows u; columns n..width of `to` become zero. Uses 4 x 4 blocks on every
 * instruction set. */
static inline void transpose_lanes(const f32 *from, i64 ld_from, i32 n, f32 *to, i32 width) {
    for (i32 u = 0; u < width; u += 4) {
        for (i32 lane = 0; lane < LANES; lane += 4) {
            quad a[4] = {{0}}, b[4];
            for (i32 i = 0; i < imin(4, n - u); i++) memcpy(&a[i], from + (u + i) * ld_from + lane, sizeof a[i]);
            for (i32 i = 0; i < 2; i++) {
                b[2 * i] = SHUFFLE(a[i], a[i + 2], 0, 4, 1, 5);
                b[2 * i + 1] = SHUFFLE(a[i], a[i + 2], 2, 6, 3, 7);
            }
            for (i32 i = 0; i < 2; i++) {
                a[2 * i] = SHUFFLE(b[i], b[i + 2], 0, 4, 1, 5);
                a[2 * i + 1] = SHUFFLE(b[i], b[i + 2], 2, 6, 3, 7);
            }
            for (i32 i = 0; i < 4; i++) memcpy(to + (lane + i) * width + u, &a[i], sizeof a[i]);
        }
    }
}

/* Columns of the next mul_cols tile: splits `left` into tiles of nearly equal size, at most `most`. */
static inline i32 tile_cols(i32 left, i32 most) {
    const i32 tiles = (left + most - 1) / most;
    return (left + tiles - 1) / tiles;
}

#endif
