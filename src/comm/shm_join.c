/* shm_join.c - setup of the shared-memory transport, abort and recovery records in the regions.
 *
 * If a rank of a host cannot open the memory of another one there (other user, other container), no rank of that host uses
 * shared memory: all their messages go through the transport below.  After the death of a rank, slot numbers restart from a new
 * shm_base: all survivors have agreed on the dead before, and no rank reads slots until they have. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/shm.h"

/* Data bytes per slot; maximum number of ranks as threads: one process needs a mapping per pair, and for 256 ranks these exceed
 * Linux's limit. */
enum { ROOM_MOST = 1 << 16, ROOM_LEAST = 1 << 10, ROOM_ALL = 1 << 18, THREADS_MOST = 64 };

#define IN_PLACE_BELOW 6e-9 /* measured: about 4 ns between cores that share a cache, 13 ns and more otherwise */

/* ------------------------------------------------------------------ when it goes wrong -------------------------------------- */

static const struct err_record *find_abort(void *self, i32 *rank) {
    const struct shm *x = self;
    for (i32 k = 0; k < x->size; k++) {
        const struct region *b = x->peer[k].region.base;
        if (!b || !atomic_load_explicit(&b->failed, memory_order_acquire)) continue;
        *rank = k;
        return &b->why;
    }
    return x->inside->find_abort ? x->inside->find_abort(x->end, rank) : NULL;
}

/* Only the first error counts, from any thread. */
static void abort_run(void *self, const struct err_record *why) {
    struct shm *x = self;
    struct region *b = x->region.base;
    if (atomic_exchange(&b->failing, true)) return;
    b->why = *why;
    atomic_store_explicit(&b->failed, true, memory_order_release);
    if (x->inside->abort) x->inside->abort(x->end, why);
}

/* comm_allow_recovery has asked the transport below, on the agent's thread. */
static err allow_recovery(void *self) {
    struct shm *x = self;
    x->recovers = true;
    return 0;
}

static err send_dead(void *self, const struct rank_set *dead) {
    struct shm *x = self;
    struct region *b = x->region.base;
    atomic_fetch_add(&b->version, 1);
    for (size_t i = 0; i < COUNT(dead->word); i++) atomic_store(&b->dead[i], dead->word[i]);
    atomic_fetch_add(&b->version, 1);
    return x->remote ? x->inside->send_dead(x->end, dead) : 0;
}

/* Reads a peer's set unless it is being written; a peer that dies during the write has published nothing new. */
static err recv_dead(void *self, i32 from, struct rank_set *dead) {
    struct shm *x = self;
    struct region *b = x->peer[from].region.base;
    struct rank_set now;
    if (!b) return x->inside->recv_dead(x->end, from, dead);
    const u64 version = atomic_load(&b->version);
    for (size_t i = 0; i < COUNT(now.word); i++) now.word[i] = atomic_load(&b->dead[i]);
    if (version > 0 && version % 2 == 0 && version == atomic_load(&b->version)) *dead = now;
    if (atomic_load(&b->failed)) rank_set_add(dead, from); /* it reported itself */
    return 0;
}

static err reconnect(void *self, const i32 *left, i32 n) {
    struct shm *x = self;
    for (i32 k = 0, at = 0; k < x->size; k++) {
        if (at < n && left[at] == k) at++;
        else shm_close_peer(x, k);
    }
    memcpy(x->left, left, (size_t)n * sizeof *left);
    x->nleft = n;
    shm_reset_links(x);
    return x->inside->reconnect(x->end, left, n);
}

/* ------------------------------------------------------------------ life ---------------------------------------------------- */

static void shm_free(struct shm *x) {
    for (i32 k = 0; x->peer && k < x->size; k++) shm_close_peer(x, k);
    for (i32 i = 0; i < SHM_SEGMENTS; i++) shm_unmap(&x->own[i]);
    shm_unmap(&x->region);
    mem_free(x->left);
    mem_free(x->peer);
    mem_free(x->link);
    mem_free(x);
}

static void close_(void *self, bool well) {
    struct shm *x = self;
    x->inside->close(x->end, well);
    shm_free(x);
}

#define SHM                                                                                                                   \
    .send = shm_send, .recv = shm_recv, .test = shm_test, .cancel = shm_cancel, .find_abort = find_abort, .abort = abort_run, \
    .close = close_, .allow_recovery = allow_recovery, .send_dead = send_dead, .recv_dead = recv_dead, .reconnect = reconnect,\
    .alloc = shm_alloc, .release = shm_release, .zero = shm_zero
static const struct transport shm_only = {.name = "near", .direct = true, SHM};
static const struct transport shm_and_network = {.name = "near", SHM};

/* What peers need to open a region; fd -1 = there is none. */
struct region_info {
    i32 pid, fd;
    u64 token, bytes;
};

static bool make_lists(struct shm *x) {
    x->left = mem_alloc((size_t)x->size * sizeof *x->left);
    x->peer = mem_alloc((size_t)x->size * sizeof *x->peer);
    x->link = mem_alloc((size_t)(x->size * COMM_CHANNELS) * sizeof *x->link);
    for (i32 k = 0; x->left && k < x->size; k++) x->left[k] = k;
    return x->left && x->peer && x->link;
}

