/* columns.c - see columns.h.
 *
 *     rows     [from - context ........ to)
 *     column    a b c d e f g h i j k l        each window of validation ..
 *     turned    h i j k l a b c d e f g        .. sees the column as it was at another time (in a panel: of another series)
 *
 * A turn is a permutation of the windows that keeps what the values of a column look like; its length is no multiple of the
 * season, so the time of day does not help either. It is repeated COLUMN_TURNS times. The calendar is turned by moving the times.
 */
#include "learn/forecast/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "data/series_pick.h"
#include "data/time.h"

enum { SERIES = 16, WINDOWS = 512, CELLS = 4 << 20 };

struct worth {
    const struct forecaster *f;
    const struct resources *use;
    struct arena *a;
    struct series s; /* a few series, whose columns are turned */
    struct window_set set;
    i64 from, to; /* rows that are turned */
    f64 error, n; /* sums of a pass */
    f64 whole;    /* error with all columns */
};

static err on_row(void *self, const struct forecast_row *row) {
    struct worth *w = self;
    const bool squares = forecast_squares(&w->f->spec);
    for (i32 k = 0; k < w->f->spec.horizon && row->origin + k < w->s.nrow; k++) {
        const f32 y = series_target(&w->s, row->col, row->origin + k);
        if (isnan(y)) continue;
        const f64 e = (f64)y - (f64)row->mean[k];
        w->error += squares ? e * e : fabs(e);
        w->n++;
    }
    return 0;
}

/* The error over all windows, in scaled units: MAE or RMSE. */
static err measure(struct worth *w, f64 *error) {
    w->error = w->n = 0;
    TRY(forecast_rows_of(w->f, &w->s, &w->set, w->use, on_row, w));
    *error = w->error / w->n;
    if (forecast_squares(&w->f->spec)) *error = sqrt(*error);
    return 0;
}

/* Rows of turn r: a share of all rows, at another phase of the season. */
static i64 shift_of(const struct worth *w, i32 r) {
    const i64 rows = w->to - w->from, season = lmax(1, w->s.freq.season);
    const i64 about = rows * (r + 1) / (COLUMN_TURNS + 1), phase = season * (r + 1) / (COLUMN_TURNS + 1);
    return lmax(1, lmin(rows - 1, about - about % season + phase));
}

static bool uses_calendar(const struct forecaster *f, const struct series *s) { return s->time && forecast_reads_time(f); }

static void move_times(const struct worth *w, i64 *time, const i64 *kept, i64 shift) {
    for (i64 i = 0; i < w->s.nrow; i++) time[i] = time_add(kept[i], &w->s.freq, shift);
}

static err turned(struct worth *w, i32 k, i32 turns, struct column_worth *out) {
    const i32 covariates = series_covariates(&w->s);
    struct arena room = {0};
    struct series_kept kept = {0};
    i64 *times = w->s.time, *moved = NULL;
    err e = k < covariates ? series_keep(&w->s, k, &room, &kept) : 0;
    if (k == covariates && !(moved = arena_array(&room, w->s.nrow, sizeof *moved))) e = -E601;
    *out = (struct column_worth){
        .name = k < covariates ? series_covariate_name(&w->s, k) : "calendar", .low = INFINITY, .high = -INFINITY};
    for (i32 r = 0; r < turns && e >= 0; r++) {
        f64 error = 0;
        if (moved)
            move_times(w, w->s.time = moved, times, shift_of(w, r));
        else
            series_turn(&w->s, k, &kept, w->from, w->to, shift_of(w, r), r + 1);
        e = measure(w, &error);
        const f64 growth = error / w->whole - 1;
        out->mean += growth / turns;
        out->low = dmin(out->low, growth);
        out->high = dmax(out->high, growth);
    }
    w->s.time = times;
    if (e >= 0 && k < covariates) series_restore(&w->s, k, &kept);
    arena_free(&room);
    return e;
}

static int by_mean(const void *pa, const void *pb) {
    const struct column_worth *a = pa, *b = pb;
    if (a->mean != b->mean) return a->mean > b->mean ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Windows of validation, thinned so that there are about WINDOWS in all series that are looked at. */
static bool choose_windows(struct worth *w, const struct series *s, i64 from, i64 to, i32 *series) {
    const struct forecast_spec *spec = &w->f->spec;
    w->set = (struct window_set){.first = lmax(from, spec->context), .end = to - spec->horizon + 1, .stride = 1};
    const i64 n = window_origins(&w->set), room = CELLS / lmax(1, s->nrow * (1 + s->npast + s->nknown + s->ncat));
    if (n < 1) return false;
    *series = (i32)lmin(s->ntarget, lmax(SERIES, lmin(WINDOWS / n, room))); /* many of them where each has few windows */
    const i64 most = imax(4, WINDOWS / *series);
    if (n > most) w->set.stride = forecast_stride((n + most - 1) / most, s->freq.season);
    w->from = lmax(0, w->set.first - spec->context);
    w->to = to;
    return true;
}

/* Series of many, evenly spread. */
static err pick(struct worth *w, const struct series *s, i32 n) {
    i32 *target;
    ARENA_NEW(w->a, target, n);
    for (i32 i = 0; i < n; i++) target[i] = (i32)((i64)i * s->ntarget / n);
    return series_pick(s, target, n, w->a, &w->s);
}

static err all_columns(struct worth *w, f64 budget, struct columns_worth *out) {
    const f64 start = clock_now();
    TRY(measure(w, &w->whole));
    const f64 once = clock_now() - start;
    out->turns = once * (1 + COLUMN_TURNS * out->all) < budget ? COLUMN_TURNS : 1;
    out->windows = window_origins(&w->set) * w->s.ntarget;
    out->series = w->s.ntarget;
    ARENA_NEW(w->a, out->of, out->all);
    while (w->whole > 0 && out->n < out->all && (out->n == 0 || clock_now() - start + once * out->turns < budget)) {
        TRY(turned(w, out->n, out->turns, &out->of[out->n]));
        out->n++;
    }
    qsort(out->of, (size_t)out->n, sizeof *out->of, by_mean);
    out->seconds = clock_now() - start;
    return 0;
}

err forecast_columns(const struct forecaster *f, const struct series *s, i64 from, i64 to, f64 budget,
                     const struct resources *use, struct arena *a, struct columns_worth *out) {
    struct worth w = {.f = f, .use = use, .a = a};
    *out = (struct columns_worth){.all = series_covariates(s) + uses_calendar(f, s)};
    i32 series;
    if (out->all == 0) return 0;
    if (!choose_windows(&w, s, from, to, &series) || !series_pick_fits(s, series)) return 0;
    TRY(pick(&w, s, series));
    return all_columns(&w, budget, out);
}
