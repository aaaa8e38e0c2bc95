/* run.c - forecasts of many windows, streamed to a callback in order: on one device by a runner, on several by spread.c. */
#include "learn/forecast/runner.h"

static err run_set(struct runner *r, const struct window_set *set, forecast_row_fn *fn, void *self) {
    const i64 n = window_origins(set) * r->batch.s->ntarget, wide = (i64)r->nq * r->f->spec.horizon;
    for (i64 i = 0; i < n; i += r->batch.B) {
        i32 rows;
        TRY(runner_rows(r, set, i, &rows));
        for (i32 b = 0; b < rows; b++) TRY(row_out_emit(&r->out, runner_row(r, b), r->corr + b * wide, fn, self));
    }
    return 0;
}

/* --- one pass over the rows for each origin, where columns have origins of their own --- */
struct own_rows {
    const i64 *at;
    forecast_row_fn *fn;
    void *self;
};

static err own_row(void *self, const struct forecast_row *row) {
    const struct own_rows *o = self;
    return o->at[row->col] == row->origin ? o->fn(o->self, row) : 0;
}

static err stream_apart(const struct forecaster *f, const struct series *s, const struct window_set *set,
                        const struct resources *use, forecast_row_fn *fn, void *self) {
    struct own_rows o = {.at = set->at, .fn = fn, .self = self};
    for (i64 done = -1;;) {
        i64 next = INT64_MAX;
        for (i32 c = 0; c < s->ntarget; c++)
            if (set->at[c] > done) next = lmin(next, set->at[c]);
        if (next == INT64_MAX) return 0;
        const struct window_set one = {.first = next, .end = next + 1, .stride = 1};
        TRY(forecast_stream(f, s, &one, use, 0, own_row, &o));
        done = next;
    }
}

err forecast_rows_of(const struct forecaster *f, const struct series *s, const struct window_set *set,
                     const struct resources *use, forecast_row_fn *fn, void *self) {
    i64 n = window_origins(set) * s->ntarget;
    if (n <= 0) return 0;
    if (f->spec.decoder->every_step && set->at) return stream_apart(f, s, set, use, fn, self);
    if (f->spec.decoder->every_step) return forecast_stream(f, s, set, use, 0, fn, self);
    if (use->nforward > 1 && f->nmember > 0) return spread_windows(f, s, set, use, fn, self);
    struct runner r;
    err e = runner_new(f, s, use, (i32)lmin(n, RUNNER_ROWS), &r);
    if (e >= 0) e = run_set(&r, set, fn, self);
    runner_free(&r);
    return e;
}
