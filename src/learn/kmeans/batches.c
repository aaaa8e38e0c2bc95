/* batches.c - mini-batch k-means (Sculley, WWW 2010): each center is the mean of all rows that batches gave to it so far.
 *
 *     batch of random rows --STEP_MEANS--> center = (seen * center + sum of its rows) / (seen + their number)
 *
 * Ends when the mean squared distance in a batch, smoothed over about one pass of the data as scikit-learn does, has not become
 * less for CALM batches.  Every rank draws the same rows. */
#include <string.h>

#include "base/mem.h"
#include "learn/kmeans/kmeans.h"

enum { CALM = 10 };

static err batch_new(const struct points *p, i64 rows, struct points *out) {
    *out = (struct points){.n = rows, .d = p->d, .mean = p->mean, .unit = p->unit};
    NEW(out->x, rows * p->d);
    NEW(out->f, rows * p->d);
    NEW(out->norm, rows);
    return 0;
}

static void batch_free(struct points *b) { /* the mean is that of all points */
    mem_free(b->x);
    mem_free(b->f);
    mem_free(b->norm);
}

static void draw(const struct points *p, const struct batches *b, i64 number, struct points *to) {
    const i64 d = p->d;
    for (i64 i = 0; i < b->rows; i++) {
        const f64 u = kmeans_uniform(b->seed, b->restart, DRAWS_OF_BATCHES + number * b->rows + i);
        const i64 row = (i64)(u * (f64)p->n);
        memcpy(to->x + i * d, p->x + row * d, sizeof *p->x * (size_t)d);
        memcpy(to->f + i * d, p->f + row * d, sizeof *p->f * (size_t)d);
        to->norm[i] = p->norm[row];
    }
}

/* The first batch, whose rows the first centers did not see, begins the smoothing. */
static void smooth(struct batches *b, f64 cost, i64 number, i64 rows) {
    const f64 alpha = dmin(1, 2 * (f64)b->rows / (f64)(rows + 1));
    b->smooth = number == 0 ? cost : (1 - alpha) * b->smooth + alpha * cost;
    const bool less = number == 0 || b->smooth < b->best;
    if (less) b->best = b->smooth;
    b->calm = less ? 0 : b->calm + 1;
}

static err run(struct lloyd *l, struct lloyd *batch, struct points *rows, struct batches *b, struct lloyd_outcome *out) {
    const size_t bytes = sizeof *l->model * (size_t)l->c.k * (size_t)l->c.d;
    batch->seen = b->seen;
    memcpy(batch->model, l->model, bytes);
    while (out->iterations < b->most && b->calm < CALM) {
        const err e = l->turn ? l->turn(l->owner, out->iterations) : 0;
        if (e != 0) return e;
        if (l->late) break;
        draw(l->p, b, out->iterations, rows);
        TRY(lloyd_step(batch, STEP_MEANS, true));
        for (i32 k = 0; k < l->c.k; k++) b->seen[k] += lloyd_counts(batch)[k];
        smooth(b, lloyd_tail(batch)[LLOYD_COST] / (f64)b->rows, out->iterations, l->p->n);
        memcpy(l->model, batch->model, bytes);
        out->iterations++;
        TRY(workload_advance(l->work, 1));
    }
    out->settled = b->calm >= CALM;
    return 0;
}

err batches_run(struct lloyd *l, struct batches *b, i64 from, struct lloyd_outcome *out) {
    struct points rows;
    struct lloyd batch = {0};
    *out = (struct lloyd_outcome){.iterations = from};
    err e = batch_new(l->p, b->rows, &rows);
    if (e >= 0) e = lloyd_open(&rows, l->c.k, 0, l->use, &batch);
    if (e >= 0) e = run(l, &batch, &rows, b, out);
    l->distances += batch.distances;
    l->all += batch.all;
    lloyd_close(&batch);
    batch_free(&rows);
    return e == 0 ? lloyd_measure(l, true, out) : e;
}
