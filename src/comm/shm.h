/* near.h - the inside of ranks that share memory of their host: near.c (messages), near_memory.c (what they share),
 * near_join.c (how they come together, and go on without one that died).
 *
 *     box of rank 0    | who | ring to rank 1: tail | slot slot slot .. | ring to rank 2 ..     0 writes; tails are the others'
 *     segment of 0     | what is sent often (comm_alloc): where slots are full, or if that is faster, one says where it is, and
 *                      | it is read there
 *
 * Places in a box are by the numbers that ranks had when they met.  Slots are counted from a number that grows with every death
 * (near_base): what lies there of before is nobody's, and need not be cleared. */
#ifndef STRETTO_COMM_SHM_H
#define STRETTO_COMM_SHM_H

#include <stdatomic.h>

#include "comm/transport.h"

enum { SHM_SLOTS = 64, SHM_SMALL = 1024, SHM_SEGMENTS = 64, SHM_LARGE = 1 << 18, SHM_SAMPLE = 32 };

/* One line, that the data of a small message follow: whoever awaits it looks at nothing else. */
struct slot {
    _Alignas(64) _Atomic u64 full; /* 1 + the number of the slot in the ring, since it was written */
    struct comm_head head;
    i32 segment; /* where the data are, at `at`; -1 = they follow, `bytes` of them */
    u32 bytes;
    u64 at;
};
_Static_assert(sizeof(struct slot) == 64, "a line");
enum { SHM_STRIDE = sizeof(struct slot) + SHM_SMALL };

struct ring {
    _Alignas(64) _Atomic u64 tail; /* slots read so far; the receiver's */
    _Alignas(64) _Atomic u32 cancelled;  /* recalled in this generation, counted from 1: nothing comes any more; the sender's */
    struct {
        _Alignas(64) _Atomic u64 word;
    } sample[SHM_SAMPLE];         /* the receiver reads it with large messages; the sender's */
    _Alignas(64) char slot[];      /* [SLOTS] with room for a small message, close together; behind them [SLOTS] of x->room */
};

struct region {
    u64 token;
    struct {
        _Atomic u64 serial; /* which of this rank's segments it is, 0 = none; changes before the others do, and after them */
        _Atomic i32 fd;
        _Atomic u64 bytes;
    } segment[SHM_SEGMENTS];
    _Atomic bool failing, failed; /* why is being written; is written */
    struct err_record why;
    _Atomic u64 version;             /* odd while what follows is written */
    _Atomic u64 dead[COMM_RANKS / 64];
};

/* A mapping: of one's own memory, or of a peer's. */
struct mapping {
    void *base;
    u64 bytes, serial;
    int fd; /* -1 = a peer's */
};

struct peer {
    struct mapping region; /* base NULL = it is on another host */
    struct mapping seen[SHM_SEGMENTS];
    i32 pid;
};

/* Messages of a pair and channel: how many were asked for, and how many are through; slots written, and those of them that are
 * known to be free again. */
struct link {
    u64 wanted, sent, awaited, received;
    u64 head, tail;
    u64 large;     /* slots written when the last large message had begun, 0 = there was none */
    i32 until;     /* so many large messages to the next sample */
    f64 rewrite;   /* seconds for a line that the receiver has read to be written anew: mean of samples */
};

struct shm {
    const struct transport *inside;
    void *end;
    i32 me, size;    /* the number of this rank when they met, and how many there were */
    i32 *left, nleft; /* those that are left, by these numbers: left[rank of now] */
    bool recovers, remote;  /* far: some are on other hosts */
    f64 in_place_below;       /* where `rewrite` is below this large messages are read where they are */
    u32 room;        /* bytes of data that go with a slot */
    size_t ring;
    struct mapping region;  /* ours */
    struct mapping own[SHM_SEGMENTS];
    u64 serial;
    struct peer *peer; /* [size] */
    struct link *link; /* [size][channels] */
};

static inline u32 shm_generation(const struct shm *x) { return (u32)(x->size - x->nleft) + 1; }
static inline u64 shm_base(const struct shm *x) { return (u64)(x->size - x->nleft) << 40; }

static inline struct ring *shm_ring(const struct shm *x, const struct mapping *region, i32 to, i32 channel) {
    const size_t first = (size_t)round_up64(sizeof(struct region), 64);
    return (struct ring *)(void *)((char *)region->base + first + (size_t)(to * COMM_CHANNELS + channel) * x->ring);
}

/* near.c: as a transport has them; lines at the beginning of a generation. */
err shm_send(void *shared, struct comm_message *m);
err shm_recv(void *shared, struct comm_message *m);
err shm_test(void *shared, struct comm_message *m, bool *done);
void shm_cancel(void *shared);
void shm_reset_links(struct shm *x);

/* near_memory.c */
bool shm_map_new(struct mapping *m, size_t bytes);
bool shm_map_peer(struct mapping *m, i32 pid, i32 fd, u64 bytes, int rights, int how);
void shm_unmap(struct mapping *m);
void shm_close_peer(struct shm *x, i32 peer); /* it is no neighbour any more */
void *shm_alloc(void *shared, size_t bytes);
bool shm_release(void *shared, void *p);
/* Where a peer's segment is here; NULL = its process ends, or it has freed it. */
err shm_find(struct shm *x, i32 peer, const struct slot *s, const char **from);

#endif
