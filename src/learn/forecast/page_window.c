/* page_window.c - a window as a chart: history, forecast with its quantiles, and the actual values. */
#include <math.h>

#include "data/time.h"
#include "learn/forecast/page.h"

enum { HISTORY_HORIZONS = 3 };

err page_forecast(const struct forecaster *f, const struct series *s, const struct forecast_sample *w, bool scored,
                  struct arena *a, struct report_forecast *out) {
    const struct forecast_spec *spec = &f->spec;
    const i32 h = spec->horizon, nq = spec->nband;
    i32 past = (i32)lmin(w->origin, lmax(HISTORY_HORIZONS * h, 24));
    f64 *v, *time = NULL;
    char label[32];
    if (scored) past = imin(past, spec->context);
    ARENA_NEW(a, v, past + (1 + (i64)nq) * h);
    if (s->time) ARENA_NEW(a, time, past + h);
    row_label(s, w->origin, label);
    *out = (struct report_forecast){.title = scored ? arena_printf(a, "%s from %s", s->name[w->col], label) : s->name[w->col],
                                    .nhistory = past,
                                    .horizon = h,
                                    .time = time,
                                    .history = v,
                                    .model = w->mean};
    if (scored) out->actual = v + past;
    if (scored && f->base && f->nmember > 0) out->base = w->base;
    for (i32 i = 0; i < past + h; i++) {
        i64 row = w->origin - past + i;
        bool shown = row < s->nrow && !(scored && series_filled(s, w->col, row));
        v[i] = shown ? series_raw(s, w->col, row) : (f64)NAN;
        if (time) time[i] = (f64)series_time(s, row);
    }
    if (!w->band || nq < 2) return 0;
    out->nlevel = nq;
    out->level = spec->quantiles.v;
    out->quantile = v + past + h;
    for (i32 q = 0; q < nq; q++)
        for (i32 k = 0; k < h; k++) v[past + h + (i64)q * h + k] = w->band[(i64)k * nq + q];
    return 0;
}