/* Threshold in seconds per cache line (shm.h). STRETTO_NEAR=slots and =place force one method, for tests and measurements. */
static f64 in_place_below(void) {
    const char *mode = getenv("STRETTO_NEAR");
    if (mode && strcmp(mode, "slots") == 0) return 0;
    return mode && strcmp(mode, "place") == 0 ? (f64)INFINITY : IN_PLACE_BELOW;
}

static struct shm *shm_new(const struct comm *c, struct region_info *mine) {
    struct shm *x = mem_alloc(sizeof *x);
    const i32 n = comm_size(c);
    if (!x) return NULL;
    *x = (struct shm){.me = comm_rank(c), .size = n, .nleft = n, .in_place_below = in_place_below()};
    x->remote = comm_local_size(c) < n;
    x->room = (u32)imin(ROOM_MOST, imax(ROOM_LEAST, ROOM_ALL / comm_local_size(c)));
    x->room -= x->room % 64;
    x->ring = sizeof(struct ring) + SHM_SLOTS * (SHM_STRIDE + (size_t)x->room);
    mine->bytes = (u64)round_up64(sizeof(struct region), 64) + (u64)(n * COMM_CHANNELS) * x->ring;
    if (!make_lists(x) || !shm_map_new(&x->region, mine->bytes)) {
        shm_free(x);
        return NULL;
    }
    struct region *b = x->region.base;
    const f64 now = clock_now();
    b->token = mine->token = comm_hash(comm_hash(COMM_HASH, &now, sizeof now), &mine->pid, sizeof mine->pid) + (u64)x->me;
    mine->fd = x->region.fd;
    return x;
}

/* Opens the regions of all ranks with this host name; false if one cannot be opened or belongs to another process. */
static bool open_regions(struct shm *x, struct comm *c, const struct region_info *card) {
    const char *host = comm_rank_info(c, x->me)->host;
    for (i32 k = 0; k < x->size; k++) {
        struct peer *p = &x->peer[k];
        if (k == x->me || strcmp(comm_rank_info(c, k)->host, host) != 0) continue;
        p->pid = card[k].pid;
        if (card[k].fd < 0 || card[k].bytes != card[x->me].bytes) return false;
        if (!shm_map_peer(&p->region, p->pid, card[k].fd, card[k].bytes, PROT_READ | PROT_WRITE)) return false;
        if (((const struct region *)p->region.base)->token != card[k].token) return false;
    }
    return true;
}

/* True if every rank of this host could open every region of the host; all of them get the same answer. */
static bool host_shares(struct comm *c, const u8 *good, i32 rank) {
    for (i32 k = 0; k < comm_size(c); k++)
        if (!good[k] && strcmp(comm_rank_info(c, k)->host, comm_rank_info(c, rank)->host) == 0) return false;
    return comm_local_size(c) > 1;
}

static err check_sharing(struct comm *c, struct shm *x, const struct region_info *card, u8 *good, bool *shared) {
    u8 mine = x && open_regions(x, c, card);
    TRY(comm_allgather(c, "near", &mine, sizeof mine, good));
    *shared = x && host_shares(c, good, comm_rank(c));
    return 0;
}

/* All ranks compute the same answer from the rank table. */
static bool too_many_threads(const struct comm *c) {
    const struct comm_rank_info *first = comm_rank_info(c, 0);
    if (comm_size(c) <= THREADS_MOST) return false;
    for (i32 k = 1; k < comm_size(c); k++)
        if (comm_rank_info(c, k)->pid != first->pid || strcmp(comm_rank_info(c, k)->host, first->host) != 0) return false;
    return true;
}

static err join(struct comm *c, struct shm **out, bool *shared) {
    const char *mode = getenv("STRETTO_NEAR");
    struct region_info mine = {.pid = (i32)getpid(), .fd = -1}, *card;
    u8 *good = NULL;
    const bool wanted = !(mode && strcmp(mode, "off") == 0) && comm_local_size(c) > 1;
    NEW(card, comm_size(c));
    err e = mem_new((void **)&good, comm_size(c), 1);
    if (e >= 0 && wanted) *out = shm_new(c, &mine);
    if (e >= 0) e = comm_allgather(c, "boxes", &mine, sizeof mine, card);
    if (e >= 0) e = check_sharing(c, *out, card, good, shared);
    mem_free(good);
    mem_free(card);
    return e;
}

err shm_join(struct comm *c, const struct transport **t, void **self) {
    struct shm *x = NULL;
    bool shared = false;
    if (too_many_threads(c)) return 0;
    const err e = join(c, &x, &shared);
    if (x && (e < 0 || !shared)) shm_free(x);
    if (e < 0 || !shared) return e;
    x->inside = *t;
    x->end = *self;
    *self = x;
    *t = x->remote ? &shm_and_network : &shm_only;
    return 0;
}

bool shm_inner(const struct transport **t, void **self) {
    const struct shm *x = *self;
    if (*t != &shm_only && *t != &shm_and_network) return false;
    *t = x->inside;
    *self = x->end;
    return true;
}
