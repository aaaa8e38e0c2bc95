/* one_bit.c - see one_bit.h.
 *
 *     | mean of |v|, 4 bytes | a bit for each of n values, 1 = it is negative |      v = gradient + residual */
#include "exec/one_bit.h"

#include <math.h>
#include <string.h>

enum { LEAST = 64 }; /* floats of a message; shorter ones go as they are */

static i64 count(const struct plan_message *m) { return m->hi - m->lo; }

static bool takes(const struct plan *p, const struct plan_message *m) {
    const struct pbuf *b = &p->buf[m->buf];
    const bool gradient = !b->lent && b->element == ELEMENT_F32 && b->repeat == 1;
    return m->when < MESSAGE_SETTLE && !m->sparse && gradient && count(m) >= LEAST;
}

static i64 room(const struct plan *p, const struct plan_message *m) {
    (void)p;
    return 4 + (count(m) + 7) / 8;
}

static i64 residual(const struct plan *p, const struct plan_message *m) {
    (void)p;
    return count(m);
}

static f32 *values(const struct coded *c) { return (f32 *)(void *)c->data + c->m->lo; }

static u32 encode(const struct coded *c, unsigned char *out) {
    const i64 n = count(c->m);
    f64 sum = 0;
    memset(out, 0, (size_t)room(c->plan, c->m));
    for (i64 i = 0; i < n; i++) {
        c->residual[i] += values(c)[i];
        sum += fabsf(c->residual[i]);
    }
    const f32 size = (f32)(sum / (f64)n);
    memcpy(out, &size, sizeof size);
    for (i64 i = 0; i < n; i++) {
        const bool negative = c->residual[i] < 0;
        out[4 + i / 8] |= (unsigned char)(negative << i % 8);
        c->residual[i] -= negative ? -size : size;
    }
    return (u32)room(c->plan, c->m);
}

static bool decode(const struct coded *c, const unsigned char *in, u32 bytes) {
    f32 size;
    if (bytes != room(c->plan, c->m)) return false;
    memcpy(&size, in, sizeof size);
    for (i64 i = 0; i < count(c->m); i++) values(c)[i] = in[4 + i / 8] >> i % 8 & 1 ? -size : size;
    return true;
}

const struct codec codec_one_bit = {.name = "one_bit",
                                    .help = "signs of gradients, and their mean size",
                                    .takes = takes,
                                    .room = room,
                                    .residual = residual,
                                    .encode = encode,
                                    .decode = decode};
