/* choice.c - boosted trees as a base: alone, and beside another base where validation prefers a mix of both.
 *
 *     rows [0, train) --probe of each shift, few trees--> best shift --fit--> trees
 *     windows of [train, valid): loss of (1 - w) base + w trees for w = 0, .1, .. 1     blocks of time say whether the gain is
 * chance
 *
 * A probe costs a twentieth of a fit. Where the probe is far behind the other base, no fit follows. */
#include <math.h>

#include "bases/linear.h"
#include "bases/trees/fit.h"

enum { WEIGHTS = 11, BLOCKS_MOST = 10, GROUPS_MOST = 16, WINDOWS_MOST = 1500, CELLS_MOST = 60000, ROWS_LEAST = 300 };
static const f64 PROBE_BEHIND = 1.25, T_LEAST = 2;

static bool may_use_trees(const struct base_spec *p) { return p->train * p->ncol >= ROWS_LEAST && p->valid > p->train + p->H; }

/* The best shift by trees of a probe, and its loss. out = NULL: too few rows. */
static err probe(const struct series *s, const struct base_spec *p, struct trees_shape *best, struct trees **out) {
    const struct trees_effort work = trees_effort_of(p->absolute, true);
    struct trees_shape q = trees_shape_of(s, p, p->train);
    f64 least = INFINITY;
    *out = NULL;
    for (i32 k = 0; k < SHIFT_KINDS; k++) {
        struct trees_found found;
        struct trees *t;
        q.shift = (enum trees_shift)k;
        if (q.shift == SHIFT_SEASON && q.season <= 1) continue;
        TRY(trees_fit(s, p, &q, &work, 0, &found, &t));
        const bool better = t && (!*out || found.loss < least);
        if (better) least = found.loss, *best = q;
        trees_free(better ? *out : t);
        if (better) *out = t;
    }
    return 0;
}

static err wrap(struct trees *t, struct base **out) {
    struct base *b;
    NEW(b, 1);
    b->npart = 1;
    b->part[0] = (struct base_part){.kind = BASE_TREES, .weight = 1};
    b->trees = t;
    *out = b;
    return 0;
}

err base_trees(const struct series *s, const struct base_spec *p, struct base **out) {
    const struct trees_effort work = trees_effort_of(p->absolute, false);
    struct trees_found found;
    struct trees_shape shape;
    struct trees *t;
    if (p->work && p->work->all <= 0) p->work->all = 0;
    TRY(probe(s, p, &shape, &t));
    trees_free(t);
    if (!t)
        return FAIL_AT(E301, NULL, "--base auto",
                       "--base trees: fewer than 100 rows with a target before row %lld, or more than %d inputs",
                       (long long)p->train, (int)TREES_INPUTS);
    TRY(trees_fit(s, p, &shape, &work, 0, &found, &t));
    if (!t) return FAIL(E301, "trees: no tree lowers the loss on rows %lld..%lld", (long long)p->train, (long long)p->valid);
    const err e = wrap(t, out);
    if (e < 0) trees_free(t);
    return e;
}

/* ------------------------------------------------------------------ beside another base ------------------------------------- */

/* Losses over validation windows: sums by block and weight. A block is a stretch of time of some columns: with few origins, the
 * columns, too, say whether a gain is chance. */
struct contest {
    const struct series *s;
    const struct base_spec *p;
    i32 ntime, nblock;
    f64 loss[BLOCKS_MOST * GROUPS_MOST][WEIGHTS], cells[BLOCKS_MOST * GROUPS_MOST];
};

static f64 weight_at(i32 k) { return (f64)k / (WEIGHTS - 1); }

static void add_window(struct contest *c, i32 block, i32 col, i64 origin, const f32 *a, const f32 *b) {
    for (i32 h = 0; h < c->p->H; h++) {
        const f64 y = (f64)series_target(c->s, col, origin + h);
        if (isnan(y)) continue;
        for (i32 k = 0; k < WEIGHTS; k++) {
            const f64 d = y - (1 - weight_at(k)) * (f64)a[h] - weight_at(k) * (f64)b[h];
            c->loss[block][k] += c->p->absolute ? fabs(d) : d * d;
        }
        c->cells[block]++;
    }
}

