/* seed.c - first centers: k-means++ (Arthur and Vassilvitskii, SODA 2007), k-means|| (Bahmani, Moseley, Vattani, Kumar,
 * Vassilvitskii, VLDB 2012) or random rows; new places for empty clusters.
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

/* Squared distances to the nearest center.  Where a near center is known, its distance is a bound; only those points are then
 * measured against all centers whose bound is the largest, until the largest one is exact. */
struct reach {
    const struct points *p;
    i32 k;              /* centers to look at */
    const f64 *center;  /* [k][d] */
    const bool *skip;   /* [k] NULL = none */
    f64 *least;         /* [n] at least the distance to the nearest center */
    bool *exact;        /* [n] it is that distance */
    f64 *top;           /* [blocks] largest of least */
    const i32 *label;   /* [n] a near center, -1 = not known; NULL = none is known */
    const f64 *added;   /* a further center; NULL = begin */
    _Atomic i64 next;
};

static f64 distance_to(const struct reach *r, i64 i, const f64 *center) {
    return points_distance(r->p->d, row_at(r->p, i), center);
}

static void measure(struct reach *r, i64 i) {
    for (i32 k = 0; k < r->k; k++)
        if (!r->skip || !r->skip[k]) r->least[i] = dmin(r->least[i], distance_to(r, i, r->center + (i64)k * r->p->d));
    r->exact[i] = true;
}

static void begin_point(struct reach *r, i64 i) {
    const i32 known = r->label ? r->label[i] : -1;
    r->least[i] = INFINITY;
    if (known < 0 || (r->skip && r->skip[known])) measure(r, i);
    else r->least[i] = distance_to(r, i, r->center + (i64)known * r->p->d);
}

static f64 top_of(const struct reach *r, i64 block) {
    f64 top = -1;
    for (i64 i = block * BLOCK_ROWS; i < lmin(r->p->n, (block + 1) * BLOCK_ROWS); i++) top = dmax(top, r->least[i]);
    return top;
}

static void reach_blocks(void *self, i32 worker) {
    struct reach *r = self;
    (void)worker;
    for (i64 at; (at = atomic_fetch_add(&r->next, BLOCK_ROWS)) < r->p->n;) {
        for (i64 i = at; i < lmin(r->p->n, at + BLOCK_ROWS); i++) {
            if (!r->added) begin_point(r, i);
            else r->least[i] = dmin(r->least[i], distance_to(r, i, r->added));
        }
        r->top[at / BLOCK_ROWS] = top_of(r, at / BLOCK_ROWS);
    }
}

/* The first of the points with the largest distance to their nearest center. */
static i64 farthest(struct reach *r, struct pool *pool, const f64 *added) {
    const i64 blocks = (r->p->n + BLOCK_ROWS - 1) / BLOCK_ROWS;
    r->added = added;
    atomic_store(&r->next, 0);
    pool_run(pool, reach_blocks, r);
    for (;;) {
        i64 block = 0;
        for (i64 b = 1; b < blocks; b++)
            if (r->top[b] > r->top[block]) block = b;
        i64 i = block * BLOCK_ROWS;
        while (r->least[i] < r->top[block]) i++;
        if (r->exact[i]) return i;
        measure(r, i);
        r->top[block] = top_of(r, block);
    }
}

static err reach_new(const struct points *p, i32 k, const f64 *center, struct reach *out) {
    *out = (struct reach){.p = p, .k = k, .center = center};
    NEW(out->least, p->n);
    NEW(out->exact, p->n);
    NEW(out->top, p->n / BLOCK_ROWS + 1);
    return 0;
}

static void reach_free(struct reach *r) {
    mem_free(r->least);
    mem_free(r->exact);
    mem_free(r->top);
}

