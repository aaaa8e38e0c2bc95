/* metrics.h - the scores of forecasts, summed window after window in f64.
 *
 *     windows (any order) --metrics_add--> sums [column][kind][step] --metrics_score--> struct score (a step, a column, all)
 *
 * Values come in scaled units (v = (x - mean) / dev); scores come out in those or in the original units.  Cells whose target is
 * NaN are skipped.  A forecast that is NaN makes the scores NaN: it is a fault of the model and must be seen.
 * Formulas, with target y, forecast f and e = y - f, over all counted cells:
 *     sMAPE 200 |y-f| / (|y|+|f|), mean (with the factor 2)      MASE mean|e| / mean|y_t - y_(t-m)|, rows before the test part
 *     ND    sum|e| / sum|y|                                      wQL  mean over quantiles of 2 sum(pinball) / sum|y|
 *     RSE   root(sum e^2 / sum (y - mean)^2)                     CORR mean over columns of the correlation of y and f
 * One caller at a time: the order of the calls is that of the sums. */
#ifndef STRETTO_TRAIN_METRICS_H
#define STRETTO_TRAIN_METRICS_H

#include "data/series.h"

enum { QUANTILES_MAX = 32 };

struct metrics;

struct score {
    i64 n;                        /* cells counted */
    f64 mse, mae, rmse;
    f64 smape;                    /* percent, 0..200 */
    f64 mase;                     /* NaN without a scale */
    f64 nd, rse, corr;
    f64 wql, pinball;             /* NaN without quantiles; wql of a point forecast is its nd */
    i32 nquantile, nband;
    f64 below[QUANTILES_MAX];     /* share of targets at or below quantile i: should be q[i] */
    f64 coverage[QUANTILES_MAX / 2]; /* share inside [q[i], q[nq-1-i]], outermost band first */
};

/* Sums for H steps of ncol target columns of s, whose scale (mean, dev) and names are copied.  q: ascending, or NULL. */
err metrics_new(const struct series *s, i32 ncol, i32 H, const f64 *q, i32 nq, struct metrics **out);
void metrics_free(struct metrics *m);

/* One window of a column: targets y[H], point forecasts f[H], and quantiles qf [H][nq] (NULL when there are none). */
void metrics_add(struct metrics *m, i32 col, const f32 *y, const f32 *f, const f32 *qf);

/* Set what MASE divides by (original units); see mase_scale. */
void metrics_set_scale(struct metrics *m, i32 col, f64 scale);

/* The score of step (0..H-1, or -1 = all) and column (or -1 = all), in original or scaled units. */
void metrics_score(const struct metrics *m, i32 step, i32 col, bool original, struct score *out);

/* Mean |y_t - y_(t-season)| over rows [0, rows) of a column in original units; NaN when no pair is observed or all are equal. */
f64 mase_scale(const struct series *s, i32 col, i32 season, i64 rows);

#endif
