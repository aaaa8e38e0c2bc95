/* int8.c - 8-bit integers with a scale for each 256 values, and error feedback: 3.9 times fewer bytes.
 *
 *     block:  scale f32 | q i8 [n]          v' = q scale,  scale = max |v + e| / 127,  q = nearest integer */
#include "codec/codec.h"
#include "codec/loops.h"

static i64 state(const struct wire_args *a) { return a->hi - a->lo; }

static i64 room(const struct wire_args *a) {
    const i64 n = a->hi - a->lo;
    return n + 4 * ((n + INT8_BLOCK - 1) / INT8_BLOCK);
}

static u32 encode(const struct wire_args *a, const f32 *v, f32 *e, f32 *scratch, unsigned char *out) {
    const struct wire_loops *l = wire_loops();
    const i64 n = a->hi - a->lo;
    (void)scratch;
    for (i64 i = 0; i < n; i += INT8_BLOCK, out += 4 + INT8_BLOCK) l->to_int8((i32)lmin(n - i, INT8_BLOCK), v + i, e + i, out);
    return (u32)room(a);
}

static bool decode(const struct wire_args *a, const unsigned char *in, u32 bytes, f32 *v) {
    const struct wire_loops *l = wire_loops();
    const i64 n = a->hi - a->lo;
    if (bytes != room(a)) return false;
    for (i64 i = 0; i < n; i += INT8_BLOCK, in += 4 + INT8_BLOCK) l->from_int8((i32)lmin(n - i, INT8_BLOCK), in, v + i);
    return true;
}

extern const struct wire_codec wire_int8;
const struct wire_codec wire_int8 = {
    .name = "int8",
    .help = "8 bits and a scale for each 256 values, with error feedback",
    .room = room,
    .state = state,
    .encode = encode,
    .decode = decode,
};
