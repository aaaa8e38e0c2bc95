/* fp16.c - IEEE half precision, 10 bits of mantissa up to 65504: larger finite values become 65504. Rounds to nearest even,
 * without a residual. */
#include "codec/codec.h"
#include "codec/loops.h"

static i64 room(const struct wire_args *a) { return 2 * (a->hi - a->lo); }

static u32 encode(const struct wire_args *a, const f32 *v, f32 *state, f32 *scratch, unsigned char *out) {
    (void)state, (void)scratch;
    wire_loops()->to_fp16(a->hi - a->lo, v, out);
    return (u32)room(a);
}

static bool decode(const struct wire_args *a, const unsigned char *in, u32 bytes, f32 *v) {
    if (bytes != room(a)) return false;
    wire_loops()->from_fp16(a->hi - a->lo, in, v);
    return true;
}

extern const struct wire_codec wire_fp16;
const struct wire_codec wire_fp16 = {
    .name = "fp16",
    .help = "IEEE half precision, half the bytes",
    .room = room,
    .encode = encode,
    .decode = decode,
};
