/* guard.c - what the recurrent part earned on validation: its weight, and the residual quantiles for bands. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/forecast/fit.h"

enum { SPREAD_CELLS = 250000 };

/* Mean training losses of every validation origin, all columns together. */
struct losses {
    const struct fit *t;
    f64 *base, *both;  /* [n] sums, then means; NaN where nothing can be scored */
    i64 *cells;
    i64 n;
    struct labour *work;
};

static err on_loss_row(void *self, const struct forecast_row *row) {
    struct losses *d = self;
    const struct series *s = d->t->series;
    const struct forecast_spec *spec = &d->t->f->spec;
    bool squared = strcmp(spec->loss, "mse") == 0;
    i64 at = row->origin - d->t->set.valid_all.first;
    TRY(labour_done(d->work, 1));
    if (row->seen == 0) return 0;
    for (i32 i = 0; i < spec->horizon; i++) {
        f64 y = (f64)series_target(s, row->col, row->origin + i);
        if (isnan(y)) continue;
        f64 e0 = (y - (f64)row->base[i]) / (f64)row->div, e1 = (y - (f64)row->both[i]) / (f64)row->div;
        d->base[at] += squared ? e0 * e0 : fabs(e0);
        d->both[at] += squared ? e1 * e1 : fabs(e1);
        d->cells[at]++;
    }
    return 0;
}

static err measure(struct fit *t, struct losses *d) {
    const struct forecast_spec *spec = &t->f->spec;
    NEW(d->base, d->n + 1);
    NEW(d->both, d->n + 1);
    NEW(d->cells, d->n + 1);
    TRY(forecast_windows(t->f, t->series, &t->set.valid_all, &t->job->use, on_loss_row, d));
    for (i64 i = 0; i < d->n; i++) {
        d->base[i] = d->cells[i] ? d->base[i] / (f64)d->cells[i] : (f64)NAN;
        d->both[i] = d->cells[i] ? d->both[i] / (f64)d->cells[i] : (f64)NAN;
    }
    guard_weigh(d->base, d->both, (i32)d->n, spec->horizon, strcmp(spec->preset, "short") == 0 ? 1 : GUARD_BLOCKS, &t->f->guard);
    return 0;
}

err forecast_guard(struct fit *t) {
    struct forecaster *f = t->f;
    f->weight = 1;
    if (!f->spec.guard || !f->base) return 0;
    struct labour work = labour_of("weighing the recurrent part", t->job->use.events, forecast_stop(t));
    struct losses d = {.t = t, .n = window_origins(&t->set.valid_all), .work = &work};
    work.all = (f64)d.n * t->series->ntarget;
    err e = measure(t, &d);
    labour_end(&work);
    mem_free(d.base);
    mem_free(d.both);
    mem_free(d.cells);
    if (e < 0) return e;
    const struct guard *g = &f->guard;
    f->has_guard = true;
    f->weight = g->a;
    event_note(t->job->use.events, EVENT_NOTE,
               "guard: validation loss %.4g with the base alone, %.4g with the network (t %.2f over %d blocks): its "
               "weight is %.2f",
               g->loss_base, g->loss_both, g->t, g->nblock, f->weight);
    return 0;
}

/* --- bands --- */
struct residuals {
    const struct fit *t;
    f32 *r;          /* [ntarget][horizon][n] */
    i64 n;           /* origins */
    const struct window_set *set;
    struct labour *work;
};

static err on_residual(void *self, const struct forecast_row *row) {
    struct residuals *d = self;
    const struct series *s = d->t->series;
    const struct forecast_spec *spec = &d->t->f->spec;
    const f32 *around = spec->output->centre(row);
    TRY(labour_done(d->work, 1));
    i64 at = (row->origin - d->set->first) / d->set->stride;
    for (i64 k = 0; k < spec->horizon; k++) {
        f32 y = series_target(s, row->col, row->origin + k);
        d->r[(row->col * spec->horizon + k) * d->n + at] = row->seen ? (y - around[k]) / row->div : (f32)NAN;
    }
    return 0;
}

static int ascending(const void *a, const void *b) {
    f32 x = *(const f32 *)a, y = *(const f32 *)b;
    return isnan(x) ? !isnan(y) : isnan(y) ? -1 : (x > y) - (x < y);
}

/* Quantile q of the sorted values v[n], linear between neighbours, at position q (n + 1) - 1 (so that bands of few values
 * widen). */
static f32 quantile(const f32 *v, i64 n, f64 q) {
    f64 at = dmin((f64)(n - 1), dmax(0, q * (f64)(n + 1) - 1));
    i64 i = (i64)at;
    f64 part = at - (f64)i;
    return i + 1 < n ? (f32)((f64)v[i] * (1 - part) + (f64)v[i + 1] * part) : v[n - 1];
}

