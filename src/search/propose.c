/* propose.c - which point to try next: the values of space.def alone, then evolution of the best trials.
 *
 *     one in four    new: one to three values drawn anew, all others as in the defaults
 *     the others     a parent of the best trials, often mixed with a second one, then one to three values drawn, moved or
 *                    removed */
#include <stdlib.h>

#include "base/mem.h"
#include "search/search.h"

enum { PARENTS = 5, TRIES = 32 };

/* The k-th of the values to try alone; false past the last one. */
static bool first_of(const struct space *s, i32 k, struct point *out) {
    *out = point_origin();
    for (i32 i = 0; i < s->n; i++) {
        if (isnan(s->dim[i].first)) continue;
        out->v[i] = s->dim[i].first;
        if (!point_is_origin(s, out) && k-- == 0) return true;
        out->v[i] = (f64)NAN;
    }
    return false;
}

static bool is_new(const struct search *s, i32 trial, const struct point *p) {
    for (i32 i = 0; i < trial; i++)
        if (point_equal(&s->space, &s->trial[i].at, p)) return false;
    return true;
}

/* The best trials, by the score at the last level that each has finished; the defaults are one of them. */
static i32 parents_of(const struct search *s, i32 trial, i32 parent[PARENTS]) {
    f64 best[PARENTS];
    i32 n = 0;
    for (i32 i = 0; i < trial; i++) {
        const i32 level = trial_level(s, i);
        const f64 score = s->trial[i].failed || level < 0 ? (f64)NAN : trial_score(s, i, level, NULL);
        if (isnan(score)) continue;
        i32 at = imin(n, PARENTS);
        while (at > 0 && score < best[at - 1]) at--;
        if (at >= PARENTS) continue;
        for (i32 k = imin(n, PARENTS - 1); k > at; k--) best[k] = best[k - 1], parent[k] = parent[k - 1];
        best[at] = score;
        parent[at] = i;
        n = imin(n + 1, PARENTS);
    }
    return n;
}

/* Every trial that varied this option failed: the data, or given options, rule it out. */
static bool is_ruled_out(const struct search *s, i32 trial, i32 dim) {
    bool failed = false;
    for (i32 i = 0; i < trial; i++) {
        if (isnan(s->trial[i].at.v[dim])) continue;
        if (s->trial[i].done > 0) return false;
        failed = failed || s->trial[i].failed;
    }
    return failed;
}

static void change(const struct search *all, i32 trial, struct dice *dice, struct point *p) {
    const struct space *s = &all->space;
    for (i32 k = 1 + dice_below(dice, 3); k > 0; k--) {
        const i32 i = dice_below(dice, s->n);
        if (is_ruled_out(all, trial, i)) continue;
        const f64 how = dice_uniform(dice);
        if (how < 0.4) p->v[i] = dim_move(&s->dim[i], p->v[i], dice);
        else if (how < 0.85 || isnan(p->v[i])) p->v[i] = dim_draw(&s->dim[i], dice);
        else p->v[i] = (f64)NAN;
    }
}

static struct point child(const struct search *s, i32 trial, const i32 *parent, i32 n, struct dice *dice) {
    const i32 a = dice_below(dice, n), b = dice_below(dice, n);
    struct point p = s->trial[parent[imin(a, b)]].at; /* the better of two */
    if (dice_uniform(dice) < 0.5) {
        const struct point *other = &s->trial[parent[dice_below(dice, n)]].at;
        for (i32 i = 0; i < s->space.n; i++)
            if (dice_uniform(dice) < 0.5) p.v[i] = other->v[i];
    }
    change(s, trial, dice, &p);
    return p;
}

/* The word of the defaults is the defaults. */
static void normalise(const struct space *s, struct point *p) {
    for (i32 i = 0; i < s->n; i++) {
        const struct dim *d = &s->dim[i];
        if (isnan(p->v[i])) continue;
        const bool same = d->kind == DIM_CHOICE ? (i32)p->v[i] == d->standard : p->v[i] == d->usual;
        if (same) p->v[i] = (f64)NAN;
    }
}

bool search_propose(const struct search *s, i32 trial, struct point *out) {
    struct dice dice = {.seed = s->seed, .trial = (u32)trial};
    i32 parent[PARENTS];
    *out = point_origin();
    if (trial == 0) return true;
    if (s->space.n == 0) return false;
    if (first_of(&s->space, trial - 1, out)) return true;
    const i32 n = parents_of(s, trial, parent);
    for (i32 k = 0; k < TRIES; k++) {
        *out = point_origin();
        if (n > 0 && dice_uniform(&dice) >= 0.25) *out = child(s, trial, parent, n, &dice);
        else change(s, trial, &dice, out);
        normalise(&s->space, out);
        if (is_new(s, trial, out)) return true;
    }
    return false;
}
