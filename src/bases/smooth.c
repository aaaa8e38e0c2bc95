/* smooth.c - simple exponential smoothing and the theta method (Assimakopoulos and Nikolopoulos 2000).
 *
 *     rows before the origin, gaps filled --take out the season--> level by smoothing + half of the straight line's slope
 *                                                                     --put the season back--> forecast
 *
 * The season is the classical one: mean distance of each phase from the centred moving average.
 * Everything is worked out afresh for each origin from at most BASE_LOOK rows, so no state can look ahead. */
#include <math.h>

#include "bases/linear.h"

enum { SEASON_MAX = 1024 };

struct past {
    i32 n;
    i64 first; /* row of z[0] */
    f64 z[BASE_LOOK];
};

/* The last rows before origin with gaps filled by the last observed value; leading gaps are left out. */
static void gather(const struct series *s, i32 col, i64 origin, struct past *p) {
    const f32 *x = series_col(s, col);
    const i64 known = series_known(s, col, origin);
    i64 first = lmax(0, origin - BASE_LOOK);
    while (first < origin && isnan(x[first])) first++;
    p->n = 0;
    p->first = first;
    for (i64 i = first; i < origin; i++) {
        bool held = p->n > 0 && (i >= known || isnan(x[i]));
        p->z[p->n] = held ? p->z[p->n - 1] : (f64)x[known > i ? i : known - 1];
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
    gather(s, col, origin, &past);
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

/* Seasonal differences of the m phases (row i has phase i % m), mean 0.  false = the past is shorter than two seasons. */
static bool season_index(const struct past *p, i32 m, f64 *index) {
    f64 sum[SEASON_MAX] = {0}, count[SEASON_MAX] = {0}, total = 0, window = 0;
    if (m < 2 || m > SEASON_MAX || p->n < 2 * m) return false;
    const i32 half = m / 2;
    for (i32 i = 0; i < 2 * half + 1; i++) window += p->z[i];
    for (i32 i = half; i + half < p->n; i++) {
        if (i > half) window += p->z[i + half] - p->z[i - half - 1];
        f64 around = m % 2 ? window : window - 0.5 * (p->z[i - half] + p->z[i + half]);
        sum[i % m] += p->z[i] - around / m;
        count[i % m] += 1;
    }
    for (i32 k = 0; k < m; k++) {
        if (count[k] == 0) return false;
        index[k] = sum[k] / count[k];
        total += index[k];
    }
    for (i32 k = 0; k < m; k++) index[k] -= total / m;
    return true;
}

f64 smooth_error(const struct series *s, i32 col, i64 rows, i32 season, f64 alpha) {
    struct past past;
    f64 index[SEASON_MAX], sum = 0;
    gather(s, col, rows, &past);
    if (!past.n) return 0;
    const bool seasonal = season_index(&past, season, index);
    for (i32 i = 0; seasonal && i < past.n; i++) past.z[i] -= index[i % season];
    f64 level = past.z[0];
    for (i32 i = 1; i < past.n; i++) {
        f64 d = past.z[i] - level;
        if (!series_filled(s, col, past.first + i)) sum += d * d;
        level += alpha * d;
    }
    return sum;
}

void rule_theta(const struct base_part *p, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    struct past past;
    f64 index[SEASON_MAX];
    const i32 m = p->season;
    gather(s, col, origin, &past);
    if (!past.n) return;
    const bool seasonal = season_index(&past, m, index);
    for (i32 i = 0; seasonal && i < past.n; i++) past.z[i] -= index[i % m];
    const f64 level = smooth(&past, p->alpha), b = slope(&past);
    const f64 head = (1 - pow(1 - p->alpha, past.n)) / p->alpha;
    for (i32 h = 0; h < H; h++) {
        f64 v = level + 0.5 * b * (h + head) + (seasonal ? index[(past.n + h) % m] : 0);
        out[h] += (f32)(p->weight * v);
    }
}
