/* near.c - ranks of one host talk through memory that they share, whatever carries messages to other hosts.
 *
 *     box of rank 0    | who | ring to rank 1: tail | slot slot slot .. | ring to rank 2 ..     0 writes; tails are the others'
 *     segment of 0     | what is sent often (comm_alloc): a slot says where it is, and the receiver copies it from there
 *
 * Anything else goes through the slots, as many as it needs: copied twice, the second time out of a cache.  Boxes and segments
 * are memory without a name, opened by way of /proc/PID/fd: they want no room in /dev/shm, and are gone with the last process.
 * Where that cannot be (other users, a container of its own) messages stay with the transport inside. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/transport.h"

enum { SLOTS = 16, SMALL = 1024, SEGMENTS = 64, IN_PLACE = 1 << 13 };
enum { ROOM_MOST = 1 << 14, ROOM_LEAST = 1 << 10, ROOM_ALL = 1 << 18 };

/* One line, that the data of a small message follow: whoever awaits it looks at nothing else. */
struct slot {
    _Alignas(64) _Atomic u64 full; /* 1 + the number of the slot in the ring, since it was written */
    struct comm_head head;
    i32 segment; /* where the data are, at `at`; -1 = they follow, `bytes` of them */
    u32 bytes;
    u64 at;
};
_Static_assert(sizeof(struct slot) == 64, "a line");

struct ring {
    _Alignas(64) _Atomic u64 tail;   /* slots read so far; the receiver's */
    _Alignas(64) _Atomic u32 cut;    /* recalled: nothing comes any more; the sender's */
    _Alignas(64) char slot[];        /* [SLOTS] with room for a small message, close together; behind them [SLOTS] of x->room */
};

struct box {
    u64 token;
    struct {
        _Atomic u64 serial; /* which of this rank's segments it is, 0 = none */
        i32 fd;
        u64 bytes;
    } segment[SEGMENTS];
    _Atomic bool failed; /* why is written */
    struct err_record why;
};

/* A mapping: of one's own memory, or of a peer's. */
struct map {
    void *base;
    u64 bytes, serial;
    int fd; /* -1 = a peer's */
};

struct peer {
    struct map box; /* base NULL = it is on another host */
    struct map seen[SEGMENTS];
    i32 pid;
};

/* Messages of a pair and channel: how many were asked for, and how many are through; slots written, and those of them that are
 * known to be free again. */
struct line {
    u64 wanted, sent, awaited, come;
    u64 head, tail;
};

struct near {
    const struct transport *inside;
    void *end;
    i32 rank, size;
    u32 room;       /* bytes of data that go with a slot */
    size_t ring;
    struct map box; /* ours */
    struct map own[SEGMENTS];
    u64 serial;
    struct peer *peer; /* [size] */
    struct line *line; /* [size][channels] */
};

/* What a message keeps in its `inside`, where its peer is near. */
enum { TICKET, THROUGH, LAST };

static bool is_near(const struct near *x, const struct comm_message *m) { return x->peer[m->peer].box.base != NULL; }
static struct line *line_of(const struct near *x, const struct comm_message *m) {
    return &x->line[m->peer * COMM_CHANNELS + m->channel];
}

static struct ring *ring_in(const struct near *x, const struct map *box, i32 to, i32 channel) {
    const size_t first = (size_t)round_up64(sizeof(struct box), 64);
    return (struct ring *)(void *)((char *)box->base + first + (size_t)(to * COMM_CHANNELS + channel) * x->ring);
}

static struct ring *ring_of(const struct near *x, const struct comm_message *m) {
    return m->sends ? ring_in(x, &x->box, m->peer, m->channel) : ring_in(x, &x->peer[m->peer].box, x->rank, m->channel);
}

enum { STRIDE = sizeof(struct slot) + SMALL };

static struct slot *slot_of(struct ring *r, u64 at) { return (struct slot *)(void *)(r->slot + at % SLOTS * STRIDE); }

static char *data_of(const struct near *x, struct ring *r, u64 at, u32 bytes) {
    return bytes <= SMALL ? (char *)(slot_of(r, at) + 1) : r->slot + SLOTS * STRIDE + at % SLOTS * x->room;
}

/* ------------------------------------------------------------------ memory -------------------------------------------------- */

static bool map_new(struct map *m, size_t bytes) {
    *m = (struct map){.bytes = bytes};
    m->fd = memfd_create("stretto", MFD_CLOEXEC);
    void *p = MAP_FAILED;
    if (m->fd >= 0 && ftruncate(m->fd, (off_t)bytes) == 0) p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    if (p != MAP_FAILED) m->base = p;
    else if (m->fd >= 0) close(m->fd);
    return m->base != NULL;
}

