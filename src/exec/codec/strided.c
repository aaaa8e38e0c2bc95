/* strided.c - some rows of a buffer [T][rows][F] go as one message: the runs of each step, one after another. */
#include <string.h>

#include "exec/codec.h"

static bool takes(const struct plan *p, const struct plan_message *m) {
    const struct pbuf *b = &p->buf[m->buf];
    return b->repeat > 1 && m->hi - m->lo < b->extent;
}

static i64 room(const struct plan *p, const struct plan_message *m) { return plan_message_bytes(p, m); }

/* Bytes of a run, of a step of the buffer, and where the first run begins. */
struct runs {
    size_t run, step, first;
};

static struct runs runs_of(const struct coded *c) {
    const struct pbuf *b = &c->plan->buf[c->m->buf];
    const size_t unit = (size_t)(b->bytes / b->extent / b->repeat);
    const size_t step = unit * (size_t)b->extent;
    return (struct runs){unit * (size_t)(c->m->hi - c->m->lo), step, step * (size_t)c->m->t0 + unit * (size_t)c->m->lo};
}

static u32 encode(const struct coded *c, unsigned char *out) {
    const struct runs r = runs_of(c);
    const i32 n = c->m->t1 - c->m->t0;
    for (i32 t = 0; t < n; t++) memcpy(out + (size_t)t * r.run, c->data + r.first + (size_t)t * r.step, r.run);
    return (u32)((size_t)n * r.run);
}

static bool decode(const struct coded *c, const unsigned char *in, u32 bytes) {
    const struct runs r = runs_of(c);
    const i32 n = c->m->t1 - c->m->t0;
    if (bytes != (size_t)n * r.run) return false;
    for (i32 t = 0; t < n; t++) memcpy(c->data + r.first + (size_t)t * r.step, in + (size_t)t * r.run, r.run);
    return true;
}

extern const struct codec codec_strided;
const struct codec codec_strided = {
    .name = "strided",
    .help = "some rows of an activation, step by step",
    .takes = takes,
    .room = room,
    .encode = encode,
    .decode = decode,
};
