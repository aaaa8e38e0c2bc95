/* bf16.c - bfloat16, the range of f32 with 7 bits of mantissa. Rounds to nearest even, without a residual. */
#include "codec/codec.h"
#include "codec/loops.h"

static i64 room(const struct wire_args *a) { return 2 * (a->hi - a->lo); }

static u32 encode(const struct wire_args *a, const f32 *v, f32 *state, f32 *scratch, unsigned char *out) {
    (void)state, (void)scratch;
    wire_loops()->to_bf16(a->hi - a->lo, v, out);
    return (u32)room(a);
}

static bool decode(const struct wire_args *a, const unsigned char *in, u32 bytes, f32 *v) {
    if (bytes != room(a)) return false;
    wire_loops()->from_bf16(a->hi - a->lo, in, v);
    return true;
}

extern const struct wire_codec wire_bf16;
const struct wire_codec wire_bf16 = {
    .name = "bf16",
    .help = "bfloat16, half the bytes",
    .room = room,
    .encode = encode,
    .decode = decode,
};
