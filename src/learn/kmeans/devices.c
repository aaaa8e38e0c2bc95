/* devices.c - see devices.h. */
#include "learn/kmeans/devices.h"

#include <math.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "gpu/gpu.h"
#include "gpu/learners.h"

enum { GRAIN = 256, BLOCK_ROWS = 480, ALIGN = 256 };

/* Of a lane of a device: what it computes until the dealer accepts it. */
struct lane {
    struct assign_work *work; /* for rows with several candidates */
    i32 *label;               /* [n] of its piece, from the first row on */
};

/* Places in the heap, in bytes. */
struct layout {
    i64 rows, label, panel, start, end;
};

struct shared_assign {
    const struct points *p;
    const struct centers *c;
    struct track *t;
    struct pool *pool;
    struct offload *offload;
    struct layout at;
    f32 margin, share;           /* of this run */
    struct lane *lane;           /* [nlane] */
    i32 nlane;
    u8 *there;                   /* [devices][grains] the rows are on the device */
    bool ran;                    /* all rows, before */
    i64 grains;
    struct assign_work **worker; /* [nworker] of the cores */
    i32 nworker;
    i64 hi;                      /* end of the piece of the cores */
    _Atomic i64 next, changed, distances;
};

static struct layout layout_of(const struct points *p, const struct centers *c) {
    struct layout l;
    l.rows = 0;
    l.label = round_up64(p->n * c->d * (i64)sizeof(f32), ALIGN);
    l.panel = round_up64(l.label + p->n * (i64)sizeof(i32), ALIGN);
    l.start = round_up64(l.panel + (i64)c->groups * c->d * LANES * (i64)sizeof(f32), ALIGN);
    l.end = l.start + (i64)c->groups * LANES * (i64)sizeof(f32);
    return l;
}

/* ------------------------------------------------------------------ a device ------------------------------------------------ */

static void begin(void *self, const struct offload_lane *at) {
    const struct shared_assign *s = self;
    const struct centers *c = s->c;
    gpu_put_bytes(at->heap + s->at.panel, c->panel, (i64)c->groups * c->d * LANES * (i64)sizeof *c->panel);
    gpu_put_bytes(at->heap + s->at.start, c->start, (i64)c->groups * LANES * (i64)sizeof *c->start);
}

/* Rows of a piece that the device lacks, in runs of grains.  No other lane has a part of these grains. */
static void put_rows(struct shared_assign *s, const struct offload_lane *at, i64 lo, i64 hi) {
    u8 *there = s->there + at->device * s->grains;
    const i64 bytes = s->p->d * (i64)sizeof *s->p->f;
    for (i64 g = lo / GRAIN; g * GRAIN < hi; g++) {
        const i64 from = g * GRAIN;
        if (there[g]) continue;
        while ((g + 1) * GRAIN < hi && !there[g + 1]) there[g++] = true;
        there[g] = true;
        const i64 to = lmin(s->p->n, (g + 1) * GRAIN);
        gpu_put_bytes(at->heap + s->at.rows + from * bytes, s->p->f + from * s->p->d, (to - from) * bytes);
    }
}

static void on_device(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    struct shared_assign *s = self;
    const i64 lo = p->lo, hi = p->hi;
    struct lane *l = &s->lane[at->slot];
    i32 *label = (i32 *)(void *)(at->heap + s->at.label);
    const i64 bytes = (hi - lo) * (i64)sizeof *label;
    const struct gpu_nearest n = {.x = (const f32 *)(const void *)(at->heap + s->at.rows),
                                  .panel = (const f32 *)(const void *)(at->heap + s->at.panel),
                                  .start = (const f32 *)(const void *)(at->heap + s->at.start),
                                  .label = label, .from = lo, .to = hi, .d = s->c->d, .groups = s->c->groups,
                                  .margin = s->margin, .share = s->share};
    put_rows(s, at, lo, hi);
    gpu_nearest(&n);
    gpu_get(l->label, bytes, label + lo, bytes, bytes, 1);
    if (gpu_sync() < 0) return;
    for (i64 i = lo; i < hi; i++)
        if (l->label[i - lo] < 0) l->label[i - lo] = assign_row(s->c, s->p, l->work, i);
}

