/* columns.h - what each column adds to the forecasts: the growth of the error on validation when the windows see the column of
 * another time. */
#ifndef STRETTO_LEARN_FORECAST_COLUMNS_H
#define STRETTO_LEARN_FORECAST_COLUMNS_H

#include "learn/forecast/forecast.h"

enum { COLUMN_TURNS = 3 };

struct column_worth {
    const char *name;    /* of the column, or "calendar" */
    f64 mean, low, high; /* error / error with all columns - 1, over the turns */
};
struct columns_worth {
    i32 n, all;  /* measured, in descending order of mean; of how many */
    i64 windows; /* of validation, from `series` series */
    i32 series, turns;
    f64 seconds;
    struct column_worth *of; /* [n] */
};

/* Measures on windows with targets in rows [from, to), which the weights were not fitted to, for at most about `budget` seconds.
 * n = 0: there is no column beside the targets, or no window. Everything is in the arena. E601, and the errors of forecasts. */
err forecast_columns(const struct forecaster *f, const struct series *s, i64 from, i64 to, f64 budget,
                     const struct resources *use, struct arena *a, struct columns_worth *out);

#endif
