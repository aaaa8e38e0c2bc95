/* forecast.c - the learner `forecast`: base plus guarded recurrent correction (forecast/forecast.h). */
#include "learn/forecast/ops.h"
#include "learn/forecast/resolve.h"
#include "learn/series_set.h"

static const struct model_ops ops = {
    .open = forecast_open,
    .take = forecast_take,
    .predict = forecast_predict,
    .score = forecast_results,
    .describe = forecast_describe,
    .plot = forecast_plot,
    .report = forecast_report,
    .save = forecast_save,
    .load = forecast_load,
    .graph = forecast_graph,
    .graph_check = forecast_graph_check,
    .free = forecast_free,
};

extern const struct learner learner_forecast;
const struct learner learner_forecast = {
    .name = "forecast",
    .help = "values after the last row of a time series, with quantiles",
    .predicts = "forecast",
    .data = &data_series,
    .ops = &ops,
    .spec_bytes = sizeof(struct forecast_spec),
    .check = resolve_check,
    .resolve = forecast_job_resolve,
    .prepare = forecast_job_prepare,
    .ranks = forecast_job_ranks,
    .folds = forecast_job_folds,
    .fit = forecast_fit,
    .left = forecast_healed,
};
