/* distribution.c - forecasts from parameters of a distribution, which the network gives for each value (model/loss/family.h).
 *
 *     family             the distribution is in units of                 its base
 *     real numbers       the window: (value - shift) / div               the base forecast in these units
 *     counts             counts: value * col_dev + col_mean, whole       log of the base forecast, with a floor
 *
 * The guard's weight scales the first parameter: a location moves from the base, a mean grows from it by a factor.  The
 * guard does not scale the others (scale, degrees of freedom, dispersion); calibration on validation corrects them (bands.c). */
#include <math.h>

#include "base/rng.h"
#include "base/special.h"
#include "learn/forecast/forecast.h"

f64 head_log_mean(f64 base, f64 col_mean) { return log(fmax(base, fmax(HEAD_FLOOR_COUNT, HEAD_FLOOR_SHARE * col_mean))); }

f32 head_count(const struct forecast_row *row, f32 v) {
    return (f32)((head_whole((f64)v * row->col_dev + row->col_mean) - row->col_mean) / row->col_dev);
}

/* The parameters of step k; returns the base in the units of the distribution. */
static f64 parameters(const struct forecast_spec *spec, const struct forecast_row *row, f32 a, i32 k, f64 raw[FAMILY_PARAMS]) {
    for (i32 p = 0; p < spec->family->nparam; p++) raw[p] = (f64)row->raw[(i64)p * spec->horizon + k];
    raw[0] *= (f64)a;
    if (spec->family->counts) return head_log_mean((f64)row->base[k] * row->col_dev + row->col_mean, row->col_mean);
    return ((f64)row->base[k] - (f64)row->shift) / (f64)row->div;
}

/* From the units of the distribution to those of the series, and back. */
static f32 outward(const struct forecast_spec *spec, const struct forecast_row *row, f64 v) {
    return spec->family->counts ? (f32)((v - row->col_mean) / row->col_dev) : (f32)(v * (f64)row->div + (f64)row->shift);
}

static f64 inward(const struct forecast_spec *spec, const struct forecast_row *row, f32 v) {
    if (spec->family->counts) return head_whole((f64)v * row->col_dev + row->col_mean);
    return ((f64)v - (f64)row->shift) / (f64)row->div;
}

f32 head_forecast(const struct forecast_spec *spec, const struct forecast_row *row, f32 a, i32 k) {
    if (!spec->family || !spec->family->counts)
        return row->base[k] + a * (row->div * row->raw[(i64)head_point(spec) * spec->horizon + k]);
    f64 raw[FAMILY_PARAMS];
    const f64 base = parameters(spec, row, a, k, raw);
    return outward(spec, row, exp(fmin(FAMILY_LOG_MEAN, base + raw[0])));
}

f32 head_quantile(const struct forecast_spec *spec, const struct forecast_row *row, f32 a, f32 z, i32 q, i32 k) {
    f64 raw[FAMILY_PARAMS];
    const f64 base = parameters(spec, row, a, k, raw);
    const f64 at = isnan(z) ? special_normal_quantile(spec->quantiles.v[q]) : (f64)z;
    return outward(spec, row, spec->family->value(raw, base, at));
}

f32 head_score(const struct forecast_spec *spec, const struct forecast_row *row, f32 a, f32 y, i32 k) {
    f64 raw[FAMILY_PARAMS];
    if (isnan(y)) return y;
    const f64 base = parameters(spec, row, a, k, raw);
    const f64 within = (f64)rng_uniform((u64)row->col, RNG_HEAD, (u32)k, (u64)row->origin);
    return (f32)spec->family->score(raw, base, inward(spec, row, y), within);
}
