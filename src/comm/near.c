/* near.c - ranks of one host talk through memory that they share, whatever carries messages to other hosts (picture: near.h).
 *
 * A message goes through slots, as many as it needs, and is copied twice.  What comes from a segment can be copied once, by the
 * receiver: what does not fit into slots that are free, and large messages between cores for which that is faster. */
#include <string.h>

#include "base/clock.h"
#include "comm/copy.h"
#include "comm/near.h"

enum { IN_PLACE = 1 << 13, SAMPLE_EVERY = 4 };
#define SLOW_LINE 27e-9
#define SAMPLE_SHARE 0.125 /* of one sample in the mean: single ones are off by a factor of 3 now and then */

/* What a message keeps in its `inside`, where its peer is near. */
enum { TICKET, THROUGH, LAST };

static i32 first_of(const struct near *x, const struct comm_message *m) { return x->left[m->peer]; }
static bool is_near(const struct near *x, const struct comm_message *m) { return x->peer[first_of(x, m)].box.base != NULL; }
static struct line *line_of(const struct near *x, const struct comm_message *m) {
    return &x->line[first_of(x, m) * COMM_CHANNELS + m->channel];
}

static struct ring *ring_of(const struct near *x, const struct comm_message *m) {
    const i32 peer = first_of(x, m);
    return m->sends ? near_ring(x, &x->box, peer, m->channel) : near_ring(x, &x->peer[peer].box, x->me, m->channel);
}

static struct slot *slot_of(struct ring *r, u64 at) { return (struct slot *)(void *)(r->slot + at % NEAR_SLOTS * NEAR_STRIDE); }

static char *data_of(const struct near *x, struct ring *r, u64 at, u32 bytes) {
    return bytes <= NEAR_SMALL ? (char *)(slot_of(r, at) + 1) : r->slot + NEAR_SLOTS * NEAR_STRIDE + at % NEAR_SLOTS * x->room;
}

static bool is_cut(const struct near *x, struct ring *r) {
    return atomic_load_explicit(&r->cut, memory_order_acquire) == near_generation(x);
}

/* Has it been by now?  Not looked at before everything above is done. */
static bool was_cut(const struct near *x, struct ring *r) { return atomic_fetch_or(&r->cut, 0) == near_generation(x); }

void near_begin(struct near *x) {
    for (i32 k = 0; k < x->size * COMM_CHANNELS; k++) {
        const struct map *peer = &x->peer[k / COMM_CHANNELS].box;
        x->line[k] = (struct line){.head = near_base(x), .tail = near_base(x), .rewrite = SLOW_LINE};
        if (!peer->base) continue;
        atomic_store_explicit(&near_ring(x, peer, x->me, k % COMM_CHANNELS)->tail, near_base(x), memory_order_release);
    }
}

/* ------------------------------------------------------------------ sending ------------------------------------------------- */

static i32 segment_of(const struct near *x, const struct comm_message *m, u64 *at) {
    const char *p = m->data;
    for (i32 k = 0; m->head.bytes >= IN_PLACE && k < NEAR_SEGMENTS; k++) {
        const char *base = x->own[k].base;
        if (!base || p < base || p + m->head.bytes > base + x->own[k].bytes) continue;
        *at = (u64)(p - base);
        return k;
    }
    return -1;
}

/* The most that the ring was emptied; what is there of a generation before is less than where this one begins. */
static void see_tail(const struct near *x, struct line *l, struct ring *r) {
    const u64 tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    l->tail = tail > near_base(x) ? tail : near_base(x);
}

/* Memory that another core has read is slow to write anew unless the two share a cache (copy.h), and on virtual machines that
 * changes.  So now and then lines that the receiver has read, with the last large message, are written anew, by the clock. */
static void take_sample(const struct near *x, struct line *l, struct ring *r) {
    if (l->large == 0 || l->until-- > 0) return;
    see_tail(x, l, r);
    if (l->tail < l->large) return;
    const f64 begin = clock_now();
    for (i32 i = 0; i + 1 < NEAR_SAMPLE; i++) atomic_store_explicit(&r->sample[i].word, l->head, memory_order_relaxed);
    atomic_exchange(&r->sample[NEAR_SAMPLE - 1].word, l->head); /* waits for them */
    const f64 took = dmin((clock_now() - begin) / NEAR_SAMPLE, SLOW_LINE);
    l->rewrite += SAMPLE_SHARE * (took - l->rewrite);
    l->until = SAMPLE_EVERY;
}

static void read_sample(struct ring *r) {
    for (i32 i = 0; i < NEAR_SAMPLE; i++) atomic_load_explicit(&r->sample[i].word, memory_order_relaxed);
}

/* What fits into free slots goes there, though it could be read where it is, unless that is known to be faster.  What does not
 * would want the sender's help. */
static bool fits(const struct near *x, const struct comm_message *m, const struct line *l) {
    if (m->head.bytes >= NEAR_LARGE && l->rewrite < x->cheap) return false;
    return m->head.bytes <= (NEAR_SLOTS - (l->head - l->tail)) * x->room;
}

