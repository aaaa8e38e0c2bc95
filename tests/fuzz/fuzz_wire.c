/* fuzz_wire.c - any bytes as a packet of every wire codec: refused, or decoded without a look outside of it, and the decoded
 * values go through an encoder whose packet decodes. The first three bytes choose codec and range. */
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(condition)            \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

enum { TOTAL = 3 * 20 * 32 + 48 + 30 * 16 + 16 };
static const struct wire_matrix matrices[] = {{0, 20, 3, 32}, {3 * 20 * 32 + 48, 30, 1, 16}};
static const struct wire_layout layout = {matrices, COUNT(matrices)};
static const char *const texts[] = {"none", "fp16", "bf16", "int8", "sign", "topk:0.01", "topk:0.5", "powersgd:1", "powersgd:5"};

/* Two rounds, so that what the first leaves in the state meets the second. */
static void again(struct wire_args *a, const f32 *v) {
    const struct wire_codec *c = a->choice.codec;
    f32 *state = calloc((size_t)wire_state(a) + 1, 4), *scratch = malloc((size_t)wire_scratch(a) * 4 + 1);
    f32 *got = malloc((size_t)(a->hi - a->lo) * 4 + 1);
    unsigned char *out = malloc((size_t)c->room(a) + 1);
    MUST(state && scratch && got && out);
    for (a->round = 0; a->round < 2; a->round++) {
        const u32 bytes = c->encode(a, v, state, scratch, out);
        MUST(bytes <= c->room(a));
        MUST(c->decode(a, out, bytes, got));
        for (i64 i = 0; i < wire_state(a); i++) MUST(state[i] - state[i] == 0); /* finite */
    }
    free(state);
    free(scratch);
    free(got);
    free(out);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    struct wire_args a = {.layout = &layout};
    if (size < 3) return 0;
    MUST(wire_parse(texts[data[0] % COUNT(texts)], &a.choice) == 0);
    a.gradient = data[0] & 0x80;
    a.lo = (i64)data[1] * TOTAL / 256;
    a.hi = a.lo + (TOTAL - a.lo) * data[2] / 255;
    f32 *v = malloc((size_t)(a.hi - a.lo) * 4 + 1);
    unsigned char *packet = malloc(size - 3 + 1);
    MUST(v && packet);
    memcpy(packet, data + 3, size - 3);
    if (a.choice.codec->decode(&a, packet, (u32)size - 3, v)) again(&a, v);
    free(packet);
    free(v);
    return 0;
}
