/* threads.c - transport for ranks as threads of one process. A ring entry points to the sender's message, which the receiver
 * copies; the data of a small message lie in the entry itself, so its sender need not wait.
 *
 *     ring [from][to][channel]   | done | taken | posted | posted |       |       the receiver copies the oldest posted entry
 *                                 ^ tail            ^ head
 *
 * After comm_connect the ranks use shared memory as processes do (shm.c), unless it is unavailable or they are too many: it
 * avoids rewriting memory that another core has read. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "comm/transport.h"

/* Entries per ring (further messages wait); bytes of a small message, for few and for many ranks. */
enum { RING = 32, ROOM_MOST = 1024, ROOM_LEAST = 64, ROOM_ALL = 8192 };

/* A ring entry: one cache line, followed by the data of a small message. */
struct slot {
    _Alignas(64) _Atomic u64 full;      /* 1 + number of its message, once it is complete */
    const struct comm_message *message; /* the sender's message; NULL = small, data in the entry */
    struct comm_head head;              /* header of a small message */
};

struct ring {
    _Alignas(64) u64 head, wanted, freed; /* owned by the sender: entries written; sends requested; entries known to be free */
    _Alignas(64) _Atomic u64 tail;        /* owned by the receiver: entries copied */
    u64 awaited;
    _Atomic bool busy;                    /* lock between copying and cancelling */
    bool cancelled;                           /* the sender has cancelled */
};

/* The rings of one generation of ranks. */
struct rings {
    struct ring *ring; /* [n][n][channels]; NULL = not allocated */
    char *slot;        /* [of a ring][RING] */
};

struct hub {
    i32 size;
    _Atomic i32 open; /* ranks that still use the hub */
    u32 room;
    size_t stride;    /* bytes per entry with its data */
    _Atomic i32 failed; /* 1 + the first rank that aborted */
    _Atomic u32 published;
    struct err_record why;
    pthread_mutex_t lock;   /* protects the fields below */
    struct rings *of;       /* [size + 1] rings by number of ranks */
    struct rank_set *dead;  /* [size] dead ranks as reported by each rank */
};

struct end {
    struct hub *hub;
    i32 first, rank, size; /* original number; current number and count */
    struct rings at;       /* rings of the current ranks */
};

static struct ring *ring_at(const struct end *e, i32 from, i32 to, i32 channel) {
    return &e->at.ring[((i64)from * e->size + to) * COMM_CHANNELS + channel];
}

static struct ring *ring_of(const struct end *e, const struct comm_message *m) {
    return m->sends ? ring_at(e, e->rank, m->peer, m->channel) : ring_at(e, m->peer, e->rank, m->channel);
}

static struct slot *slot_of(const struct end *e, const struct ring *r, u64 at) {
    const u64 place = (u64)(r - e->at.ring) * RING + at % RING;
    return (struct slot *)(void *)(e->at.slot + place * e->hub->stride);
}

/* For sends: inside[0] 1 + its position in the ring, 0 = not yet in the ring; inside[1] number of earlier messages; inside[2]
 * small: the buffer is free again. */
static bool put(struct end *e, struct comm_message *m) {
    struct ring *r = ring_of(e, m);
    struct slot *s = slot_of(e, r, r->head);
    if (r->head != m->inside[1]) return false;
    if (r->head - r->freed == RING) r->freed = atomic_load_explicit(&r->tail, memory_order_acquire);
    if (r->head - r->freed == RING) return false;
    m->inside[2] = m->head.bytes <= e->hub->room;
    s->message = m->inside[2] ? NULL : m;
    if (m->inside[2]) s->head = m->head;
    if (m->inside[2] && m->head.bytes) memcpy(s + 1, m->data, m->head.bytes);
    m->inside[0] = ++r->head;
    atomic_store_explicit(&s->full, r->head, memory_order_release);
    return true;
}

static err send_(void *self, struct comm_message *m) {
    struct end *e = self;
    m->inside[0] = m->inside[2] = 0;
    m->inside[1] = ring_of(e, m)->wanted++;
    m->done = put(e, m) && m->inside[2];
    return 0;
}

