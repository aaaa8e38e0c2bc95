/* out.c - mean, quantiles and the unguarded forecast of a row. */
#include "learn/forecast/out.h"

#include <math.h>

enum precision forecast_precision(const struct forecaster *f, const struct resources *use) {
    if (f->spec.precision == PREC_F32 || net_runs(&f->net, use->kern) == 0) return f->spec.precision;
    err_clear();
    event_note(use->events, EVENT_NOTE,
               "the model was trained in bf16, which the kernels \"%s\" have not: these forecasts are made in fp32",
               use->kern->name);
    return PREC_F32;
}

f32 row_deviation(const struct forecaster *f, const struct series *s, i64 origin, i32 col) {
    const struct window_shape look = {.context = forecast_lags(&f->spec), .scale = WSCALE_WINDOW};
    f32 shift, div;
    window_scale_of(&look, s, origin, col, &shift, &div);
    return div;
}

/* Unit of the residual quantiles of a row. */
static f32 unit_of(const struct row_out *o, const struct forecast_row *row) {
    const f32 power = o->f->spread ? o->f->spread[forecast_quantiles(o->f, o->f->schema.ntarget)] : 0;
    if (power < 0) return row->div;
    return power > 0 ? powf(row_deviation(o->f, o->s, row->origin, row->col), power) : 1.f;
}

/* The mean residual quantiles over the series, for one that training has not seen. */
static err common_spread(const struct forecaster *f, struct arena *arena, f32 **out) {
    const i64 cells = (i64)f->spec.nband * f->spec.horizon;
    ARENA_NEW(arena, *out, cells + 1);
    for (i64 i = 0; i < cells; i++) {
        f64 sum = 0, n = 0;
        for (i32 c = 0; c < f->schema.ntarget; c++)
            if (!isnan(f->spread[c * cells + i])) sum += (f64)f->spread[c * cells + i], n++;
        (*out)[i] = n > 0 ? (f32)(sum / n) : (f32)NAN;
    }
    return 0;
}

err row_out_new(const struct forecaster *f, const struct series *s, struct arena *arena, struct row_out *o) {
    i32 h = f->spec.horizon;
    *o = (struct row_out){.f = f, .s = s};
    ARENA_NEW(arena, o->mean, h);
    ARENA_NEW(arena, o->both, h);
    ARENA_NEW(arena, o->band, (i64)h * imax(1, f->spec.nband));
    return s->of_model && f->spread ? common_spread(f, arena, &o->common) : 0;
}

static void sort_small(f32 *v, i32 n) {
    for (i32 i = 1; i < n; i++)
        for (i32 j = i; j > 0 && v[j] < v[j - 1]; j--) {
            f32 t = v[j];
            v[j] = v[j - 1];
            v[j - 1] = t;
        }
}

/* Bands of one step. */
static void bands(const struct row_out *o, const struct forecast_row *row, f32 unit, i32 k) {
    const struct forecast_spec *s = &o->f->spec;
    const struct head_output *head = head_output_of(s, o->f->nmember > 0);
    const i32 col = forecast_column(o->s, row->col);
    const f32 *spread = !o->f->spread ? NULL : col < 0 ? o->common : o->f->spread + (i64)col * s->nband * s->horizon;
    f32 *out = o->band + (i64)k * s->nband;
    for (i32 q = 0; q < s->nband; q++) {
        const f32 residual = spread ? spread[(i64)q * s->horizon + k] * unit : 0.f;
        out[q] = head->band(s, row, forecast_weight(o->f, k), residual, q, k);
        if (head != s->output && forecast_counts(s)) out[q] = head_count(row, out[q]); /* of no distribution */
    }
    sort_small(out, s->nband);
}

err row_out_emit(struct row_out *o, struct forecast_row row, const f32 *corr, forecast_row_fn *fn, void *self) {
    const struct forecaster *f = o->f;
    i32 h = f->spec.horizon;
    row.raw = corr;
    row.col_mean = o->s->mean[row.col];
    row.col_dev = o->s->dev[row.col];
    for (i32 k = 0; k < h; k++) {
        o->both[k] = f->nmember > 0 ? head_forecast(&f->spec, &row, forecast_share(f, k), k) : row.base[k];
        o->mean[k] = f->nmember > 0 ? head_forecast(&f->spec, &row, forecast_weight(f, k), k) : row.base[k];
    }
    row.mean = o->mean;
    row.both = o->both;
    row.band = f->spec.nband ? o->band : NULL;
    const f32 unit = unit_of(o, &row);
    for (i32 k = 0; k < h; k++) bands(o, &row, unit, k);
    return fn(self, &row);
}
