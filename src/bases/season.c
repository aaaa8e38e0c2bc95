/* season.c - detects the season of the rows by the autocorrelation of the detrended series. */
#include <math.h>

#include "bases/linear.h"

enum { SEASON_LAST = 1000 };

/* The last rows before the end of training minus their linear trend; gaps are NaN. */
struct detrended {
    i64 n;
    f64 square; /* mean square */
    f64 *d;
};

static void detrend(const f32 *x, struct detrended *t) {
    f64 c = 0, mi = 0, mx = 0, up = 0, down = 0;
    t->square = 0;
    for (i64 i = 0; i < t->n; i++)
        if (!isnan(x[i])) c += 1, mi += (f64)i, mx += (f64)x[i];
    if (c > 0) mi /= c, mx /= c;
    for (i64 i = 0; i < t->n; i++) {
        if (isnan(x[i])) continue;
        up += ((f64)i - mi) * ((f64)x[i] - mx);
        down += ((f64)i - mi) * ((f64)i - mi);
    }
    for (i64 i = 0; i < t->n; i++) {
        t->d[i] = (f64)x[i] - mx - (down > 0 ? up / down : 0) * ((f64)i - mi);
        if (!isnan(t->d[i])) t->square += t->d[i] * t->d[i] / c;
    }
}

static f64 autocorrelation(const struct detrended *t, i64 lag) {
    f64 sum = 0, pairs = 0;
    for (i64 i = lag; i < t->n; i++) {
        f64 v = t->d[i] * t->d[i - lag];
        if (!isnan(v)) sum += v, pairs += 1;
    }
    /* long lags have few pairs: weigh them less */
    return pairs > 0 && t->square > 0 ? sum / pairs / t->square * (f64)(t->n - lag) / (f64)t->n : 0;
}

/* Replaces rows by differences of neighbouring rows, which removes a drift. */
static void difference(struct detrended *t) {
    f64 sum = 0;
    i64 pairs = 0;
    for (i64 i = t->n - 1; i >= 0; i--) {
        t->d[i] = i > 0 ? t->d[i] - t->d[i - 1] : (f64)NAN;
        if (!isnan(t->d[i])) sum += t->d[i] * t->d[i], pairs++;
    }
    t->square = pairs ? sum / (f64)pairs : 0;
}

/* Adds 1/ncol of the autocorrelations at lags 0..lags to acf, of rows or of their differences. */
static err add_autocorrelations(const struct series *s, i32 col, i64 from, i64 to, bool differences, i64 lags, f64 share,
                                f64 *acf) {
    struct detrended t = {.n = series_known(s, col, to) - from};
    if (t.n < 1) return 0;
    TRY(mem_new((void **)&t.d, t.n, sizeof(f64)));
    detrend(series_col(s, col) + from, &t);
    if (differences) difference(&t);
    for (i64 k = 0; k <= lags; k++) acf[k] += share * autocorrelation(&t, k);
    mem_free(t.d);
    return 0;
}

/* The lag of the highest peak that stands out from the lowest point before it by more than noise does, or 0. */
static i32 highest_peak(const f64 *acf, i64 lags, f64 noise) {
    f64 lowest = 1, best = noise;
    i32 peak = 0;
    for (i64 k = 2; k < lags; k++) {
        lowest = dmin(lowest, acf[k - 1]);
        bool is_peak = acf[k] > acf[k - 1] && acf[k] >= acf[k + 1];
        if (is_peak && acf[k] > best && acf[k] - lowest > noise) best = acf[k], peak = (i32)k;
    }
    return peak;
}

/* True if the autocorrelation at lag m is significant (the test of the theta method before it removes a season). */
static bool seasonal(const f64 *acf, i64 lags, i64 rows, i32 m) {
    f64 sum = 1;
    if (m < 2 || m > lags || rows < 3 * (i64)m) return false;
    for (i32 k = 1; k < m; k++) sum += 2 * acf[k] * acf[k];
    return acf[m] > 1.645 * sqrt(sum / (f64)rows);
}

/* True if the autocorrelation near twice the lag is a peak, too: chance peaks of drifting rows seldom come twice. */
static bool confirmed(const f64 *acf, i64 lags, i32 m, f64 clear) {
    const i64 near = lmax(1, m / 4), from = 2 * (i64)m - near, to = 2 * (i64)m + near;
    f64 top = -1, low = 1;
    if (to > lags) return false;
    for (i64 k = m; k < from; k++) low = dmin(low, acf[k]);
    for (i64 k = from; k <= to; k++) top = dmax(top, acf[k]);
    return acf[m] > clear && top > clear / 2 && top - low > clear;
}

/* Mean autocorrelations of the last rows before row `rows`: *lags of them and lag 0; NULL = too few rows. */
static err autocorrelations(const struct series *s, i32 ncol, i64 rows, bool differences, i64 *lags, f64 **acf) {
    const i64 from = lmax(0, rows - BASE_LOOK);
    err e = 0;
    *acf = NULL;
    *lags = lmin((rows - from) / 3, SEASON_LAST);
    if (*lags < 3) return 0;
    TRY(mem_new((void **)acf, *lags + 1, sizeof **acf));
    for (i32 c = 0; c < ncol && e >= 0; c++) e = add_autocorrelations(s, c, from, rows, differences, *lags, 1.0 / ncol, *acf);
    if (e < 0) mem_free(*acf);
    return e;
}

err season_scan(const struct series *s, i32 ncol, i64 rows, i32 season, i32 *peak, bool *strong) {
    const i64 n = lmin(rows, BASE_LOOK);
    i64 lags;
    f64 *acf;
    *peak = 0;
    *strong = false;
    TRY(autocorrelations(s, ncol, rows, false, &lags, &acf));
    if (!acf) return 0;
    *peak = highest_peak(acf, lags, dmax(0.1, 2 / sqrt((f64)n)));
    *strong = seasonal(acf, lags, n, season);
    mem_free(acf);
    return 0;
}

err season_find(const struct series *s, i32 ncol, i64 rows, i32 *season) {
    *season = 0;
    for (i32 differences = 0; differences < 2 && *season == 0; differences++) {
        /* drifting rows correlate over long lags by chance, their differences do not */
        const f64 clear = differences ? dmax(0.1, 5 / sqrt((f64)lmin(rows, BASE_LOOK))) : 0.3;
        i64 lags;
        f64 *acf;
        TRY(autocorrelations(s, ncol, rows, differences, &lags, &acf));
        if (!acf) return 0;
        const i32 peak = highest_peak(acf, lags, clear / 2);
        if (peak > 1 && confirmed(acf, lags, peak, clear)) *season = peak;
        mem_free(acf);
    }
    return 0;
}
