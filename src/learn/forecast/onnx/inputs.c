/* inputs.c - inputs of the graph, the scale of the series and of the window, and the features of the network (data/window.c). */
#include <math.h>

#include "data/time.h"
#include "learn/forecast/onnx/window.h"
#include "learn/forecast/ops.h"

/* ------------------------------------------------------------------ declarations -------------------------------------------- */

static const struct onnx_dim batch = {"batch", 0}, rows = {"rows", 0}, rows_ahead = {"rows_and_ahead", 0};

static val input(const struct window_graph *w, bool used, const char *name, enum onnx_type type, struct onnx_dim axis, i32 ncol) {
    const struct onnx_dim dim[] = {batch, axis, {NULL, ncol}};
    return used ? onnx_input(w->g, name, type, ncol > 0 ? 3 : 2, dim) : -1;
}

static void declare(struct window_graph *w) {
    const struct forecaster *f = w->f;
    const struct schema *c = &f->schema;
    w->target = input(w, true, "target", ONNX_DOUBLE, rows, 0);
    w->series = c->ntarget > 1 ? onnx_input(w->g, "series", ONNX_INT64, 1, &batch) : -1;
    w->past = input(w, c->npast > 0, "past", ONNX_DOUBLE, rows, c->npast);
    w->known = input(w, c->nknown > 0, "known", ONNX_DOUBLE, rows_ahead, c->nknown);
    w->time = input(w, forecast_reads_time(f), "time", ONNX_INT64, rows_ahead, 0);
    w->category = input(w, c->ncat > 0, "category", ONNX_INT64, rows, c->ncat);
}

/* Row k of a table [ntarget] of the series of each window: [batch, 1]. */
static val of_series(const struct window_graph *w, const f64 *table) {
    const val t = onnx_f64s(w->g, w->f->schema.ntarget, table);
    return w->series < 0 ? onnx_reshape(w->g, t, DIMS(1, 1)) : onnx_unsqueeze(w->g, onnx_gather(w->g, t, w->series, 0), 1);
}

val wg_last_rows(const struct window_graph *w, val v, i32 ndim, i32 ahead, i32 count, val fill) {
    const val seen = ahead > 0 ? onnx_slice(w->g, v, 1, 0, -ahead) : v;
    return onnx_slice(w->g, onnx_pad(w->g, seen, ndim, 1, count, 0, fill), 1, -count, ONNX_ALL);
}

val wg_rounded(const struct window_graph *w, val v) { /* the series holds f32 */
    return onnx_cast(w->g, onnx_cast(w->g, v, ONNX_FLOAT), ONNX_DOUBLE);
}

/* Joins the target with the rows of an input in front of the origin, [batch, rows], and takes the target out again: an input
 * that has not exactly `ahead` rows more than the target stops the run, where it would be read out of line otherwise. */
static val in_line(const struct window_graph *w, val target, val rows_in_front) {
    const val both[2] = {onnx_unsqueeze(w->g, target, 2), onnx_unsqueeze(w->g, rows_in_front, 2)};
    return onnx_squeeze(w->g, onnx_slice(w->g, onnx_concat(w->g, 2, 2, both), 2, 0, 1), 2);
}

static void check_lengths(struct window_graph *w) {
    if (w->known >= 0) {
        const val first = onnx_squeeze(w->g, onnx_slice(w->g, w->known, 2, 0, 1), 2);
        w->target = in_line(w, w->target, onnx_slice(w->g, first, 1, 0, -w->ahead));
    }
    if (w->time >= 0)
        w->target = in_line(w, w->target, onnx_cast(w->g, onnx_slice(w->g, w->time, 1, 0, -w->ahead), ONNX_DOUBLE));
}

void wg_inputs(struct window_graph *w) {
    const struct schema *c = &w->f->schema;
    declare(w);
    check_lengths(w);
    w->mean = of_series(w, c->mean);
    w->dev = of_series(w, c->dev);
    const val raw = wg_last_rows(w, w->target, 2, 0, w->W, wg_f64(w, (f64)NAN));
    w->hist = wg_rounded(w, wg_2(w, "Div", wg_2(w, "Sub", raw, w->mean), w->dev));
    w->window = onnx_slice(w->g, w->hist, 1, -w->f->spec.context, ONNX_ALL);
    wg_scale(w, w->f->shape.scale, w->f->spec.context, &w->shift, &w->div);
}

/* ------------------------------------------------------------------ scale --------------------------------------------------- */

/* Mean of v over its mask. */
static val mean_of(const struct window_graph *w, val v, val mask, val n) {
    const val least = wg_2(w, "Max", n, wg_f64(w, 1));
    return wg_2(w, "Div", onnx_sum(w->g, wg_2(w, "Mul", v, mask), 1), least);
}

