/* lloyd.c - the iterations of k-means as map, merge and update; see kmeans.h.
 *
 *     map     rows of a micro-batch -> labels, sums and counts of each cluster      part [k][d] + [k] + tail + [2][k] with trim
 *     merge   part a += part b
 *     update  center = sum / count; a cluster without points keeps its center, until the host moves it
 *
 * With trim an iteration is two steps: STEP_SPREAD labels the rows and measures how far they lie from their centers, STEP_TRIMMED
 * leaves the far ones out of the means (as in Tang, Liu, Xiao, Yang, Xiao, CCPE 29(20), 2017, as far as its title says).
 *
 * With --device the labels of a step come from the devices (devices.h), before its map.
 *
 * Sums are in f64, in the order of rows within a micro-batch and along the tree of merges, so centers have equal bits on any
 * number of threads and ranks. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/kmeans/kmeans.h"

enum { PARTS = 16, PART_ROWS = 512 };

static i64 spread_at(const struct lloyd *l) { return (i64)l->c.k * (l->c.d + 1) + LLOYD_NTAIL; }
static i64 part_size(const struct lloyd *l) { return spread_at(l) + (l->trim > 0 ? 2 * (i64)l->c.k : 0); }

/* ------------------------------------------------------------------ kernels ------------------------------------------------- */

/* A row and its squared distance, added to what the step sums. */
static void add_row(const struct lloyd *l, i64 i, f64 d2, f64 *part) {
    const i32 K = l->c.k, d = l->c.d, k = l->t.label[i];
    const bool far = l->limit && sqrt(d2) > l->limit[k];
    const f64 *x = l->p->x + i * d;
    f64 *count = part + (i64)K * d, *tail = count + K, *spread = part + spread_at(l), *sum = part + (i64)k * d;
    tail[LLOYD_COST] += d2;
    if (l->step == STEP_SPREAD) {
        spread[k] += sqrt(d2);
        spread[K + k] += d2;
    } else if (l->step != STEP_MEANS && far) {
        tail[LLOYD_LEFT_OUT]++;
    } else {
        tail[LLOYD_KEPT] += d2;
    }
    if (l->step == STEP_TRIMMED) {
        tail[LLOYD_CHANGED] += l->left_out[i] != far;
        l->left_out[i] = far;
        if (far) return;
    }
    count[k]++;
    for (i32 j = 0; j < d && (l->step == STEP_MEANS || l->step == STEP_TRIMMED); j++) sum[j] += x[j];
}

static void map_part_rows(struct lloyd *l, struct assign_work *w, i64 from, i64 to, f64 *part) {
    const i32 d = l->c.d;
    const bool measures = l->step != STEP_MEANS || l->seen;
    f64 *tail = part + (i64)l->c.k * (d + 1);
    struct assign_count seen = {0};
    memset(part, 0, sizeof *part * (size_t)part_size(l));
    if (l->step != STEP_TRIMMED && !l->shared) assign_rows(&l->c, l->p, &l->t, w, from, to, &seen);
    tail[LLOYD_CHANGED] = (f64)seen.changed;
    tail[LLOYD_DISTANCES] = (f64)seen.distances;
    for (i64 i = from; i < to; i++)
        add_row(l, i, measures ? points_distance(d, l->p->x + i * d, l->c.c + (i64)l->t.label[i] * d) : 0, part);
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
    memcpy(model + (i64)K * d, sum + (i64)K * d, sizeof *sum * (size_t)(part_size(l) - (i64)K * d));
    if (l->step == STEP_MEASURE || l->step == STEP_SPREAD) return;
    for (i32 k = 0; k < K; k++) {
        const f64 n = sum[(i64)K * d + k], before = l->seen ? l->seen[k] : 0;
        for (i32 j = 0; j < d && n > 0; j++) {
            f64 *to = &model[(i64)k * d + j];
            *to = before > 0 ? (before * *to + sum[(i64)k * d + j]) / (before + n) : sum[(i64)k * d + j] / n;
        }
    }
}

