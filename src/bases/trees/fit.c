/* fit.c - boosted trees fitted on rows of a series: rows are drawn, cut into bins, and one tree after the other lowers their
 * loss.
 *
 *     (origin, column, step) drawn evenly --inputs--> bins --trees_grow--> tree 0, tree 1, ..     until validation rows get no
 * better
 */
#include "bases/trees/fit.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"

enum { ROWS_FEW = 100, CUT_ROWS = 16384, BLOCK = 256, USUAL_TREES = 100 };
enum { SEED_TREES = 1, SEED_ROWS = 2 };

struct trees_effort trees_effort_of(bool absolute, bool probe) {
    const struct trees_growth growth = {.leaves = 31,
                                        .depth = 10,
                                        .min_rows = 20,
                                        .l2 = 1,
                                        .rate = probe ? 0.15 : 0.1,
                                        .rows_share = 0.6,
                                        .inputs_share = 0.5,
                                        .absolute = absolute,
                                        .seed = SEED_TREES};
    return (struct trees_effort){.rows = probe ? 20000 : 60000,
                                 .valid_rows = probe ? 5000 : 20000,
                                 .trees = probe ? 40 : 400,
                                 .patience = probe ? 8 : 25,
                                 .growth = growth};
}

/* ------------------------------------------------------------------ rows ---------------------------------------------------- */

/* Rows of a table: which (origin, column, step), and the table. */
struct rows {
    const struct series *s;
    const struct trees_inputs *in;
    i64 first; /* origin of index 0 */
    i64 n;
    i64 *index; /* [n] ((origin - first) * ncol + column) * H + step, ascending */
    struct trees_table table;
};

static i64 origin_of(const struct rows *r, i64 index) { return r->first + index / ((i64)r->in->shape.ncol * r->in->shape.H); }
static i32 col_of(const struct rows *r, i64 index) { return (i32)(index / r->in->shape.H % r->in->shape.ncol); }
static i32 step_of(const struct rows *r, i64 index) { return (i32)(index % r->in->shape.H); }

/* Draws at most `most` rows of the range that have a target. stream: separates draws. */
static err draw(struct arena *a, struct rows *r, struct trees_range range, i64 most, u32 stream) {
    const i64 origins = lmax(0, range.to - r->in->shape.H + 1 - range.from), all = origins * r->in->shape.ncol * r->in->shape.H;
    const i64 n = lmin(all, most);
    r->first = range.from;
    ARENA_NEW(a, r->index, n);
    for (i64 i = 0; i < n; i++) {
        const f64 u = all > n ? (f64)rng_uniform(SEED_ROWS, RNG_TREES, stream, (u64)i) : 0;
        const i64 at = lmin(all - 1, (i64)(((f64)i + u) * (f64)all / (f64)n));
        const i64 row = origin_of(r, at) + step_of(r, at);
        if (row < r->s->nrow && series_is_target(r->s, col_of(r, at), row)) r->index[r->n++] = at;
    }
    return 0;
}

/* Inputs of rows [from, to) into x [to - from][n], where to[i] of shift [to - from] is what leaves add to. */
static void take(const struct rows *r, const i64 *index, i64 n, f32 *x, f32 *shift) {
    const i32 width = r->in->n, H = r->in->shape.H;
    struct trees_origin o = {0};
    for (i64 i = 0; i < n; i++) {
        f32 *u = x + i * width;
        if (i > 0 && index[i] / H == index[i - 1] / H)
            memcpy(u, u - width, sizeof *u * (size_t)r->in->norigin);
        else
            o = trees_origin_take(r->in, r->s, col_of(r, index[i]), origin_of(r, index[i]), u);
        shift[i] = trees_step_take(r->in, &o, step_of(r, index[i]), u);
    }
}

/* ------------------------------------------------------------------ cuts ---------------------------------------------------- */

/* Largest f32 that is not above v: still below the larger of the two f32 that v lies between. */
static f64 as_f32(f64 v) {
    const f32 f = (f32)v;
    return (f64)f > v ? (f64)nextafterf(f, -INFINITY) : (f64)f;
}

/* What workers share: a table to fill, or inputs to cut. */
struct filling {
    const struct rows *r;
    struct trees_cuts *cuts;
    const i64 *index; /* rows to take */
    i64 n;
    f32 *x, *shift;      /* [n][width], [n] inputs of the rows for the cuts; or of a block, [workers][BLOCK][width] */
    f64 *sorted, *spare; /* [workers][n] */
    u8 *bin;             /* table to fill; NULL = keep x */
    _Atomic i64 next;
};

