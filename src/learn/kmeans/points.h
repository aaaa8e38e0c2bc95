/* points.h - the records of a table as points: exact rows in f64, and scaled f32 copies for the fast kernels.
 *
 *     x [n][d]   f64, original units, or standardized       decides every label: ties and near ties are computed from it
 *     f [n][d]   f32, (x - mean) * unit                     finds candidates; unit is a power of two that makes |f| <= 1 */
#ifndef STRETTO_LEARN_KMEANS_POINTS_H
#define STRETTO_LEARN_KMEANS_POINTS_H

#include "learn/table_set.h"

/* Columns, and their z-scores where --standardize is given. */
struct column_scale {
    i32 d;
    const char **name;     /* [d] */
    f64 *center, *spread;  /* [d] z = (x - center) / spread; 0 and 1 without --standardize */
};

struct points {
    i64 n;
    i32 d;
    f64 *x;
    f32 *f, *norm;     /* norm [n] = |f|^2 */
    f64 *mean;         /* [d] of x */
    f64 unit;          /* f = (x - mean) * unit */
    f64 total;         /* sum of |x - mean|^2 */
};

/* Rows [from, to) of the inputs.  E208 for values beyond 1e150, E601. */
err points_make(const struct table_set *s, const struct column_scale *c, i64 from, i64 to, struct points *out);
void points_free(struct points *p); /* allowed after a failure, and on {0} */

/* Reference arithmetic: the squared distance in f64, summed in the order of the columns.  Every label is the lowest index of
 * least points_distance. */
static inline f64 points_distance(i32 d, const f64 *a, const f64 *b) {
    f64 sum = 0;
    for (i32 j = 0; j < d; j++) sum += (a[j] - b[j]) * (a[j] - b[j]);
    return sum;
}

/* The number of distinct points, counted up to `most`. */
err points_distinct(const struct points *p, i64 most, i64 *out);

#endif
