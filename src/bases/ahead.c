/* ahead.c - what a ridge sees of the columns that are known ahead, such as forecasts of the weather, prices or holidays.
 *
 *     rows     o-back ........... o ............ o+H      back: two days of hours (two seasons), not more than the lags
 *     inputs   [ g rows ][ g rows ] ... [ g rows ]        the mean of each group; one row each, unless that makes too many inputs
 */
#include "bases/linear.h"

enum { AHEAD_SEASONS = 2 };

static i32 groups(const struct ahead_inputs *a, i32 H) { return a->ncol > 0 ? ceil_div(a->back + H, a->group) : 0; }

i32 ahead_count(const struct ahead_inputs *a, i32 H) { return a->ncol * groups(a, H); }

struct ahead_inputs ahead_of(const struct series *s, i32 L, i32 H) {
    struct ahead_inputs a = {
        .ncol = s->nknown - s->nstatic, .back = imin(L, AHEAD_SEASONS * imax(1, s->freq.season)), .group = 1};
    if (a.ncol < 1 || a.ncol > AHEAD_MOST) return (struct ahead_inputs){0};
    a.group = ceil_div(a.back + H, AHEAD_MOST / a.ncol);
    return a;
}

/* Mean of the observed rows of [from, to) inside of the series. */
static f32 mean_of(const struct series *s, const f32 *x, i64 from, i64 to) {
    f64 sum = 0, n = 0;
    for (i64 i = lmax(0, from); i < lmin(to, s->nrow); i++)
        if (!isnan(x[i])) sum += (f64)x[i], n += 1;
    return n > 0 ? (f32)(sum / n) : 0.f;
}

void ahead_take(const struct ahead_inputs *a, const struct series *s, i32 col, i64 origin, i32 H, f32 *u) {
    const i32 n = groups(a, H);
    const i64 first = origin - a->back, end = origin + H;
    for (i32 c = 0; c < a->ncol; c++) {
        const f32 *x = series_col(s, series_ahead_of(s, c, col));
        for (i32 g = 0; g < n; g++) {
            const i64 from = first + (i64)g * a->group;
            *u++ = mean_of(s, x, from, lmin(from + a->group, end));
        }
    }
}