void wg_scale(const struct window_graph *w, enum window_scale scale, i32 count, val *shift, val *div) {
    const val zero = wg_f64(w, 0), one = wg_f64(w, 1), x = onnx_slice(w->g, w->hist, 1, -count, ONNX_ALL);
    const val mask = wg_mask(w, x), v = wg_present(w, x, zero), n = onnx_sum(w->g, mask, 1);
    val size = one;
    *shift = wg_2(w, "Mul", n, zero);
    if (scale == WSCALE_LAST || scale == WSCALE_WINDOW)
        *shift = wg_present(w, onnx_slice(w->g, wg_hold(w, x, count, 1), 1, -1, ONNX_ALL), zero);
    if (scale == WSCALE_MEAN) *shift = wg_rounded(w, wg_2(w, "Div", onnx_1(w->g, "Neg", w->mean), w->dev));
    if (scale == WSCALE_WINDOW) {
        const val d = wg_2(w, "Sub", v, mean_of(w, v, mask, n));
        size = onnx_1(w->g, "Sqrt", mean_of(w, wg_2(w, "Mul", d, d), mask, n));
    }
    if (scale == WSCALE_MEAN) size = mean_of(w, onnx_1(w->g, "Abs", wg_2(w, "Sub", v, *shift)), mask, n);
    if (size != one) size = wg_rounded(w, wg_2(w, "Max", size, wg_f64(w, WINDOW_FLOOR)));
    *div = onnx_where(w->g, wg_2(w, "Less", n, wg_f64(w, 2)), one, size);
}

/* ------------------------------------------------------------------ features ------------------------------------------------ */

/* Values [batch, count] in segments of `seg`, FLOAT [batch, nseg, seg]; zeros in front of the first row, or behind the last. */
static val segments(const struct window_graph *w, val v, i32 nseg, i32 seg, i32 before, i32 after) {
    val x = onnx_cast(w->g, v, ONNX_FLOAT);
    if (before + after > 0) x = onnx_pad(w->g, x, 2, 1, before, after, onnx_f32(w->g, 0));
    return onnx_reshape(w->g, x, DIMS(-1, nseg, seg));
}

val wg_covariate(const struct window_graph *w, val v, i32 at, i32 k) {
    const struct schema *c = &w->f->schema;
    const val one = onnx_squeeze(w->g, onnx_slice(w->g, v, 2, at, at + 1), 2);
    const i64 block = (i64)(1 + k) * c->ntarget, own = c->ntarget + k;
    const val mean = c->panel ? of_series(w, c->mean + block) : wg_f64(w, c->mean[own]);
    const val dev = c->panel ? of_series(w, c->dev + block) : wg_f64(w, c->dev[own]);
    return wg_rounded(w, wg_2(w, "Div", wg_2(w, "Sub", one, mean), dev));
}

/* The same for the network: missing values are zeros. */
static val covariate(const struct window_graph *w, val v, i32 at, i32 k) {
    return wg_present(w, wg_covariate(w, v, at, k), wg_f64(w, 0));
}

/* Sines and cosines of times INT64 [batch, n]: FLOAT [batch, n, calendar]. */
static val calendar(const struct window_graph *w, val time) {
    struct onnx_graph *g = w->g;
    i64 period[WINDOW_PERIODS];
    val part[2 * WINDOW_PERIODS];
    i32 n = 0;
    const i32 periods = window_periods(&w->f->schema.freq, period);
    for (i32 i = 0; i < periods; i++) {
        const val at = onnx_cast(g, onnx_2(g, "Mod", time, onnx_i64(g, period[i])), ONNX_FLOAT);
        const val angle = onnx_2(g, "Mul", at, onnx_f32(g, (f32)(6.283185307179586 / (f64)period[i])));
        part[n++] = onnx_unsqueeze(g, onnx_1(g, "Sin", angle), 2);
        part[n++] = onnx_unsqueeze(g, onnx_1(g, "Cos", angle), 2);
    }
    return onnx_concat(g, 2, n, part);
}

/* [batch, nseg, F] -> [nseg, batch, F] */
static val time_major(const struct window_graph *w, i32 n, const val *part) {
    return onnx_transpose(w->g, onnx_concat(w->g, 2, n, part), 3, (i64[]){1, 0, 2});
}

/* Rows of segment ends in a context of C rows. */
static val segment_ends(const struct window_graph *w, val v) {
    const struct window_shape *p = &w->f->shape;
    i64 *at = arena_array(w->arena, p->nseg, sizeof *at);
    for (i32 t = 0; at && t < p->nseg; t++) at[t] = p->context - 1 - (i64)(p->nseg - 1 - t) * p->seg;
    if (!at) w->g->failed = true;
    return onnx_gather(w->g, v, at ? onnx_i64s(w->g, p->nseg, at) : 0, 1);
}

static val net_x(const struct window_graph *w) {
    const struct window_shape *p = &w->f->shape;
    const struct schema *c = &w->f->schema;
    const i32 C = p->context, front = p->nseg * p->seg - C, ncov = c->npast + c->nknown;
    val *part = arena_array(w->arena, 3 + ncov, sizeof *part);
    i32 n = 0;
    if (!part) {
        w->g->failed = true;
        return 0;
    }
    const val scaled = wg_2(w, "Div", wg_2(w, "Sub", w->window, w->shift), w->div);
    part[n++] = segments(w, wg_present(w, scaled, wg_f64(w, 0)), p->nseg, p->seg, front, 0);
    if (p->mask) part[n++] = segments(w, wg_mask(w, w->window), p->nseg, p->seg, front, 0);
    for (i32 k = 0; k < ncov; k++) {
        const bool past = k < c->npast;
        const val all = wg_last_rows(w, past ? w->past : w->known, 3, past ? 0 : w->ahead, C, wg_f64(w, (f64)NAN));
        part[n++] = segments(w, covariate(w, all, past ? k : k - c->npast, k), p->nseg, p->seg, front, 0);
    }
    if (p->calendar > 0) part[n++] = calendar(w, segment_ends(w, wg_last_rows(w, w->time, 2, w->ahead, C, -1)));
    return time_major(w, n, part);
}

