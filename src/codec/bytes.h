/* bytes.h - private to src/codec: numbers in a packet, in the byte order of the machine (all supported ones are little-endian),
 * at any alignment. */
#ifndef STRETTO_CODEC_BYTES_H
#define STRETTO_CODEC_BYTES_H

#include "base/bits.h"

#include <string.h>

#define FLOAT_INF 0x7f800000u /* bits of infinity; the bits of |x| are larger if x is NaN */

static inline u32 bits_of(f32 x) {
    u32 u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline f32 of_bits(u32 u) {
    f32 x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline u32 size_bits(f32 x) { return bits_of(x) & 0x7fffffffu; } /* of |x|: they order numbers as |x| does */

/* Round to nearest even; NaN stays NaN. */
static inline u16 bf16_of(f32 x) {
    const u32 u = bits_of(x), round = (u + 0x7fffu + (u >> 16 & 1)) >> 16, nan = u >> 16 | 0x40;
    return (u16)((u & 0x7fffffffu) > FLOAT_INF ? nan : round);
}
static inline f32 of_bf16(u16 h) { return of_bits((u32)h << 16); }

static inline void put16(unsigned char *out, u16 h) { memcpy(out, &h, sizeof h); }
static inline void put32(unsigned char *out, u32 u) { memcpy(out, &u, sizeof u); }
static inline u16 get16(const unsigned char *in) {
    u16 h;
    memcpy(&h, in, sizeof h);
    return h;
}
static inline u32 get32(const unsigned char *in) {
    u32 u;
    memcpy(&u, in, sizeof u);
    return u;
}

#endif