/* Forecasts of both at an even choice of validation origins, all columns of each. */
static err measure(struct contest *c, const struct base *rival, const struct trees *t) {
    const struct base_spec *p = c->p;
    const i64 n = p->valid - p->H - p->train + 1;
    const i64 most = lmax(1, lmin(WINDOWS_MOST, CELLS_MOST / p->H / p->ncol)), count = lmin(n, most);
    f32 *out;
    NEW(out, 2 * (i64)p->H);
    err e = 0;
    *c = (struct contest){.s = c->s, .p = p, .ntime = (i32)lmax(1, lmin(BLOCKS_MOST, n / p->H))};
    c->nblock = c->ntime * imin(GROUPS_MOST, p->ncol);
    for (i64 i = 0; i < count && e >= 0; i++) {
        const i64 origin = p->train + i * n / count;
        for (i32 col = 0; col < p->ncol && e >= 0; col++) {
            e = base_predict_rows(rival, c->s, 1, &col, &origin, p->H, out, p->H, kern_best());
            for (i32 h = 0; h < p->H; h++) out[p->H + h] = 0;
            if (e >= 0) e = trees_add_rows(t, 1, c->s, &(struct row_list){1, &col, &origin}, p->H, out + p->H, p->H);
            const i32 block = col % GROUPS_MOST * c->ntime + (i32)(i * c->ntime / count);
            if (e >= 0) add_window(c, block, col, origin, out, out + p->H);
        }
    }
    mem_free(out);
    return e;
}

static f64 total(const struct contest *c, i32 k) {
    f64 sum = 0, cells = 0;
    for (i32 b = 0; b < c->nblock; b++) sum += c->loss[b][k], cells += c->cells[b];
    return cells > 0 ? sum / cells : (f64)NAN;
}

/* t of the log ratios of the losses without trees and with weight k over the blocks; 0 with fewer than three. */
static f64 t_of(const struct contest *c, i32 k) {
    f64 n = 0, mean = 0, square = 0;
    for (i32 b = 0; b < c->nblock; b++) {
        const f64 d = log(c->loss[b][0] / c->loss[b][k]);
        if (!isfinite(d)) continue;
        n += 1;
        square += (d - mean) * (d - mean) * (n - 1) / n;
        mean += (d - mean) / n;
    }
    const f64 error = n > 2 ? sqrt(square / (n - 1) / n) : 0;
    return error > 0 ? mean / error : 0;
}

static i32 best_weight(const struct contest *c) {
    i32 best = 0;
    for (i32 k = 1; k < WEIGHTS; k++)
        if (total(c, k) < total(c, best)) best = k;
    return best;
}

err base_try_trees(const struct series *s, const struct base_spec *p, struct trees_choice *table, struct base **b) {
    const struct trees_effort work = trees_effort_of(p->absolute, false);
    struct contest c = {.s = s, .p = p};
    struct trees_found found;
    struct trees_shape shape;
    struct trees *t;
    *table = (struct trees_choice){0};
    if (!may_use_trees(p) || (*b)->trees) return 0;
    TRY(probe(s, p, &shape, &t));
    if (!t) return 0;
    err e = measure(&c, *b, t);
    trees_free(t);
    TRY(e);
    *table = (struct trees_choice){.tried = true, .nblock = c.nblock, .rival = total(&c, 0), .trees = total(&c, WEIGHTS - 1)};
    table->both = table->rival;
    if (!(table->trees < PROBE_BEHIND * table->rival)) return 0;
    TRY(trees_fit(s, p, &shape, &work, 0, &found, &t));
    if (!t) return 0;
    e = measure(&c, *b, t);
    const i32 k = best_weight(&c);
    table->ntree = t->ntree;
    table->trees = total(&c, WEIGHTS - 1);
    table->t = t_of(&c, k);
    if (e >= 0 && k > 0 && table->t > T_LEAST) {
        table->weight = weight_at(k);
        table->both = total(&c, k);
        base_add_trees(*b, t, weight_at(k));
        return 0;
    }
    trees_free(t);
    return e;
}
