/* server.c - the server of a shard: receives pushes, applies them when the policy allows it, answers pulls.
 *
 *     staleness 0    a round is applied once all parts are here; pulls of the next round wait for it
 *     else           a push is applied when it is here; a pull of round q waits until all of round q - s - 1 is applied
 *
 * In a replay the script says what comes next; what is not its turn waits. */
#include <string.h>

#include "base/mem.h"
#include "store/inside.h"

static i64 shard_floats(const struct pstore *s) { return own_shard(s)->hi - own_shard(s)->lo; }

/* Bytes of the packets, and floats of the codec states, of the shard of this rank. */
static void own_chunks(const struct pstore *s, i64 *packet0, i64 *bytes, i64 *state0, i64 *states) {
    const struct ps_layout *l = &s->at;
    const i32 me = s->server.me;
    const bool next = me + 1 < l->nserver && l->nchunk[me + 1] > 0;
    *packet0 = *bytes = *state0 = *states = 0;
    if (l->nchunk[me] == 0) return;
    *packet0 = l->chunk[me][0].packet;
    *state0 = l->chunk[me][0].state;
    *bytes = (next ? l->chunk[me + 1][0].packet : l->packets) - *packet0;
    *states = (next ? l->chunk[me + 1][0].state : l->states) - *state0;
}

err server_new(struct pstore *s) {
    struct ps_server *v = &s->server;
    const i32 ranks = comm_size(s->job.comm), me = comm_rank(s->job.comm);
    i64 packet0, bytes, state0, states;
    v->me = me >= s->at.server0 && me < s->at.server0 + s->at.nserver ? me - s->at.server0 : -1;
    ARENA_NEW(&s->arena, v->part_of, s->at.nworker);
    ARENA_NEW(&s->arena, v->norm, layout_blocks(s));
    ARENA_NEW(&s->arena, v->of, ranks);
    if (v->me < 0) return 0;
    own_chunks(s, &packet0, &bytes, &state0, &states);
    ARENA_NEW(&s->arena, v->center, shard_floats(s));
    ARENA_NEW(&s->arena, v->hot, PLAIN_FLOATS);
    TRY(keep_new(s));
    for (i32 k = 0; k < ranks; k++) {
        struct ps_inbox *in = &v->of[k];
        ARENA_NEW(&s->arena, in->packets, bytes);
        in->packets -= packet0;
        in->state0 = state0;
        in->states = states;
        if (worker_of(s, k) < 0) continue;
        ARENA_NEW(&s->arena, in->v, shard_floats(s));
        if (!pack_plain(s)) ARENA_NEW(&s->arena, in->state, states);
        if (!pack_plain(s) || s->job.store.policy->keeps_base || s->job.store.policy->chooses)
            ARENA_NEW(&s->arena, in->base, shard_floats(s));
    }
    return 0;
}

err server_begin(struct pstore *s) {
    struct ps_server *v = &s->server;
    const i32 ranks = comm_size(s->job.comm);
    if (v->me < 0) return 0;
    memcpy(v->center, s->job.theta + own_shard(s)->lo, sizeof(f32) * (size_t)shard_floats(s));
    for (i32 k = 0; k < ranks; k++) {
        struct ps_inbox *in = &v->of[k];
        in->ticket = in->pull = -1;
        in->ready = in->applied = 0;
        in->final = in->given = false;
        in->left = worker_of(s, k) < 0;
        in->version = v->version;
        if (in->base) memcpy(in->base, v->center, sizeof(f32) * (size_t)shard_floats(s));
    }
    for (i32 p = 0; p < s->at.nworker; p++) v->part_of[p] = -1;
    v->open = -1;
    v->complete = v->norms = 0;
    v->summed = false;
    v->round = v->clear = s->first;
    v->nevent = 0;
    v->pushes = v->refused = 0;
    v->refused_rank = -1;
    v->loss = 0;
    memset(v->stale, 0, sizeof v->stale);
    v->events = leg_tickets(s) * (s->at.nunit[v->me] + 1);
    mem_free(v->done);
    mem_free(v->event);
    v->done = NULL, v->event = NULL;
    NEW(v->done, leg_tickets(s));
    NEW(v->event, v->events);
    v->script = s->replay ? s->replay->event + v->me * s->replay->events : NULL;
    v->nscript = s->replay ? s->replay->count[v->me] : 0;
    return 0;
}

