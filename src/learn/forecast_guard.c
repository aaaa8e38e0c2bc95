/* forecast_guard.c - what the recurrent part earned on validation: its weight, and the residual quantiles for bands. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/forecast_fit.h"

enum { SPREAD_CELLS = 250000, SPREAD_WINDOWS = 5 };

/* Mean training losses of every validation origin, all columns together. */
struct losses {
    const struct fit *t;
    f64 *base, *both;  /* [n] sums, then means; NaN where nothing can be scored */
    i64 *cells;
    i64 n;
};

static err on_loss_row(void *self, const struct forecast_row *row) {
    struct losses *d = self;
    const struct series *s = d->t->job->series;
    const struct forecast_spec *spec = &d->t->f->spec;
    bool squared = strcmp(spec->loss, "mse") == 0;
    i64 at = row->origin - d->t->valid_all.first;
    if (row->seen == 0) return 0;
    for (i32 i = 0; i < spec->horizon; i++) {
        f64 y = (f64)series_col(s, row->col)[row->origin + i];
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
    TRY(forecast_windows(t->f, t->job->series, &t->valid_all, &t->job->use, on_loss_row, d));
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
    struct losses d = {.t = t, .n = window_origins(&t->valid_all)};
    err e = measure(t, &d);
    mem_free(d.base);
    mem_free(d.both);
    mem_free(d.cells);
    if (e < 0) return e;
    const struct guard *g = &f->guard;
    f->has_guard = true;
    f->weight = g->a;
    event_note(t->job->use.events, EVENT_NOTE,
               "guard: validation loss %.4g with the base alone, %.4g with the recurrent part (t %.2f over %d blocks): its share is %.2f",
               g->loss_base, g->loss_both, g->t, g->nblock, f->weight);
    return 0;
}

/* --- bands --- */
struct residuals {
    const struct fit *t;
    f32 *r;          /* [horizon][n] */
    i64 n, used;
};

static err on_residual(void *self, const struct forecast_row *row) {
    struct residuals *d = self;
    const struct series *s = d->t->job->series;
    const struct forecast_spec *spec = &d->t->f->spec;
    const f32 *around = spec->nquantile > 0 ? row->base : row->mean;
    for (i32 k = 0; k < spec->horizon; k++)
        d->r[(i64)k * d->n + d->used] = row->seen ? (series_col(s, row->col)[row->origin + k] - around[k]) / row->div : (f32)NAN;
    d->used++;
    return 0;
}

static int ascending(const void *a, const void *b) {
    f32 x = *(const f32 *)a, y = *(const f32 *)b;
    return isnan(x) ? !isnan(y) : isnan(y) ? -1 : (x > y) - (x < y);
}

/* Quantile q of the sorted values v[n], linear between neighbours, at position q (n + 1) - 1 (so that bands of few values widen). */
static f32 quantile(const f32 *v, i64 n, f64 q) {
    f64 at = dmin((f64)(n - 1), dmax(0, q * (f64)(n + 1) - 1));
    i64 i = (i64)at;
    f64 part = at - (f64)i;
    return i + 1 < n ? (f32)((f64)v[i] * (1 - part) + (f64)v[i + 1] * part) : v[n - 1];
}

static err spread_of(struct fit *t, struct residuals *d, const struct window_set *set) {
    struct forecaster *f = t->f;
    const struct forecast_spec *spec = &f->spec;
    NEW(d->r, d->n * spec->horizon);
    TRY(forecast_windows(f, t->job->series, set, &t->job->use, on_residual, d));
    f32 *spread;
    NEW(spread, (i64)spec->nband * spec->horizon);
    for (i32 k = 0; k < spec->horizon; k++) {
        f32 *v = d->r + (i64)k * d->n;
        qsort(v, (size_t)d->n, sizeof *v, ascending);
        i64 n = d->n;
        while (n > 0 && isnan(v[n - 1])) n--;
        for (i32 q = 0; q < spec->nband && n > 0; q++) spread[(i64)q * spec->horizon + k] = quantile(v, n, spec->band[q]);
    }
    f->spread = spread;
    return 0;
}

/* Whether origins `stride` rows apart come to every phase of the season: no common divisor. */
static bool every_phase(i64 stride, i64 season) {
    while (season > 0) {
        i64 rest = stride % season;
        stride = season;
        season = rest;
    }
    return stride == 1;
}

err forecast_spread(struct fit *t) {
    const struct forecast_spec *spec = &t->f->spec;
    struct window_set set = t->valid_all;
    i64 n = window_origins(&set) * t->job->series->ntarget;
    if (spec->nband == 0) return 0;
    if (n < SPREAD_WINDOWS) {
        if (spec->nquantile == 0) {
            event_note(t->job->use.events, EVENT_NOTE, "no quantiles: %lld validation windows, at least %d are needed", (long long)n,
                       SPREAD_WINDOWS);
            t->f->spec.nband = 0;
        }
        return 0;
    }
    if (n * spec->horizon > SPREAD_CELLS) set.stride = (n * spec->horizon + SPREAD_CELLS - 1) / SPREAD_CELLS;
    while (!every_phase(set.stride, imax(1, t->job->series->freq.season))) set.stride++;
    struct residuals d = {.t = t, .n = window_origins(&set) * t->job->series->ntarget};
    err e = spread_of(t, &d, &set);
    mem_free(d.r);
    return e;
}
