/* series_build.c - runs the build stages in order; scaling; series from memory. */
#include "data/series_build.h"

#include <math.h>
#include <string.h>

#include "base/spill.h"
#include "data/build.h"
#include "data/check.h"

static err build(struct build *b, struct series *s) {
    TRY(build_roles(b));
    if (b->found) memcpy(b->found->roles, b->roles, sizeof b->roles);
    err e = build_times(b);
    if (e >= 0) e = build_grid(b);
    if (e >= 0 && b->panel) e = build_panel_place(b);
    if (e < 0) TRY(build_problem(b, NO_COLUMN, e)); /* if problems are collected, those of cells follow */
    const bool unplaced = b->nid > 0 && (!b->panel || !b->panel->at);
    return e < 0 && (b->n == 0 || unplaced) ? 0 : build_values(b, s);
}

err series_inspect(const struct table *t, const struct series_options *o, struct findings *found, struct series **out) {
    *out = NULL;
    struct series *s;
    NEW(s, 1);
    struct build b = {.t = t, .o = o, .found = found};
    err e = build(&b, s);
    if (e < 0) e = build_problem(&b, NO_COLUMN, e); /* a problem that prevents further checks */
    bool bad = e < 0 || b.bad;
    build_free(&b);
    if (bad) series_free(s);
    else *out = s;
    return e;
}

err series_build(const struct table *t, const struct series_options *o, struct series **out) {
    return series_inspect(t, o, NULL, out);
}

void series_free(struct series *s) {
    if (!s) return;
    mem_free(s->v);
    mem_free(s->filled);
    mem_free(s->time);
    mem_free(s->line);
    arena_free(&s->names);
    mem_free(s);
}

err series_wrap(const f64 *values, i64 nrow, i32 ncol, const char *const *names, i64 first_time, i64 step_seconds,
                const struct series_options *o, struct series **out) {
    *out = NULL;
    if (nrow < 1 || ncol < 1) return FAIL(E201, "%lld rows and %d columns hold no series", (long long)nrow, ncol);
    struct column *col;
    i64 *time = NULL;
    NEW(col, ncol + 1);
    struct table t = {.path = "memory", .ncol = ncol, .nrow = nrow, .col = col, .sep = ',', .decimal = '.'};
    for (i32 c = 0; c < ncol; c++) /* the table only reads them */
        col[c] = (struct column){.name = names[c], .field = c + 1, .number = (f64 *)(uintptr_t)(values + c * nrow)};
    err e = 0;
    if (step_seconds > 0) {
        e = spill_new((void **)&time, nrow, sizeof *time);
        for (i64 i = 0; e >= 0 && i < nrow; i++) time[i] = first_time + i * step_seconds;
        col[t.ncol++] = (struct column){.name = "(time)", .field = ncol + 1, .type = COL_TIME, .time = time};
    }
    if (e >= 0) e = series_build(&t, o, out);
    mem_free(time);
    mem_free(col);
    return e;
}

enum { FIRST_ROWS = 24 }; /* of a series that begins after the training rows: they give its scale */

/* Mean and population standard deviation of the observed cells of rows [0, n). */
static i64 moments(const struct series *s, i32 c, i64 n, f64 *mean, f64 *dev) {
    const f32 *v = series_col(s, c);
    f64 sum = 0, square = 0;
    i64 present = 0;
    n = lmin(n, s->nrow);
    for (i64 i = 0; i < n; i++)
        if (series_is_target(s, c, i)) sum += (f64)v[i], present++;
    *mean = present ? sum / (f64)present : 0;
    for (i64 i = 0; i < n; i++)
        if (series_is_target(s, c, i)) square += ((f64)v[i] - *mean) * ((f64)v[i] - *mean);
    *dev = present ? sqrt(square / (f64)present) : 0;
    return present;
}

/* Shifts and divides a column that may have been scaled before. */
static void scale_column(struct series *s, i32 c, f64 mean, f64 dev) {
    f32 *v = s->v + (i64)c * s->nrow;
    for (i64 i = 0; i < s->nrow; i++) v[i] = (f32)(((f64)v[i] - mean) / dev);
    s->mean[c] = s->mean[c] + s->dev[c] * mean;
    s->dev[c] *= dev;
}

/* A covariate that is constant in each series is scaled by its values over the series. */
static void scale_static(struct series *s, i32 k) {
    const i32 c0 = series_ahead_of(s, k, 0);
    f64 sum = 0, square = 0, n = 0;
    for (i32 c = c0; c < c0 + s->ntarget; c++) {
        f64 mean, dev;
        if (moments(s, c, s->nrow, &mean, &dev) == 0) continue;
        const f64 raw = s->mean[c] + s->dev[c] * mean;
        sum += raw, square += raw * raw, n++;
    }
    const f64 mean = n > 0 ? sum / n : 0, dev = n > 0 ? sqrt(dmax(0, square / n - mean * mean)) : 0;
    const f64 unit = dev > 1e-12 * fabs(mean) ? dev : 1;
    for (i32 c = c0; c < c0 + s->ntarget; c++) scale_column(s, c, (mean - s->mean[c]) / s->dev[c], unit / s->dev[c]);
}

void series_scale_column(struct series *s, i32 c, i64 rows) {
    f64 mean, dev;
    moments(s, c, rows, &mean, &dev);
    scale_column(s, c, mean, dev <= 1e-12 * fabs(mean) || dev == 0 ? 1 : dev);
}

err series_scale(struct series *s, i64 train_rows) {
    const i64 n = lmin(lmax(train_rows, 0), s->nrow);
    const i32 statics = series_ahead_of(s, s->nknown - s->nstatic, 0);
    for (i32 c = 0; c < (s->nstatic ? statics : s->ncol); c++) {
        f64 mean, dev;
        const i64 present = moments(s, c, n, &mean, &dev);
        const bool flat = dev <= 1e-12 * fabs(mean) || dev == 0;
        if (flat && c < s->ntarget && !s->panel)
            return FAIL_AT(E212, NULL, "another --target, or more training rows (a smaller --validation and --test)",
                           present ? "target \"%s\" is the same in all %lld training rows"
                                   : "target \"%s\" is missing in all %lld training rows",
                           s->name[c], (long long)n);
        if (s->panel && present == 0)
            series_scale_column(s, c, s->from[c % s->ntarget] + FIRST_ROWS);
        else
            scale_column(s, c, mean, flat ? 1 : dev);
    }
    for (i32 k = s->nknown - s->nstatic; k < s->nknown; k++) scale_static(s, k);
    return 0;
}