static void cut_inputs(void *self, i32 worker) {
    struct filling *f = self;
    f64 *v = f->sorted + f->n * worker, *spare = f->spare + f->n * worker;
    const i32 width = f->r->in->n;
    for (i64 i; (i = atomic_fetch_add(&f->next, 1)) < width;) {
        f64 *cut = f->cuts->cut + i * CUTS_MOST;
        i64 n = 0;
        for (i64 k = 0; k < f->n; k++)
            if (!isnan(f->x[k * width + i])) v[n++] = (f64)f->x[k * width + i];
        cuts_sort(v, spare, n);
        f->cuts->ncut[i] = cuts_of(v, n, cut);
        for (i32 k = 0; k < f->cuts->ncut[i]; k++) cut[k] = as_f32(cut[k]);
    }
}

static void take_blocks(void *self, i32 worker) {
    struct filling *f = self;
    (void)worker;
    for (i64 at; (at = BLOCK * atomic_fetch_add(&f->next, 1)) < f->n;)
        take(f->r, f->index + at, lmin(BLOCK, f->n - at), f->x + at * f->r->in->n, f->shift + at);
}

static void fill_blocks(void *self, i32 worker) {
    struct filling *f = self;
    const struct trees_table *t = &f->r->table;
    const i32 width = f->r->in->n;
    f32 *x = f->x + (i64)worker * BLOCK * width, *shift = f->shift + (i64)worker * BLOCK;
    for (i64 at; (at = BLOCK * atomic_fetch_add(&f->next, 1)) < f->n;) {
        const i64 n = lmin(BLOCK, f->n - at);
        take(f->r, f->index + at, n, x, shift);
        for (i64 k = 0; k < n; k++) {
            const i64 index = f->index[at + k];
            const f32 *target = series_col(f->r->s, col_of(f->r, index));
            t->y[at + k] = target[origin_of(f->r, index) + step_of(f->r, index)] - shift[k];
        }
        for (i32 i = 0; i < width; i++) {
            const f64 *cut = f->cuts->cut + (i64)i * CUTS_MOST;
            u8 *bin = t->bin + (i64)i * t->rows + at;
            for (i64 k = 0; k < n; k++) {
                const f32 v = x[k * width + i];
                bin[k] = isnan(v) ? 0 : cuts_bin(cut, f->cuts->ncut[i], (f64)v);
            }
        }
    }
}

/* Cuts of every input, from an even sample of the rows. */
static err make_cuts(struct arena *a, const struct rows *r, struct pool *pool, struct trees_cuts *cuts) {
    const i64 width = r->in->n, n = lmin(r->n, CUT_ROWS);
    struct filling f = {.r = r, .cuts = cuts, .n = n};
    struct arena scratch = {0};
    i64 *index;
    cuts->n = r->in->n;
    ARENA_NEW(a, cuts->ncut, width);
    ARENA_NEW(a, cuts->cut, width * CUTS_MOST);
    index = arena_array(&scratch, n, sizeof *index);
    f.x = arena_array(&scratch, n * width, sizeof *f.x);
    f.shift = arena_array(&scratch, n, sizeof *f.shift);
    f.sorted = arena_array(&scratch, n * pool_size(pool), sizeof *f.sorted);
    f.spare = arena_array(&scratch, n * pool_size(pool), sizeof *f.spare);
    const bool ok = index && f.x && f.shift && f.sorted && f.spare;
    if (ok) {
        for (i64 i = 0; i < n; i++) index[i] = r->index[i * r->n / n];
        f.index = index;
        pool_run(pool, take_blocks, &f);
        atomic_store(&f.next, 0);
        pool_run(pool, cut_inputs, &f);
    }
    arena_free(&scratch);
    return ok ? 0 : -E601;
}

static err fill_table(struct arena *a, struct rows *r, const struct trees_cuts *cuts, struct pool *pool) {
    struct trees_table *t = &r->table;
    struct trees_cuts shared = *cuts;
    struct filling f = {.r = r, .cuts = &shared, .index = r->index, .n = r->n};
    *t = (struct trees_table){.rows = r->n, .n = r->in->n};
    ARENA_NEW(a, t->bin, t->rows * t->n);
    ARENA_NEW(a, t->y, t->rows);
    ARENA_NEW(a, t->fit, t->rows);
    ARENA_NEW(a, f.x, (i64)pool_size(pool) * BLOCK * t->n);
    ARENA_NEW(a, f.shift, (i64)pool_size(pool) * BLOCK);
    pool_run(pool, fill_blocks, &f);
    return 0;
}

/* ------------------------------------------------------------------ boosting ------------------------------------------------ */