static bool map_open(struct map *m, i32 pid, i32 fd, u64 bytes, int rights, int how) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    *m = (struct map){.bytes = bytes, .fd = -1};
    const int at = open(path, (rights & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (at < 0) return false;
    void *p = lseek(at, 0, SEEK_END) >= (off_t)bytes ? mmap(NULL, bytes, rights, MAP_SHARED | how, at, 0) : MAP_FAILED;
    close(at);
    if (p != MAP_FAILED) m->base = p;
    return m->base != NULL;
}

static void map_free(struct map *m) {
    if (!m->base) return;
    munmap(m->base, m->bytes);
    if (m->fd >= 0) close(m->fd);
    *m = (struct map){.fd = -1};
}

static void *alloc_(void *self, size_t bytes) {
    struct near *x = self;
    struct box *b = x->box.base;
    i32 k = 0;
    while (k < SEGMENTS && x->own[k].base) k++;
    if (k == SEGMENTS || bytes == 0 || !map_new(&x->own[k], bytes)) return NULL;
    memset(x->own[k].base, 0, bytes); /* that pages are there before the first step */
    b->segment[k].fd = x->own[k].fd;
    b->segment[k].bytes = bytes;
    atomic_store_explicit(&b->segment[k].serial, ++x->serial, memory_order_release);
    return x->own[k].base;
}

static bool release(void *self, void *p) {
    struct near *x = self;
    struct box *b = x->box.base;
    for (i32 k = 0; p && k < SEGMENTS; k++) {
        if (x->own[k].base != p) continue;
        atomic_store(&b->segment[k].serial, 0);
        map_free(&x->own[k]);
        return true;
    }
    return false;
}

/* Where a peer's segment is here; a place of the list may have another one now. */
static err look_up(struct near *x, i32 peer, const struct slot *s, const char **from) {
    struct peer *p = &x->peer[peer];
    struct box *b = p->box.base;
    struct map *m = &p->seen[s->segment % SEGMENTS];
    const u64 serial = atomic_load_explicit(&b->segment[s->segment % SEGMENTS].serial, memory_order_acquire);
    const u64 bytes = b->segment[s->segment % SEGMENTS].bytes;
    if (m->serial != serial || !m->base) {
        map_free(m);
        if (!map_open(m, p->pid, b->segment[s->segment % SEGMENTS].fd, bytes, PROT_READ, MAP_POPULATE))
            return FAIL_AT(E801, NULL, "STRETTO_NEAR=off   (messages by MPI alone)",
                           "memory of rank %d (pid %d) cannot be opened", peer, p->pid);
        m->serial = serial;
    }
    *from = (const char *)m->base + s->at;
    return 0;
}

/* ------------------------------------------------------------------ sending ------------------------------------------------- */

static i32 segment_of(const struct near *x, const struct comm_message *m, u64 *at) {
    const char *p = m->data;
    for (i32 k = 0; m->head.bytes >= IN_PLACE && k < SEGMENTS; k++) {
        const char *base = x->own[k].base;
        if (!base || p < base || p + m->head.bytes > base + x->own[k].bytes) continue;
        *at = (u64)(p - base);
        return k;
    }
    return -1;
}

/* As many slots as are free, if all messages before it are in theirs. */
static void put(struct near *x, struct comm_message *m) {
    struct line *l = line_of(x, m);
    struct ring *r = ring_of(x, m);
    if (m->inside[TICKET] != l->sent) return;
    if (l->head - l->tail == SLOTS) l->tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    while (l->head - l->tail < SLOTS) {
        struct slot *s = slot_of(r, l->head);
        s->head = m->head;
        s->segment = segment_of(x, m, &s->at);
        s->bytes = s->segment >= 0 ? m->head.bytes : (u32)lmin(x->room, (i64)(m->head.bytes - m->inside[THROUGH]));
        if (s->segment < 0 && s->bytes)
            memcpy(data_of(x, r, l->head, s->bytes), (const char *)m->data + m->inside[THROUGH], s->bytes);
        m->inside[THROUGH] += s->bytes;
        m->moved = true;
        atomic_store_explicit(&s->full, ++l->head, memory_order_release);
        if (m->inside[THROUGH] < m->head.bytes) continue;
        m->inside[LAST] = s->segment >= 0 ? l->head : 0;
        m->done = s->segment < 0; /* its memory is free again */
        l->sent++;
        return;
    }
}

static err send_(void *self, struct comm_message *m) {
    struct near *x = self;
    if (!is_near(x, m)) return x->inside->send(x->end, m);
    m->inside[TICKET] = line_of(x, m)->wanted++;
    m->inside[THROUGH] = m->inside[LAST] = 0;
    put(x, m);
    return 0;
}

static bool sent(struct near *x, struct comm_message *m) {
    if (line_of(x, m)->sent <= m->inside[TICKET]) put(x, m);
    if (line_of(x, m)->sent <= m->inside[TICKET]) return false;
    return m->done || atomic_load_explicit(&ring_of(x, m)->tail, memory_order_acquire) >= m->inside[LAST];
}

/* ------------------------------------------------------------------ receiving ----------------------------------------------- */

static err recv_(void *self, struct comm_message *m) {
    struct near *x = self;
    if (!is_near(x, m)) return x->inside->recv(x->end, m);
    m->inside[TICKET] = line_of(x, m)->awaited++;
    m->inside[THROUGH] = 0;
    return 0;
}

/* The same, unless the sender has recalled: what it had there may be gone, and *from is NULL. */
static err look_up_unless_cut(struct near *x, i32 peer, struct ring *r, const struct slot *s, const char **from) {
    const err e = look_up(x, peer, s, from);
    if (!atomic_fetch_or(&r->cut, 0)) return e;
    if (e < 0) err_clear();
    *from = NULL;
    return 0;
}

/* One slot.  A sender that recalls says so before it writes again: what was copied meanwhile is not looked at. */
static err take(struct near *x, struct comm_message *m, struct ring *r, bool *done) {
    const u64 tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    const struct slot *s = slot_of(r, tail);
    const char *from = data_of(x, r, tail, s->bytes);
    if (m->inside[THROUGH] == 0) TRY(head_check(m, &s->head));
    if (s->segment >= 0) TRY(look_up_unless_cut(x, m->peer, r, s, &from));
    if (!from) return 0;
    if (s->bytes) memcpy((char *)m->data + m->inside[THROUGH], from, s->bytes);
    if (s->segment >= 0 && atomic_fetch_or(&r->cut, 0)) return 0; /* not before the copy is made */
    m->inside[THROUGH] += s->bytes;
    m->moved = true;
    *done = m->inside[THROUGH] == m->head.bytes;
    if (*done) line_of(x, m)->come++;
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
    return 0;
}

static err come(struct near *x, struct comm_message *m, bool *done) {
    struct ring *r = ring_of(x, m);
    if (line_of(x, m)->come != m->inside[TICKET]) return 0;
    while (!*done && !atomic_load_explicit(&r->cut, memory_order_acquire)) {
        const u64 tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
        if (atomic_load_explicit(&slot_of(r, tail)->full, memory_order_acquire) != tail + 1) return 0;
        TRY(take(x, m, r, done));
    }
    return 0;
}

static err test(void *self, struct comm_message *m, bool *done) {
    struct near *x = self;
    if (!is_near(x, m)) return x->inside->test(x->end, m, done);
    *done = false;
    if (!m->sends) return come(x, m, done);
    *done = sent(x, m);
    return 0;
}

/* ------------------------------------------------------------------ when it goes wrong -------------------------------------- */

static void recall(void *self) {
    struct near *x = self;
    for (i32 k = 0; k < x->size * COMM_CHANNELS; k++)
        if (x->peer[k / COMM_CHANNELS].box.base)
            atomic_fetch_or(&ring_in(x, &x->box, k / COMM_CHANNELS, k % COMM_CHANNELS)->cut, 1);
    if (x->inside->recall) x->inside->recall(x->end);
}

static const struct err_record *gave_up(void *self, i32 *rank) {
    const struct near *x = self;
    for (i32 k = 0; k < x->size; k++) {
        const struct box *b = x->peer[k].box.base;
        if (!b || !atomic_load_explicit(&b->failed, memory_order_acquire)) continue;
        *rank = k;
        return &b->why;
    }
    return x->inside->gave_up ? x->inside->gave_up(x->end, rank) : NULL;
}

static void give_up(void *self, const struct err_record *why) {
    struct near *x = self;
    struct box *b = x->box.base;
    b->why = *why;
    atomic_store_explicit(&b->failed, true, memory_order_release);
    if (x->inside->give_up) x->inside->give_up(x->end, why);
}

/* ------------------------------------------------------------------ life ---------------------------------------------------- */

static void near_free(struct near *x) {
    for (i32 k = 0; x->peer && k < x->size; k++) {
        for (i32 i = 0; i < SEGMENTS; i++) map_free(&x->peer[k].seen[i]);
        map_free(&x->peer[k].box);
    }
    for (i32 i = 0; i < SEGMENTS; i++) map_free(&x->own[i]);
    map_free(&x->box);
    mem_free(x->peer);
    mem_free(x->line);
    mem_free(x);
}

static void close_(void *self, bool well) {
    struct near *x = self;
    x->inside->close(x->end, well);
    near_free(x);
}

#define NEAR                                                                                                                     \
    .send = send_, .recv = recv_, .test = test, .recall = recall, .gave_up = gave_up, .give_up = give_up, .close = close_,       \
    .alloc = alloc_, .release = release
static const struct transport all_near = {.name = "mpi", .direct = true, NEAR};
static const struct transport some_near = {.name = "mpi", NEAR};

/* What the others need to open a box; fd -1 = there is none. */
struct card {
    i32 pid, fd;
    u64 token, bytes;
};

static struct near *near_new(const struct comm *c, struct card *mine) {
    struct near *x = mem_alloc(sizeof *x);
    const i32 n = comm_size(c);
    if (!x) return NULL;
    *x = (struct near){.rank = comm_rank(c), .size = n};
    x->room = (u32)imin(ROOM_MOST, imax(ROOM_LEAST, ROOM_ALL / comm_neighbours(c)));
    x->room -= x->room % 64;
    x->ring = sizeof(struct ring) + SLOTS * (STRIDE + (size_t)x->room);
    x->peer = mem_alloc((size_t)n * sizeof *x->peer);
    x->line = mem_alloc((size_t)(n * COMM_CHANNELS) * sizeof *x->line);
    mine->bytes = (u64)round_up64(sizeof(struct box), 64) + (u64)(n * COMM_CHANNELS) * x->ring;
    if (!x->peer || !x->line || !map_new(&x->box, mine->bytes)) {
        near_free(x);
        return NULL;
    }
    struct box *b = x->box.base;
    const f64 now = clock_now();
    b->token = mine->token = comm_hash(comm_hash(COMM_HASH, &now, sizeof now), &mine->pid, sizeof mine->pid) + (u64)x->rank;
    mine->fd = x->box.fd;
    return x;
}

/* The boxes of all that have this one's host name; false where one of them cannot be opened, or is another's. */
static bool open_boxes(struct near *x, struct comm *c, const struct card *card) {
    const char *host = comm_who(c, x->rank)->host;
    for (i32 k = 0; k < x->size; k++) {
        struct peer *p = &x->peer[k];
        if (k == x->rank || strcmp(comm_who(c, k)->host, host) != 0) continue;
        p->pid = card[k].pid;
        if (card[k].fd < 0 || card[k].bytes != card[x->rank].bytes) return false;
        if (!map_open(&p->box, p->pid, card[k].fd, card[k].bytes, PROT_READ | PROT_WRITE, 0)) return false;
        if (((const struct box *)p->box.base)->token != card[k].token) return false;
    }
    return true;
}

/* A host all of whose ranks could open all boxes of it: its ranks are near, the same for each of them. */
static bool host_is_near(struct comm *c, const u8 *good, i32 rank) {
    for (i32 k = 0; k < comm_size(c); k++)
        if (!good[k] && strcmp(comm_who(c, k)->host, comm_who(c, rank)->host) == 0) return false;
    return comm_neighbours(c) > 1;
}

static err settle(struct comm *c, struct near *x, const struct card *card, u8 *good, bool *near) {
    u8 mine = x && open_boxes(x, c, card);
    TRY(comm_gather(c, "near", &mine, sizeof mine, good));
    *near = x && host_is_near(c, good, comm_rank(c));
    return 0;
}

static err join(struct comm *c, struct near **out, bool *near) {
    const char *wish = getenv("STRETTO_NEAR");
    struct card mine = {.pid = (i32)getpid(), .fd = -1}, *card;
    u8 *good = NULL;
    const bool wanted = !(wish && strcmp(wish, "off") == 0) && comm_neighbours(c) > 1;
    NEW(card, comm_size(c));
    err e = mem_new((void **)&good, comm_size(c), 1);
    if (e >= 0 && wanted) *out = near_new(c, &mine);
    if (e >= 0) e = comm_gather(c, "boxes", &mine, sizeof mine, card);
    if (e >= 0) e = settle(c, *out, card, good, near);
    mem_free(good);
    mem_free(card);
    return e;
}

err near_join(struct comm *c, const struct transport **t, void **self) {
    struct near *x = NULL;
    bool near = false;
    const err e = join(c, &x, &near);
    if (x && (e < 0 || !near)) near_free(x);
    if (e < 0 || !near) return e;
    x->inside = *t;
    x->end = *self;
    *self = x;
    *t = comm_neighbours(c) == comm_size(c) ? &all_near : &some_near;
    return 0;
}

void near_leave(const struct transport **t, void **self) {
    struct near *x = *self;
    if (*t != &all_near && *t != &some_near) return;
    *t = x->inside;
    *self = x->end;
    near_free(x); /* what the others have not read yet is theirs as well */
}
