/* paths.h - sample paths: possible futures of a series, whose values at each step follow the quantiles that are forecast, and
 * whose course over the steps is that of errors on validation.
 *
 *     templates  u [PATHS][series or 1][horizon]    rank of each error of a window among those of its step, in (0,1)
 *     sample i   template of i, each rank moved within 1 / PATHS  --rank among the samples of the step-->  level  --> value
 *
 * This is a Schaake shuffle (Clark et al. 2004) with validation errors as the templates: samples of a step are the quantiles of N
 * levels, one in each Nth of (0,1), so that marginals do not depend on the templates. */
#ifndef STRETTO_LEARN_FORECAST_PATHS_H
#define STRETTO_LEARN_FORECAST_PATHS_H

#include "learn/forecast/forecast.h"

/* Templates and the series that have their own; the others share one set, drawn from all. */
struct path_shape {
    i32 n, ncol;
    i64 floats;
};
struct path_shape paths_shape(const struct forecast_spec *spec, i32 ntarget);

/* Residuals of a column as ranks: r [horizon][n] of n windows; window `at` to u [horizon].  A step that is NaN has the rank of
 * the step before. */
void paths_rank(const f32 *r, i32 horizon, i64 n, i64 at, f32 *u);

/* NULL = the model has none: it has no bands, or its file is older. */
const f32 *forecast_paths(const struct forecaster *f);

/* Samples of column col, whose number in the model is own (-1 = new to it), from its band [horizon][nband] in original units:
 * out [horizon][n].  A pure function of seed, column and n.  The model has paths, and two quantiles at least.  E601. */
err paths_draw(const struct forecaster *f, i32 own, i32 col, const f64 *band, i64 seed, i32 n, f64 *out);

#endif