err kmeans_reseed(const struct points *p, struct pool *pool, i32 k, const bool *empty, const i32 *label, f64 *center, i64 *row) {
    struct reach r;
    const f64 *added = NULL;
    err e = reach_new(p, k, center, &r);
    r.skip = empty;
    r.label = label;
    for (i32 i = 0; i < k && e >= 0; i++) {
        if (!empty[i]) continue;
        *row = farthest(&r, pool, added);
        memcpy(center + (i64)i * p->d, row_at(p, *row), row_bytes(p));
        added = center + (i64)i * p->d;
    }
    reach_free(&r);
    return e;
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

f64 kmeans_uniform(u64 seed, i32 restart, i64 i) {
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
    struct reach r;
    const err e = reach_new(q->p, k, center, &r);
    if (e >= 0) *row = farthest(&r, q->pool, NULL);
    reach_free(&r);
    return e;
}

static err plusplus(struct draw *t, i32 restart, f64 *center) {
    const struct points *p = t->q->p;
    for (i64 i = 0; i < p->n; i++) t->least[i] = INFINITY;
    t->row = (i64)(kmeans_uniform(t->q->seed, restart, 0) * (f64)p->n);
    for (i32 k = 0; k < t->q->k; k++) {
        if (t->row < 0) TRY(rest(t->q, k, center, &t->row));
        memcpy(center + (i64)k * p->d, row_at(p, t->row), row_bytes(p));
        if (k + 1 == t->q->k) break;
        atomic_store(&t->next, 0);
        pool_run(t->q->pool, draw_blocks, t);
        t->row = pick(t, kmeans_uniform(t->q->seed, restart, k + 1));
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

/* ------------------------------------------------------------------ k-means|| ----------------------------------------------- */

/* Rounds draw rows by their distance to all candidates so far, about 2 k in each; then k of the candidates become centers, drawn
 * as k-means++ does, each with the number of rows that it is nearest to.  Single far rows are candidates of little weight. */
enum { ROUNDS = 5, OVERSAMPLING = 2 };

struct candidates {
    const struct seeding *q;
    i64 *row;          /* [n] of the points, in the order in which they came */
    i64 room;
    i32 n, from;       /* those behind `from` are new */
    f32 *least;        /* [points] as in struct draw */
    i32 *owner;        /* [points] nearest candidate */
    f64 *sum;          /* [blocks] of least */
    _Atomic i64 next;
};

static void nearest_blocks(void *self, i32 worker) {
    struct candidates *c = self;
    const struct points *p = c->q->p;
    (void)worker;
    for (i64 at; (at = atomic_fetch_add(&c->next, BLOCK_ROWS)) < p->n;) {
        f64 sum = 0;
        for (i64 i = at; i < lmin(p->n, at + BLOCK_ROWS); i++) {
            for (i32 j = c->from; j < c->n; j++) {
                const f32 d2 = c->q->near->distance(p->d, p->f + i * p->d, p->f + c->row[j] * p->d);
                if (!(d2 < c->least[i])) continue;
                c->least[i] = d2;
                c->owner[i] = j;
            }
            sum += (f64)c->least[i];
        }
        c->sum[at / BLOCK_ROWS] = sum;
    }
}

/* Distances to the new candidates; returns the sum over all points. */
static f64 look_at_new(struct candidates *c) {
    f64 all = 0;
    atomic_store(&c->next, 0);
    pool_run(c->q->pool, nearest_blocks, c);
    c->from = c->n;
    for (i64 b = 0; b * BLOCK_ROWS < c->q->p->n; b++) all += c->sum[b];
    return all;
}

static err add_candidate(struct candidates *c, i64 row) {
    GROW(c->row, c->n + 1, c->room);
    c->row[c->n++] = row;
    return 0;
}

static err draw_round(struct candidates *c, i32 restart, i32 round, f64 all) {
    const struct points *p = c->q->p;
    const f64 expected = OVERSAMPLING * (f64)c->q->k;
    for (i64 i = 0; i < p->n; i++) {
        const f64 share = expected * (f64)c->least[i] / all;
        const f64 u = kmeans_uniform(c->q->seed, restart, DRAWS_OF_ROUNDS + round * p->n + i);
        if (u < share) TRY(add_candidate(c, i));
    }
    return 0;
}

/* k of the candidates by k-means++ with weights; where f32 tells no more of them apart, the farthest rows. */
static err choose(const struct candidates *c, i32 restart, f64 *weight, f64 *far, f64 *center) {
    const struct points *p = c->q->p;
    for (i64 i = 0; i < p->n; i++) weight[c->owner[i]]++;
    for (i32 j = 0; j < c->n; j++) far[j] = 1;
    for (i32 k = 0; k < c->q->k; k++) {
        f64 all = 0;
        i64 row = -1;
        for (i32 j = 0; j < c->n; j++) all += weight[j] * far[j];
        f64 left = kmeans_uniform(c->q->seed, restart, k) * all;
        for (i32 j = 0; j < c->n && left >= 0; j++) {
            if (!(weight[j] * far[j] > 0)) continue;
            row = c->row[j];
            left -= weight[j] * far[j];
        }
        if (row < 0) TRY(rest(c->q, k, center, &row));
        memcpy(center + (i64)k * p->d, row_at(p, row), row_bytes(p));
        for (i32 j = 0; j < c->n; j++) {
            const f64 d2 = points_distance(p->d, row_at(p, c->row[j]), row_at(p, row));
            far[j] = k == 0 ? d2 : dmin(far[j], d2);
        }
    }
    return 0;
}

static err oversample(struct candidates *c, i32 restart, f64 *center) {
    const struct points *p = c->q->p;
    f64 *weight = NULL, *far = NULL;
    NEW(c->least, p->n);
    NEW(c->owner, p->n);
    NEW(c->sum, p->n / BLOCK_ROWS + 1);
    for (i64 i = 0; i < p->n; i++) c->least[i] = INFINITY;
    TRY(add_candidate(c, (i64)(kmeans_uniform(c->q->seed, restart, DRAWS_OF_ROUNDS - 1) * (f64)p->n)));
    f64 all = look_at_new(c);
    for (i32 r = 0; r < ROUNDS && all > 0; r++) {
        TRY(draw_round(c, restart, r, all));
        all = look_at_new(c);
    }
    err e = mem_new((void **)&weight, c->n, sizeof *weight);
    if (e >= 0) e = mem_new((void **)&far, c->n, sizeof *far);
    if (e >= 0) e = choose(c, restart, weight, far, center);
    mem_free(weight);
    mem_free(far);
    return e;
}

static err oversampled(const struct seeding *q, i32 restart, f64 *center) {
    struct candidates c = {.q = q};
    const err e = oversample(&c, restart, center);
    mem_free(c.row);
    mem_free(c.least);
    mem_free(c.owner);
    mem_free(c.sum);
    return e;
}

err kmeans_seed(const struct seeding *q, i32 restart, f64 *center) {
    struct draw t = {.q = q};
    if (q->how == SEED_PARALLEL) return oversampled(q, restart, center);
    if (q->how == SEED_RANDOM) {
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
