/* none.c - f32 as it is: exact, and the baseline of the others. */
#include "codec/codec.h"

#include <string.h>

static i64 room(const struct wire_args *a) { return 4 * (a->hi - a->lo); }

static u32 encode(const struct wire_args *a, const f32 *v, f32 *state, f32 *scratch, unsigned char *out) {
    (void)state, (void)scratch;
    if (a->hi > a->lo) memcpy(out, v, (size_t)room(a));
    return (u32)room(a);
}

static bool decode(const struct wire_args *a, const unsigned char *in, u32 bytes, f32 *v) {
    if (bytes != room(a)) return false;
    if (bytes) memcpy(v, in, bytes);
    return true;
}

extern const struct wire_codec wire_none;
const struct wire_codec wire_none = {
    .name = "none",
    .help = "f32, exact",
    .room = room,
    .encode = encode,
    .decode = decode,
};
