/* bf16_tile_dp.h - tile products with vdpbf16ps (AVX512_BF16), on operands in the tile layout (bf16_layout.h).
 *
 *     out [rows][columns]  =  in  +  a [rows][pairs of k]  *  w [pairs of k][columns]        a column = 16 f32
 *
 * Sums stay in registers over all lines of k: 8 rows x 2 columns, or 16 x 1. That hides the latency of a dot product (Zen 5:
 * two per cycle, six cycles each). A pair of k of one row is broadcast from memory. Each sum adds its pairs in increasing order
 * of k, independent of the other rows and of the blocking. Missing rows and padding pairs cost nothing. */
#ifndef STRETTO_KERN_BF16_TILE_DP_H
#define STRETTO_KERN_BF16_TILE_DP_H

#include "kern/bf16_vec.h"

#include <string.h>

enum { RUN_PAIRS = 16, RUN_STEP = 4, RUN_COLUMNS = 4 }; /* RUN_PAIRS: pairs of k per line, processed RUN_STEP at a time */

struct run {
    const u16 *a, *w;      /* first row of a, first line of w */
    i64 a_two, a_one;      /* offsets from line s (even) to lines s + 2 and s + 1 */
    i64 w_line, w_two;     /* offsets between lines of w, and from column c to c + 2; column 1 is one tile after column 0 */
    i32 lines, part[2][2]; /* up to two lines with fewer pairs: {line, pairs} */
    i32 odd[2];            /* range of pairs used in odd lines */
    const f32 *in[RUN_COLUMNS];
    f32 *out[RUN_COLUMNS];
    i64 in_row, out_row;
};

/* R rows from r x C columns from C0; A_ROW: row stride of a. */
INLINE void run_rows(const int R, const int C0, const int C, const i64 A_ROW, const struct run *q, i32 r) {
    vf sum[16][RUN_COLUMNS];
    UNROLL for (int i = 0; i < R; i++)
        UNROLL for (int c = 0; c < C; c++) sum[i][c] = v_load(q->in[C0 + c] + (r + i) * q->in_row);
    const char *w = (const char *)(q->w + C0 / 2 * q->w_two);
    for (i32 s = 0; s < q->lines; s++, w += 2 * q->w_line) {
        const char *a = (const char *)(q->a + r * A_ROW + (s >> 1) * q->a_two + (s & 1) * q->a_one);
        const i32 all = s & 1 ? q->odd[1] : RUN_PAIRS, first = s & 1 ? q->odd[0] : 0;
        const i32 pairs = s == q->part[0][0] ? q->part[0][1] : s == q->part[1][0] ? q->part[1][1] : all;
        const char *v = w + 64 * first;
        a += 4 * first;
        for (i32 k = first; k < pairs; k += RUN_STEP, a += 4 * RUN_STEP, v += 64 * RUN_STEP) {
            UNROLL for (int j = 0; j < RUN_STEP; j++) {
                vi column[RUN_COLUMNS];
                UNROLL for (int c = 0; c < C; c++)
                    column[c] = _mm512_loadu_si512(v + 64 * j + c % 2 * (2 * TILE) + c / 2 * (2 * q->w_two));
                UNROLL for (int i = 0; i < R; i++) {
                    i32 pair;
                    memcpy(&pair, a + 2 * i * A_ROW + 4 * j, sizeof pair);
                    const vi row = _mm512_set1_epi32(pair);
                    UNROLL for (int c = 0; c < C; c++)
                        sum[i][c] = _mm512_dpbf16_ps(sum[i][c], (__m512bh)row, (__m512bh)column[c]);
                }
            }
        }
    }
    UNROLL for (int i = 0; i < R; i++)
        UNROLL for (int c = 0; c < C; c++) v_store(q->out[C0 + c] + (r + i) * q->out_row, sum[i][c]);
}

/* n rows x columns 0, 1. */
INLINE void run_two(const i64 A_ROW, const struct run *q, i32 n) {
    i32 r = 0;
    for (; r + 8 <= n; r += 8) run_rows(8, 0, 2, A_ROW, q, r);
    if (n - r >= 4) run_rows(4, 0, 2, A_ROW, q, r), r += 4;
    if (n - r >= 2) run_rows(2, 0, 2, A_ROW, q, r), r += 2;
    if (n > r) run_rows(1, 0, 2, A_ROW, q, r);
}

/* n rows x columns 0..3; the last few rows use four columns at once to hide latency. */
INLINE void run_four(const i64 A_ROW, const struct run *q, i32 n) {
    i32 r = n & ~7;
    for (i32 i = 0; i < r; i += 8) run_rows(8, 0, 2, A_ROW, q, i);
    for (i32 i = 0; i < r; i += 8) run_rows(8, 2, 2, A_ROW, q, i);
    if (n - r >= 4) run_rows(4, 0, 4, A_ROW, q, r), r += 4;
    if (n - r >= 2) run_rows(2, 0, 4, A_ROW, q, r), r += 2;
    if (n > r) run_rows(1, 0, 4, A_ROW, q, r);
}

/* n rows x column 0. */
INLINE void run_one(const i64 A_ROW, const struct run *q, i32 n) {
    i32 r = 0;
    for (; r + 16 <= n; r += 16) run_rows(16, 0, 1, A_ROW, q, r);
    if (n - r >= 8) run_rows(8, 0, 1, A_ROW, q, r), r += 8;
    if (n - r >= 4) run_rows(4, 0, 1, A_ROW, q, r), r += 4;
    for (; r < n; r++) run_rows(1, 0, 1, A_ROW, q, r);
}

struct tiles {
    u8 none; /* empty: there are no tile registers */
};
#define tiles_awake(tl) ((void)(tl))
#define tiles_begin(tl) ((void)((tl)->none = 0))
#define tiles_end(tl) ((void)(tl))

#endif
