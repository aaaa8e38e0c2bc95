/* bf16_tile_dp.h - tile products by vdpbf16ps (AVX512_BF16): the tiles of bf16_tile_amx.h as arrays.
 *
 *     accumulators 0..3   16 lines of 16 f32          operands 4..7   only where they lie: they are read by the product
 *
 * A product keeps the 16 lines of its columns in registers; a pair of k of one row is broadcast to each.  Eight rows go side by
 * side, since a dot product takes as long as six others. */
#ifndef STRETTO_KERN_BF16_TILE_DP_H
#define STRETTO_KERN_BF16_TILE_DP_H

#include "kern/bf16_vec.h"

#include <string.h>

struct operand {
    const char *p;
    i64 stride;
};
struct tiles {
    f32 acc[4][ZTILE] __attribute__((aligned(64)));
    struct operand at[8];
};

static inline void acc_load(f32 *acc, const void *p, i64 stride) {
    for (i32 r = 0; r < 16; r++) memcpy(acc + 16 * r, (const char *)p + r * stride, 64);
}
static inline void acc_store(const f32 *acc, void *p, i64 stride) {
    for (i32 r = 0; r < 16; r++) memcpy((char *)p + r * stride, acc + 16 * r, 64);
}

static inline void acc_mul(f32 *acc, struct operand rows, struct operand columns) {
    enum { SIDE = 8 };
    vi w[16];
    UNROLL for (int k = 0; k < 16; k++) w[k] = _mm512_loadu_si512(columns.p + k * columns.stride);
    for (i32 r0 = 0; r0 < 16; r0 += SIDE) {
        vf sum[SIDE];
        UNROLL for (int r = 0; r < SIDE; r++) sum[r] = v_load(acc + (r0 + r) * 16);
        UNROLL for (int k = 0; k < 16; k++) {
            UNROLL for (int r = 0; r < SIDE; r++) {
                i32 pair;
                memcpy(&pair, rows.p + (r0 + r) * rows.stride + 4 * k, sizeof pair);
                sum[r] = _mm512_dpbf16_ps(sum[r], (__m512bh)_mm512_set1_epi32(pair), (__m512bh)w[k]);
            }
        }
        UNROLL for (int r = 0; r < SIDE; r++) v_store(acc + (r0 + r) * 16, sum[r]);
    }
}

#define tile_zero(tl, n) memset((tl)->acc[n], 0, sizeof(tl)->acc[n])
#define tile_load(tl, n, p_, stride_) \
    ((n) < 4 ? acc_load((tl)->acc[(n)&3], p_, stride_) : (void)((tl)->at[n] = (struct operand){(const char *)(p_), stride_}))
#define tile_load_once tile_load
#define tile_store(tl, n, p, stride) acc_store((tl)->acc[n], p, stride)
#define tile_mul(tl, to, rows, columns) acc_mul((tl)->acc[to], (tl)->at[rows], (tl)->at[columns])

#define tiles_awake(tl) ((void)(tl))
#define tiles_order() ((void)0)
#define tiles_begin(tl) memset((tl)->at, 0, sizeof(tl)->at)
#define tiles_end(tl) ((void)(tl))

#endif
