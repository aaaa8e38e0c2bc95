/* dropout_mask.c - random bits of dropout: Philox4x32-10 over 16 counters in parallel, compiled once per instruction set. The
 * reference is rng_words() (base/rng.h); a test compares them. */
#include "model/layer/dropout_mask.h"

#include <string.h>

#define PASTE(a, b) a##b
#define NAME(isa) PASTE(dropout_, isa)

enum { CALLS = 2 * MASK_PANELS, ROUNDS = 10 };

/* One Philox round on every counter; 32-bit words in 64-bit elements, so that the products vectorize. */
static inline void round_all(u64 c[4][CALLS], u32 key0, u32 key1) {
    for (u32 i = 0; i < CALLS; i++) {
        u64 a = (u64)(u32)c[0][i] * 0xD2511F53u, b = (u64)(u32)c[2][i] * 0xCD9E8D57u;
        c[0][i] = (b >> 32) ^ c[1][i] ^ key0;
        c[2][i] = (a >> 32) ^ c[3][i] ^ key1;
        c[1][i] = (u32)b;
        c[3][i] = (u32)a;
    }
}

/* Bits 2j and 2j+1 of a counter's byte: whether the low and the high half of word j are >= drop. */
static inline u32 two_bits(u64 word, u32 drop) {
    u32 w = (u32)word;
    return (u32)((w & 0xffff) >= drop) | (u32)((w >> 16) >= drop) << 1;
}

static void fill_mask(u64 seed, u32 step, u64 place, u32 drop, u32 mask[MASK_PANELS]) {
    u64 c[4][CALLS];
    u32 key0 = (u32)seed, key1 = (u32)(seed >> 32), byte[CALLS];
    for (u32 i = 0; i < CALLS; i++) {
        c[0][i] = (u32)(place + i);
        c[1][i] = (place + i) >> 32;
        c[2][i] = RNG_DROPOUT;
        c[3][i] = step;
    }
    for (u32 k = 0; k < ROUNDS; k++) {
        round_all(c, key0, key1);
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
    for (u32 i = 0; i < CALLS; i++)
        byte[i] =
            two_bits(c[0][i], drop) | two_bits(c[1][i], drop) << 2 | two_bits(c[2][i], drop) << 4 | two_bits(c[3][i], drop) << 6;
    for (u32 p = 0; p < MASK_PANELS; p++) mask[p] = byte[2 * p] | byte[2 * p + 1] << 8;
}

typedef u32 panel_bits __attribute__((vector_size(64)));
typedef f32 panel __attribute__((vector_size(64)));

static void scale_panels(i64 n, const u32 *mask, f32 scale, const f32 *x, f32 *y) {
    const panel_bits bit = {1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                            1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
    for (i64 p = 0; p < n; p++) {
        panel v;
        memcpy(&v, x + p * 16, sizeof v);
        v *= scale;
        v = (panel)((panel_bits)v & (panel_bits)((bit & mask[p]) != 0));
        memcpy(y + p * 16, &v, sizeof v);
    }
}

const struct dropout_kern NAME(ISA) = {fill_mask, scale_panels};
