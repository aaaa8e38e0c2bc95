/* lloyd.c - the iterations of k-means as map, merge and update; see kmeans.h.
 *
 *     map     rows of a micro-batch -> labels, sums and counts of each cluster      part [k][d] + [k] + tail
 *     merge   part a += part b
 *     update  center = sum / count; a cluster without points keeps its center, until the host moves it
 *
 * Sums are in f64, in the order of rows within a micro-batch and along the tree of merges, so centers have equal bits on any
 * number of threads and ranks. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/kmeans/kmeans.h"

enum { PARTS = 16, PART_ROWS = 512 };

static i64 part_size(const struct lloyd *l) { return (i64)l->c.k * (l->c.d + 1) + LLOYD_NTAIL; }
static f64 *tail_of(const struct lloyd *l, f64 *part) { return part + (i64)l->c.k * (l->c.d + 1); }

/* ------------------------------------------------------------------ kernels ------------------------------------------------- */

static void map_part_rows(struct lloyd *l, struct assign_work *w, i64 from, i64 to, f64 *part) {
    const i32 d = l->c.d;
    f64 *count = part + (i64)l->c.k * d, *tail = tail_of(l, part), cost = 0;
    struct assign_count seen = {0};
    memset(part, 0, sizeof *part * (size_t)part_size(l));
    assign_rows(&l->c, l->p, &l->t, w, from, to, &seen);
    for (i64 i = from; i < to; i++) {
        const f64 *x = l->p->x + i * d;
        const i32 k = l->t.label[i];
        f64 *sum = part + (i64)k * d;
        for (i32 j = 0; j < d; j++) sum[j] += x[j];
        count[k]++;
        if (l->measure) cost += points_distance(d, x, l->c.c + (i64)k * d);
    }
    tail[LLOYD_CHANGED] = (f64)seen.changed;
    tail[LLOYD_DISTANCES] = (f64)seen.distances;
    tail[LLOYD_COST] = cost;
}

static void map(void *self, const struct kernel_call *c) {
    struct lloyd *l = self;
    const struct slice *box = &c->task->box;
    const i32 grain = l->run.plan->grain;
    for (i32 from = box->b0; from < box->b1; from += grain)
        map_part_rows(l, l->worker[c->task->device], from, imin(box->b1, from + grain), c->mem[map_part(from / grain)]);
}

static void merge(void *self, const struct kernel_call *c) {
    (void)self;
    f64 *a = c->mem[map_part(c->task->node_a)];
    const f64 *b = c->mem[map_part(c->task->node_b)];
    for (i64 i = c->lo; i < c->hi; i++) a[i] += b[i];
}

static void update(void *self, const struct kernel_call *c) {
    const struct lloyd *l = self;
    const i32 K = l->c.k, d = l->c.d;
    const f64 *sum = c->mem[map_part(0)];
    f64 *model = c->mem[MAP_MODEL];
    memcpy(model + (i64)K * d, sum + (i64)K * d, sizeof *sum * (size_t)(K + LLOYD_NTAIL));
    if (l->measure) return;
    for (i32 k = 0; k < K; k++) {
        const f64 n = sum[(i64)K * d + k];
        for (i32 j = 0; j < d && n > 0; j++) model[(i64)k * d + j] = sum[(i64)k * d + j] / n;
    }
}

static struct exec_result result(void *self, void *const *mem) {
    (void)mem;
    const struct lloyd *l = self;
    return (struct exec_result){.loss = tail_of(l, l->model)[LLOYD_COST], .finite = true};
}

static const struct kernel kernels[MAP_NKERNEL] = {
    [MAP_MAP] = {.name = "assign", .run = map, .rows = true, .compute = true},
    [MAP_MERGE] = {.name = "merge", .run = merge, .blocks = true},
    [MAP_UPDATE] = {.name = "means", .run = update, .commits = true},
};

/* ------------------------------------------------------------------ memory -------------------------------------------------- */

