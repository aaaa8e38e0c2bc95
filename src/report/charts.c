/* charts.c - builds the charts of a report from its plain data. */
#include "report/html_part.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"

/* Horizon data with the last observed value prepended, so that the forecast line starts at the history. */
struct tied {
    f64 *x, *y[5]; /* model, base, actual, low, high */
};

enum { MODEL, BASE, ACTUAL, LOW, HIGH, TIED };
enum { HISTORY_TIMES = 4, HISTORY_LEAST = 24 }; /* drawn part of the context: at most, in horizons; at least, in steps */

static void tie(const struct report_forecast *f, struct tied *t, f64 *room) {
    const f64 *of[TIED] = {f->model, f->base, f->actual, f->low, f->high};
    i32 n = f->horizon + 1;
    t->x = room;
    for (i32 i = 0; i < n; i++) t->x[i] = f->time ? f->time[imax(0, f->nhistory - 1 + i)] : i;
    for (i32 k = 0; k < TIED; k++) {
        t->y[k] = of[k] ? room + (i64)(k + 1) * n : NULL;
        if (!of[k]) continue;
        t->y[k][0] = f->nhistory > 0 ? f->history[f->nhistory - 1] : (f64)NAN;
        for (i32 i = 1; i < n; i++) t->y[k][i] = of[k][i - 1];
    }
}

void chart_forecast(struct str *b, const struct report_forecast *f, f64 width, f64 height, bool alone) {
    struct tied t;
    f64 *room = mem_alloc(sizeof(f64) * (size_t)(f->horizon + 1) * (TIED + 1));
    if (!room) {
        b->failed = true;
        return;
    }
    tie(f, &t, room);
    char band[48];
    snprintf(band, sizeof band, "%d to %d %% quantile", (i32)(100 * f->low_q + .5), (i32)(100 * f->high_q + .5));
    struct chart_layer l[6];
    i32 n = 0, h = f->horizon + 1, past = imin(f->nhistory, imax(HISTORY_LEAST, HISTORY_TIMES * f->horizon));
    i32 cut = f->nhistory - past;
    f64 step = f->time && f->nhistory + f->horizon > 1 ? f->time[1] - f->time[0] : 0;
    l[n++] = (struct chart_layer){.role = ROLE_MODEL, .name = "model", .n = h, .x = t.x, .y = t.y[MODEL], .hover = true};
    if (t.y[LOW] && t.y[HIGH])
        l[n++] = (struct chart_layer){
            .mark = MARK_BAND, .role = ROLE_MODEL, .name = band, .n = h, .x = t.x, .y = t.y[LOW], .y2 = t.y[HIGH]};
    if (t.y[ACTUAL])
        l[n++] = (struct chart_layer){.role = ROLE_TRUTH, .name = "actual", .n = h, .x = t.x, .y = t.y[ACTUAL], .hover = true};
    if (t.y[BASE])
        l[n++] = (struct chart_layer){.role = ROLE_BASE, .name = "base", .n = h, .x = t.x, .y = t.y[BASE], .hover = true};
    if (past > 0)
        l[n++] = (struct chart_layer){.role = ROLE_QUIET,
                                .name = "history",
                                .n = past,
                                .x = f->time ? f->time + cut : NULL,
                                .x0 = 1 - past,
                                .y = f->history + cut,
                                .hover = true};
    l[n++] = (struct chart_layer){.mark = MARK_RULE, .x0 = t.x[0]};
    svg_chart(b,
              &(struct chart){.title = f->title,
                              .xlabel = f->time ? NULL : "steps after the last known value",
                              .xkind = f->time ? AXIS_TIME : AXIS_WHOLE,
                              .xstep = step,
                              .width = width,
                              .height = height,
                              .layer = l,
                              .n = n},
              alone);
    mem_free(room);
}

/* Ratio of largest to smallest positive loss; NaN without data. */
static f64 loss_spread(const struct report *r) {
    f64 lo = INFINITY, hi = 0;
    for (i32 k = 0; k < r->ncurve; k++) {
        const struct report_curve *c = &r->curve[k];
        for (i32 i = 0; i < c->ntrain + c->nvalid; i++) {
            f64 v = i < c->ntrain ? c->train[i] : c->valid[i - c->ntrain];
            if (!isfinite(v)) continue;
            lo = dmin(lo, v);
            hi = dmax(hi, v);
        }
    }
    return lo > 0 ? hi / lo : (f64)NAN;
}

/* Training loss muted, validation in front, a dot at the kept weights; ensemble members share colors and have thin lines. */
void chart_curves(struct str *b, const struct report *r, f64 width, f64 height) {
    enum { MEMBERS = 64 };
    struct chart_layer l[3 * MEMBERS];
    i32 n = 0, members = imin(r->ncurve, MEMBERS);
    bool thin = members > 1;
    for (i32 k = 0; k < members; k++)
        l[n++] = (struct chart_layer){.role = ROLE_MODEL, .name = k ? NULL : "validation", .n = r->curve[k].nvalid,
                                .x = r->curve[k].valid_step, .y = r->curve[k].valid, .thin = thin, .hover = true};
    for (i32 k = 0; k < members; k++)
        l[n++] = (struct chart_layer){.role = ROLE_QUIET,
                                .name = k ? NULL : "training",
                                .n = r->curve[k].ntrain,
                                .x = r->curve[k].train_step,
                                .y = r->curve[k].train,
                                .thin = thin};
    bool named = false;
    for (i32 k = 0; k < members; k++) {
        const struct report_curve *c = &r->curve[k];
        if (c->best < 0 || c->best >= c->nvalid) continue;
        l[n++] = (struct chart_layer){.mark = MARK_POINTS, .role = ROLE_MODEL, .name = named ? NULL : "best, kept", .n = 1,
                                .x = c->valid_step + c->best, .y = c->valid + c->best};
        named = true;
    }
    char label[96];
    bool log_scale = loss_spread(r) > 20;
    snprintf(label, sizeof label, "%s loss%s", r->loss ? r->loss : "", log_scale ? ", logarithmic" : "");
    svg_chart(b,
              &(struct chart){.xlabel = "step", .ylabel = label, .xkind = AXIS_WHOLE, .ykind = log_scale ? AXIS_LOG : AXIS_NUMBER,
                              .width = width, .height = height, .layer = l, .n = n},
              false);
}

void chart_steps(struct str *b, const struct report *r, f64 width, f64 height) {
    enum { LINES = 12 };
    struct chart_layer l[LINES];
    i32 n = 0;
    for (i32 k = 0; k < r->nline && n < LINES; k++)
        l[n++] = (struct chart_layer){
            .role = r->line[k].role, .name = r->line[k].name, .n = r->horizon, .x0 = 1, .y = r->line[k].value, .hover = true};
    svg_chart(b,
              &(struct chart){.xlabel = "steps ahead",
                              .ylabel = r->step_metric,
                              .xkind = AXIS_WHOLE,
                              .zero = true,
                              .width = width,
                              .height = height,
                              .layer = l,
                              .n = n},
              false);
}

err report_plot(const struct report_forecast *f, const char *path) {
    struct str svg = {0};
    chart_forecast(&svg, f, 800, 400, true);
    return file_write_text(path, &svg);
}