static struct exec_result result(void *self, void *const *mem) {
    (void)mem;
    return (struct exec_result){.loss = lloyd_tail(self)[LLOYD_COST], .finite = true};
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

err lloyd_open(const struct points *p, i32 k, f64 trim, const struct resources *use, struct lloyd *l) {
    *l = (struct lloyd){.p = p, .use = use, .trim = trim};
    TRY(centers_new(k, p->d, near_choose(use->kern->arch), &l->c));
    TRY(track_new(p->n, &l->c, &l->t));
    NEW(l->model, part_size(l));
    NEW(l->before, (i64)k * p->d);
    NEW(l->empty, k);
    if (trim > 0) {
        NEW(l->limit, k);
        NEW(l->left_out, p->n);
    }
    TRY(open_run(l));
    if (offload_wanted(use)) TRY(shared_assign_open(p, &l->c, &l->t, use, &l->shared));
    l->ndevice = l->run.plan->ndevice;
    NEW(l->worker, l->ndevice);
    for (i32 i = 0; i < l->ndevice; i++) TRY(assign_work_new(&l->c, &l->worker[i]));
    return 0;
}

void lloyd_close(struct lloyd *l) {
    map_run_close(&l->run);
    shared_assign_close(l->shared);
    for (i32 i = 0; l->worker && i < l->ndevice; i++) assign_work_free(l->worker[i]);
    mem_free(l->worker);
    centers_free(&l->c);
    track_free(&l->t);
    mem_free(l->model);
    mem_free(l->before);
    mem_free(l->empty);
    mem_free(l->limit);
    mem_free(l->left_out);
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
    TRY(kmeans_reseed(l->p, l->use->pool, l->c.k, l->empty, l->t.label, l->model, &row));
    if (l->reseeded == 0)
        event_note(l->use->events, EVENT_NOTE, "%lld cluster%s empty: its center moves to the farthest point (row %lld)",
                   (long long)n, n == 1 ? " is" : "s are", (long long)row + 1);
    l->reseeded += n;
    return 0;
}

err lloyd_step(struct lloyd *l, enum lloyd_step step, bool first) {
    struct assign_count seen = {0};
    l->step = step;
    if (step != STEP_TRIMMED) take_centers(l, first);
    if (step != STEP_TRIMMED && l->shared) TRY(shared_assign_run(l->shared, &seen));
    TRY(map_run_step(&l->run, NULL));
    lloyd_tail(l)[LLOYD_CHANGED] += (f64)seen.changed;
    lloyd_tail(l)[LLOYD_DISTANCES] += (f64)seen.distances;
    l->distances += lloyd_tail(l)[LLOYD_DISTANCES];
    if (step != STEP_TRIMMED) l->all += (f64)l->p->n * l->c.k;
    return 0;
}

/* Mean + trim deviations of the distances in each cluster. */
static void find_limits(struct lloyd *l) {
    const i32 K = l->c.k;
    const f64 *sum = l->model + spread_at(l), *square = sum + K, *count = lloyd_counts(l);
    for (i32 k = 0; k < K; k++) {
        const f64 n = dmax(1, count[k]), mean = sum[k] / n;
        l->limit[k] = mean + l->trim * sqrt(dmax(0, square[k] / n - mean * mean));
    }
}

/* Labels and centers; *changed: rows with another label, or that are left out now and were not before, or the other way. */
static err iterate(struct lloyd *l, bool first, f64 *changed) {
    *changed = 0;
    if (l->trim > 0) {
        TRY(lloyd_step(l, STEP_SPREAD, first));
        *changed = lloyd_tail(l)[LLOYD_CHANGED];
        find_limits(l);
    }
    TRY(lloyd_step(l, l->trim > 0 ? STEP_TRIMMED : STEP_MEANS, first));
    *changed += lloyd_tail(l)[LLOYD_CHANGED];
    return 0;
}

err lloyd_run(struct lloyd *l, i64 from, i64 iterations, struct lloyd_outcome *out) {
    bool first = true;
    *out = (struct lloyd_outcome){.iterations = from};
    for (i32 k = 0; l->limit && k < l->c.k; k++) l->limit[k] = INFINITY; /* until distances are known */
    while (out->iterations < iterations && !out->settled) {
        f64 changed;
        const err e = l->turn ? l->turn(l->owner, out->iterations) : 0;
        if (e != 0) return e;
        if (l->late) break;
        TRY(iterate(l, first, &changed));
        first = false;
        out->iterations++;
        out->settled = changed == 0;
        if (!out->settled) TRY(move_empty(l));
        TRY(workload_advance(l->work, 1));
    }
    return lloyd_measure(l, first, out);
}

err lloyd_measure(struct lloyd *l, bool first, struct lloyd_outcome *out) {
    TRY(lloyd_step(l, STEP_MEASURE, first));
    out->inertia = lloyd_tail(l)[LLOYD_COST];
    out->kept = lloyd_tail(l)[LLOYD_KEPT];
    out->left_out = (i64)lloyd_tail(l)[LLOYD_LEFT_OUT];
    return 0;
}