/* ------------------------------------------------------------------ the record ---------------------------------------------- */

static u32 event_of(const struct pstore *s, i64 ticket, i32 what) {
    return (u32)((ticket - s->first * s->at.nworker) * (s->at.nunit[s->server.me] + 1) + what);
}

/* True if the event may happen now, and is noted. */
static bool may_happen(struct pstore *s, i64 ticket, i32 what) {
    struct ps_server *v = &s->server;
    const u32 e = event_of(s, ticket, what);
    if (v->script && (v->nevent >= v->nscript || v->script[v->nevent] != e)) return false;
    if (v->nevent < v->events) v->event[v->nevent++] = e;
    return true;
}

/* ------------------------------------------------------------------ pushes -------------------------------------------------- */

static err malformed(i32 from, const char *what) {
    return FAIL_AT(E804, NULL, "the same program and options on every rank", "rank %d sent %s that does not fit this store", from,
                   what);
}

/* Weights that were lent are still on their way: no update may change them. */
static bool is_lent(const struct pstore *s) {
    for (i32 k = 0; s->lends && k < comm_size(s->job.comm); k++)
        if (k != comm_rank(s->job.comm) && !post_sent(s->post, k)) return true;
    return false;
}

static bool others_wait(const struct pstore *s, i32 rank) {
    for (i32 k = 0; k < comm_size(s->job.comm); k++) {
        const struct ps_inbox *in = &s->server.of[k];
        if (k != rank && (in->ticket >= 0 || in->pull >= 0)) return true;
    }
    return false;
}

/* True if this chunk is applied while its push arrives; opens the unit at its first chunk.  Only if no other rank waits for the
 * shard and the push comes through shared memory.  From the first to the last chunk of the unit nothing else changes the shard,
 * so the order is the same.  Chunks that were cut for a codec, which may be off by now, are longer than v->hot. */
static bool open_unit(struct pstore *s, i32 from, i64 ticket, const struct ps_chunk *c) {
    struct ps_server *v = &s->server;
    const i32 applied = c->unit == 0 ? 0 : v->of[from].applied;
    if (v->open == from) return true;
    if (v->open >= 0 || !s->lends || is_synchronous(s) || !c->first || applied != c->unit) return false;
    if (c->hi - c->lo > PLAIN_FLOATS) return false; /* the first chunk of a unit is the longest */
    if (others_wait(s, from) || is_lent(s) || !may_happen(s, ticket, 1 + c->unit)) return false;
    v->open = from;
    return true;
}

err server_place(struct pstore *s, i32 from, const struct ps_head *h, void **to) {
    struct ps_server *v = &s->server;
    struct ps_inbox *in = &v->of[from];
    const i64 t0 = s->first * s->at.nworker;
    const bool refused = (h->flags & PS_REFUSED) != 0;
    if (v->me < 0 || worker_of(s, from) < 0 || h->chunk < 0 || h->chunk >= s->at.nchunk[v->me] || h->ticket < t0 ||
        h->ticket >= t0 + leg_tickets(s))
        return malformed(from, "a push");
    const struct ps_chunk *c = &s->at.chunk[v->me][h->chunk];
    if (in->ticket >= 0 && (h->chunk == 0 || in->ticket != h->ticket))
        return malformed(from, "a push before the last one was applied");
    if (!refused && pack_plain(s) && h->bytes != pack_bytes(c)) return malformed(from, "a push");
    if (!refused && pack_plain(s)) *to = open_unit(s, from, h->ticket, c) ? v->hot : in->v + (c->lo - own_shard(s)->lo);
    return 0;
}

/* The optimiser overwrites its delta, so a packet that the worker of this rank lends is copied first. */
static void apply_chunk(struct pstore *s, struct ps_inbox *in, i32 from, const struct ps_chunk *c, const unsigned char *data) {
    struct ps_server *v = &s->server;
    if ((const void *)data != v->hot) memcpy(v->hot, data, pack_bytes(c));
    apply_range(s, in, c->lo, c->hi, v->hot);
    if (!c->last) return;
    v->open = -1;
    in->ready = in->applied = c->unit + 1;
    if (in->applied == s->at.nunit[v->me]) count_push(s, in, from);
}

