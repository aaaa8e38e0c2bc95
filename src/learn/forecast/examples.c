/* examples.c - see examples.h. */
#include "learn/forecast/examples.h"

#include <math.h>
#include <stdlib.h>

#include "data/series_pick.h"

/* One of n that are sorted from worst to best, and what it is called. */
struct seat {
    i32 at;
    const char *rank;
};

static const char worst[] = "worst", median[] = "median", best[] = "best";

/* All of up to three; else two of each end and of the middle, as far as they differ. */
static i32 places(i32 n, struct seat out[EXAMPLES]) {
    const struct seat few[] = {{0, worst}, {n / 2, median}, {n - 1, best}};
    const struct seat many[] = {{0, worst}, {1, worst}, {n / 2 - 1, median}, {n / 2, median}, {n - 2, best}, {n - 1, best}};
    if (n == 1) return out[0] = (struct seat){0, "the only one"}, 1;
    if (n == 2) return out[0] = few[0], out[1] = few[2], 2;
    const i32 count = n < EXAMPLES ? 3 : EXAMPLES;
    for (i32 i = 0; i < count; i++) out[i] = count == 3 ? few[i] : many[i];
    return count;
}

/* ------------------------------------------------------------------ forecasts ----------------------------------------------- */

struct one {
    const struct forecaster *f;
    const struct series *s;
    struct arena *a;
    struct forecast_sample *out;
};

static err keep(void *self, const struct forecast_row *row) {
    const struct one *o = self;
    return forecast_sample(o->f, o->s, row, o->a, o->out);
}

/* The column alone: its forecast takes a window, whatever the number of the others.  *n counts it, unless there is no room. */
static err forecast_one(const struct forecaster *f, const struct series *s, i32 col, i64 origin, const struct resources *use,
                        struct arena *a, struct example *out, i32 *n) {
    const struct window_set set = {.first = origin, .end = origin + 1, .stride = 1};
    ARENA_NEW(a, out->of, 1);
    bool fits;
    TRY(series_alone(s, col, a, out->of, &fits));
    if (!fits) return 0;
    struct one o = {f, out->of, a, &out->sample};
    TRY(forecast_windows(f, out->of, &set, use, keep, &o));
    ++*n;
    return 0;
}

/* The last scored origin whose horizon has a target; -1 = none. */
static i64 last_origin(const struct forecast_scores *scores, const struct series *s, i32 col) {
    for (i64 k = window_origins(&scores->set) - 1; k >= 0; k--) {
        const i64 origin = window_origin(&scores->set, k);
        for (i64 i = origin; i < lmin(s->nrow, origin + scores->horizon); i++)
            if (series_is_target(s, col, i)) return origin;
    }
    return -1;
}

/* ------------------------------------------------------------------ series -------------------------------------------------- */

static err of_series(const struct forecaster *f, const struct series *s, const struct forecast_scores *scores,
                     const struct resources *use, struct arena *a, struct examples *out) {
    struct seat place[EXAMPLES];
    struct score_lines *lines;
    struct arena room = {0};
    i32 *order, n;
    ARENA_NEW(a, order, s->ntarget);
    err e = forecast_lines(scores, s, NULL, -1, true, &room, &lines);
    if (e >= 0) e = lines_order(lines, order, &n, &out->mase);
    out->among = n;
    for (i32 i = 0, count = e >= 0 && n > 0 ? places(n, place) : 0; i < count && e >= 0; i++) {
        const i32 col = order[place[i].at];
        struct example *x = &out->at[out->n];
        struct line_values v;
        lines_values(lines, col, &v);
        *x = (struct example){.rank = place[i].rank, .error = out->mase ? v.mase : v.mae};
        const i64 origin = last_origin(scores, s, col);
        if (origin < 0) continue;
        e = forecast_one(f, s, col, origin, use, a, x, &out->n);
    }
    arena_free(&room);
    return e;
}

/* ------------------------------------------------------------------ windows of one series ----------------------------------- */

enum { RANKED = 4096 };

struct ranked {
    f32 error;
    i64 window;
};

static int by_error(const void *pa, const void *pb) {
    const struct ranked *a = pa, *b = pb;
    if (a->error != b->error) return a->error > b->error ? -1 : 1;
    return a->window < b->window ? -1 : 1;
}

/* The worst and the best of all windows, and the median of a few thousand of them: small arrays, whatever the data. */
static i32 rank_windows(const struct forecast_scores *scores, struct ranked of[RANKED], i64 *scored) {
    const i64 all = window_origins(&scores->set), stride = all / (RANKED - 2) + 1;
    struct ranked least = {INFINITY, 0}, most = {-1, 0};
    i32 n = 0;
    *scored = 0;
    for (i64 i = 0; i < all; i++) {
        const struct ranked one = {scores->window[i], i};
        if (isnan(one.error)) continue;
        ++*scored;
        if (one.error > most.error) most = one;
        if (one.error < least.error) least = one;
        if (i % stride == 0) of[n++] = one;
    }
    if (n == 0) return 0;
    qsort(of, (size_t)n, sizeof *of, by_error);
    of[0] = most;
    of[n - 1] = least;
    return n;
}

static err of_windows(const struct forecaster *f, const struct series *s, const struct forecast_scores *scores,
                      const struct resources *use, struct arena *a, struct examples *out) {
    struct ranked *of;
    i64 scored;
    err e = 0;
    out->windows = true;
    if (!scores->window) return 0;
    NEW(of, RANKED);
    const i32 n = rank_windows(scores, of, &scored);
    out->among = (i32)lmin(scored, INT32_MAX);
    const struct seat place[] = {{0, worst}, {n / 2, median}, {n - 1, best}}; /* windows beside each other look alike */
    for (size_t i = 0; i < COUNT(place) && n > 2 && e >= 0; i++) {
        const struct ranked *w = &of[place[i].at];
        out->at[out->n] = (struct example){.rank = place[i].rank, .error = (f64)w->error * s->dev[0]};
        e = forecast_one(f, s, 0, window_origin(&scores->set, w->window), use, a, &out->at[out->n], &out->n);
    }
    mem_free(of);
    return e;
}

err forecast_examples(const struct forecaster *f, const struct series *s, const struct forecast_scores *scores,
                      const struct resources *use, struct arena *a, struct examples *out) {
    *out = (struct examples){0};
    return s->ntarget > 1 ? of_series(f, s, scores, use, a, out) : of_windows(f, s, scores, use, a, out);
}
