/* naive.c - the rules that need no fitting: last value, seasons, drift, mean.
 *
 *      ... s2 | s1 |      season: s1 again      growth: s1 + (mean s1 - mean s2)      average: (s1 + s2 + s3) / 3
 *                  ^ origin
 * A cell that --gaps interpolate made up counts like any other once the end of its line was seen (rows before `known`).
 * The gain is taken over the places of a season that both seasons have seen.
 * Beyond one season the pattern repeats, with the gain added (or multiplied) once more each time. */
#include <math.h>

#include "bases/base.h"

f32 last_seen(const f32 *x, i64 origin) {
    for (i64 i = origin - 1; i >= 0; i--)
        if (!isnan(x[i])) return x[i];
    return 0;
}

/* The value at the same phase of the nearest earlier season that has one; otherwise the last value. */
static f32 season_seen(const f32 *x, i64 origin, i64 known, i32 m, i32 h) {
    i64 i = origin - m + h % m;
    while (i >= 0 && (i >= known || isnan(x[i]))) i -= m;
    return i >= 0 ? x[i] : last_seen(x, known);
}

/* Mean of the observed rows of [from, to); NaN when there are none. */
static f64 mean_seen(const f32 *x, i64 from, i64 to) {
    f64 sum = 0, n = 0;
    for (i64 i = lmax(from, 0); i < to; i++) {
        if (isnan(x[i])) continue;
        sum += (f64)x[i];
        n += 1;
    }
    return n > 0 ? sum / n : NAN;
}

/* Means of the last two seasons over the phases that both have observed, so that half a year is not compared with a whole
 * one. Returns false if there are none. */
static bool two_seasons(const struct base_part *p, const struct series *s, i32 col, i64 origin, f64 *now, f64 *before) {
    const i64 seen = series_known(s, col, origin) - origin + p->season; /* of the last season */
    f64 n = 0;
    *now = *before = 0;
    const i64 begin = s->from ? s->from[col] : 0; /* rows before a series begins are not its seasons */
    if (origin - begin < 2 * (i64)p->season) return false;
    const f32 *last = series_col(s, col) + origin - p->season, *earlier = last - p->season;
    for (i64 i = 0; i < seen; i++) {
        if (isnan(last[i]) || isnan(earlier[i])) continue;
        *now += (f64)last[i];
        *before += (f64)earlier[i];
        n += 1;
    }
    if (n > 0) *now /= n, *before /= n;
    return n > 0;
}

static void add_flat(f32 *out, i32 H, f64 v) {
    for (i32 h = 0; h < H; h++) out[h] += (f32)v;
}

void rule_last(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    add_flat(out, H, p->weight * (f64)last_seen(series_col(s, col), series_known(s, col, origin)));
}

void rule_season(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    const f32 *x = series_col(s, col);
    const i64 known = series_known(s, col, origin);
    for (i32 h = 0; h < H; h++) out[h] += (f32)(p->weight * (f64)season_seen(x, origin, known, p->season, h));
}

void rule_growth(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    const f32 *x = series_col(s, col);
    const i32 m = p->season;
    const i64 known = series_known(s, col, origin);
    f64 now, before;
    const f64 gain = two_seasons(p, s, col, origin, &now, &before) ? now - before : 0;
    for (i32 h = 0; h < H; h++) {
        i32 seasons = h / m + 1;
        out[h] += (f32)(p->weight * ((f64)season_seen(x, origin, known, m, h) + gain * seasons));
    }
}

void rule_ratio(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    const f32 *x = series_col(s, col);
    const i32 m = p->season;
    const i64 known = series_known(s, col, origin);
    const f64 zero = s->mean && s->dev ? s->mean[col] / s->dev[col] : 0; /* x + zero is proportional to the original value */
    f64 gain = 1, now, before;
    if (two_seasons(p, s, col, origin, &now, &before) && now + zero > 0 && before + zero > 0)
        gain = dmin(dmax((now + zero) / (before + zero), 0.5), 2);
    f64 factor = 1;
    for (i32 h = 0; h < H; h++) {
        if (h % m == 0) factor *= gain;
        out[h] += (f32)(p->weight * (((f64)season_seen(x, origin, known, m, h) + zero) * factor - zero));
    }
}

void rule_average(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    const f32 *x = series_col(s, col);
    const i32 m = p->season;
    const i64 known = series_known(s, col, origin);
    for (i32 h = 0; h < H; h++) {
        f64 sum = 0, n = 0;
        for (i32 k = 1; k <= 3; k++) {
            i64 i = origin - (i64)k * m + h % m;
            if (i < 0 || i >= known || isnan(x[i])) continue;
            sum += (f64)x[i];
            n += 1;
        }
        out[h] += (f32)(p->weight * (n > 0 ? sum / n : (f64)season_seen(x, origin, known, m, h)));
    }
}

void rule_drift(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    const f32 *x = series_col(s, col);
    const i64 known = series_known(s, col, origin);
    i64 first = lmax(0, origin - BASE_LOOK), last = known - 1;
    while (first < known && isnan(x[first])) first++;
    while (last > first && isnan(x[last])) last--;
    f64 slope = last > first ? ((f64)x[last] - (f64)x[first]) / (f64)(last - first) : 0, level = (f64)last_seen(x, known);
    for (i32 h = 0; h < H; h++) out[h] += (f32)(p->weight * (level + slope * (f64)(origin + h - last)));
}

void rule_mean(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    const i64 known = series_known(s, col, origin);
    f64 mean = mean_seen(series_col(s, col), origin - BASE_LOOK, known);
    add_flat(out, H, p->weight * (isnan(mean) ? (f64)last_seen(series_col(s, col), known) : mean));
}
