/* paths.c - ranks of errors, and samples that follow them (paths.h). */
#include "learn/forecast/paths.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/special.h"

enum { PATHS = 100, PATHS_LEAST = 8, FLOATS_MOST = 1 << 18, FEW = 20 };

struct path_shape paths_shape(const struct forecast_spec *spec, i32 ntarget) {
    const i32 n = imin(PATHS, imax(PATHS_LEAST, FLOATS_MOST / spec->horizon));
    const i32 ncol = (i64)n * spec->horizon * ntarget <= FLOATS_MOST ? ntarget : 1;
    return (struct path_shape){n, ncol, (i64)n * ncol * spec->horizon};
}

const f32 *forecast_paths(const struct forecaster *f) {
    const f32 *u = f->spread ? f->spread + forecast_quantiles(f, f->schema.ntarget) + BAND_FACTS : NULL;
    return f->spec.nband > 0 && u && !isnan(u[0]) ? u : NULL;
}

i64 forecast_spread_floats(const struct forecaster *f, i32 ntarget) {
    return forecast_quantiles(f, ntarget) + BAND_FACTS + paths_shape(&f->spec, ntarget).floats;
}

/* Share of the values of v[n] below x; equal ones count half. */
static f64 rank_of(const f32 *v, i64 n, f32 x) {
    f64 below = 0, all = 0;
    for (i64 i = 0; i < n; i++) {
        all += !isnan(v[i]);
        below += v[i] < x ? 1 : v[i] == x ? 0.5 : 0;
    }
    return below / all;
}

void paths_rank(const f32 *r, i32 horizon, i64 n, i64 at, f32 *u) {
    for (i64 k = 0; k < horizon; k++) {
        const f32 x = r[k * n + at];
        if (isnan(x))
            u[k] = k ? u[k - 1] : 0.5F;
        else
            u[k] = (f32)(n >= FEW ? rank_of(r + k * n, n, x) : rank_of(r, horizon * n, x)); /* few windows: of all steps */
    }
}

/* ------------------------------------------------------------------ drawing ------------------------------------------------- */

struct placed {
    f64 rank;
    i32 sample;
};

static int by_rank(const void *a, const void *b) {
    const struct placed *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : x->sample - y->sample;
}

/* A value at a level between the quantiles of a step: linear in the scores of a normal distribution, beyond the outer quantiles
 * as between the two next to them.  A normal distribution is met exactly. */
static f64 value_at(const struct forecast_spec *spec, const f64 *score, const f64 *band, f64 z) {
    i32 q = 1;
    while (q + 1 < spec->nband && z > score[q]) q++;
    return band[q - 1] + (band[q] - band[q - 1]) * (z - score[q - 1]) / (score[q] - score[q - 1]);
}

static f64 counted(const struct forecaster *f, f64 v) {
    return forecast_counts(&f->spec) ? head_whole(v) : v;
}

struct drawing {
    struct path_shape shape;
    const f32 *u;
    i32 own, col, n; /* own: the series of the templates */
    u64 seed;
};

static f64 uniform(const struct drawing *d, u32 what, i32 i) {
    return (f64)rng_uniform(d->seed, RNG_PATHS, what, (u64)d->col << 32 | (u32)i);
}

/* Ranks of the samples at step k: that of the template, moved at random within its share. */
static void place(const struct drawing *d, i32 k, i32 horizon, struct placed *p) {
    const i32 m = d->shape.n;
    const u32 apart = d->shape.ncol > 1 ? 0 : (u32)d->col << 8; /* series without templates of their own do not go together */
    for (i32 i = 0; i < d->n; i++) {
        const i64 t = rng_shuffle(d->seed, (u32)(i / m) + apart, m, i % m);
        const f64 rank = (f64)d->u[(t * d->shape.ncol + d->own) * horizon + k];
        p[i] = (struct placed){rank + (uniform(d, (u32)k, i) - 0.5) / m, i};
    }
    qsort(p, (size_t)d->n, sizeof *p, by_rank);
}

err paths_draw(const struct forecaster *f, i32 own, i32 col, const f64 *band, i64 seed, i32 n, f64 *out) {
    const struct forecast_spec *spec = &f->spec;
    struct drawing d = {
        .shape = paths_shape(spec, f->schema.ntarget), .u = forecast_paths(f), .col = col, .n = n, .seed = (u64)seed};
    f64 score[OPTION_NUMS];
    struct placed *p;
    NEW(p, n);
    d.own = d.shape.ncol > 1 ? imax(0, own) : 0;
    for (i32 q = 0; q < spec->nband; q++) score[q] = special_normal_quantile(spec->quantiles.v[q]);
    for (i32 k = 0; k < spec->horizon; k++) {
        place(&d, k, spec->horizon, p);
        for (i32 i = 0; i < n; i++) { /* the level lies in the sample's share, never at 0 */
            const f64 within = uniform(&d, (u32)k | 1u << 31, i) + 0x1p-25;
            const f64 v = value_at(spec, score, band + (i64)k * spec->nband, special_normal_quantile((i + within) / n));
            out[(i64)k * n + p[i].sample] = counted(f, v);
        }
    }
    mem_free(p);
    return 0;
}
