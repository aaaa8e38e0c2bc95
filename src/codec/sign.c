/* sign.c - a sign bit for each value and two means for each 512 values, with error feedback (1-bit SGD, Seide et al., Interspeech
 * 2014): 30 times fewer bytes.
 *
 *     block:  z, mean+ bf16 | mean- bf16 | signs u16 [ceil(n / 16)] | zeros, if z is set
 *     zeros:  groups u32 | for each of these groups of 16 values: u16, the values that are zero
 *
 * v' = mean+ or -mean-, the means of |v + e| by sign; z is the top bit. Padding of packed weights is zero and must stay so,
 * therefore values with v + e = 0 are marked and decode to zero. */
#include "codec/codec.h"
#include "codec/loops.h"

static i64 state(const struct wire_args *a) { return a->hi - a->lo; }

static i64 room(const struct wire_args *a) {
    const i64 n = a->hi - a->lo;
    return 8 * ((n + SIGN_BLOCK - 1) / SIGN_BLOCK) + 4 * ((n + LANES - 1) / LANES);
}

static u32 encode(const struct wire_args *a, const f32 *v, f32 *e, f32 *scratch, unsigned char *out) {
    const struct wire_loops *l = wire_loops();
    const i64 n = a->hi - a->lo;
    u32 bytes = 0;
    (void)scratch;
    for (i64 i = 0; i < n; i += SIGN_BLOCK) bytes += l->to_sign((i32)lmin(n - i, SIGN_BLOCK), v + i, e + i, out + bytes);
    return bytes;
}

static bool decode(const struct wire_args *a, const unsigned char *in, u32 bytes, f32 *v) {
    const struct wire_loops *l = wire_loops();
    const i64 n = a->hi - a->lo;
    u32 at = 0;
    for (i64 i = 0; i < n; i += SIGN_BLOCK) {
        const u32 read = l->from_sign((i32)lmin(n - i, SIGN_BLOCK), in + at, bytes - at, v + i);
        if (!read) return false;
        at += read;
    }
    return at == bytes;
}

extern const struct wire_codec wire_sign;
const struct wire_codec wire_sign = {
    .name = "sign",
    .help = "a sign bit a value and two means for each 512 values, with error feedback",
    .room = room,
    .state = state,
    .encode = encode,
    .decode = decode,
};
