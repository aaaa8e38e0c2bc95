/* shm.c - messages between ranks of one host through shared memory; other messages go to the transport below (picture: shm.h).
 *
 * A message takes as many slots as it needs and is copied twice: into the slots and out of them. Data in a segment can be
 * copied once, by the receiver. That happens if it does not fit into free slots, and for large messages between cores for which
 * it was measured to be faster. */
#include <string.h>

#include "base/clock.h"
#include "comm/copy.h"
#include "comm/shm.h"

enum { IN_PLACE = 1 << 13, SAMPLE_EVERY = 4 };
#define SLOW_LINE 27e-9
#define PLAIN_BELOW 16e-9 /* seconds to rewrite a line as it is sampled: below, plain stores beat non-temporal ones (copy.h) */
#define SAMPLE_SHARE 0.125 /* weight of one sample in the running mean: single samples are off by up to a factor of 3 */

/* Indices into comm_message.inside for local peers: position in the queue, bytes done, slot to wait for. */
enum { TICKET, THROUGH, LAST };

static i32 first_rank(const struct shm *x, const struct comm_message *m) { return x->left[m->peer]; }
static bool is_local(const struct shm *x, const struct comm_message *m) { return x->peer[first_rank(x, m)].region.base != NULL; }
static struct link *link_of(const struct shm *x, const struct comm_message *m) {
    return &x->link[first_rank(x, m) * COMM_CHANNELS + m->channel];
}

static struct ring *ring_of(const struct shm *x, const struct comm_message *m) {
    const i32 peer = first_rank(x, m);
    return m->sends ? shm_ring(x, &x->region, peer, m->channel) : shm_ring(x, &x->peer[peer].region, x->me, m->channel);
}

static struct slot *slot_of(struct ring *r, u64 at) { return (struct slot *)(void *)(r->slot + at % SHM_SLOTS * SHM_STRIDE); }

static char *data_of(const struct shm *x, struct ring *r, u64 at, u32 bytes) {
    return bytes <= SHM_SMALL ? (char *)(slot_of(r, at) + 1) : r->slot + SHM_SLOTS * SHM_STRIDE + at % SHM_SLOTS * x->room;
}

static bool is_cancelled(const struct shm *x, struct ring *r) {
    return atomic_load_explicit(&r->cancelled, memory_order_acquire) == shm_generation(x);
}

/* The same, ordered after all previous memory accesses. */
static bool was_cancelled(const struct shm *x, struct ring *r) { return atomic_fetch_or(&r->cancelled, 0) == shm_generation(x); }

void shm_reset_links(struct shm *x) {
    for (i32 k = 0; k < x->size * COMM_CHANNELS; k++) {
        const struct mapping *peer = &x->peer[k / COMM_CHANNELS].region;
        x->link[k] = (struct link){.head = shm_base(x), .tail = shm_base(x), .rewrite = SLOW_LINE};
        if (!peer->base) continue;
        atomic_store_explicit(&shm_ring(x, peer, x->me, k % COMM_CHANNELS)->tail, shm_base(x), memory_order_release);
    }
}

/* ------------------------------------------------------------------ sending ------------------------------------------------- */

static i32 segment_of(const struct shm *x, const struct comm_message *m, u64 *at) {
    const char *p = m->data;
    for (i32 k = 0; m->head.bytes >= IN_PLACE && k < SHM_SEGMENTS; k++) {
        const char *base = x->own[k].base;
        if (!base || p < base || p + m->head.bytes > base + x->own[k].bytes) continue;
        *at = (u64)(p - base);
        return k;
    }
    return -1;
}

/* Loads the tail; a value of an earlier generation is below shm_base. */
static void load_tail(const struct shm *x, struct link *l, struct ring *r) {
    const u64 tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    l->tail = tail > shm_base(x) ? tail : shm_base(x);
}

/* Rewriting memory that another core has read is slow unless the cores share a cache (copy.h), and virtual cores move. So every
 * few large messages, time the rewriting of lines that the receiver read with the last one. */
static void take_sample(const struct shm *x, struct link *l, struct ring *r) {
    if (l->large == 0 || l->until-- > 0) return;
    load_tail(x, l, r);
    if (l->tail < l->large) return;
    const f64 begin = clock_now();
    for (i32 i = 0; i + 1 < SHM_SAMPLE; i++) atomic_store_explicit(&r->sample[i].word, l->head, memory_order_relaxed);
    atomic_exchange(&r->sample[SHM_SAMPLE - 1].word, l->head); /* waits for the stores */
    const f64 took = dmin((clock_now() - begin) / SHM_SAMPLE, SLOW_LINE);
    l->rewrite += SAMPLE_SHARE * (took - l->rewrite);
    l->until = SAMPLE_EVERY;
}

static void read_sample(struct ring *r) {
    for (i32 i = 0; i < SHM_SAMPLE; i++) atomic_load_explicit(&r->sample[i].word, memory_order_relaxed);
}

/* True if the message goes through slots: it fits into free slots and reading in place is not known to be faster. Otherwise it
 * goes in place, which then blocks the sender's buffer. */
static bool fits(const struct shm *x, const struct comm_message *m, const struct link *l) {
    if (m->head.bytes >= SHM_LARGE && l->rewrite < x->in_place_below) return false;
    return m->head.bytes <= (SHM_SLOTS - (l->head - l->tail)) * x->room;
}