static err open_run(struct lloyd *l) {
    const struct points *p = l->p;
    const i64 bytes = part_size(l) * (i64)sizeof(f64);
    const i32 rows = (i32)lmax(map_run_microbatch(p->n, PARTS), PART_ROWS);
    const struct map_job job = {.use = l->use, .kernel = kernels, .self = l, .result = result, .rows = p->x, .model = l->model,
                                .request = {.rows = (i32)p->n, .microbatch = rows, .row_bytes = p->d * (i64)sizeof(f64),
                                            .model_bytes = bytes, .part = part_size(l), .element = ELEMENT_F64,
                                            .row_seconds = 1e-10 * l->c.k * p->d}};
    return map_run_open(&job, &l->run);
}

err lloyd_open(const struct points *p, i32 k, const struct resources *use, struct lloyd *l) {
    *l = (struct lloyd){.p = p, .use = use};
    TRY(centers_new(k, p->d, near_choose(use->kern->arch), &l->c));
    TRY(track_new(p->n, &l->c, &l->t));
    NEW(l->model, part_size(l));
    NEW(l->before, (i64)k * p->d);
    NEW(l->empty, k);
    TRY(open_run(l));
    l->ndevice = l->run.plan->ndevice;
    NEW(l->worker, l->ndevice);
    for (i32 i = 0; i < l->ndevice; i++) TRY(assign_work_new(&l->c, &l->worker[i]));
    return 0;
}

void lloyd_close(struct lloyd *l) {
    map_run_close(&l->run);
    for (i32 i = 0; l->worker && i < l->ndevice; i++) assign_work_free(l->worker[i]);
    mem_free(l->worker);
    centers_free(&l->c);
    track_free(&l->t);
    mem_free(l->model);
    mem_free(l->before);
    mem_free(l->empty);
    *l = (struct lloyd){0};
}

/* ------------------------------------------------------------------ iterations ---------------------------------------------- */

/* The labels of the next step belong to the centers of the model. */
static void take_centers(struct lloyd *l, bool first) {
    const size_t bytes = sizeof *l->before * (size_t)l->c.k * (size_t)l->c.d;
    if (first) track_reset(&l->t, l->p->n, &l->c);
    else track_move(&l->t, &l->c, l->p, l->model);
    memcpy(l->before, l->model, bytes);
    centers_set(&l->c, l->p, l->before, true);
}

static err move_empty(struct lloyd *l) {
    i64 n = 0, row;
    for (i32 k = 0; k < l->c.k; k++) n += l->empty[k] = lloyd_counts(l)[k] == 0;
    if (n == 0) return 0;
    TRY(kmeans_reseed(l->p, l->use->pool, l->c.k, l->empty, l->model, &row));
    if (l->reseeded == 0)
        event_note(l->use->events, EVENT_NOTE, "%lld cluster%s empty: its center moves to the farthest point (row %lld)",
                   (long long)n, n == 1 ? " is" : "s are", (long long)row + 1);
    l->reseeded += n;
    return 0;
}

static err step(struct lloyd *l, bool first) {
    take_centers(l, first);
    TRY(map_run_step(&l->run, NULL));
    l->distances += tail_of(l, l->model)[LLOYD_DISTANCES];
    l->all += (f64)l->p->n * l->c.k;
    return 0;
}

err lloyd_run(struct lloyd *l, i64 from, i64 iterations, struct lloyd_outcome *out) {
    bool first = true;
    *out = (struct lloyd_outcome){.iterations = from};
    l->measure = false;
    while (out->iterations < iterations && !out->settled) {
        const err e = l->turn ? l->turn(l->owner, out->iterations) : 0;
        if (e != 0) return e;
        if (l->late) break;
        TRY(step(l, first));
        first = false;
        out->iterations++;
        out->settled = tail_of(l, l->model)[LLOYD_CHANGED] == 0;
        if (!out->settled) TRY(move_empty(l));
        TRY(workload_advance(l->work, 1));
    }
    l->measure = true;
    TRY(step(l, first));
    out->inertia = tail_of(l, l->model)[LLOYD_COST];
    return 0;
}
