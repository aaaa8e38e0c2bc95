/* pack.c - chunks of vectors as packets: plain, or by a codec (codec/codec.h).
 *
 *     push:  the gradient, or the change of the weights, with the residual of the worker
 *     pull:  with a codec what the centre has changed since the worker's last pull, with a residual of the server (DoubleSqueeze:
 *            Tang et al., ICML 2019).  The last weights of a leg go plain, and the residual ends. */
#include <string.h>

#include "base/clock.h"
#include "store/inside.h"

bool pack_plain(const struct pstore *s) { return !s->job.codec.codec || strcmp(s->job.codec.codec->name, "none") == 0; }

struct wire_args pack_args(const struct pstore *s, const struct ps_chunk *c, i64 round, bool gradient) {
    return (struct wire_args){
        .choice = s->job.codec, .layout = &s->job.layout, .lo = c->lo, .hi = c->hi, .round = round, .gradient = gradient};
}

u32 pack_bytes(const struct ps_chunk *c) { return (u32)((i64)sizeof(f32) * (c->hi - c->lo)); }

f32 *pack_target(struct pstore *s, const struct ps_chunk *c) { return (s->pulled ? s->pulled : s->job.theta) + c->lo; }

/* v NULL: what the weights have changed since they were pulled. */
u32 pack_push(struct pstore *s, const struct ps_chunk *c, const f32 *v, const void **packet) {
    unsigned char *out = s->packets + c->packet;
    f32 *change = pack_plain(s) ? (f32 *)(void *)out : s->push_change;
    for (i64 i = c->lo; i < c->hi && !v; i++) change[i - c->lo] = s->pulled[i] - s->job.theta[i];
    const f32 *from = v ? v + c->lo : change;
    *packet = out;
    if (!pack_plain(s)) {
        const struct wire_args a = pack_args(s, c, s->round, s->corrects);
        const f64 t0 = clock_now();
        const u32 bytes = s->job.codec.codec->encode(&a, from, s->state + c->state, s->scratch, out);
        s->coding[0] += clock_now() - t0;
        return bytes;
    }
    *packet = from; /* it stays as it is until the weights of the next ticket have come */
    return pack_bytes(c);
}

static bool decode(struct pstore *s, const struct wire_args *a, const unsigned char *data, u32 bytes, f32 *to) {
    const f64 t0 = clock_now();
    const bool good = s->job.codec.codec->decode(a, data, bytes, to);
    s->coding[1] += clock_now() - t0;
    return good;
}

bool unpack_push(struct pstore *s, const struct ps_chunk *c, const unsigned char *data, u32 bytes, f32 *to) {
    const struct wire_args a = pack_args(s, c, 0, s->corrects);
    if (!pack_plain(s)) return decode(s, &a, data, bytes, to);
    if (bytes != pack_bytes(c)) return false;
    if ((const void *)data != to) memcpy(to, data, bytes);
    return true;
}

static u32 pack_change(struct pstore *s, struct ps_inbox *in, const struct ps_chunk *c, unsigned char *packet) {
    const struct wire_args a = pack_args(s, c, lmax(0, in->pull) / s->at.nworker, false);
    const i64 n = c->hi - c->lo, at = c->lo - own_shard(s)->lo;
    const f32 *center = s->server.center + at;
    f32 *base = in->base + at;
    const f64 t0 = clock_now();
    for (i64 i = 0; i < n; i++) {
        s->change[i] = center[i] - base[i];
        base[i] = center[i];
    }
    const u32 bytes = s->job.codec.codec->encode(&a, s->change, in->state + c->state - in->state0, s->scratch2, packet);
    s->coding[1] += clock_now() - t0;
    return bytes;
}

/* The last weights of a leg are not changed any more; others are copied where an update could come before they have left. */
u32 pack_weights(struct pstore *s, struct ps_inbox *in, const struct ps_chunk *c, bool final, const void **packet) {
    const f32 *center = s->server.center + (c->lo - own_shard(s)->lo);
    unsigned char *out = in->packets + c->packet;
    *packet = out;
    if (!pack_plain(s) && !final) return pack_change(s, in, c, out);
    if (final || s->lends)
        *packet = center;
    else
        memcpy(out, center, pack_bytes(c));
    if (in->base) memcpy(in->base + (c->lo - own_shard(s)->lo), center, pack_bytes(c));
    if (final && in->state) memset(in->state, 0, sizeof(f32) * (size_t)in->states);
    return pack_bytes(c);
}

bool unpack_weights(struct pstore *s, const struct ps_chunk *c, const unsigned char *data, u32 bytes, bool final) {
    f32 *to = pack_target(s, c);
    if (pack_plain(s) || final) {
        if (bytes != pack_bytes(c)) return false;
        if ((const void *)data != to) memcpy(to, data, bytes);
    } else {
        const struct wire_args a = pack_args(s, c, 0, false);
        if (!decode(s, &a, data, bytes, s->change)) return false;
        for (i64 i = 0; i < c->hi - c->lo; i++) to[i] += s->change[i];
    }
    if (s->pulled && !s->job.store.policy->own_weights) memcpy(s->job.theta + c->lo, to, pack_bytes(c));
    return true;
}
