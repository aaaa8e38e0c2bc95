/* pause.c - a stop ends a synchronous leg with a codec before its last round, and the next leg goes on with the bits of a whole
 * one.
 *
 *     worker's weights, as the codec let it see them | the server's, when it sent them last | residuals of pulls      of the
 * vector
 *
 * The last weights of a leg are exact and end these (pack.c), so a copy is taken before.  In synchronous rounds all workers pull
 * the same packets: what the last rank has is what all have. */
#include <string.h>

#include "base/mem.h"
#include "store/inside.h"

/* The pulled and the base vector [n] each, then the states of the codec; 0 = a stop needs no copy. */
i64 pstore_pause_floats(const struct pstore *s) { return s->pauses && !pack_plain(s) ? 2 * s->job.n + s->at.states : 0; }

static err room(struct pstore *s) {
    if (!s->pause) NEW(s->pause, pstore_pause_floats(s));
    return 0;
}

err pause_keep_view(struct pstore *s) {
    TRY(room(s));
    memcpy(s->pause, s->pulled ? s->pulled : s->job.theta, sizeof(f32) * (size_t)s->job.n);
    return 0;
}

err pause_keep_shard(struct pstore *s, const struct ps_inbox *in) {
    const struct store_shard *own = own_shard(s);
    TRY(room(s));
    memcpy(s->pause + s->job.n + own->lo, in->base, sizeof(f32) * (size_t)(own->hi - own->lo));
    memcpy(s->pause + 2 * s->job.n + in->state0, in->state, sizeof(f32) * (size_t)in->states);
    return 0;
}

/* First float of the codec's states of shard k. */
static i64 states_before(const struct pstore *s, i32 k) {
    return k < s->at.nserver && s->at.nchunk[k] > 0 ? s->at.chunk[k][0].state : s->at.states;
}

/* All ranks have the copy, so one of them writes it to a checkpoint. */
err pause_end(struct pstore *s, i64 end) {
    struct comm *c = s->job.comm;
    const i64 n = s->job.n;
    s->paused = false;
    if (end >= s->last || !is_synchronous(s) || pstore_pause_floats(s) == 0) return 0;
    TRY(room(s));
    TRY(range_to_all(c, comm_size(c) - 1, "paused", s->pause, n)); /* servers come first: the last rank has a worker */
    for (i32 k = 0; k < s->at.nserver; k++) {
        const struct store_shard *shard = &s->at.shard[k];
        const i64 at = states_before(s, k);
        TRY(range_to_all(c, shard->rank, "paused", s->pause + n + shard->lo, shard->hi - shard->lo));
        TRY(range_to_all(c, shard->rank, "paused", s->pause + 2 * n + at, states_before(s, k + 1) - at));
    }
    s->paused = true;
    return 0;
}

static void resume_server(struct pstore *s) {
    const struct store_shard *own = own_shard(s);
    for (i32 k = 0; k < comm_size(s->job.comm); k++) {
        struct ps_inbox *in = &s->server.of[k];
        if (worker_of(s, k) < 0) continue;
        memcpy(in->base, s->pause + s->job.n + own->lo, sizeof(f32) * (size_t)(own->hi - own->lo));
        memcpy(in->state, s->pause + 2 * s->job.n + in->state0, sizeof(f32) * (size_t)in->states);
    }
}

void pause_begin(struct pstore *s) {
    if (!s->paused) return;
    s->paused = false;
    if (s->server.me >= 0) resume_server(s);
    if (worker_of(s, comm_rank(s->job.comm)) >= 0)
        memcpy(s->pulled ? s->pulled : s->job.theta, s->pause, sizeof(f32) * (size_t)s->job.n);
}

const f32 *pstore_paused(const struct pstore *s) { return s->paused ? s->pause : NULL; }

err pstore_pause_load(struct pstore *s, const f32 *from) {
    s->paused = false;
    if (!from || pstore_pause_floats(s) == 0) return 0;
    TRY(room(s));
    memcpy(s->pause, from, sizeof(f32) * (size_t)pstore_pause_floats(s));
    s->paused = true;
    return 0;
}
