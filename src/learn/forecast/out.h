/* out.h - combines the base forecast and the network's output of one row into the final forecast. */
#ifndef STRETTO_LEARN_FORECAST_OUT_H
#define STRETTO_LEARN_FORECAST_OUT_H

#include "learn/forecast/stream.h"

struct row_out {
    const struct forecaster *f;
    const struct series *s;
    f32 *mean, *both, *band; /* outputs of one row */
    f32 *common;             /* [nband][horizon] residual quantiles of series that are new to the model */
};
err row_out_new(const struct forecaster *f, const struct series *s, struct arena *arena, struct row_out *out);

/* Deviation of a column in the window before an origin, in deviations of the series: a power of it is the unit of residuals. */
f32 row_deviation(const struct forecaster *f, const struct series *s, i64 origin, i32 col);

/* Completes a row whose origin, col, base, shift, div and seen are set. corr [nq][horizon]: output of the network in units
 * of div. */
err row_out_emit(struct row_out *o, struct forecast_row row, const f32 *corr, forecast_row_fn *fn, void *self);

/* The precision that these kernels can run the model in: a model trained in bf16 forecasts in fp32 on other machines. */
enum precision forecast_precision(const struct forecaster *f, const struct resources *use);

#endif
