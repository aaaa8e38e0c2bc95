/* charts.c - builds the charts of a report from its plain data: forecasts with fans, training curves, errors by step. */
#include "report/html_part.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"

/* Horizon data with the last observed value prepended, so that the forecast line starts at the history. */
struct tied {
    f64 *x, *y[3]; /* model, base, actual */
    f64 *band;     /* [nlevel][horizon + 1] */
};

enum { MODEL, BASE, ACTUAL, TIED };
enum { HISTORY_TIMES = 4, HISTORY_LEAST = 24 }; /* drawn part of the context: at most, in horizons; at least, in steps */
enum { BANDS = 8, LAYERS = BANDS + 5 };

static void tie_one(const struct report_forecast *f, const f64 *from, f64 *to) {
    to[0] = f->nhistory > 0 ? f->history[f->nhistory - 1] : (f64)NAN;
    for (i32 i = 0; i < f->horizon; i++) to[i + 1] = from[i];
}

static void tie(const struct report_forecast *f, struct tied *t, f64 *room) {
    const f64 *of[TIED] = {f->model, f->base, f->actual};
    const i32 n = f->horizon + 1;
    t->x = room;
    for (i32 i = 0; i < n; i++) t->x[i] = f->time ? f->time[imax(0, f->nhistory - 1 + i)] : i;
    for (i32 k = 0; k < TIED; k++) {
        t->y[k] = of[k] ? room + (i64)(k + 1) * n : NULL;
        if (of[k]) tie_one(f, of[k], t->y[k]);
    }
    t->band = room + (i64)(TIED + 1) * n;
    for (i32 q = 0; q < f->nlevel; q++) tie_one(f, f->quantile + (i64)q * f->horizon, t->band + (i64)q * n);
}

/* Bands between quantile q and the one as far from the other end, the outermost first. */
static i32 add_bands(const struct report_forecast *f, const struct tied *t, struct chart_layer *l, char name[BANDS][48]) {
    const i32 h = f->horizon + 1, n = imin(f->nlevel / 2, BANDS);
    for (i32 q = 0; q < n; q++) {
        const i32 other = f->nlevel - 1 - q;
        snprintf(name[q], 48, "%.3g to %.3g %%", 100 * f->level[q], 100 * f->level[other]);
        l[q] = (struct chart_layer){.mark = MARK_BAND,
                                    .role = ROLE_MODEL,
                                    .name = name[q],
                                    .n = h,
                                    .x = t->x,
                                    .y = t->band + (i64)q * h,
                                    .y2 = t->band + (i64)other * h};
    }
    return n;
}

static void draw_forecast(struct str *b, const struct report_forecast *f, const struct tied *t, const struct chart *frame,
                          enum chart_use use) {
    char name[BANDS][48];
    struct chart_layer l[LAYERS];
    struct chart c = *frame;
    const bool hover = use != CHART_SMALL;
    const i32 h = f->horizon + 1, past = imin(f->nhistory, imax(HISTORY_LEAST, HISTORY_TIMES * f->horizon));
    const i32 cut = f->nhistory - past;
    i32 n = 0;
    l[n++] = (struct chart_layer){.role = ROLE_MODEL, .name = "model", .n = h, .x = t->x, .y = t->y[MODEL], .hover = hover};
    n += add_bands(f, t, l + n, name);
    if (t->y[ACTUAL])
        l[n++] = (struct chart_layer){.role = ROLE_TRUTH, .name = "actual", .n = h, .x = t->x, .y = t->y[ACTUAL], .hover = hover};
    if (t->y[BASE])
        l[n++] = (struct chart_layer){.role = ROLE_BASE, .name = "base", .n = h, .x = t->x, .y = t->y[BASE], .hover = hover};
    if (past > 0)
        l[n++] = (struct chart_layer){.role = ROLE_QUIET,
                                      .name = "history",
                                      .n = past,
                                      .x = f->time ? f->time + cut : NULL,
                                      .x0 = 1 - past,
                                      .y = f->history + cut,
                                      .hover = hover};
    l[n++] = (struct chart_layer){.mark = MARK_RULE, .x0 = t->x[0]};
    c.layer = l;
    c.n = n;
    c.unnamed = use == CHART_SMALL;
    svg_chart(b, &c, use == CHART_ALONE);
}

void chart_forecast(struct str *b, const struct report_forecast *f, f64 width, f64 height, enum chart_use use) {
    struct tied t;
    char alt[256];
    f64 *room = mem_alloc(sizeof(f64) * (size_t)(f->horizon + 1) * (size_t)(TIED + 1 + f->nlevel));
    if (!room) {
        b->failed = true;
        return;
    }
    tie(f, &t, room);
    snprintf(alt, sizeof alt, "forecast of %.100s: %s%s", f->title ? f->title : "the target",
             f->nlevel > 1 ? "model with bands of its quantiles, " : "model, ",
             f->actual ? "actual values and the history before them" : "and the history before it");
    draw_forecast(b, f, &t,
                  &(struct chart){.title = use == CHART_ALONE ? f->title : NULL,
                                  .alt = alt,
                                  .xlabel = f->time ? NULL : "steps after the last known value",
                                  .xkind = f->time ? AXIS_TIME : AXIS_WHOLE,
                                  .xstep = f->time && f->nhistory + f->horizon > 1 ? f->time[1] - f->time[0] : 0,
                                  .width = width,
                                  .height = height},
                  use);
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
        l[n++] = (struct chart_layer){.role = ROLE_MODEL,
                                      .name = k ? NULL : "validation",
                                      .n = r->curve[k].nvalid,
                                      .x = r->curve[k].valid_step,
                                      .y = r->curve[k].valid,
                                      .thin = thin,
                                      .hover = true};
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
        l[n++] = (struct chart_layer){.mark = MARK_POINTS,
                                      .role = ROLE_MODEL,
                                      .name = named ? NULL : "best, kept",
                                      .n = 1,
                                      .x = c->valid_step + c->best,
                                      .y = c->valid + c->best};
        named = true;
    }
    char label[96];
    bool log_scale = loss_spread(r) > 20;
    snprintf(label, sizeof label, "%s loss%s", r->loss ? r->loss : "", log_scale ? ", logarithmic" : "");
    svg_chart(b,
              &(struct chart){.alt = "training and validation loss by training step",
                              .xlabel = "step",
                              .ylabel = label,
                              .xkind = AXIS_WHOLE,
                              .ykind = log_scale ? AXIS_LOG : AXIS_NUMBER,
                              .width = width,
                              .height = height,
                              .layer = l,
                              .n = n},
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
              &(struct chart){.alt = "error at each step of the horizon, model and naive forecasts",
                              .xlabel = "steps ahead",
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
    chart_forecast(&svg, f, 800, 400, CHART_ALONE);
    return file_write_text(path, &svg);
}
