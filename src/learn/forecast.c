/* forecast.c - the learner `forecast`: base plus guarded recurrent correction (forecast.h). */
#include "learn/forecast/forecast.h"
#include "learn/learner.h"

extern const struct learner learner_forecast;

const struct learner learner_forecast = {
    .name = "forecast",
    .help = "values after the last row of a time series, with quantiles",
    .fit = forecast_fit,
};
