/* series_scale.c - scales every column of a series, or of each series of a panel, by its rows of training.
 *
 *     own rows                      mean and deviation of a column
 *     a panel lends what they lack  no rows yet: mean and deviation; few rows: at least the usual deviation for their mean; an
 *                                   input that stayed the same: the deviation of the others, so that its first change has the
 *                                   size that it has there */
#include <math.h>

#include "base/mem.h"
#include "data/series_build.h"

enum { FEW_ROWS = 24 };

/* Mean and population standard deviation of the observed cells of rows [0, n), in the present units. */
static i64 moments(const struct series *s, i32 c, i64 n, f64 *mean, f64 *dev) {
    const f32 *v = series_col(s, c);
    f64 sum = 0, square = 0;
    i64 present = 0;
    n = lmin(n, s->nrow);
    for (i64 i = 0; i < n; i++)
        if (series_is_target(s, c, i)) sum += (f64)v[i], present++;
    *mean = present ? sum / (f64)present : 0;
    for (i64 i = 0; i < n; i++)
        if (series_is_target(s, c, i)) square += ((f64)v[i] - *mean) * ((f64)v[i] - *mean);
    *dev = present ? sqrt(square / (f64)present) : 0;
    if (*dev <= 1e-12 * fabs(*mean)) *dev = 0;
    return present;
}

/* Shifts and divides a column, which may have been scaled before, by a mean and a deviation in its present units. */
static void scale_column(struct series *s, i32 c, f64 mean, f64 dev) {
    f32 *v = s->v + (i64)c * s->nrow;
    for (i64 i = 0; !s->v_borrowed && i < s->nrow; i++) v[i] = (f32)(((f64)v[i] - mean) / dev);
    s->mean[c] = s->mean[c] + s->dev[c] * mean;
    s->dev[c] *= dev;
}

/* The same by a mean and a deviation in original units. */
static void scale_raw(struct series *s, i32 c, f64 mean, f64 dev) {
    scale_column(s, c, (mean - s->mean[c]) / s->dev[c], dev / s->dev[c]);
}

/* ------------------------------------------------------------------ panels -------------------------------------------------- */

struct scale_common series_common(const f64 *mean, const f64 *dev, i32 n) {
    struct scale_common all = {0};
    f64 means = 0, devs = 0, ratios = 0;
    for (i32 k = 0; k < n; k++) {
        if (isnan(mean[k])) continue;
        all.mean += mean[k], means++;
        if (!(dev[k] > 0)) continue;
        all.dev += dev[k], devs++;
        if (fabs(mean[k]) > 0) all.ratio += dmin(1, dev[k] / fabs(mean[k])), ratios++;
    }
    all.mean = means > 0 ? all.mean / means : 0;
    all.dev = devs > 0 ? all.dev / devs : 1;
    all.ratio = ratios > 0 ? all.ratio / ratios : 0;
    return all;
}

void series_scale_like(struct series *s, i32 c, i64 rows, const struct scale_common *all) {
    f64 mean, dev;
    const i64 present = moments(s, c, rows, &mean, &dev);
    mean = s->mean[c] + s->dev[c] * mean;
    dev *= s->dev[c];
    if (present == 0) mean = all->mean, dev = all->dev;
    else if (c < s->ntarget && present < FEW_ROWS) dev = dmax(dev, all->ratio * fabs(mean));
    else if (c >= s->ntarget && dev == 0) dev = all->dev;
    scale_raw(s, c, mean, dev > 0 ? dev : 1);
}

/* One column of each series, [c0, c0 + ntarget). */
static err scale_block(struct series *s, i32 c0, i64 rows) {
    f64 *mean, *dev;
    NEW(mean, 2 * (i64)s->ntarget);
    dev = mean + s->ntarget;
    for (i32 k = 0; k < s->ntarget; k++) {
        const i32 c = c0 + k;
        const i64 present = moments(s, c, rows, &mean[k], &dev[k]);
        mean[k] = present ? s->mean[c] + s->dev[c] * mean[k] : (f64)NAN;
        dev[k] *= s->dev[c];
    }
    const struct scale_common all = series_common(mean, dev, s->ntarget);
    for (i32 k = 0; k < s->ntarget; k++) series_scale_like(s, c0 + k, rows, &all);
    mem_free(mean);
    return 0;
}

/* A covariate that is constant in each series is scaled by its values over the series. */
static void scale_static(struct series *s, i32 k) {
    const i32 c0 = series_ahead_of(s, k, 0);
    f64 sum = 0, square = 0, n = 0;
    for (i32 c = c0; c < c0 + s->ntarget; c++) {
        f64 mean, dev;
        if (moments(s, c, s->nrow, &mean, &dev) == 0) continue;
        const f64 raw = s->mean[c] + s->dev[c] * mean;
        sum += raw, square += raw * raw, n++;
    }
    const f64 mean = n > 0 ? sum / n : 0, dev = n > 0 ? sqrt(dmax(0, square / n - mean * mean)) : 0;
    for (i32 c = c0; c < c0 + s->ntarget; c++) scale_raw(s, c, mean, dev > 1e-12 * fabs(mean) ? dev : 1);
}

static err scale_panel(struct series *s, i64 rows) {
    const i32 statics = s->nknown - s->nstatic;
    for (i32 k = -1; k < s->npast + statics; k++) TRY(scale_block(s, k < 0 ? 0 : series_past_of(s, k, 0), rows));
    for (i32 k = statics; k < s->nknown; k++) scale_static(s, k);
    return 0;
}

err series_scale(struct series *s, i64 train_rows) {
    const i64 n = lmin(lmax(train_rows, 0), s->nrow);
    if (s->panel) return scale_panel(s, n);
    for (i32 c = 0; c < s->ncol; c++) {
        f64 mean, dev;
        const i64 present = moments(s, c, n, &mean, &dev);
        if (dev == 0 && c < s->ntarget)
            return FAIL_AT(E212, NULL, "another --target, or more training rows (a smaller --validation and --test)",
                           present ? "target \"%s\" is the same in all %lld training rows"
                                   : "target \"%s\" is missing in all %lld training rows",
                           s->name[c], (long long)n);
        scale_column(s, c, mean, dev > 0 ? dev : 1);
    }
    return 0;
}
