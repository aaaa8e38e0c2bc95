/* window.h - a forecast model as an ONNX graph: what the files of this folder share.
 *
 *     target, past, known, time, category, series      inputs of the graph, in original units (docs/onnx.md)
 *        |--- inputs.c: scale, history of W rows -----> hist, scale of the window, x, future, calendar
 *        |--- base.c, smooth.c: the base from hist ---> base [batch, horizon]
 *        |--- layers (learn/onnx) for each member ----> raw [batch, outputs, horizon], mean over the members
 *        '--- outputs.c: base + share * correction, bands, original units ---> mean, quantiles
 *
 * Numbers of the series and rules are DOUBLE, those of the network FLOAT. */
#ifndef STRETTO_LEARN_FORECAST_ONNX_WINDOW_H
#define STRETTO_LEARN_FORECAST_ONNX_WINDOW_H

#include "learn/forecast/forecast.h"
#include "learn/onnx/layers.h"

struct window_graph {
    struct onnx_graph *g;
    const struct forecaster *f;
    struct arena *arena;
    i32 W;     /* rows of the history that the graph reads: shorter ones are filled with missing values */
    i32 ahead; /* rows behind the origin in `known` and `time` */
    val target, series, past, known, time, category; /* inputs, -1 = not used */
    val mean, dev;                                   /* DOUBLE [batch, 1]: scale of the target */
    val hist;                                        /* DOUBLE [batch, W]: scaled, NaN = missing */
    val window;                                      /* DOUBLE [batch, context] of it */
    val shift, div;                                  /* DOUBLE [batch, 1]: scale of the window */
    val base;                                        /* DOUBLE [batch, horizon], scaled units */
};

static inline val wg_2(const struct window_graph *w, const char *op, val a, val b) { return onnx_2(w->g, op, a, b); }
static inline val wg_f64(const struct window_graph *w, f64 v) { return onnx_f64(w->g, v); }

/* --- missing.c --- */
/* v where it is a number, else `other`. */
val wg_present(const struct window_graph *w, val v, val other);
/* 1.0 where v is a number, else 0.0. */
val wg_mask(const struct window_graph *w, val v);
/* Gaps filled by the last observed value, also across `stride` rows: NaN before the first one. */
val wg_hold(const struct window_graph *w, val v, i32 rows, i32 stride);

/* --- inputs.c --- */
void wg_inputs(struct window_graph *w); /* declares the inputs that the model uses; hist, window, mean, dev */
/* The last `count` rows of an input [batch, rows, ..] whose last `ahead` rows lie behind the origin; missing ones are `fill`. */
val wg_last_rows(const struct window_graph *w, val v, i32 ndim, i32 ahead, i32 count, val fill);
/* Column `at` of rows [batch, rows, columns], covariate k (past ones first), scaled: [batch, rows], NaN = missing. */
val wg_covariate(const struct window_graph *w, val rows, i32 at, i32 k);
val wg_rounded(const struct window_graph *w, val v); /* to FLOAT and back: the series holds f32 */
/* Shift and divisor of windows of `rows` rows under a scale (window_scale_of). */
void wg_scale(const struct window_graph *w, enum window_scale scale, i32 rows, val *shift, val *div);
/* DOUBLE [batch, horizon]: the logarithm of the mean of counts that the base stands for. */
val wg_log_mean(const struct window_graph *w);
/* The input buffers of a net. */
void wg_net_inputs(const struct window_graph *w, struct net_graph *n);

/* --- base.c, ridge.c, smooth.c --- */
void wg_base(struct window_graph *w);
val wg_ridge(const struct window_graph *w, const struct ridge *r); /* DOUBLE [batch, horizon] */
/* calendar.c: fields of times INT64 [batch, n], as INT64: days since 1970, hour, minute, weekday (0 = Sunday), month (0 =
 * January), day of the year (0 = 1 January). */
struct calendar_graph {
    val hour, minute, weekday, month, yearday;
};
struct calendar_graph wg_calendar(const struct window_graph *w, val time);
/* trees.c: the forecasts of boosted trees: DOUBLE [batch, horizon]. */
struct trees;
val wg_trees(const struct window_graph *w, const struct trees *t);
/* What rules need of the history. */
struct past_graph {
    val v;     /* DOUBLE [batch, W]: gaps filled, also in front of the first value; 0 without any value */
    val last;  /* [batch, 1] */
    val first; /* DOUBLE [batch, 1]: row of the first value */
    val n;     /* DOUBLE [batch, 1]: rows from there on */
    val row;   /* DOUBLE [1, W]: 0, 1, .. */
    val mask;  /* DOUBLE [batch, W]: 1 = observed */
};
val wg_ses(const struct window_graph *w, const struct past_graph *p, f64 alpha);
val wg_theta(const struct window_graph *w, const struct past_graph *p, i32 season, f64 alpha);

/* --- outputs.c --- */
/* raw FLOAT [batch, outputs, horizon], -1 = no network. */
void wg_outputs(struct window_graph *w, val raw, bool quantiles);

#endif