/* Writes one slot. The header line comes last: the polling receiver would otherwise take the line away meanwhile. */
static void fill(struct shm *x, struct comm_message *m, struct link *l, struct ring *r) {
    struct slot *s = slot_of(r, l->head);
    u64 at = 0;
    const i32 segment = m->inside[THROUGH] || fits(x, m, l) ? -1 : segment_of(x, m, &at);
    const u32 bytes = segment >= 0 ? m->head.bytes : (u32)lmin(x->room, (i64)(m->head.bytes - m->inside[THROUGH]));
    char *to = data_of(x, r, l->head, bytes);
    const char *from = (const char *)m->data + m->inside[THROUGH];
    if (segment < 0 && bytes > SHM_SMALL && l->rewrite >= PLAIN_BELOW) copy_out(to, from, bytes);
    else if (segment < 0 && bytes) memcpy(to, from, bytes);
    s->head = m->head;
    s->segment = segment;
    s->bytes = bytes;
    s->at = at;
    m->inside[THROUGH] += bytes;
    m->inside[LAST] = segment >= 0 ? l->head + 1 : 0;
    if (m->head.bytes >= SHM_LARGE && m->inside[THROUGH] == bytes) l->large = l->head + 1;
    atomic_store_explicit(&s->full, ++l->head, memory_order_release);
}

/* Fills free slots, if all earlier messages of the queue are written. */
static void put(struct shm *x, struct comm_message *m) {
    struct link *l = link_of(x, m);
    struct ring *r = ring_of(x, m);
    if (m->inside[TICKET] != l->sent) return;
    if (l->head - l->tail == SHM_SLOTS || !fits(x, m, l)) load_tail(x, l, r);
    while (l->head - l->tail < SHM_SLOTS) {
        fill(x, m, l, r);
        m->moved = true;
        if (m->inside[THROUGH] < m->head.bytes) continue;
        m->done = m->inside[LAST] == 0; /* data was copied: the buffer is free */
        l->sent++;
        return;
    }
}

err shm_send(void *self, struct comm_message *m) {
    struct shm *x = self;
    if (!is_local(x, m)) return x->inside->send(x->end, m);
    m->inside[TICKET] = link_of(x, m)->wanted++;
    m->inside[THROUGH] = m->inside[LAST] = 0;
    if (m->head.bytes >= SHM_LARGE) take_sample(x, link_of(x, m), ring_of(x, m));
    put(x, m);
    return 0;
}

static bool sent(struct shm *x, struct comm_message *m) {
    if (link_of(x, m)->sent <= m->inside[TICKET]) put(x, m);
    if (link_of(x, m)->sent <= m->inside[TICKET]) return false;
    return m->done || atomic_load_explicit(&ring_of(x, m)->tail, memory_order_acquire) >= m->inside[LAST];
}

/* ------------------------------------------------------------------ receiving ----------------------------------------------- */

err shm_recv(void *self, struct comm_message *m) {
    struct shm *x = self;
    if (!is_local(x, m)) return x->inside->recv(x->end, m);
    m->inside[TICKET] = link_of(x, m)->awaited++;
    m->inside[THROUGH] = 0;
    return 0;
}

/* shm_find, unless the sender has cancelled: then its memory may be gone, and *from is NULL. */
static err find_unless_cancelled(struct shm *x, i32 peer, struct ring *r, const struct slot *s, const char **from) {
    const err e = shm_find(x, peer, s, from);
    if (!was_cancelled(x, r)) return e;
    if (e < 0) err_clear();
    *from = NULL;
    return 0;
}

/* Reads one slot. A sender sets `cancelled` before it writes the memory again, so data copied meanwhile is discarded. */
static err take(struct shm *x, struct comm_message *m, struct ring *r, bool *taken) {
    const u64 tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    const struct slot *s = slot_of(r, tail);
    const char *from = data_of(x, r, tail, s->bytes);
    *taken = false;
    if (m->inside[THROUGH] == 0) TRY(head_check(m, &s->head));
    if (m->inside[THROUGH] == 0 && s->head.bytes >= SHM_LARGE) read_sample(r);
    if (s->segment >= 0) TRY(find_unless_cancelled(x, first_rank(x, m), r, s, &from));
    if (!from) return 0;
    if (s->bytes) memcpy((char *)m->data + m->inside[THROUGH], from, s->bytes);
    if (s->segment >= 0 && was_cancelled(x, r)) return 0;
    m->inside[THROUGH] += s->bytes;
    m->moved = *taken = true;
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
    return 0;
}

static err receive(struct shm *x, struct comm_message *m, bool *done) {
    struct ring *r = ring_of(x, m);
    bool taken = true;
    if (link_of(x, m)->received != m->inside[TICKET]) return 0;
    while (!*done && taken && !is_cancelled(x, r)) {
        const u64 tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
        if (atomic_load_explicit(&slot_of(r, tail)->full, memory_order_acquire) != tail + 1) return 0;
        TRY(take(x, m, r, &taken));
        *done = taken && m->inside[THROUGH] == m->head.bytes;
    }
    if (*done) link_of(x, m)->received++;
    return 0;
}

err shm_test(void *self, struct comm_message *m, bool *done) {
    struct shm *x = self;
    if (!is_local(x, m)) return x->inside->test(x->end, m, done);
    *done = false;
    if (!m->sends) return receive(x, m, done);
    *done = sent(x, m);
    return 0;
}

void shm_cancel(void *self) {
    struct shm *x = self;
    for (i32 k = 0; k < x->size * COMM_CHANNELS; k++)
        if (x->peer[k / COMM_CHANNELS].region.base)
            atomic_exchange(&shm_ring(x, &x->region, k / COMM_CHANNELS, k % COMM_CHANNELS)->cancelled, shm_generation(x));
    if (x->inside->cancel) x->inside->cancel(x->end);
}
