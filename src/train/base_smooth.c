/* base_smooth.c - simple exponential smoothing and the theta method (Assimakopoulos and Nikolopoulos 2000).
 *
 *     rows before the origin, gaps filled --take out the season--> level by smoothing + half of the straight line's slope
 *                                                                     --put the season back--> forecast
 *
 * The season is the classical one: mean distance of each phase from the centred moving average, as difference or as factor.
 * Everything is worked out afresh for each origin from at most BASE_LOOK rows, so no state can look ahead. */
#include <math.h>

#include "train/base.h"

enum { SEASON_MAX = 1024 };

struct past {
    i32 n;
    f64 z[BASE_LOOK];
};

/* The last rows before origin with gaps filled by the last observed value; leading gaps are left out. */
static void gather(const f32 *x, i64 origin, f64 zero, struct past *p) {
    i64 first = lmax(0, origin - BASE_LOOK);
    while (first < origin && isnan(x[first])) first++;
    p->n = 0;
    for (i64 i = first; i < origin; i++) {
        p->z[p->n] = isnan(x[i]) ? p->z[p->n - 1] : (f64)x[i] + zero;
        p->n++;
    }
}

static f64 smooth(const struct past *p, f64 alpha) {
    f64 level = p->z[0];
    for (i32 i = 1; i < p->n; i++) level += alpha * (p->z[i] - level);
    return level;
}

void rule_ses(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    struct past past;
    gather(series_col(s, col), origin, 0, &past);
    f64 v = past.n ? smooth(&past, p->alpha) : 0;
    for (i32 h = 0; h < H; h++) out[h] += (f32)(p->weight * v);
}

static f64 slope(const struct past *p) {
    if (p->n < 2) return 0;
    f64 mid = (p->n - 1) / 2.0, mean = 0, up = 0, down = 0;
    for (i32 i = 0; i < p->n; i++) mean += p->z[i];
    mean /= p->n;
    for (i32 i = 0; i < p->n; i++) {
        up += (i - mid) * (p->z[i] - mean);
        down += (i - mid) * (i - mid);
    }
    return up / down;
}

/* Seasonal indices of the m phases (row i has phase i % m): differences with mean 0, or factors with mean 1.  false = the past is
 * too short, or not positive where factors are wanted. */
static bool season_index(const struct past *p, i32 m, bool times, f64 *index) {
    f64 sum[SEASON_MAX] = {0}, count[SEASON_MAX] = {0}, total = 0, window = 0;
    if (m < 2 || m > SEASON_MAX || p->n < 2 * m) return false;
    for (i32 i = 0; times && i < p->n; i++)
        if (p->z[i] <= 0) return false;
    const i32 half = m / 2;
    for (i32 i = 0; i < 2 * half + 1; i++) window += p->z[i];
    for (i32 i = half; i + half < p->n; i++) {
        if (i > half) window += p->z[i + half] - p->z[i - half - 1];
        f64 around = m % 2 ? window : window - 0.5 * (p->z[i - half] + p->z[i + half]);
        f64 trend = around / m;
        sum[i % m] += times ? p->z[i] / trend : p->z[i] - trend;
        count[i % m] += 1;
    }
    for (i32 k = 0; k < m; k++) {
        if (count[k] == 0) return false;
        index[k] = sum[k] / count[k];
        total += index[k];
    }
    for (i32 k = 0; k < m; k++) index[k] = times ? index[k] * m / total : index[k] - total / m;
    return true;
}

static void theta(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out, bool times) {
    struct past past;
    f64 index[SEASON_MAX];
    const f64 zero = times && s->mean && s->dev ? s->mean[col] / s->dev[col] : 0;
    const i32 m = p->season;
    gather(series_col(s, col), origin, zero, &past);
    if (!past.n) return;
    const bool seasonal = season_index(&past, m, times, index);
    for (i32 i = 0; seasonal && i < past.n; i++) past.z[i] = times ? past.z[i] / index[i % m] : past.z[i] - index[i % m];
    const f64 level = smooth(&past, p->alpha), b = slope(&past);
    const f64 head = (1 - pow(1 - p->alpha, past.n)) / p->alpha;
    for (i32 h = 0; h < H; h++) {
        f64 v = level + 0.5 * b * (h + head);
        f64 at = seasonal ? index[(past.n + h) % m] : 0;
        if (seasonal) v = times ? v * at : v + at;
        out[h] += (f32)(p->weight * (v - zero));
    }
}

void rule_theta(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    theta(p, s, col, origin, H, out, false);
}

void rule_thetax(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    theta(p, s, col, origin, H, out, true);
}