/* For receives: inside[0] = number of earlier messages from this sender. */
static err recv_(void *self, struct comm_message *m) {
    struct end *e = self;
    m->inside[0] = ring_of(e, m)->awaited++;
    return 0;
}

static err test_sent(struct end *e, struct comm_message *m, bool *done) {
    *done = false;
    if (m->inside[0] == 0 && !put(e, m)) return 0;
    *done = m->inside[2] || atomic_load_explicit(&ring_of(e, m)->tail, memory_order_acquire) >= m->inside[0];
    return 0;
}

static void take(struct ring *r) {
    while (atomic_exchange_explicit(&r->busy, true, memory_order_acquire)) sched_yield();
}

static void leave(struct ring *r) { atomic_store_explicit(&r->busy, false, memory_order_release); }

static err copy(struct ring *r, const struct slot *s, struct comm_message *m) {
    const struct comm_message *from = s->message;
    TRY(head_check(m, from ? &from->head : &s->head));
    if (m->head.bytes) memcpy(m->data, from ? from->data : (const void *)(s + 1), m->head.bytes);
    atomic_store_explicit(&r->tail, m->inside[0] + 1, memory_order_release);
    return 0;
}

/* Does not read the sender's memory after it has cancelled. */
static err copy_unless_cancelled(struct ring *r, const struct slot *s, struct comm_message *m, bool *done) {
    take(r);
    const bool cancelled = r->cancelled;
    const err got = cancelled ? 0 : copy(r, s, m);
    leave(r);
    *done = !cancelled && got >= 0;
    return got;
}

static err test(void *self, struct comm_message *m, bool *done) {
    struct end *e = self;
    if (m->sends) return test_sent(e, m, done);
    struct ring *r = ring_of(e, m);
    *done = false;
    const u64 tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    const struct slot *s = slot_of(e, r, tail);
    if (tail != m->inside[0] || atomic_load_explicit(&s->full, memory_order_acquire) != tail + 1) return 0;
    if (s->message) return copy_unless_cancelled(r, s, m, done);
    TRY(copy(r, s, m));
    *done = true;
    return 0;
}

static void cancel(void *self) {
    struct end *e = self;
    for (i32 k = 0; k < e->size * COMM_CHANNELS; k++) {
        struct ring *r = ring_at(e, e->rank, k / COMM_CHANNELS, k % COMM_CHANNELS);
        take(r);
        r->cancelled = true;
        leave(r);
    }
}

static const struct err_record *find_abort(void *self, i32 *rank) {
    struct end *e = self;
    i32 who = atomic_load(&e->hub->failed) - 1;
    if (who < 0 || who == e->first || atomic_load(&e->hub->published) == 0) return NULL;
    *rank = who;
    return &e->hub->why;
}

static void abort_run(void *self, const struct err_record *why) {
    struct end *e = self;
    i32 nobody = 0;
    pthread_mutex_lock(&e->hub->lock); /* with recovery the others continue without it */
    rank_set_add(&e->hub->dead[e->first], e->first);
    pthread_mutex_unlock(&e->hub->lock);
    if (!atomic_compare_exchange_strong(&e->hub->failed, &nobody, e->first + 1)) return;
    e->hub->why = *why;
    atomic_store(&e->hub->published, 1);
}

static err send_dead(void *self, const struct rank_set *dead) {
    struct end *e = self;
    pthread_mutex_lock(&e->hub->lock);
    e->hub->dead[e->first] = *dead;
    pthread_mutex_unlock(&e->hub->lock);
    return 0;
}

static err recv_dead(void *self, i32 from, struct rank_set *dead) {
    struct end *e = self;
    pthread_mutex_lock(&e->hub->lock);
    *dead = e->hub->dead[from];
    pthread_mutex_unlock(&e->hub->lock);
    return 0;
}

static err allow_recovery(void *self) {
    (void)self;
    return 0;
}

static bool rings_new(const struct hub *h, i32 n, struct rings *out) {
    const size_t rings = (size_t)n * (size_t)n * COMM_CHANNELS;
    if (out->ring) return true;
    if (!out->slot) out->slot = mem_alloc(rings * RING * h->stride);
    if (out->slot) out->ring = mem_alloc(rings * sizeof *out->ring);
    return out->ring != NULL;
}

