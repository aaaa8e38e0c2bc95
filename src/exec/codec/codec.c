/* codec.c - the list of codecs.def. */
#include "exec/codec.h"

#define CODEC(name) extern const struct codec codec_##name;
#include "exec/codec/codecs.def"
#undef CODEC

static const struct codec *const list[] = {
#define CODEC(name) &codec_##name,
#include "exec/codec/codecs.def"
#undef CODEC
};

static const struct codec *first;

void codec_try_first(const struct codec *c) { first = c; }

const struct codec *codec_for(const struct plan *p, const struct plan_message *m) {
    if (first && first->takes(p, m)) return first;
    for (size_t i = 0; i < COUNT(list); i++)
        if (list[i]->takes(p, m)) return list[i];
    return NULL;
}
