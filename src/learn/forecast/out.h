/* out.h - from the base and the network's output of one row to the forecast that is handed on. */
#ifndef STRETTO_LEARN_FORECAST_OUT_H
#define STRETTO_LEARN_FORECAST_OUT_H

#include "learn/forecast/stream.h"

struct row_out {
    const struct forecaster *f;
    const struct series *s;
    f32 *mean, *both, *band; /* of the row that is handed on */
};
err row_out_new(const struct forecaster *f, const struct series *s, struct arena *arena, struct row_out *out);

/* Deviation of a column before an origin, in deviations of the series: what residuals are measured in, to a power. */
f32 row_deviation(const struct forecaster *f, const struct series *s, i64 origin, i32 col);

/* Completes row (origin, col, base, shift, div, seen are given) with corr [nq][horizon], the network's output in units of div. */
err row_out_emit(struct row_out *o, struct forecast_row row, const f32 *corr, forecast_row_fn *fn, void *self);

/* The precision of the model as these kernels have it: one that was trained in bf16 gives its forecasts in fp32 elsewhere. */
enum precision forecast_precision(const struct forecaster *f, const struct resources *use);

#endif
