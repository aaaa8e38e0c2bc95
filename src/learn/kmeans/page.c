/* page.c - the learner's part of the report: sizes of clusters, and the rows along two principal axes; see kmeans.h. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/kmeans/kmeans.h"
#include "report/report.h"

enum { SAMPLE = 1500, TURNS = 40, SHOWN = 8 };

static err take_svg(struct str *svg, struct arena *a, const char **out) {
    err e = str_ok(svg);
    if (e >= 0) e = arena_keep(a, out, str_text(svg));
    str_free(svg);
    return e;
}

static err sizes(const struct kmeans *f, struct arena *a, struct report_figure *out) {
    struct svg_bar *bar;
    struct str svg = {0};
    ARENA_NEW(a, bar, f->k);
    for (i32 k = 0; k < f->k; k++) {
        const struct svg_bar one = {arena_printf(a, "cluster %d", k + 1), (f64)f->count[k]};
        bar[k] = one;
    }
    svg_bars(&svg, bar, f->k, false);
    return take_svg(&svg, a, &out->svg);
}

/* ------------------------------------------------------------------ two axes ------------------------------------------------ */

/* A sample of rows, less the mean, and its principal axes. */
struct view {
    const struct kmeans *f;
    i64 n, every;
    f64 *x;       /* [n][d] */
    f64 *axis[2]; /* [d] of length 1, or 0 where the rows do not differ */
    i32 *label;   /* [n] */
};

static void normalise(f64 *v, i32 d) {
    f64 sum = 0;
    for (i32 j = 0; j < d; j++) sum += v[j] * v[j];
    for (i32 j = 0; j < d; j++) v[j] = sum > 0 ? v[j] / sqrt(sum) : 0;
}

static f64 dot(i32 d, const f64 *a, const f64 *b) {
    f64 sum = 0;
    for (i32 j = 0; j < d; j++) sum += a[j] * b[j];
    return sum;
}

/* Power iteration with X'X, at right angles to the axes before. */
static void find_axis(struct view *v, i32 which, f64 *next) {
    const i32 d = v->f->d;
    f64 *axis = v->axis[which];
    for (i32 j = 0; j < d; j++) axis[j] = 1 + 0.01 * j;
    for (i32 turn = 0; turn < TURNS; turn++) {
        memset(next, 0, sizeof *next * (size_t)d);
        for (i64 i = 0; i < v->n; i++) {
            const f64 along = dot(d, v->x + i * d, axis);
            for (i32 j = 0; j < d; j++) next[j] += along * v->x[i * d + j];
        }
        if (which == 1) {
            const f64 along = dot(d, next, v->axis[0]);
            for (i32 j = 0; j < d; j++) next[j] -= along * v->axis[0][j];
        }
        normalise(next, d);
        memcpy(axis, next, sizeof *next * (size_t)d);
    }
}

static err look(const struct kmeans *f, const struct learn_job *job, struct arena *a, struct view *v) {
    const struct table_set *s = table_set_of(job->data);
    const i64 rows = job->split.test > 0 ? job->split.train : job->data->nrow; /* all of data that are not those of the run */
    const i32 d = f->d;
    f64 *next, *distance;
    i32 *label;
    *v = (struct view){.f = f, .every = rows / SAMPLE + 1};
    v->n = (rows + v->every - 1) / v->every;
    ARENA_NEW(a, v->x, v->n * d);
    ARENA_NEW(a, v->label, v->n);
    ARENA_NEW(a, next, d);
    ARENA_NEW(a, label, rows);
    ARENA_NEW(a, distance, rows);
    for (i32 i = 0; i < 2; i++) ARENA_NEW(a, v->axis[i], d);
    TRY(kmeans_label(f, job->data, &job->use, 0, rows, label, distance, NULL));
    for (i64 i = 0; i < v->n; i++) {
        for (i32 j = 0; j < d; j++)
            v->x[i * d + j] = (table_input(s, j)->number[i * v->every] - f->scale.center[j]) / f->scale.spread[j] - f->mean[j];
        v->label[i] = label[i * v->every];
    }
    find_axis(v, 0, next);
    find_axis(v, 1, next);
    return 0;
}

static err layer_of(const struct view *v, i32 k, struct arena *a, struct chart_layer *out) {
    static const enum role role[SHOWN] = {ROLE_A, ROLE_B, ROLE_C, ROLE_D, ROLE_MODEL, ROLE_RIDGE, ROLE_SNAIVE, ROLE_BASE};
    f64 *x, *y;
    i32 n = 0;
    ARENA_NEW(a, x, v->n);
    ARENA_NEW(a, y, v->n);
    for (i64 i = 0; i < v->n; i++) {
        if (k < SHOWN ? v->label[i] != k : v->label[i] < SHOWN) continue;
        x[n] = dot(v->f->d, v->x + i * v->f->d, v->axis[0]);
        y[n++] = dot(v->f->d, v->x + i * v->f->d, v->axis[1]);
    }
    *out = (struct chart_layer){.mark = MARK_POINTS, .n = n, .x = x, .y = y, .thin = true};
    out->role = k < SHOWN ? role[k] : ROLE_QUIET;
    out->name = k < SHOWN ? arena_printf(a, "cluster %d", k + 1) : "others";
    return 0;
}

static err centers(const struct view *v, struct arena *a, struct chart_layer *out) {
    const i32 d = v->f->d;
    f64 *x, *y, *c;
    ARENA_NEW(a, x, v->f->k);
    ARENA_NEW(a, y, v->f->k);
    ARENA_NEW(a, c, d);
    for (i32 k = 0; k < v->f->k; k++) {
        for (i32 j = 0; j < d; j++) c[j] = v->f->center[(i64)k * d + j] - v->f->mean[j];
        x[k] = dot(d, c, v->axis[0]);
        y[k] = dot(d, c, v->axis[1]);
    }
    *out = (struct chart_layer){.mark = MARK_POINTS, .role = ROLE_TRUTH, .name = "centers", .n = v->f->k, .x = x, .y = y,
                                .hover = true};
    return 0;
}

static err plane(const struct kmeans *f, const struct learn_job *job, struct arena *a, struct report_figure *out) {
    struct view v;
    struct chart_layer layer[SHOWN + 2];
    struct str svg = {0};
    i32 n = 1;
    TRY(look(f, job, a, &v));
    TRY(centers(&v, a, &layer[0]));
    for (i32 k = 0; k < imin(f->k, SHOWN + 1); k++) {
        TRY(layer_of(&v, k, a, &layer[n]));
        n += layer[n].n > 0;
    }
    const struct chart chart = {.xlabel = "first principal axis", .ylabel = "second", .layer = layer, .n = n};
    svg_chart(&svg, &chart, false);
    return take_svg(&svg, a, &out->svg);
}

err kmeans_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r) {
    const struct kmeans *f = kmeans_of(m);
    struct report_figure *out;
    (void)s;
    ARENA_NEW(a, out, 2);
    out[0] = (struct report_figure){.id = "sizes", .heading = "Sizes of clusters"};
    out[0].lead = "Rows of the training in each cluster.";
    out[1] = (struct report_figure){.id = "plane", .heading = "Clusters"};
    out[1].lead = "Rows (a sample of many) along the two axes of largest variance.";
    TRY(sizes(f, a, &out[0]));
    r->figure = out;
    r->nfigure = 1;
    if (f->d < 2) return 0;
    TRY(plane(f, job, a, &out[1]));
    r->nfigure = 2;
    return 0;
}
