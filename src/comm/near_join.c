/* near_join.c - ranks of a host find each other's boxes, leave word there when they fail, and go on without one that died.
 *
 * Where ranks cannot open each other's memory (other users, a container of its own) their messages stay with the transport
 * inside.  Who has died is said in boxes too; after that slots are counted from another number (near_base), so that nothing of
 * before is taken for something of now: those that are left have said the same of who that is, and none of them looks at slots
 * while it says so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/near.h"

/* Bytes of data with a slot; ranks that are threads of one process: it has a mapping for each pair of them, and of 256 it would
 * have more than Linux allows. */
enum { ROOM_MOST = 1 << 16, ROOM_LEAST = 1 << 10, ROOM_ALL = 1 << 18, THREADS_MOST = 64 };

#define CHEAP_LINE 6e-9 /* samples: about 4 ns between cores that share a cache, 13 and more between others */

/* ------------------------------------------------------------------ when it goes wrong -------------------------------------- */

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

/* The first word counts, whichever thread it is of. */
static void give_up(void *self, const struct err_record *why) {
    struct near *x = self;
    struct box *b = x->box.base;
    if (atomic_exchange(&b->failing, true)) return;
    b->why = *why;
    atomic_store_explicit(&b->failed, true, memory_order_release);
    if (x->inside->give_up) x->inside->give_up(x->end, why);
}

/* The transport inside has been asked, on its own thread (comm_heals). */
static err heals(void *self) {
    struct near *x = self;
    x->heals = true;
    return 0;
}

static err tell(void *self, const struct rank_set *dead) {
    struct near *x = self;
    struct box *b = x->box.base;
    atomic_fetch_add(&b->told, 1);
    for (size_t i = 0; i < COUNT(dead->word); i++) atomic_store(&b->dead[i], dead->word[i]);
    atomic_fetch_add(&b->told, 1);
    return x->far ? x->inside->tell(x->end, dead) : 0;
}

/* One that dies while it writes has said nothing new. */
static err heard(void *self, i32 from, struct rank_set *dead) {
    struct near *x = self;
    struct box *b = x->peer[from].box.base;
    struct rank_set now;
    if (!b) return x->inside->heard(x->end, from, dead);
    const u64 told = atomic_load(&b->told);
    for (size_t i = 0; i < COUNT(now.word); i++) now.word[i] = atomic_load(&b->dead[i]);
    if (told > 0 && told % 2 == 0 && told == atomic_load(&b->told)) *dead = now;
    if (atomic_load(&b->failed)) rank_set_add(dead, from); /* it says so of itself */
    return 0;
}

static err renew(void *self, const i32 *left, i32 n) {
    struct near *x = self;
    for (i32 k = 0, at = 0; k < x->size; k++) {
        if (at < n && left[at] == k) at++;
        else near_forget(x, k);
    }
    memcpy(x->left, left, (size_t)n * sizeof *left);
    x->nleft = n;
    near_begin(x);
    return x->inside->renew(x->end, left, n);
}

/* ------------------------------------------------------------------ life ---------------------------------------------------- */

static void near_free(struct near *x) {
    for (i32 k = 0; x->peer && k < x->size; k++) near_forget(x, k);
    for (i32 i = 0; i < NEAR_SEGMENTS; i++) near_unmap(&x->own[i]);
    near_unmap(&x->box);
    mem_free(x->left);
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
    .send = near_send, .recv = near_recv, .test = near_test, .recall = near_recall, .gave_up = gave_up, .give_up = give_up,      \
    .close = close_, .heals = heals, .tell = tell, .heard = heard, .renew = renew, .alloc = near_alloc, .release = near_release
static const struct transport all_near = {.name = "near", .direct = true, NEAR};
static const struct transport some_near = {.name = "near", NEAR};

/* What the others need to open a box; fd -1 = there is none. */
struct card {
    i32 pid, fd;
    u64 token, bytes;
};

static bool make_lists(struct near *x) {
    x->left = mem_alloc((size_t)x->size * sizeof *x->left);
    x->peer = mem_alloc((size_t)x->size * sizeof *x->peer);
    x->line = mem_alloc((size_t)(x->size * COMM_CHANNELS) * sizeof *x->line);
    for (i32 k = 0; x->left && k < x->size; k++) x->left[k] = k;
    return x->left && x->peer && x->line;
}

/* Seconds a line.  STRETTO_NEAR=slots and =place are for tests and measurements. */
static f64 cheap_line(void) {
    const char *wish = getenv("STRETTO_NEAR");
    if (wish && strcmp(wish, "slots") == 0) return 0;
    return wish && strcmp(wish, "place") == 0 ? (f64)INFINITY : CHEAP_LINE;
}

static struct near *near_new(const struct comm *c, struct card *mine) {
    struct near *x = mem_alloc(sizeof *x);
    const i32 n = comm_size(c);
    if (!x) return NULL;
    *x = (struct near){.me = comm_rank(c), .size = n, .nleft = n, .far = comm_neighbours(c) < n, .cheap = cheap_line()};
    x->room = (u32)imin(ROOM_MOST, imax(ROOM_LEAST, ROOM_ALL / comm_neighbours(c)));
    x->room -= x->room % 64;
    x->ring = sizeof(struct ring) + NEAR_SLOTS * (NEAR_STRIDE + (size_t)x->room);
    mine->bytes = (u64)round_up64(sizeof(struct box), 64) + (u64)(n * COMM_CHANNELS) * x->ring;
    if (!make_lists(x) || !near_map(&x->box, mine->bytes)) {
        near_free(x);
        return NULL;
    }
    struct box *b = x->box.base;
    const f64 now = clock_now();
    b->token = mine->token = comm_hash(comm_hash(COMM_HASH, &now, sizeof now), &mine->pid, sizeof mine->pid) + (u64)x->me;
    mine->fd = x->box.fd;
    return x;
}

/* The boxes of all that have this one's host name; false where one of them cannot be opened, or is another's. */
static bool open_boxes(struct near *x, struct comm *c, const struct card *card) {
    const char *host = comm_who(c, x->me)->host;
    for (i32 k = 0; k < x->size; k++) {
        struct peer *p = &x->peer[k];
        if (k == x->me || strcmp(comm_who(c, k)->host, host) != 0) continue;
        p->pid = card[k].pid;
        if (card[k].fd < 0 || card[k].bytes != card[x->me].bytes) return false;
        if (!near_open(&p->box, p->pid, card[k].fd, card[k].bytes, PROT_READ | PROT_WRITE, 0)) return false;
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

/* The same for every rank: all know who is who. */
static bool too_many_threads(const struct comm *c) {
    const struct comm_member *first = comm_who(c, 0);
    if (comm_size(c) <= THREADS_MOST) return false;
    for (i32 k = 1; k < comm_size(c); k++)
        if (comm_who(c, k)->pid != first->pid || strcmp(comm_who(c, k)->host, first->host) != 0) return false;
    return true;
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
    if (too_many_threads(c)) return 0;
    const err e = join(c, &x, &near);
    if (x && (e < 0 || !near)) near_free(x);
    if (e < 0 || !near) return e;
    x->inside = *t;
    x->end = *self;
    *self = x;
    *t = x->far ? &some_near : &all_near;
    return 0;
}

bool near_inside(const struct transport **t, void **self) {
    const struct near *x = *self;
    if (*t != &all_near && *t != &some_near) return false;
    *t = x->inside;
    *self = x->end;
    return true;
}