static f64 loss_of(const struct trees_table *t, bool absolute) {
    f64 sum = 0;
    for (i64 r = 0; r < t->rows; r++) {
        const f64 d = (f64)(t->y[r] - t->fit[r]);
        sum += absolute ? fabs(d) : d * d;
    }
    return sum / (f64)t->rows;
}

static f32 mean_target(const struct trees_table *t) {
    f64 sum = 0;
    for (i64 r = 0; r < t->rows; r++) sum += (f64)t->y[r];
    return (f32)(sum / (f64)t->rows);
}

static void begin(struct trees_table *t, f32 start) {
    for (i64 r = 0; r < t->rows; r++) t->fit[r] = start;
}

struct boosting {
    struct arena arena;
    struct trees_inputs in;
    struct rows train, valid;
    struct trees_cuts cuts;
    struct trees_grower *grower;
    struct trees *t;
};

/* One tree after the other; afterwards t holds the best number of them. */
static err boost(struct boosting *b, const struct trees_effort *e, i32 rounds, struct workload *work, struct trees_found *found) {
    const bool absolute = e->growth.absolute, judged = b->valid.n > 0;
    struct trees *t = b->t;
    i32 best = 0;
    t->start = mean_target(&b->train.table);
    begin(&b->train.table, t->start);
    begin(&b->valid.table, t->start);
    f64 loss = judged ? loss_of(&b->valid.table, absolute) : (f64)NAN;
    for (i32 k = 0; k < rounds && (!judged || k - best < e->patience); k++) {
        TRY(workload_advance(work, (f64)b->train.n * b->in.n));
        trees_grow(b->grower, k, t);
        trees_fit_add(b->grower, &b->train.table);
        if (judged) trees_fit_add(b->grower, &b->valid.table);
        const f64 now = judged ? loss_of(&b->valid.table, absolute) : loss;
        if (!judged || now < loss) loss = now, best = k + 1;
    }
    t->nnode = best < t->ntree ? t->root[best] : t->nnode;
    t->ntree = best;
    *found = (struct trees_found){.ntree = best, .rows = b->train.n, .valid_rows = b->valid.n, .loss = loss};
    return trees_link(t);
}

/* First origin: a season or two of rows lie before it, but not most of the training. */
static i64 first_origin(const struct trees_inputs *in, i64 train) {
    return lmin(imax(in->shape.lags, imax(in->shape.season, in->shape.season2)), train / 4);
}

static err fit(struct boosting *b, const struct series *s, const struct base_spec *p, const struct trees_effort *e, i32 exact,
               struct trees_found *found) {
    struct pool *pool = p->pool;
    const i64 first = first_origin(&b->in, p->train);
    const i32 rounds = exact > 0 ? exact : p->valid > p->train ? e->trees : imin(e->trees, USUAL_TREES);
    b->train = b->valid = (struct rows){.s = s, .in = &b->in};
    TRY(draw(&b->arena, &b->train, (struct trees_range){first, p->train}, e->rows, 0));
    if (exact <= 0) TRY(draw(&b->arena, &b->valid, (struct trees_range){p->train, p->valid}, e->valid_rows, 1));
    if (b->train.n < ROWS_FEW) return 0;
    TRY(make_cuts(&b->arena, &b->train, pool, &b->cuts));
    TRY(fill_table(&b->arena, &b->train, &b->cuts, pool));
    TRY(fill_table(&b->arena, &b->valid, &b->cuts, pool));
    TRY(trees_grower_new(&b->train.table, &b->cuts, &e->growth, pool, &b->grower));
    TRY(trees_new(&b->in, 2 * e->growth.leaves * rounds, &b->t));
    return boost(b, e, rounds, p->work, found);
}

err trees_fit(const struct series *s, const struct base_spec *p, const struct trees_shape *shape, const struct trees_effort *work,
              i32 exact, struct trees_found *found, struct trees **out) {
    struct boosting *b = NULL;
    struct base_spec spec = *p;
    struct pool *own = NULL;
    *out = NULL;
    *found = (struct trees_found){.loss = (f64)NAN};
    if (!p->pool) TRY(pool_new(1, &own));
    if (own) spec.pool = own;
    err e = mem_new((void **)&b, 1, sizeof *b);
    if (e >= 0 && trees_inputs_make(shape, &b->in)) e = fit(b, s, &spec, work, exact, found);
    if (b && e >= 0 && b->t && b->t->ntree > 0)
        *out = b->t;
    else if (b)
        trees_free(b->t);
    if (b) {
        trees_grower_free(b->grower);
        arena_free(&b->arena);
    }
    mem_free(b);
    pool_free(own);
    return e;
}
