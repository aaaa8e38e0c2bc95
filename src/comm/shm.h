/* shm.h - transport over shared memory of a host, private to shm.c (messages), shm_memory.c (mappings) and shm_join.c (setup
 * and recovery).
 *
 *     region of rank 0    | identity | ring to rank 1: tail | slot slot slot .. | ring to rank 2 ..     receivers write the tails
 *     segment of 0        | memory from comm_alloc: a slot may refer to it instead of holding data; the receiver reads it there
 *
 * Places in a region follow the original rank numbers. Slot numbers start at shm_base, which grows with every death, so older
 * contents of the slots are invalid and need not be cleared. */
#ifndef STRETTO_COMM_SHM_H
#define STRETTO_COMM_SHM_H

#include <stdatomic.h>

#include "comm/transport.h"

enum { SHM_SLOTS = 64, SHM_SMALL = 1024, SHM_SEGMENTS = 64, SHM_LARGE = 1 << 18, SHM_SAMPLE = 32 };

/* A slot header: one cache line, followed by the data of a small message. The receiver polls only this line. */
struct slot {
    _Alignas(64) _Atomic u64 full; /* 1 + number of the slot in the ring, once it is written */
    struct comm_head head;
    i32 segment; /* segment that holds the data, at offset `at`; -1 = `bytes` bytes of data in the slot */
    u32 bytes;
    u64 at;
};
_Static_assert(sizeof(struct slot) == 64, "a line");
enum { SHM_STRIDE = sizeof(struct slot) + SHM_SMALL };

struct ring {
    _Alignas(64) _Atomic u64 tail; /* number of slots read; written by the receiver */
    _Alignas(64) _Atomic u32 cancelled;  /* generation, counted from 1, in which the sender cancelled; written by the sender */
    struct {
        _Alignas(64) _Atomic u64 word;
    } sample[SHM_SAMPLE];         /* cache lines whose rewriting the sender times; the receiver reads them with large messages */
    _Alignas(64) char slot[];      /* [SLOTS] headers with room for small messages, then [SLOTS] data areas of x->room bytes */
};

struct region {
    u64 token;
    struct {
        _Atomic u64 serial; /* serial number of the segment, 0 = none; changes before and after the other fields */
        _Atomic i32 fd;
        _Atomic u64 bytes;
    } segment[SHM_SEGMENTS];
    _Atomic bool failing, failed; /* failing: `why` is being written; failed: it is complete */
    struct err_record why;
    _Atomic u64 version;             /* version counter (seqlock), odd during a write of `dead` */
    _Atomic u64 dead[COMM_RANKS / 64];
};

/* A memory mapping, of this rank's or of a peer's memory. */
struct mapping {
    void *base;
    u64 bytes, serial;
    int fd; /* -1 = peer's memory */
};

struct peer {
    struct mapping region; /* base NULL = peer on another host */
    struct mapping seen[SHM_SEGMENTS];
    i32 pid;
};

/* State of one peer and channel. Message counters: wanted, sent: requested and completed sends; awaited, received: the same for
 * receives. head, tail: slots written, and slots known to be free again. */
struct link {
    u64 wanted, sent, awaited, received;
    u64 head, tail;
    u64 large;     /* head after the first slot of the last large message, 0 = none */
    i32 until;     /* large messages until the next sample */
    f64 rewrite;   /* running mean: seconds to rewrite a cache line that the receiver has read */
};

struct shm {
    const struct transport *inside;
    void *end;
    i32 me, size;    /* original rank and number of ranks */
    i32 *left, nleft; /* original numbers of the survivors: left[current rank] */
    bool recovers, remote;  /* recovers: elastic recovery is on; remote: some ranks are on other hosts */
    f64 in_place_below;       /* read large messages in place if `rewrite` is below this */
    u32 room;        /* data bytes per slot */
    size_t ring;
    struct mapping region;  /* own region */
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

/* shm.c: transport functions; shm_reset_links starts a generation */
err shm_send(void *shared, struct comm_message *m);
err shm_recv(void *shared, struct comm_message *m);
err shm_test(void *shared, struct comm_message *m, bool *done);
void shm_cancel(void *shared);
void shm_reset_links(struct shm *x);

/* shm_memory.c */
bool shm_map_new(struct mapping *m, size_t bytes);
bool shm_map_peer(struct mapping *m, i32 pid, i32 fd, u64 bytes, int rights);
void shm_unmap(struct mapping *m);
void shm_close_peer(struct shm *x, i32 peer); /* unmaps all memory of a peer */
void *shm_alloc(void *shared, size_t bytes);
bool shm_release(void *shared, void *p);
bool shm_zero(void *shared, void *p);
/* Maps a peer's segment and returns the address of a slot's data; *from = NULL if the peer is ending or has freed it. */
err shm_find(struct shm *x, i32 peer, const struct slot *s, const char **from);

#endif
