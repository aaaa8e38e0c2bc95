/* choice.c - which trial the search recommends, and which options mattered; see search.h. */
#include <stdio.h>

#include "base/mem.h"
#include "search/search.h"
#include "train/guard.h"

/* ------------------------------------------------------------------ the choice ---------------------------------------------- */

/* The gain in standard errors, as the guard of forecasts counts it. */
static f64 z_of(const struct ladder *l, const f64 *diff) { /* 0 where there are too few blocks to tell */
    f64 none[LADDER_FITS * LADDER_PARTS] = {0};
    struct guard g;
    const i32 groups = l->nfit - ladder_first(l, l->nlevel - 1);
    guard_weigh(none, diff, groups * l->nparts, l->block, GUARD_BLOCKS, &g);
    return g.t;
}

/* The best of n equally good trials stands up to root(2 log n) standard errors above the defaults.  Those that were left behind
 * early were candidates, too. */
static f64 needed_of(const struct search *s) {
    i32 n = 0;
    for (i32 i = 1; i < s->n; i++) n += !s->trial[i].failed && trial_level(s, i) >= 0;
    return dmax(1, sqrt(2 * log((f64)imax(1, n))));
}

static void explain(const struct search *s, struct search_choice *c) {
    if (c->best == 0)
        snprintf(c->why, sizeof c->why, c->full == 0 ? "no other trial was good enough to finish every fit"
                                                     : "no other trial is better on validation");
    else if (c->trial == 0)
        snprintf(c->why, sizeof c->why, "trial %d is better by %.1f %%, %.1f standard errors; the best of so many may be that by "
                 "chance (%.1f)", c->best, 100 * c->gain, c->z, c->needed);
    else
        snprintf(c->why, sizeof c->why, "better than the defaults by %.1f %% on validation, %.1f standard errors over %d parts",
                 100 * c->gain, c->z, s->ladder.nparts * (s->ladder.nfit - ladder_first(&s->ladder, s->ladder.nlevel - 1)));
}

void search_choose(const struct search *s, struct search_choice *out) {
    const i32 last = s->ladder.nlevel - 1;
    *out = (struct search_choice){.needed = 1};
    for (i32 i = 1; i < s->n; i++) out->full += !s->trial[i].failed && trial_level(s, i) == last;
    out->needed = needed_of(s);
    for (i32 i = 1; i < s->n; i++) {
        f64 diff[LADDER_FITS * LADDER_PARTS];
        if (s->trial[i].failed || trial_level(s, i) != last) continue;
        const f64 score = trial_score(s, i, last, diff);
        const f64 gain = 1 - exp(score), z = z_of(&s->ladder, diff);
        if (!(gain > 0)) continue;
        const bool sure = z >= out->needed, was_sure = out->trial > 0;
        if (out->best > 0 && (was_sure > sure || (was_sure == sure && gain <= out->gain))) continue;
        out->best = i;
        out->trial = sure ? i : 0;
        out->gain = gain;
        out->z = z;
    }
    explain(s, out);
}

/* ------------------------------------------------------------------ what mattered ------------------------------------------- */

enum { BINS = SPACE_WORDS + 1 };

/* The defaults' value is a class of its own; numbers fall into three. */
static i32 bin_of(const struct dim *d, f64 v) {
    if (isnan(v)) return 0;
    if (d->kind == DIM_CHOICE) return 1 + imin(BINS - 2, (i32)v);
    const f64 place = log(v / d->least) / log(d->most / d->least);
    return 1 + (place < 1. / 3 ? 0 : place < 2. / 3 ? 1 : 2);
}

/* Omega squared: the share of the variance between classes, less what chance puts there. */
static f64 explained(const struct search *s, i32 dim, const f64 *score) {
    f64 sum[BINS] = {0}, count[BINS] = {0}, all = 0, square = 0, between = 0, n = 0, classes = 0;
    for (i32 i = 0; i < s->n; i++) {
        if (isnan(score[i])) continue;
        const struct point *at = &s->trial[i].at;
        const i32 b = bin_of(&s->space.dim[dim], point_acts(&s->space, at, dim) ? at->v[dim] : (f64)NAN);
        sum[b] += score[i];
        count[b]++;
        all += score[i];
        square += score[i] * score[i];
        n++;
    }
    const f64 total = square - all * all / dmax(1, n);
    for (i32 b = 0; b < BINS; b++)
        if (count[b] > 0) between += sum[b] * sum[b] / count[b], classes++;
    between -= all * all / dmax(1, n);
    if (classes < 2 || n <= classes || !(total > 0)) return 0;
    const f64 noise = (total - between) / (n - classes);
    return dmax(0, (between - (classes - 1) * noise) / (total + noise));
}

void search_importance(const struct search *s, f64 *share) {
    f64 all = 0, *score = mem_alloc(sizeof *score * (size_t)(s->n + 1));
    for (i32 d = 0; d < s->space.n; d++) share[d] = 0;
    if (!score) return;
    for (i32 i = 0; i < s->n; i++) {
        score[i] = s->trial[i].failed ? (f64)NAN : trial_score(s, i, 0, NULL);
        if (score[i] > 1) score[i] = 1; /* one that got nowhere must not explain everything */
    }
    for (i32 d = 0; d < s->space.n; d++) all += share[d] = explained(s, d, score);
    for (i32 d = 0; d < s->space.n && all > 1; d++) share[d] /= all;
    mem_free(score);
}
