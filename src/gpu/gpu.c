/* gpu.c - an open device: its heap, its lanes, and the lane of each thread.
 *
 *     reserved range   |0 ......................... bytes| scratch of lane 0 | scratch of lane 1 | ..
 *                       ^ gpu_heap: addresses that kernels get as offsets; no page of it can be read
 *
 * The first failure of a device is kept; what is asked of it later does nothing. */
#define _GNU_SOURCE
#include "gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/mem.h"

#define DRIVER(name) extern const struct gpu_driver gpu_driver_##name;
#include "gpu/drivers.def"
#undef DRIVER

static const struct gpu_driver *const drivers[] = {
#define DRIVER(name) &gpu_driver_##name,
#include "gpu/drivers.def"
#undef DRIVER
};

struct gpu {
    const struct gpu_driver *driver;
    struct gpu_card card;
    void *dev;
    char *heap;
    i64 bytes, reserved;
    i32 index, lanes, mark[GPU_LANES];
    bool opened;
    _Atomic int failed; /* 0, or the code of the first failure: `why` is then complete */
    atomic_flag failing;
    f64 begin[GPU_LANES], end[GPU_LANES]; /* of the last copy */
    bool busy[GPU_LANES]; /* the lane was given work that nobody has waited for */
    struct err_record why;
};

/* Devices of each driver, bit i for device i: that have hung, have been opened, have failed since, and have refused memory. */
enum fate { HUNG, OPENED, FAILED, REFUSED, FATES };
static _Atomic u64 fates[FATES][COUNT(drivers)];

/* Sums over the process; times in nanoseconds. */
static struct tally {
    _Atomic i64 heap, peak, capacity, to, from, to_ns, from_ns;
} tallies[COUNT(drivers)][GPU_CARDS];

static _Thread_local struct gpu *here;
static _Thread_local i32 lane; /* of `here` */

i32 gpu_drivers(void) { return (i32)COUNT(drivers); }
const struct gpu_driver *gpu_driver_at(i32 i) { return drivers[i]; }

const struct gpu_driver *gpu_driver_find(const char *name) {
    for (size_t i = 0; i < COUNT(drivers); i++)
        if (strcmp(drivers[i]->name, name) == 0) return drivers[i];
    return NULL;
}

/* ------------------------------------------------------------------ what became of them ------------------------------------- */

static size_t place_of(const struct gpu_driver *d) {
    for (size_t i = 1; i < COUNT(drivers); i++)
        if (drivers[i] == d) return i;
    return 0;
}

static bool is_known(const struct gpu_driver *d, i32 index, enum fate what) {
    return (atomic_load(&fates[what][place_of(d)]) >> index & 1) != 0;
}

static void learn(const struct gpu *g, enum fate what) {
    atomic_fetch_or(&fates[what][place_of(g->driver)], (u64)1 << g->index);
}

static struct tally *tally_of(const struct gpu *g) { return &tallies[place_of(g->driver)][g->index]; }

static void count_heap(const struct gpu *g, i64 bytes) {
    struct tally *t = tally_of(g);
    const i64 now = atomic_fetch_add(&t->heap, bytes) + bytes;
    i64 peak = atomic_load(&t->peak);
    while (now > peak && !atomic_compare_exchange_weak(&t->peak, &peak, now)) {}
    atomic_store(&t->capacity, g->card.memory);
}