/* The line of the slot is written last, and at once: whoever awaits it looks at it all the time, and would take it away. */
static void fill(struct near *x, struct comm_message *m, struct line *l, struct ring *r) {
    struct slot *s = slot_of(r, l->head);
    u64 at = 0;
    const i32 segment = m->inside[THROUGH] || fits(x, m, l) ? -1 : segment_of(x, m, &at);
    const u32 bytes = segment >= 0 ? m->head.bytes : (u32)lmin(x->room, (i64)(m->head.bytes - m->inside[THROUGH]));
    char *to = data_of(x, r, l->head, bytes);
    const char *from = (const char *)m->data + m->inside[THROUGH];
    if (segment < 0 && bytes > NEAR_SMALL) copy_out(to, from, bytes);
    else if (segment < 0 && bytes) memcpy(to, from, bytes);
    s->head = m->head;
    s->segment = segment;
    s->bytes = bytes;
    s->at = at;
    m->inside[THROUGH] += bytes;
    m->inside[LAST] = segment >= 0 ? l->head + 1 : 0;
    if (m->head.bytes >= NEAR_LARGE && m->inside[THROUGH] == bytes) l->large = l->head + 1;
    atomic_store_explicit(&s->full, ++l->head, memory_order_release);
}

/* As many slots as are free, if all messages before it are in theirs. */
static void put(struct near *x, struct comm_message *m) {
    struct line *l = line_of(x, m);
    struct ring *r = ring_of(x, m);
    if (m->inside[TICKET] != l->sent) return;
    if (l->head - l->tail == NEAR_SLOTS || !fits(x, m, l)) see_tail(x, l, r);
    while (l->head - l->tail < NEAR_SLOTS) {
        fill(x, m, l, r);
        m->moved = true;
        if (m->inside[THROUGH] < m->head.bytes) continue;
        m->done = m->inside[LAST] == 0; /* its memory is free again */
        l->sent++;
        return;
    }
}

err near_send(void *self, struct comm_message *m) {
    struct near *x = self;
    if (!is_near(x, m)) return x->inside->send(x->end, m);
    m->inside[TICKET] = line_of(x, m)->wanted++;
    m->inside[THROUGH] = m->inside[LAST] = 0;
    if (m->head.bytes >= NEAR_LARGE) take_sample(x, line_of(x, m), ring_of(x, m));
    put(x, m);
    return 0;
}

static bool sent(struct near *x, struct comm_message *m) {
    if (line_of(x, m)->sent <= m->inside[TICKET]) put(x, m);
    if (line_of(x, m)->sent <= m->inside[TICKET]) return false;
    return m->done || atomic_load_explicit(&ring_of(x, m)->tail, memory_order_acquire) >= m->inside[LAST];
}

/* ------------------------------------------------------------------ receiving ----------------------------------------------- */

err near_recv(void *self, struct comm_message *m) {
    struct near *x = self;
    if (!is_near(x, m)) return x->inside->recv(x->end, m);
    m->inside[TICKET] = line_of(x, m)->awaited++;
    m->inside[THROUGH] = 0;
    return 0;
}

/* The same, unless the sender has recalled: what it had there may be gone, and *from is NULL. */
static err look_up_unless_cut(struct near *x, i32 peer, struct ring *r, const struct slot *s, const char **from) {
    const err e = near_look_up(x, peer, s, from);
    if (!was_cut(x, r)) return e;
    if (e < 0) err_clear();
    *from = NULL;
    return 0;
}

/* One slot.  A sender that recalls says so before it writes again: what was copied meanwhile is not looked at. */
static err take(struct near *x, struct comm_message *m, struct ring *r, bool *taken) {
    const u64 tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    const struct slot *s = slot_of(r, tail);
    const char *from = data_of(x, r, tail, s->bytes);
    *taken = false;
    if (m->inside[THROUGH] == 0) TRY(head_check(m, &s->head));
    if (m->inside[THROUGH] == 0 && s->head.bytes >= NEAR_LARGE) read_sample(r);
    if (s->segment >= 0) TRY(look_up_unless_cut(x, first_of(x, m), r, s, &from));
    if (!from) return 0;
    if (s->bytes) memcpy((char *)m->data + m->inside[THROUGH], from, s->bytes);
    if (s->segment >= 0 && was_cut(x, r)) return 0;
    m->inside[THROUGH] += s->bytes;
    m->moved = *taken = true;
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
    return 0;
}

static err come(struct near *x, struct comm_message *m, bool *done) {
    struct ring *r = ring_of(x, m);
    bool taken = true;
    if (line_of(x, m)->come != m->inside[TICKET]) return 0;
    while (!*done && taken && !is_cut(x, r)) {
        const u64 tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
        if (atomic_load_explicit(&slot_of(r, tail)->full, memory_order_acquire) != tail + 1) return 0;
        TRY(take(x, m, r, &taken));
        *done = taken && m->inside[THROUGH] == m->head.bytes;
    }
    if (*done) line_of(x, m)->come++;
    return 0;
}

err near_test(void *self, struct comm_message *m, bool *done) {
    struct near *x = self;
    if (!is_near(x, m)) return x->inside->test(x->end, m, done);
    *done = false;
    if (!m->sends) return come(x, m, done);
    *done = sent(x, m);
    return 0;
}

void near_recall(void *self) {
    struct near *x = self;
    for (i32 k = 0; k < x->size * COMM_CHANNELS; k++)
        if (x->peer[k / COMM_CHANNELS].box.base)
            atomic_exchange(&near_ring(x, &x->box, k / COMM_CHANNELS, k % COMM_CHANNELS)->cut, near_generation(x));
    if (x->inside->recall) x->inside->recall(x->end);
}
