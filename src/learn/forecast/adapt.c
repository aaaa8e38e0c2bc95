/* adapt.c - bands that follow the recent coverage: wider after targets that fell outside, narrower after too many inside.
 *
 *     rows  ..[ WINDOW rows whose targets are known )o        score of a past target = its distance from the forecast / that of
 *               forecasts from every grid-th origin  ^ origin  the band's end on its side: up to 1 inside, above 1 outside
 *
 * The factor of the bands at an origin is the score that a share of the recent targets stays below: the share that the band
 * promises.  Scores of calibration count as PRIOR_ROWS rows, with the share of them that the calibrated band holds: without
 * evidence the factor is 1.  Errors far ahead last for about a horizon, so the window has two horizons at least, and the prior
 * one.  This is conformal prediction with weights for a distribution that shifts (Gibbs and Candes 2021; Barber, Candes, Ramdas,
 * Tibshirani 2023): a window has weight 1, calibration the rest.
 * Only rows that the model has not seen give evidence.  The factor depends on the rows before the origin alone, so a window has
 * the same bands alone and among others. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/forecast/forecast.h"

enum { WINDOW = 1000, PRIOR_ROWS = 60, HORIZONS = 2, HORIZON_PARTS = 8 };
enum { OCTAVE = 12, OCTAVES = 4 }; /* bins of scores from 2^-4 to 2^4 */

struct tracker {
    const struct forecaster *f;
    const struct series *s;
    const f32 *prior; /* [BAND_BINS] shares */
    f64 held;         /* share of them within the band */
    i64 first, end;   /* rows with scored targets */
    bool counts;      /* bands are whole numbers, from 0 on */
    i64 window, prior_rows; /* rows before an origin that count, and rows that calibration counts as */
    bool whole;       /* all evidence counts: each column has an origin of its own, which ends its rows */
    i64 grid;         /* distance between origins that are scored */
    i32 room;         /* bins per cell */
    u8 *n, *bin;      /* [end - first][ncol], [..][room] bins of the forecasts of that row */
    i64 from, upto;   /* range of rows in `count` */
    i32 *count;       /* [ncol][BAND_BINS] */
    f32 *band;        /* [horizon][nband] bands of the row that is output */
    forecast_row_fn *fn;
    void *self;
};

i32 forecast_bin(f32 y, f32 mean, f32 low, f32 high) {
    const f64 d = (f64)y - (f64)mean, end = d < 0 ? (f64)low - (f64)mean : (f64)high - (f64)mean;
    if (isnan(d) || isnan(end)) return -1;
    const f64 score = d == 0 ? 0 : end == 0 || d / end < 0 ? INFINITY : d / end;
    const f64 at = ceil((log2(score) + OCTAVES) * OCTAVE); /* log2(0) = -inf */
    return (i32)dmax(0, dmin(BAND_BINS - 1, at));
}

i64 forecast_first_unseen(const struct forecaster *f, const struct series *s) {
    if (!s->time || f->seen_time == INT64_MIN) return lmin(f->seen_rows, s->nrow);
    if (s->time[s->nrow - 1] < f->seen_from) return 0;
    i64 i = 0;
    while (i < s->nrow && s->time[i] <= f->seen_time) i++;
    return i;
}

static err on_evidence(void *self, const struct forecast_row *row) {
    struct tracker *t = self;
    const i32 nq = t->f->spec.nband, ncol = t->s->ntarget;
    if (row->seen == 0) return 0;
    for (i32 k = 0; k < t->f->spec.horizon && row->origin + k < t->end; k++) {
        const f32 *q = row->band + (i64)k * nq;
        const i32 bin = forecast_bin(series_target(t->s, row->col, row->origin + k), row->mean[k], q[0], q[nq - 1]);
        const i64 cell = (row->origin + k - t->first) * ncol + row->col;
        if (bin >= 0 && t->n[cell] < t->room) t->bin[cell * t->room + t->n[cell]++] = (u8)bin;
    }
    return 0;
}

/* Adds the bins of a row to the counts (sign 1) or subtracts them (-1). */
static void count_row(struct tracker *t, i64 row, i32 sign) {
    const i32 ncol = t->s->ntarget;
    for (i32 c = 0; c < ncol; c++) {
        const i64 cell = (row - t->first) * ncol + c;
        for (i32 i = 0; i < t->n[cell]; i++) t->count[(i64)c * BAND_BINS + t->bin[cell * t->room + i]] += sign;
    }
}

static void move_to(struct tracker *t, i64 origin) {
    for (; t->upto < lmin(origin, t->end); t->upto++) count_row(t, t->upto, 1);
    for (; t->from < lmin(origin - t->window, t->upto); t->from++) count_row(t, t->from, -1);
}

