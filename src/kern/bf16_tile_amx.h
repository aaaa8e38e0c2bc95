/* bf16_tile_amx.h - tile products on AMX: 8 tile registers of 16 rows x 64 bytes.
 *
 *     accumulators 0..3 (16 x 16 f32)    operands 4 5 (rows: 16 x 32 bf16), 6 7 (columns: 16 pairs of k x 16)
 *
 * Tile numbers are literals, strides are in bytes. A row of an accumulator depends only on the same row of its left operand and
 * sums over k in program order: neither the other rows nor the blocking change bits.
 *
 * The tile unit powers down after ~0.35 us without a product and takes as long to resume, hence tiles_awake. gcc 12 does not
 * know that tile loads read memory, hence tiles_order between plain stores and the first load; and it treats a configuration as
 * eight bytes, hence the constant one. */
#ifndef STRETTO_KERN_BF16_TILE_AMX_H
#define STRETTO_KERN_BF16_TILE_AMX_H

#include "kern/bf16_vec.h"

struct tiles {
    u8 none; /* empty: the tiles are registers */
};

/* clang-format off */
#define tile_zero(tl, n) ({ (void)(tl); _tile_zero(n); })
#define tile_load(tl, n, p, stride) ({ (void)(tl); _tile_loadd(n, p, stride); })
#define tile_load_once(tl, n, p, stride) ({ (void)(tl); _tile_stream_loadd(n, p, stride); }) /* without filling L1 */
#define tile_store(tl, n, p, stride) ({ (void)(tl); _tile_stored(n, p, stride); })
#define tile_mul(tl, to, rows, columns) ({ (void)(tl); _tile_dpbf16ps(to, rows, columns); })
#define tiles_awake(tl) ({ (void)(tl); _tile_dpbf16ps(0, 4, 6); }) /* keeps the unit awake; the result is not used */
/* clang-format on */
#define tiles_order() __asm__ volatile("" ::: "memory")

struct tile_config {
    u8 palette, start, reserved[14];
    u16 bytes[16];
    u8 rows[16];
};

static inline void tiles_begin(struct tiles *tl) {
    static const struct tile_config config __attribute__((aligned(64))) = {
        .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    tl->none = 0;
    _tile_loadconfig(&config);
}

static inline void tiles_end(struct tiles *tl) {
    (void)tl;
    _tile_release();
}

#endif