/* The first caller allocates the rings of n ranks; the number of ranks only decreases. */
static err reconnect(void *self, const i32 *left, i32 n) {
    struct end *e = self;
    pthread_mutex_lock(&e->hub->lock);
    const bool made = rings_new(e->hub, n, &e->hub->of[n]);
    if (made) e->at = e->hub->of[n];
    pthread_mutex_unlock(&e->hub->lock);
    e->size = n;
    for (i32 k = 0; k < n; k++)
        if (left[k] == e->first) e->rank = k;
    return made ? 0 : -E601;
}

static void hub_free(struct hub *h) {
    for (i32 n = 0; h->of && n <= h->size; n++) {
        mem_free(h->of[n].ring);
        mem_free(h->of[n].slot);
    }
    pthread_mutex_destroy(&h->lock);
    mem_free(h->of);
    mem_free(h->dead);
    mem_free(h);
}

static void close_(void *self, bool well) {
    struct end *e = self;
    (void)well;
    if (atomic_fetch_sub(&e->hub->open, 1) == 1) hub_free(e->hub);
    mem_free(e);
}

/* ThreadSanitizer sees no order between two mappings of one page, so it would report false races in shm.c: do not use it there.
 */
#if defined(__has_feature)
#define WATCHED __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define WATCHED 1
#else
#define WATCHED 0
#endif

static const struct transport threads = {.name = "threads",
                                         .direct = true,
                                         .by_host = !WATCHED,
                                         .send = send_,
                                         .recv = recv_,
                                         .test = test,
                                         .cancel = cancel,
                                         .find_abort = find_abort,
                                         .abort = abort_run,
                                         .close = close_,
                                         .allow_recovery = allow_recovery,
                                         .send_dead = send_dead,
                                         .recv_dead = recv_dead,
                                         .reconnect = reconnect};

static err end_new(struct hub *h, i32 rank, rank_join *join, const void *arg, struct comm **out) {
    struct end *e = mem_alloc(sizeof *e);
    if (!e) return -E601;
    *e = (struct end){.hub = h, .first = rank, .rank = rank, .size = h->size, .at = h->of[h->size]};
    atomic_fetch_add(&h->open, 1);
    return join(&threads, e, rank, h->size, arg, out);
}

static err plain(const struct transport *t, void *end, i32 rank, i32 size, const void *arg, struct comm **out) {
    (void)arg;
    return comm_new(t, end, rank, size, out);
}

err comm_threads(i32 size, struct comm **out) { return comm_threads_by(size, plain, NULL, out); }

static err hub_new(i32 size, struct hub **out) {
    struct hub *h;
    NEW(h, 1);
    pthread_mutex_init(&h->lock, NULL);
    h->room = (u32)imin(ROOM_MOST, imax(ROOM_LEAST, ROOM_ALL / size));
    h->stride = (size_t)round_up64((i64)sizeof(struct slot) + h->room, 64);
    h->size = size;
    err e = mem_new((void **)&h->dead, size, sizeof *h->dead);
    if (e >= 0) e = mem_new((void **)&h->of, size + 1, sizeof *h->of);
    if (e >= 0 && !rings_new(h, size, &h->of[size])) e = -E601;
    if (e < 0) hub_free(h);
    else *out = h;
    return e;
}

err comm_threads_by(i32 size, rank_join *join, const void *arg, struct comm **out) {
    struct hub *h;
    for (i32 k = 0; k < size; k++) out[k] = NULL;
    TRY(hub_new(size, &h));
    atomic_store(&h->open, 1); /* reference of this function */
    err e = 0;
    for (i32 k = 0; k < size && e >= 0; k++) e = end_new(h, k, join, arg, &out[k]);
    for (i32 k = 0; k < size && e < 0; k++) comm_free(out[k]), out[k] = NULL;
    if (atomic_fetch_sub(&h->open, 1) == 1) hub_free(h);
    return e;
}