/* The score below which the promised share of the scores lies, interpolated linearly within its bin. */
static f64 factor_of(const struct tracker *t, i32 col) {
    const struct forecast_spec *spec = &t->f->spec;
    const i32 *count = t->count + (i64)col * BAND_BINS;
    const f64 prior = (f64)t->prior_rows * (f64)spec->horizon / (f64)t->grid;
    f64 n = 0, below = 0, in = 0;
    i32 b = 0;
    for (i32 i = 0; i < BAND_BINS; i++) n += count[i];
    if (n == 0) return 1;
    const f64 want = (spec->quantiles.v[spec->nband - 1] - spec->quantiles.v[0]) * n + t->held * prior;
    for (; b < BAND_BINS; b++, below += in) {
        in = count[b] + prior * (f64)t->prior[b];
        if (below + in >= want) break;
    }
    b = imin(b, BAND_BINS - 1);
    const f64 part = in > 0 ? dmin(1, (want - below) / in) : 1;
    return exp2((b - 1 + part) / OCTAVE - OCTAVES);
}

static err on_row(void *self, const struct forecast_row *given) {
    struct tracker *t = self;
    struct forecast_row row = *given;
    const i32 nq = t->f->spec.nband;
    move_to(t, t->whole ? t->end : row.origin);
    const f32 factor = (f32)factor_of(t, row.col);
    for (i32 k = 0; k < t->f->spec.horizon; k++)
        for (i32 q = 0; q < nq; q++) {
            const i64 at = (i64)k * nq + q;
            t->band[at] = factor == 1 ? given->band[at] : row.mean[k] + factor * (given->band[at] - row.mean[k]);
            if (t->counts) t->band[at] = head_count(&row, t->band[at]);
        }
    row.band = t->band;
    return t->fn(t->self, &row);
}

static bool adapts(const struct forecaster *f) {
    const struct forecast_spec *s = &f->spec;
    return s->nband > 1 && s->quantiles.v[0] < 0.5 && s->quantiles.v[s->nband - 1] > 0.5 && f->spread &&
           f->spread[forecast_quantiles(f, f->schema.ntarget)] >= 0;
}

/* Scores the forecasts whose targets lie in the window before an origin of the set. */
static err gather(struct tracker *t, const struct window_set *set, const struct resources *use) {
    const struct forecast_spec *spec = &t->f->spec;
    const i64 last = window_origin(set, window_origins(set) - 1), unseen = forecast_first_unseen(t->f, t->s);
    t->window = lmax(WINDOW, HORIZONS * spec->horizon);
    t->prior_rows = lmax(PRIOR_ROWS, spec->horizon);
    for (i32 i = 0; i <= OCTAVE * OCTAVES; i++) t->held += (f64)t->prior[i];
    t->grid = forecast_stride(lmax(1, spec->horizon / HORIZON_PARTS), t->f->schema.freq.season);
    t->first = lmax(lmax(set->first - t->window - spec->horizon, unseen), spec->context);
    t->first = (t->first + t->grid - 1) / t->grid * t->grid;
    t->end = lmax(t->first, last);
    t->from = t->upto = t->first;
    t->room = (i32)((spec->horizon + t->grid - 1) / t->grid);
    const i64 cells = (t->end - t->first) * t->s->ntarget;
    NEW(t->n, cells + 1);
    NEW(t->bin, cells * t->room + 1);
    NEW(t->count, (i64)t->s->ntarget * BAND_BINS);
    NEW(t->band, (i64)spec->horizon * spec->nband);
    const struct window_set past = {.first = t->first, .end = t->end, .stride = t->grid};
    return forecast_rows_of(t->f, t->s, &past, use, on_evidence, t);
}

err forecast_windows(const struct forecaster *f, const struct series *s, const struct window_set *set,
                     const struct resources *use, forecast_row_fn *fn, void *self) {
    if (window_origins(set) <= 0 || !adapts(f)) return forecast_rows_of(f, s, set, use, fn, self);
    struct tracker t = {.f = f,
                        .s = s,
                        .counts = forecast_counts(&f->spec),
                        .whole = set->at != NULL,
                        .prior = f->spread + forecast_quantiles(f, f->schema.ntarget) + 1,
                        .fn = fn,
                        .self = self};
    err e = gather(&t, set, use);
    if (e >= 0) e = forecast_rows_of(f, s, set, use, on_row, &t);
    mem_free(t.n);
    mem_free(t.bin);
    mem_free(t.count);
    mem_free(t.band);
    return e;
}
