/* seed.c - first centers: k-means++ (Arthur and Vassilvitskii, SODA 2007) or random rows; new places for empty clusters.
 *
 * Every rank holds all points and finds the same centers.  Sums go over blocks of rows in their order, whatever the threads. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "learn/kmeans/kmeans.h"

enum { BLOCK_ROWS = 2048 };

static const f64 *row_at(const struct points *p, i64 i) { return p->x + i * p->d; }
static size_t row_bytes(const struct points *p) { return sizeof(f64) * (size_t)p->d; }

/* ------------------------------------------------------------------ farthest point ------------------------------------------ */

struct reach {
    const struct points *p;
    i32 k;              /* centers to look at */
    const f64 *center;  /* [k][d] */
    const bool *skip;   /* [k] NULL = none */
    f64 *least;         /* [n] squared distance to the nearest center so far */
    _Atomic i64 next;
};

static void reach_blocks(void *self, i32 worker) {
    struct reach *r = self;
    const i32 d = r->p->d;
    (void)worker;
    for (i64 at; (at = atomic_fetch_add(&r->next, BLOCK_ROWS)) < r->p->n;)
        for (i64 i = at; i < lmin(r->p->n, at + BLOCK_ROWS); i++)
            for (i32 k = 0; k < r->k; k++)
                if (!r->skip || !r->skip[k])
                    r->least[i] = dmin(r->least[i], points_distance(d, row_at(r->p, i), r->center + (i64)k * d));
}

static i64 farthest(struct reach *r, struct pool *pool, i32 k, const f64 *center, const bool *skip) {
    i64 best = 0;
    r->k = k;
    r->center = center;
    r->skip = skip;
    atomic_store(&r->next, 0);
    pool_run(pool, reach_blocks, r);
    for (i64 i = 1; i < r->p->n; i++)
        if (r->least[i] > r->least[best]) best = i;
    return best;
}

err kmeans_reseed(const struct points *p, struct pool *pool, i32 k, const bool *empty, f64 *center, i64 *row) {
    struct reach r = {.p = p};
    i32 last = -1;
    NEW(r.least, p->n);
    for (i64 i = 0; i < p->n; i++) r.least[i] = INFINITY;
    for (i32 i = 0; i < k; i++) {
        if (!empty[i]) continue;
        *row = last < 0 ? farthest(&r, pool, k, center, empty) : farthest(&r, pool, 1, center + (i64)last * p->d, NULL);
        memcpy(center + (i64)i * p->d, row_at(p, *row), row_bytes(p));
        last = i;
    }
    mem_free(r.least);
    return 0;
}

/* ------------------------------------------------------------------ k-means++ ----------------------------------------------- */

struct draw {
    const struct seeding *q;
    f32 *least;    /* [n] squared distance to the nearest center so far, in the scale of f */
    f64 *sum;      /* [blocks] of least */
    i64 row;       /* the newest center */
    _Atomic i64 next;
};

static void draw_blocks(void *self, i32 worker) {
    struct draw *t = self;
    const struct points *p = t->q->p;
    const f32 *new = p->f + t->row * p->d;
    (void)worker;
    for (i64 at; (at = atomic_fetch_add(&t->next, BLOCK_ROWS)) < p->n;) {
        f64 sum = 0;
        for (i64 i = at; i < lmin(p->n, at + BLOCK_ROWS); i++) {
            const f32 d2 = t->q->near->distance(p->d, p->f + i * p->d, new);
            if (d2 < t->least[i]) t->least[i] = d2;
            sum += (f64)t->least[i];
        }
        t->sum[at / BLOCK_ROWS] = sum;
    }
}

static f64 uniform(u64 seed, i32 restart, i64 i) {
    u32 w[4];
    rng_words(seed, RNG_INIT, (u32)restart, (u64)i, w);
    return ((f64)(w[0] >> 5) * 0x1p26 + (f64)(w[1] >> 6)) * 0x1p-53;
}

/* The row at share u of the sum of squared distances; -1 where all are 0. */
static i64 pick(const struct draw *t, f64 u) {
    const i64 n = t->q->p->n;
    f64 all = 0;
    i64 last = -1;
    for (i64 b = 0; b * BLOCK_ROWS < n; b++) all += t->sum[b];
    f64 left = u * all;
    for (i64 b = 0; b * BLOCK_ROWS < n; b++) {
        if (left >= t->sum[b] && (b + 1) * BLOCK_ROWS < n) {
            left -= t->sum[b];
            continue;
        }
        for (i64 i = b * BLOCK_ROWS; i < lmin(n, (b + 1) * BLOCK_ROWS); i++) {
            if (!(t->least[i] > 0)) continue;
            last = i;
            left -= (f64)t->least[i];
            if (left < 0) return i;
        }
    }
    return last;
}

/* Where f32 no longer tells the rest of the points apart: the farthest from the first k centers. */
static err rest(const struct seeding *q, i32 k, const f64 *center, i64 *row) {
    struct reach r = {.p = q->p};
    NEW(r.least, q->p->n);
    for (i64 i = 0; i < q->p->n; i++) r.least[i] = INFINITY;
    *row = farthest(&r, q->pool, k, center, NULL);
    mem_free(r.least);
    return 0;
}

static err plusplus(struct draw *t, i32 restart, f64 *center) {
    const struct points *p = t->q->p;
    for (i64 i = 0; i < p->n; i++) t->least[i] = INFINITY;
    t->row = (i64)(uniform(t->q->seed, restart, 0) * (f64)p->n);
    for (i32 k = 0; k < t->q->k; k++) {
        if (t->row < 0) TRY(rest(t->q, k, center, &t->row));
        memcpy(center + (i64)k * p->d, row_at(p, t->row), row_bytes(p));
        if (k + 1 == t->q->k) break;
        atomic_store(&t->next, 0);
        pool_run(t->q->pool, draw_blocks, t);
        t->row = pick(t, uniform(t->q->seed, restart, k + 1));
    }
    return 0;
}

/* Rows of a random order, each point once. */
static void random_rows(const struct seeding *q, i32 restart, f64 *center) {
    const struct points *p = q->p;
    i32 k = 0;
    for (i64 i = 0; i < p->n && k < q->k; i++) {
        const f64 *x = row_at(p, rng_shuffle(q->seed, (u32)restart, p->n, i));
        i32 other = 0;
        while (other < k && memcmp(center + (i64)other * p->d, x, row_bytes(p)) != 0) other++;
        if (other == k) memcpy(center + (i64)k++ * p->d, x, row_bytes(p));
    }
}

err kmeans_seed(const struct seeding *q, i32 restart, f64 *center) {
    struct draw t = {.q = q};
    if (!q->plusplus) {
        random_rows(q, restart, center);
        return 0;
    }
    err e = mem_new((void **)&t.least, q->p->n, sizeof *t.least);
    if (e >= 0) e = mem_new((void **)&t.sum, q->p->n / BLOCK_ROWS + 1, sizeof *t.sum);
    if (e >= 0) e = plusplus(&t, restart, center);
    mem_free(t.least);
    mem_free(t.sum);
    return e;
}
