/* examples.h - the forecasts that a report shows: of the worst, the median and the best series or window, and after the last
 * record. */
#ifndef STRETTO_LEARN_FORECAST_EXAMPLES_H
#define STRETTO_LEARN_FORECAST_EXAMPLES_H

#include "learn/forecast/forecast.h"

enum { EXAMPLES = 6 };

struct example {
    const char *rank;  /* "worst", "median", "best" */
    f64 error;         /* MASE or MAE of the series; of one series: MAE of the window; original units */
    struct series *of; /* the column alone; the sample's column is 0 */
    struct forecast_sample sample;
};

struct examples {
    i32 n;
    i64 among; /* series, or windows of one series */
    bool windows, mase;
    struct example at[EXAMPLES];
};

/* Forecasts the last scored window of each of these series again, or the windows of one series. Everything is in the arena.
 * E601, and the errors of forecasts. */
err forecast_examples(const struct forecaster *f, const struct series *s, const struct forecast_scores *scores,
                      const struct resources *use, struct arena *a, struct examples *out);

#endif
