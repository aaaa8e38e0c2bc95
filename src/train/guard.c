/* guard.c - see guard.h. */
#include "train/guard.h"

#include <math.h>

/* mean and standard deviation (n - 1) in one pass over differences that are small against neither (Welford). */
struct spread {
    f64 n, mean, square;
};

static void spread_add(struct spread *s, f64 v) {
    f64 d = v - s->mean;
    s->n += 1;
    s->mean += d / s->n;
    s->square += d * (v - s->mean);
}

static f64 deviation(const struct spread *s) { return s->n > 1 ? sqrt(s->square / (s->n - 1)) : 0; }

static bool scored(f64 a, f64 b) { return isfinite(a) && isfinite(b); }

/* t of a mean difference with standard error se; no spread at all decides by the sign. */
static f64 t_of(f64 mean, f64 se) {
    const f64 sure = 1e6;
    if (mean == 0) return 0;
    return se > 0 ? dmax(-sure, dmin(sure, mean / se)) : mean > 0 ? sure : -sure;
}

/* The normal deviate that is as rare as t of n blocks: a few blocks may agree by chance (Wallace 1959). */
static f64 normal_of(f64 t, i32 n) {
    const f64 free = n - 1;
    return t > 0 ? (8 * free + 1) / (8 * free + 3) * sqrt(free * log1p(t * t / free)) : t;
}

void guard_weigh(const f64 *base, const f64 *both, i32 n, i32 block, i32 least, struct guard *out) {
    struct spread single = {0}, blocks = {0}, part = {0};
    *out = (struct guard){.why = "no validation origin could be scored"};
    bool broken = false;
    for (i32 i = 0; i < n; i++) {
        broken = broken || (isfinite(base[i]) && !isfinite(both[i]));
        if (!scored(base[i], both[i])) continue;
        out->norigin++;
        out->loss_base += base[i];
        out->loss_both += both[i];
        spread_add(&single, base[i] - both[i]);
    }
    if (!out->norigin) return;
    out->loss_base /= out->norigin;
    out->loss_both /= out->norigin;
    out->nblock = imax(1, out->norigin / imax(1, block));
    i32 seen = 0, at = 0; /* the origins left over at the end join the last block */
    for (i32 i = 0; i < n; i++) {
        if (!scored(base[i], both[i])) continue;
        spread_add(&part, base[i] - both[i]);
        seen++;
        bool last_block = at == out->nblock - 1;
        if (last_block ? seen == out->norigin : seen == (at + 1) * imax(1, block)) {
            spread_add(&blocks, part.mean);
            part = (struct spread){0};
            at++;
        }
    }
    if (broken) {
        out->why = "the correction is not finite";
        return;
    }
    if (out->nblock < least || out->norigin < 3) {
        out->why = out->nblock < least ? "too few validation blocks to tell" : "too few validation origins to tell";
        return;
    }
    if (out->nblock >= GUARD_BLOCKS) out->t = normal_of(t_of(blocks.mean, deviation(&blocks) / sqrt(out->nblock)), out->nblock);
    else out->t = t_of(single.mean, deviation(&single) / sqrt(out->nblock));
    f64 u = out->t > 0 ? out->t * out->t : 0;
    const f64 most = out->nblock >= GUARD_BLOCKS ? 1 : 1 - exp2(-out->nblock);
    out->a = most * u / (1 + u);
    out->why = out->t <= 0 ? "no gain on validation" : out->t < 1 ? "a gain within the noise" : "a gain beyond the noise";
}
