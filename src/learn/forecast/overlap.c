/* overlap.c - see overlap.h. */
#include "learn/forecast/overlap.h"

#include <math.h>

#include "base/mem.h"

static const f64 least_rho = 0.05, most_size = 3; /* an error counts as three times the usual size at most */
enum { LEAST_PAIRS = 5 };

err overlap_new(i32 horizon, i64 n, i64 border, i64 stride, struct overlap *o) {
    *o = (struct overlap){.horizon = horizon, .n = n, .border = border};
    o->lags = lmax(0, lmin(n - 1, lmax(1, 2 * (i64)horizon / stride)));
    NEW(o->product, OVERLAP_PARTS * (o->lags + 1));
    NEW(o->pairs, OVERLAP_PARTS * (o->lags + 1));
    return 0;
}

void overlap_free(struct overlap *o) {
    mem_free(o->product);
    mem_free(o->pairs);
}

static i32 part_of(const struct overlap *o, i32 step) { return (i32)((i64)step * OVERLAP_PARTS / o->horizon); }

/* Root mean square of the errors of a part of the horizon. */
static f64 size_of(const struct overlap *o, const f32 *r, i32 part) {
    f64 sum = 0, n = 0;
    for (i32 k = 0; k < o->horizon; k++)
        for (i64 i = 0; i < o->n && part_of(o, k) == part; i++) {
            const f64 e = (f64)r[k * o->n + i];
            if (!isnan(e)) sum += e * e, n++;
        }
    return n > 0 ? sqrt(sum / n) : 0;
}

static f64 limited(f32 e, f64 size) { return dmax(-most_size, dmin(most_size, (f64)e / size)); }

static void add_step(const struct overlap *o, const f32 *r, f64 size, f64 *product, f64 *pairs) {
    for (i64 lag = 0; lag <= o->lags; lag++)
        for (i64 i = 0; i + lag < o->n; i++) {
            if (isnan(r[i]) || isnan(r[i + lag]) || (i < o->border && i + lag >= o->border)) continue;
            product[lag] += limited(r[i], size) * limited(r[i + lag], size);
            pairs[lag] += 1;
        }
}

void overlap_add(struct overlap *o, const f32 *r) {
    i32 part = -1;
    f64 size = 0;
    for (i32 k = 0; k < o->horizon; k++) {
        if (part != part_of(o, k)) size = size_of(o, r, part = part_of(o, k));
        const i64 at = part * (o->lags + 1);
        if (size > 0) add_step(o, r + k * o->n, size, o->product + at, o->pairs + at);
    }
}

f64 overlap_time(const struct overlap *o, i32 step) {
    const i64 at = part_of(o, step) * (o->lags + 1);
    const f64 *product = o->product + at, *pairs = o->pairs + at;
    f64 time = 1;
    for (i64 lag = 1; lag <= o->lags && pairs[lag] >= LEAST_PAIRS && product[0] > 0; lag++) {
        const f64 rho = product[lag] / pairs[lag] / (product[0] / pairs[0]);
        if (rho <= least_rho) break;
        time += 2 * rho;
    }
    return time;
}