/* Sorts residuals in place; returns how many were observed. */
static i64 sorted(f32 *v, i64 n) {
    qsort(v, (size_t)n, sizeof *v, ascending);
    while (n > 0 && isnan(v[n - 1])) n--;
    return n;
}

/* The quantiles of one step from n sorted residuals, NaN from too few: nothing is known, which is not the same as no error. */
static void quantiles_of(const struct forecast_spec *spec, const f32 *v, i64 n, f32 *spread, i32 k) {
    for (i32 q = 0; q < spec->nband; q++)
        spread[(i64)q * spec->horizon + k] = n >= SPREAD_WINDOWS ? quantile(v, n, spec->quantiles.v[q]) : (f32)NAN;
}

/* Each step of a column by itself, r [horizon][n]; one of which too little was observed as all steps of the column together.
 * false: nothing is known of any. */
static bool column_quantiles(const struct forecast_spec *spec, f32 *r, i64 n, f32 *spread) {
    bool whole = true;
    for (i32 k = 0; k < spec->horizon; k++) {
        quantiles_of(spec, r + k * n, sorted(r + k * n, n), spread, k);
        whole = whole && !isnan(spread[k]);
    }
    if (whole) return true;
    const i64 all = sorted(r, spec->horizon * n);
    for (i32 k = 0; k < spec->horizon; k++)
        if (isnan(spread[k])) quantiles_of(spec, r, all, spread, k);
    return all >= SPREAD_WINDOWS;
}

/* Columns that end before the validation part, or lie in a gap there, have no bands. */
static void tell_bare(const struct fit *t, i32 bare, i32 first) {
    const struct series *s = t->series;
    if (bare > 0)
        event_note(t->job->use.events, EVENT_NOTE, "no quantiles for %d of %d columns (\"%s\"%s): fewer than %d targets in the "
                   "validation part", bare, s->ntarget, s->name[first], bare > 1 ? ", ..." : "", SPREAD_WINDOWS);
}

static err spread_of(struct fit *t, struct residuals *d) {
    struct forecaster *f = t->f;
    const struct forecast_spec *spec = &f->spec;
    i64 h = spec->horizon, ncol = t->series->ntarget;
    NEW(d->r, ncol * h * d->n);
    TRY(forecast_windows(f, t->series, d->set, &t->job->use, on_residual, d));
    i32 bare = 0, first = 0;
    NEW(f->spread, ncol * spec->nband * h);
    for (i64 c = ncol - 1; c >= 0; c--)
        if (!column_quantiles(spec, d->r + c * h * d->n, d->n, f->spread + c * spec->nband * h)) bare++, first = (i32)c;
    tell_bare(t, bare, first);
    return 0;
}

/* The mix was weighed on the validation rows too, and a ridge that was fitted again has seen them: residuals there are taken with
 * one that has not.  NULL: the base itself has not. */
static err unseen_base(const struct fit *t, struct base **out) {
    const struct base_spec spec = forecast_base_spec(t, NULL);
    struct mix table;
    *out = NULL;
    if (t->f->spec.refit_all && strcmp(t->f->spec.base, "ridge") == 0) return base_ridge(t->series, &spec, out);
    return t->f->has_mix ? base_mix(t->series, &spec, &table, out) : 0;
}

/* About SPREAD_CELLS residuals at most, from origins of every phase of the season. */
static struct window_set calibration(const struct fit *t) {
    struct window_set set = t->set.valid_all;
    i64 cells = window_origins(&set) * t->series->ntarget * t->f->spec.horizon;
    if (cells > SPREAD_CELLS) set.stride = (cells + SPREAD_CELLS - 1) / SPREAD_CELLS;
    set.stride = forecast_stride(set.stride, t->series->freq.season);
    return set;
}

err forecast_spread(struct fit *t) {
    struct forecaster *f = t->f;
    i64 n = window_origins(&t->set.valid_all);
    if (f->spec.nband == 0 || f->spread) return 0;
    if (n < SPREAD_WINDOWS) {
        event_note(t->job->use.events, EVENT_NOTE, "no quantiles: %lld validation origins, at least %d are needed",
                   (long long)lmax(0, n), SPREAD_WINDOWS);
        f->spec.nband = 0;
        return 0;
    }
    struct base *fair = NULL, *own = f->base;
    struct window_set set = calibration(t);
    struct labour work = labour_of("measuring the bands", t->job->use.events, forecast_stop(t));
    struct residuals d = {.t = t, .n = window_origins(&set), .set = &set, .work = &work};
    work.all = (f64)d.n * t->series->ntarget;
    TRY(unseen_base(t, &fair));
    if (fair) f->base = fair;
    err e = spread_of(t, &d);
    labour_end(&work);
    f->base = own;
    base_free(fair);
    mem_free(d.r);
    return e;
}
