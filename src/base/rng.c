/* rng.c - see rng.h: Philox from Random123, and a shuffle without an array: a small Feistel network with cycle walking. */
#include "base/rng.h"

#include <math.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wshadow"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

void rng_words(u64 seed, u32 stream, u32 extra, u64 index, u32 out[4]) {
    philox4x32_ctr_t c = {{(u32)index, (u32)(index >> 32), stream, extra}};
    philox4x32_key_t k = {{(u32)seed, (u32)(seed >> 32)}};
    philox4x32_ctr_t r = philox4x32(c, k);
    for (int i = 0; i < 4; i++) out[i] = r.v[i];
}

f32 rng_uniform(u64 seed, u32 stream, u32 extra, u64 index) {
    u32 w[4];
    rng_words(seed, stream, extra, index, w);
    return (f32)(w[0] >> 8) * 0x1p-24f;
}

f64 rng_normal(u64 seed, u32 stream, u32 extra, u64 index) {
    u32 w[4];
    rng_words(seed, stream, extra, index, w);
    f64 u = ((f64)w[0] + 0.5) * 0x1p-32, v = ((f64)w[1] + 0.5) * 0x1p-32;
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* One pass of the Feistel network over 2 * half bits. */
static u64 mix(u64 seed, u32 epoch, u32 half, u64 v) {
    u64 mask = ((u64)1 << half) - 1, left = v >> half, right = v & mask;
    for (u32 round = 0; round < 4; round++) {
        u32 w[4];
        rng_words(seed, RNG_SHUFFLE, epoch, right << 3 | round, w);
        u64 next = (left ^ w[0]) & mask;
        left = right;
        right = next;
    }
    return left << half | right;
}

i64 rng_shuffle(u64 seed, u32 epoch, i64 n, i64 index) {
    u32 half = 1;
    while (((u64)1 << (2 * half)) < (u64)n) half++;
    u64 v = (u64)index;
    do v = mix(seed, epoch, half, v);
    while (v >= (u64)n);
    return (i64)v;
}
