/* graph_plot.c - the picture of `stretto graph`: ranks of nodes, or sizes of groups, from the largest on; see graph_out.h.
 *
 *     rank |*
 *          |  * *            logarithmic axes: a heavy tail is a straight line
 *          |       * * *
 *          +------------- place */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/graph_out.h"
#include "base/file.h"
#include "base/mem.h"
#include "report/report.h"

enum { POINTS = 200 };

struct points {
    f64 x[POINTS], y[POINTS];
    i32 n;
};

static int falling(const void *a, const void *b) {
    const f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return x > y ? -1 : x < y;
}

/* Value [n] falls.  Places that are equally far apart on a logarithmic axis, each once; what is 0 has no place there. */
static void choose(const f64 *value, i64 n, struct points *p) {
    for (i32 k = 0; k < POINTS; k++) {
        const i64 place = (i64)round(pow((f64)n, k / (f64)(POINTS - 1)));
        if ((p->n > 0 && (f64)place == p->x[p->n - 1]) || !(value[place - 1] > 0)) continue;
        p->x[p->n] = (f64)place;
        p->y[p->n++] = value[place - 1];
    }
}

static err find_points(const struct graph_result *g, struct points *p) {
    const i64 n = g->score ? g->n : g->ngroup;
    f64 *value;
    NEW(value, n);
    for (i64 i = 0; i < n; i++) value[i] = g->score ? g->score[i] : (f64)g->members[i];
    if (g->score) qsort(value, (size_t)n, sizeof *value, falling);
    choose(value, n, p);
    mem_free(value);
    return 0;
}

static void draw(const struct graph_out *o, const struct points *p, bool alone, struct str *out) {
    const bool ranks = o->g->score != NULL;
    const struct chart_layer layer = {
        .mark = MARK_POINTS, .role = ROLE_MODEL, .n = p->n, .x = p->x, .y = p->y, .hover = true};
    const struct chart chart = {.title = ranks ? "rank of nodes" : "size of groups",
                                .xlabel = ranks ? "place of the node, highest rank first" : "place of the group, largest first",
                                .ylabel = ranks ? "rank" : "nodes",
                                .xkind = AXIS_LOG,
                                .ykind = AXIS_LOG,
                                .width = 720,
                                .height = 400,
                                .layer = &layer,
                                .n = 1};
    svg_chart(out, &chart, alone);
}

static err write_page(const struct graph_out *o, const struct points *p, const char *lead, const char *path) {
    struct str svg = {0};
    draw(o, p, false, &svg);
    const struct report_figure figure = {.id = "distribution", .heading = "Distribution", .lead = lead, .svg = str_text(&svg)};
    const struct report page = {.title = o->method, .seconds = (f64)NAN, .slice_gap = (f64)NAN, .nfigure = 1, .figure = &figure};
    err e = str_ok(&svg);
    if (e >= 0) e = report_write(&page, path);
    str_free(&svg);
    return e;
}

err graph_plot(const struct graph_out *o, const char *lead, const char *path) {
    const char *end = strrchr(path, '.');
    struct points p = {.n = 0};
    struct str svg = {0};
    TRY(find_points(o->g, &p));
    if (end && strcmp(end, ".html") == 0) return write_page(o, &p, lead, path);
    draw(o, &p, true, &svg);
    return file_write_text(path, &svg);
}