err server_push(struct pstore *s, i32 from, const struct ps_head *h, const unsigned char *data) {
    struct ps_server *v = &s->server;
    struct ps_inbox *in = &v->of[from];
    const struct ps_chunk *c = &s->at.chunk[v->me][h->chunk];
    if (h->chunk == 0) {
        in->ticket = h->ticket;
        in->ready = in->applied = 0;
        in->refused = (h->flags & PS_REFUSED) != 0;
        if (!in->refused) v->loss += h->loss;
    }
    if (v->open == from)
        apply_chunk(s, in, from, c, data);
    else if (!in->refused && !unpack_push(s, c, data, h->bytes, in->v + (c->lo - own_shard(s)->lo)))
        return malformed(from, "a packet");
    else if (c->last)
        in->ready = c->unit + 1;
    return 0;
}

/* The round is complete when every part is here whole. */
static void collect(struct pstore *s, i32 rank, struct ps_inbox *in) {
    struct ps_server *v = &s->server;
    const i32 part = (i32)(in->ticket % s->at.nworker);
    if (in->applied || in->ready < s->at.nunit[v->me] || v->part_of[part] >= 0) return;
    v->part_of[part] = rank;
    in->applied = in->ready;
    v->complete++;
}

static err end_round(struct pstore *s) {
    struct ps_server *v = &s->server;
    apply_round(s);
    for (i32 p = 0; p < s->at.nworker; p++) {
        v->done[(v->round - s->first) * s->at.nworker + p] = 1;
        v->of[v->part_of[p]].ticket = -1;
        v->part_of[p] = -1;
    }
    v->complete = v->norms = 0;
    v->summed = false;
    v->clear = ++v->round;
    return 0;
}

/* Sums of squares of the merged gradient go to all other servers: the norm is that of the whole vector. */
static err tell_norm(struct pstore *s) {
    struct ps_server *v = &s->server;
    const struct store_shard *shard = own_shard(s);
    const i64 lo = shard->lo / s->job.block, hi = (shard->hi + s->job.block - 1) / s->job.block;
    const struct ps_head h = {.kind = PS_NORM, .ticket = v->round, .chunk = v->me, .bytes = (u32)lmax(0, hi - lo) * 8};
    v->norms++;
    if (hi > lo) memcpy(s->norm_packet, v->norm + lo, h.bytes);
    for (i32 k = 0; k < s->at.nserver; k++)
        if (k != v->me) TRY(send_message(s, server_rank(s, k), &h, s->norm_packet));
    return 0;
}

/* A server may be a round ahead: it sends its sums of the next round only when this one is applied here, since its workers wait
 * for all shards. */
err server_norm(struct pstore *s, i32 from, const struct ps_head *h, const unsigned char *data) {
    struct ps_server *v = &s->server;
    const i32 k = from - s->at.server0;
    if (v->me < 0 || k < 0 || k >= s->at.nserver) return malformed(from, "a norm");
    const struct store_shard *shard = &s->at.shard[k];
    const i64 lo = shard->lo / s->job.block, hi = lmax(lo, (shard->hi + s->job.block - 1) / s->job.block);
    if (h->bytes != (u64)(hi - lo) * 8) return malformed(from, "a norm");
    if (hi > lo) memcpy(v->norm + lo, data, h->bytes);
    v->norms++;
    return 0;
}

static err advance_round(struct pstore *s, bool *moved) {
    struct ps_server *v = &s->server;
    for (i32 k = 0; k < comm_size(s->job.comm); k++)
        if (v->of[k].ticket >= 0) collect(s, k, &v->of[k]);
    if (v->complete < s->at.nworker) return 0;
    const bool alone = !s->job.gradients || s->at.nserver == 1;
    if (!v->summed) {
        apply_merge(s);
        v->summed = true;
        *moved = true;
        if (!alone) TRY(tell_norm(s));
    }
    if (!alone && v->norms < s->at.nserver) return 0;
    *moved = true;
    return end_round(s);
}