/* Known features of the horizon: [nout, batch, F]. */
static val net_future(const struct window_graph *w, i32 nout, i32 seg) {
    const struct schema *c = &w->f->schema;
    struct onnx_graph *g = w->g;
    val *part = arena_array(w->arena, 1 + c->nknown, sizeof *part);
    i32 n = 0;
    if (!part) {
        g->failed = true;
        return 0;
    }
    for (i32 k = 0; k < c->nknown; k++) {
        const val all = onnx_slice(g, onnx_slice(g, w->known, 1, -w->ahead, ONNX_ALL), 1, 0, (i64)nout * seg);
        part[n++] = segments(w, covariate(w, all, k, c->npast + k), nout, seg, 0, 0);
    }
    if (w->f->shape.calendar > 0) {
        i64 *at = arena_array(w->arena, nout, sizeof *at);
        for (i32 t = 0; at && t < nout; t++) at[t] = (i64)t * seg;
        const val times = onnx_slice(g, w->time, 1, -w->ahead, ONNX_ALL);
        part[n++] = calendar(w, onnx_gather(g, times, at ? onnx_i64s(g, nout, at) : 0, 1));
    }
    return time_major(w, n, part);
}

static val net_ids(const struct window_graph *w, i32 item) {
    const val words = onnx_i64(w->g, w->f->schema.nword[item]);
    const val all = wg_last_rows(w, w->category, 3, 0, w->f->spec.context, words);
    const val code = onnx_squeeze(w->g, onnx_slice(w->g, all, 2, item, item + 1), 2);
    const val ends = segment_ends(w, code), none = onnx_2(w->g, "Less", ends, onnx_i64(w->g, 0));
    return onnx_transpose(w->g, onnx_where(w->g, none, words, ends), 2, (i64[]){1, 0});
}

val wg_log_mean(const struct window_graph *w) {
    const val share = wg_2(w, "Mul", w->mean, wg_f64(w, HEAD_FLOOR_SHARE));
    const val floor = wg_2(w, "Max", share, wg_f64(w, HEAD_FLOOR_COUNT));
    const val base = wg_2(w, "Add", wg_2(w, "Mul", w->base, w->dev), w->mean);
    return onnx_1(w->g, "Log", wg_2(w, "Max", base, floor));
}

/* The base in units of the window, of counts as logarithms, as targets are laid out; zero where the network learns alone. */
static val net_base(const struct window_graph *w, i32 nout, i32 seg) {
    const bool counts = forecast_counts(&w->f->spec), alone = !counts && forecast_averages(&w->f->spec);
    val b = counts ? wg_log_mean(w) : wg_2(w, "Div", wg_2(w, "Sub", w->base, w->shift), w->div);
    if (alone) b = wg_2(w, "Mul", b, wg_f64(w, 0));
    return onnx_transpose(w->g, segments(w, b, nout, seg, 0, nout * seg - w->f->spec.horizon), 3, (i64[]){1, 0, 2});
}

void wg_net_inputs(const struct window_graph *w, struct net_graph *n) {
    const struct window_shape *p = &w->f->shape;
    const i32 nout = w->f->spec.decoder->every_step ? 1 : p->nout;
    for (i32 i = 0; i < NET_BUFS; i++) n->buf[i] = -1;
    for (i32 i = 0; i < n->net->nbuf; i++) {
        const struct buf *b = &n->net->buf[i];
        if (!b->input) continue;
        if (b->role == INPUT_X) n->buf[i] = net_x(w);
        if (b->role == INPUT_CATEGORY) n->buf[i] = net_ids(w, b->item);
        if (b->role == INPUT_COLUMN) {
            const val own = w->series >= 0
                                ? w->series
                                : onnx_cast(w->g, wg_2(w, "Mul", onnx_squeeze(w->g, w->shift, 1), wg_f64(w, 0)), ONNX_INT64);
            n->buf[i] = onnx_unsqueeze(w->g, own, 0);
        }
        if (b->role == INPUT_FUTURE) n->buf[i] = net_future(w, nout, p->out_seg);
        if (b->role == INPUT_FIRST) {
            const val x = onnx_slice(w->g, n->buf[forecast_find_input(n->net, INPUT_X)], 0, -1, ONNX_ALL);
            n->buf[i] = onnx_slice(w->g, x, 2, p->seg - p->out_seg, p->seg);
        }
        if (b->role == INPUT_BASE && w->f->spec.decoder->own_output) n->buf[i] = net_base(w, nout, p->out_seg);
    }
}
