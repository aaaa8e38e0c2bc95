/* overlap.h - how many independent errors the errors of overlapping windows are worth.
 *
 *     origins  o o o o o o o o      r = error at one step from each origin: white noise a step ahead, slow far ahead
 *                                   time = 1 + 2 (rho(1) + rho(2) + ..)    n errors are worth n / time independent ones
 *
 * rho(l) is the correlation of errors l origins apart, about zero and not about their mean: errors that all lie on one side are
 * one event.  The sum ends where rho is lost in noise (Sokal 1997: integrated autocorrelation time).  Steps are taken together
 * in parts of the horizon, columns all together. */
#ifndef STRETTO_LEARN_FORECAST_OVERLAP_H
#define STRETTO_LEARN_FORECAST_OVERLAP_H

#include "base/err.h"

enum { OVERLAP_PARTS = 8 };

struct overlap {
    i32 horizon;
    i64 n, border; /* origins; no origin before `border` is a neighbour of one from there on */
    i64 lags;
    f64 *product;  /* [OVERLAP_PARTS][lags + 1] sums over pairs of errors, in sizes of their column and part */
    f64 *pairs;
};
/* stride: rows between two origins. */
err overlap_new(i32 horizon, i64 n, i64 border, i64 stride, struct overlap *o);
void overlap_add(struct overlap *o, const f32 *r); /* a column [horizon][n]; NaN = no target */
f64 overlap_time(const struct overlap *o, i32 step); /* >= 1 */
void overlap_free(struct overlap *o);

#endif