static void apply_ready(struct pstore *s, i32 rank, struct ps_inbox *in, bool *moved) {
    struct ps_server *v = &s->server;
    const i64 at = in->ticket - s->first * s->at.nworker;
    while (in->applied < in->ready && may_happen(s, in->ticket, 1 + in->applied)) {
        apply_push(s, in, rank, in->applied++);
        *moved = true;
    }
    if (in->applied < s->at.nunit[v->me]) return;
    v->done[at] = 1;
    in->ticket = -1;
    while (v->clear < s->last && memchr(v->done + (v->clear - s->first) * s->at.nworker, 0, (size_t)s->at.nworker) == NULL)
        v->clear++;
}

/* ------------------------------------------------------------------ pulls --------------------------------------------------- */

err server_pull(struct pstore *s, i32 from, const struct ps_head *h) {
    struct ps_inbox *in = &s->server.of[from];
    if (s->server.me < 0) return malformed(from, "a pull");
    in->pull = h->ticket;
    in->final = (h->flags & PS_FINAL) != 0;
    if (h->flags & PS_STOP && from == comm_size(s->job.comm) - 1 && pstore_pause_floats(s) > 0) return pause_keep_shard(s, in);
    return 0;
}

/* The pull of the shard that belongs to a ticket of rank 0: its weights go back with the ticket. */
err server_pull_for_ticket(struct pstore *s, i32 from, i64 ticket) {
    return s->server.me < 0 ? 0 : server_pull(s, from, &(struct ps_head){.kind = PS_PULL, .ticket = ticket});
}

err server_leave(struct pstore *s, i32 from) {
    s->server.of[from].left = true;
    return 0;
}

static bool all_left(const struct pstore *s) {
    for (i32 k = 0; k < comm_size(s->job.comm); k++)
        if (!s->server.of[k].left || s->server.of[k].ticket >= 0) return false;
    return true;
}

static bool may_pull(struct pstore *s, i32 rank, const struct ps_inbox *in) {
    const i64 stale = store_staleness(&s->job.store);
    if (!post_sent(s->post, rank) || in->ticket >= 0) return false; /* a worker sees its own push */
    if (in->final) return all_left(s);
    const i64 round = in->pull / s->at.nworker;
    if (stale != STORE_UNBOUNDED && s->server.clear < round - stale) return false;
    return stale == 0 || may_happen(s, in->pull, 0);
}

static err send_weights(struct pstore *s, i32 rank, struct ps_inbox *in) {
    const i32 me = s->server.me;
    i64 bytes = 0;
    in->version = s->server.version;
    for (i32 i = 0; i < s->at.nchunk[me]; i++) {
        const struct ps_chunk *c = &s->at.chunk[me][i];
        const void *packet;
        struct ps_head h = {.kind = PS_WEIGHTS, .flags = in->final ? PS_FINAL : 0, .chunk = i, .ticket = in->pull};
        h.bytes = pack_weights(s, in, c, in->final, &packet);
        s->whole += rank == comm_rank(s->job.comm) ? 0 : pack_bytes(c);
        bytes += h.bytes;
        TRY(send_message(s, rank, &h, packet));
    }
    in->pull = -1;
    return in->final ? 0 : keep_send(s, rank, bytes);
}

/* ------------------------------------------------------------------ turns --------------------------------------------------- */

err server_advance(struct pstore *s, bool *moved) {
    struct ps_server *v = &s->server;
    if (v->me < 0) return 0;
    const i32 ranks = comm_size(s->job.comm);
    const bool lent = is_lent(s);
    if (v->open >= 0) return 0;
    if (is_synchronous(s) && !lent) TRY(advance_round(s, moved));
    for (i32 k = 0; k < ranks && !is_synchronous(s) && !lent; k++)
        if (v->of[k].ticket >= 0) apply_ready(s, k, &v->of[k], moved);
    for (i32 k = 0; k < ranks; k++) {
        struct ps_inbox *in = &v->of[k];
        if ((in->pull < 0 && !in->final) || in->given || !may_pull(s, k, in)) continue;
        in->given = in->final;
        *moved = true;
        TRY(send_weights(s, k, in));
    }
    return 0;
}

bool server_finished(const struct pstore *s) {
    for (i32 k = 0; s->server.me >= 0 && k < comm_size(s->job.comm); k++)
        if (!s->server.of[k].given) return false;
    return true;
}