/* The bounds of these rows are not known any more.  The cores label their rows in place. */
static void accept(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    struct shared_assign *s = self;
    const i64 lo = p->lo, hi = p->hi;
    if (!at->heap) return;
    const i32 *label = s->lane[at->slot].label;
    i64 changed = 0;
    for (i64 i = lo; i < hi; i++) {
        changed += s->t->label[i] != label[i - lo];
        s->t->label[i] = label[i - lo];
        s->t->upper[i] = INFINITY;
    }
    s->changed += changed;
    s->distances += (hi - lo) * s->c->k;
}

/* ------------------------------------------------------------------ the cores ----------------------------------------------- */

static void label_blocks(void *self, i32 worker) {
    struct shared_assign *s = self;
    struct assign_count count = {0};
    for (i64 at; (at = atomic_fetch_add(&s->next, BLOCK_ROWS)) < s->hi;)
        assign_rows(s->c, s->p, s->t, s->worker[worker], at, lmin(s->hi, at + BLOCK_ROWS), &count);
    s->changed += count.changed;
    s->distances += count.distances;
}

static void on_host(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    struct shared_assign *s = self;
    (void)at;
    s->hi = p->hi;
    atomic_store(&s->next, p->lo);
    pool_run(s->pool, label_blocks, s);
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

static err lanes_new(struct shared_assign *s) {
    const i32 n = offload_slots(s->offload);
    s->grains = (s->p->n + GRAIN - 1) / GRAIN;
    NEW(s->there, offload_devices(s->offload) * s->grains);
    NEW(s->lane, n);
    s->nlane = n;
    for (i32 i = 0; i < n; i++) {
        TRY(assign_work_new(s->c, &s->lane[i].work));
        NEW(s->lane[i].label, s->p->n);
    }
    NEW(s->worker, pool_size(s->pool));
    s->nworker = pool_size(s->pool);
    for (i32 i = 0; i < s->nworker; i++) TRY(assign_work_new(s->c, &s->worker[i]));
    return 0;
}

err shared_assign_open(const struct points *p, const struct centers *c, struct track *t, const struct resources *use,
                       struct shared_assign **out) {
    struct shared_assign *s;
    *out = NULL;
    NEW(s, 1);
    *out = s;
    s->p = p;
    s->c = c;
    s->t = t;
    s->pool = use->pool;
    s->at = layout_of(p, c);
    const struct offload_kernel k = {.self = s, .bytes = s->at.end, .grain = GRAIN, .begin = begin, .on_device = on_device,
                                     .accept = accept, .on_host = on_host};
    TRY(offload_open(&k, use, &s->offload));
    return lanes_new(s);
}

void shared_assign_close(struct shared_assign *s) {
    if (!s) return;
    offload_close(s->offload);
    for (i32 i = 0; i < s->nlane; i++) {
        assign_work_free(s->lane[i].work);
        mem_free(s->lane[i].label);
    }
    for (i32 i = 0; i < s->nworker; i++) assign_work_free(s->worker[i]);
    mem_free(s->lane);
    mem_free(s->worker);
    mem_free(s->there);
    mem_free(s);
}

err shared_assign_run(struct shared_assign *s, struct assign_count *count) {
    s->changed = s->distances = 0;
    assign_margin(s->c, &s->margin, &s->share);
    const struct deal_part all = {s->p->n, 1};
    TRY(offload_run(s->offload, &all, 1, s->ran));
    s->ran = true;
    count->changed += s->changed;
    count->distances += s->distances;
    return 0;
}

const struct offload *shared_assign_offload(const struct shared_assign *s) { return s->offload; }
