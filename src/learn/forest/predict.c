/* predict.c - predictions of rows of a table: each worker takes blocks of rows through all trees; see forest.h. */
#include <stdatomic.h>
#include <string.h>

#include "learn/forest/forest.h"

struct predicting {
    const struct forest *f;
    const u8 *bin; /* [inputs][rows] */
    i64 rows;
    struct vote_tile *tile; /* [workers] */
    f64 *out;
    _Atomic i64 next;
};

static void predict_blocks(void *self, i32 worker) {
    struct predicting *p = self;
    struct vote_tile *t = &p->tile[worker];
    const i32 M = p->f->bins.n, C = imax(1, p->f->nclass);
    for (i64 at; (at = atomic_fetch_add(&p->next, TILE_ROWS)) < p->rows;) {
        const i32 n = (i32)lmin(TILE_ROWS, p->rows - at);
        f64 *out = p->out + at * C;
        tile_fill(t, p->bin + at, p->rows, M, n);
        for (i32 k = 0; k < n; k++) t->list[k] = k;
        memset(out, 0, sizeof *out * (size_t)n * (size_t)C);
        for (i32 i = 0; i < p->f->ntree; i++) {
            tile_leaves(t, M, &p->f->tree[i], n);
            for (i32 k = 0; k < n; k++) vote_add(p->f->nclass, &p->f->tree[i], t->leaf[k], p->f->vote[i], out + (i64)k * C);
        }
    }
}

static err predict(struct predicting *p, const struct table_set *s, i64 from, struct pool *pool, struct arena *a) {
    const struct column **column;
    u8 *bin;
    ARENA_NEW(a, bin, p->rows * p->f->bins.n);
    ARENA_NEW(a, column, p->f->bins.n);
    ARENA_NEW(a, p->tile, pool_size(pool));
    p->bin = bin;
    TRY(bins_find(&p->f->bins, s, column));
    TRY(bins_fill(&p->f->bins, column, from, from + p->rows, pool, bin));
    for (i32 k = 0; k < pool_size(pool); k++) TRY(tile_new(p->f->bins.n, p->f->nclass, &p->tile[k]));
    pool_run(pool, predict_blocks, p);
    return 0;
}

err forest_predict(const struct forest *f, const struct table_set *s, i64 from, i64 to, struct pool *pool, f64 *out) {
    struct predicting p = {.f = f, .rows = to - from, .out = out};
    struct arena a = {0};
    const err e = predict(&p, s, from, pool, &a);
    for (i32 k = 0; p.tile && k < pool_size(pool); k++) tile_free(&p.tile[k]);
    arena_free(&a);
    return e;
}