bool gpu_used(const struct gpu_driver *d, i32 index, struct gpu_use *out) {
    struct tally *t = &tallies[place_of(d)][index];
    *out = (struct gpu_use){.heap = t->heap, .peak = t->peak, .capacity = t->capacity, .to = t->to, .from = t->from,
                            .to_seconds = 1e-9 * (f64)t->to_ns, .from_seconds = 1e-9 * (f64)t->from_ns};
    return out->peak > 0;
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

err gpu_no_such(const struct gpu_driver *d, i32 index, const struct gpu_card *card, i32 n, const char *why) {
    char at[32], list[600] = "";
    size_t len = 0;
    snprintf(at, sizeof at, "%s:%d", d->name, index);
    for (i32 i = 0; i < n && len < sizeof list - 120; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", card[i].at);
    if (n == 0) return FAIL_AT(E830, at, "--device cpu", "there is no %s device here: %s", d->name, why);
    return FAIL_AT(E830, at, "--device cpu   or one of the devices above", "there is no such device; there are %s", list);
}

static err find_card(const struct gpu_driver *d, i32 index, struct gpu_card *out) {
    struct gpu_card *card;
    char why[GPU_WHY] = "";
    NEW(card, GPU_CARDS);
    const i32 n = d->cards(card, GPU_CARDS, why);
    const bool found = index >= 0 && index < n;
    if (found) *out = card[index];
    const err e = found ? 0 : gpu_no_such(d, index, card, n, why);
    mem_free(card);
    return e;
}

/* A device fails before a rank that waits for a message does (STRETTO_DEADLINE): else the error would blame that rank. */
#define SOONER 0.8

static f64 patience(const struct gpu *g) { return SOONER * clock_deadline() * (g->card.is_host ? 10 : 1); }

static err is_late(struct gpu *g, const char *what) {
    learn(g, HUNG);
    return FAIL_AT(E831, g->card.at,
                   "--device cpu   or   STRETTO_DEADLINE=SECONDS to wait longer   (a training: stretto resume RUN --device cpu "
                   "--parallel auto)",
                   "the device has not %s after %.0f s", what, patience(g));
}

/* A device that was opened before may hang by now, and opening it then waits for ever: that is left to a thread, which nobody
 * waits for any more after the deadline. */
struct opening {
    const struct gpu_driver *driver;
    i32 index, lanes;
    i64 bytes;
    void *dev;
    err e;
    struct err_record why;
    _Atomic bool done;
};

static void *open_there(void *self) {
    struct opening *o = self;
    o->e = o->driver->open(o->index, o->lanes, o->bytes, &o->dev);
    if (o->e < 0) o->why = *err_last();
    atomic_store(&o->done, true);
    return NULL;
}

static err open_again(struct gpu *g) {
    struct opening *o;
    pthread_t thread;
    NEW(o, 1);
    o->driver = g->driver;
    o->index = g->index;
    o->lanes = g->lanes;
    o->bytes = g->reserved;
    if (pthread_create(&thread, NULL, open_there, o) != 0) {
        mem_free(o);
        return g->driver->open(g->index, g->lanes, g->reserved, &g->dev);
    }
    const f64 end = clock_now() + patience(g);
    for (struct backoff r = {0}; !atomic_load(&o->done) && clock_now() < end;) backoff_pause(&r);
    if (!atomic_load(&o->done)) {
        pthread_detach(thread); /* it may still write to *o */
        return is_late(g, "opened");
    }
    pthread_join(thread, NULL);
    const err e = o->e;
    g->dev = o->dev;
    if (e < 0) err_put(&o->why);
    mem_free(o);
    return e;
}

static err open_on(struct gpu *g, i32 index, i32 lanes, i64 bytes) {
    enum { PAGE = 4096 };
    TRY(find_card(g->driver, index, &g->card));
    if (g->card.lacks) return FAIL_AT(E831, g->card.at, "--device cpu", "the kernels need %s, which it has not", g->card.lacks);
    g->lanes = imin(GPU_LANES, imax(1, lanes));
    g->bytes = round_up64(lmax(1, bytes), PAGE);
    g->reserved = g->bytes + (i64)g->lanes * GPU_SCRATCH;
    g->heap = mmap(NULL, (size_t)g->reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (g->heap == MAP_FAILED) {
        g->heap = NULL;
        return FAIL(E601, "no %lld MiB of addresses for a device", (long long)(g->reserved >> 20));
    }
    if (is_known(g->driver, index, OPENED)) return open_again(g);
    return g->driver->open(index, g->lanes, g->reserved, &g->dev);
}

err gpu_open(const struct gpu_driver *d, i32 index, i32 lanes, i64 bytes, struct gpu **out) {
    struct gpu *g;
    *out = NULL;
    NEW(g, 1);
    g->driver = d;
    g->index = index;
    const err e = open_on(g, index, lanes, bytes);
    if (e == -E601) learn(g, REFUSED);
    else if (e < 0 && is_known(d, index, OPENED)) learn(g, FAILED);
    if (e < 0) {
        gpu_close(g);
        return e;
    }
    learn(g, OPENED);
    g->opened = true;
    count_heap(g, g->reserved);
    atomic_fetch_and(&fates[REFUSED][place_of(d)], ~((u64)1 << index));
    *out = g;
    return 0;
}

bool gpu_is_lost(const struct gpu_driver *d, i32 index) {
    return is_known(d, index, HUNG) || is_known(d, index, FAILED) || is_known(d, index, REFUSED);
}

bool gpu_has_refused(const struct gpu_driver *d, i32 index) { return is_known(d, index, REFUSED); }

i32 gpu_lanes(const struct gpu *g) { return g->lanes; }
void *gpu_heap(const struct gpu *g) { return g->heap; }

/* ------------------------------------------------------------------ the lane of a thread ------------------------------------ */

struct gpu_place gpu_enter(struct gpu *g, i32 number) {
    const struct gpu_place was = {here, lane};
    here = g;
    lane = number;
    return was;
}

err gpu_failed(const struct gpu *g) {
    const int code = atomic_load(&((struct gpu *)(uintptr_t)g)->failed);
    if (code == 0) return 0;
    err_put(&g->why);
    return -code;
}

static bool works(void) { return atomic_load_explicit(&here->failed, memory_order_relaxed) == 0; }

/* Keeps the first failure, with its text. */
static void note(err e) {
    if (e >= 0 || atomic_flag_test_and_set(&here->failing)) return;
    here->why = *err_last();
    learn(here, FAILED);
    atomic_store(&here->failed, -e);
}

i64 gpu_offset(const void *at) { return at ? (const char *)at - here->heap : -1; }
bool gpu_on_host(void) { return here->card.is_host; }
void *gpu_scratch(void) { return here->heap + here->bytes + (i64)lane * GPU_SCRATCH; }

static struct gpu_rows rows_of(const void *device, i64 pitch, i64 host_pitch, i64 bytes, i64 n) {
    return (struct gpu_rows){.bytes = bytes, .n = n, .at = gpu_offset(device), .pitch = pitch, .host_pitch = host_pitch};
}

static bool is_hung(const struct gpu *g) { return is_known(g->driver, g->index, HUNG); }

/* A device that hangs would hold a blocking call for ever. */
static err wait_idle(void) {
    struct gpu *g = here;
    const f64 end = clock_now() + patience(g);
    bool idle = false;
    TRY(g->driver->watch(g->dev, lane));
    for (struct backoff r = {0};; backoff_pause(&r)) {
        TRY(g->driver->idle(g->dev, lane, &idle));
        if (idle) {
            here->busy[lane] = false;
            return 0;
        }
        if (clock_now() > end) break;
    }
    return is_late(g, "finished its work");
}

static void count_copy(_Atomic i64 *bytes, _Atomic i64 *ns, i64 n) {
    here->end[lane] = clock_now();
    atomic_fetch_add_explicit(bytes, n, memory_order_relaxed);
    atomic_fetch_add_explicit(ns, (i64)(1e9 * (here->end[lane] - here->begin[lane])), memory_order_relaxed);
}

void gpu_put(void *to, i64 to_pitch, const void *from, i64 from_pitch, i64 bytes, i64 n) {
    const struct gpu_rows r = rows_of(to, to_pitch, from_pitch, bytes, n);
    if (!works() || bytes <= 0 || n <= 0) return;
    if (here->busy[lane] || here->lanes > 1) note(wait_idle()); /* the work of another lane may have hung the device */
    if (!works()) return;
    here->begin[lane] = clock_now();
    note(here->driver->put(here->dev, lane, &r, from));
    count_copy(&tally_of(here)->to, &tally_of(here)->to_ns, bytes * n);
}

void gpu_get(void *to, i64 to_pitch, const void *from, i64 from_pitch, i64 bytes, i64 n) {
    const struct gpu_rows r = rows_of(from, from_pitch, to_pitch, bytes, n);
    if (!works() || bytes <= 0 || n <= 0) return;
    note(wait_idle());
    if (!works()) return;
    here->begin[lane] = clock_now();
    note(here->driver->get(here->dev, lane, &r, to));
    count_copy(&tally_of(here)->from, &tally_of(here)->from_ns, bytes * n);
}

f64 gpu_copied(f64 *begin) {
    *begin = here->begin[lane];
    return here->end[lane];
}

i32 gpu_mark(void) {
    const i32 slot = here->mark[lane];
    here->mark[lane] = (slot + 1) % GPU_SLOTS;
    if (works()) note(here->driver->mark(here->dev, lane, slot));
    return slot;
}

void gpu_wait(i32 of, i32 slot) {
    here->busy[lane] = true;
    if (works()) note(here->driver->wait(here->dev, lane, of, slot));
}

err gpu_sync(void) {
    if (works()) note(wait_idle());
    if (works()) note(here->driver->sync(here->dev, lane));
    return gpu_failed(here);
}

f64 gpu_between(i32 a, i32 b) { return works() ? here->driver->between(here->dev, lane, a, b) : -1; }

void gpu_launch(enum gpu_kernel k, struct gpu_size groups, struct gpu_size local, const void *args, size_t size) {
    if (groups.x <= 0 || groups.y <= 0 || groups.z <= 0 || !works()) return;
    here->busy[lane] = true;
    note(here->driver->launch(here->dev, lane, k, groups, local, args, size));
}

/* ------------------------------------------------------------------ graphs -------------------------------------------------- */

bool gpu_records(const struct gpu *g) { return g->driver->record != NULL; }

void gpu_record(void) {
    if (works()) note(here->driver->record(here->dev, lane));
}

void *gpu_recorded(void) {
    void *graph = NULL;
    if (works()) note(here->driver->recorded(here->dev, lane, &graph));
    return graph;
}

void gpu_replay(void *graph) {
    here->busy[lane] = true;
    if (works() && graph) note(here->driver->replay(here->dev, lane, graph));
}

void gpu_drop(struct gpu *g, void *graph) {
    if (graph && atomic_load(&g->failed) == 0) g->driver->drop(g->dev, graph);
}

/* ------------------------------------------------------------------ closing ------------------------------------------------- */

/* False: the device hangs, and closing it would wait for ever.  Keeps the error of the thread. */
static bool has_ended(struct gpu *g) {
    const struct err_record why = *err_last();
    const struct gpu_place was = gpu_enter(g, 0);
    for (i32 i = 0; i < g->lanes && !is_hung(g); i++) {
        gpu_enter(g, i);
        if (wait_idle() < 0) err_clear();
    }
    gpu_enter(was.gpu, was.lane);
    if (why.code) err_put(&why);
    return !is_hung(g);
}

void gpu_close(struct gpu *g) {
    if (!g) return;
    if (g->dev && has_ended(g)) g->driver->close(g->dev);
    if (here == g) here = NULL;
    if (g->opened) count_heap(g, -g->reserved);
    if (g->heap) munmap(g->heap, (size_t)g->reserved);
    mem_free(g);
}
