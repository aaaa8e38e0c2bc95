/* smooth.c - exponential smoothing and the theta method as nodes (src/bases/smooth.c).
 *
 * Smoothing is linear in the past: level = sum of a (1 - a)^j z[n - 1 - j], and the first value has the rest of the weight.  Rows
 * in front of the first value repeat it, so any past is one product with W weights. */
#include <math.h>

#include "learn/forecast/onnx/window.h"

static f64 *room(const struct window_graph *w, i64 n) {
    f64 *p = arena_array(w->arena, n, sizeof *p);
    if (!p) w->g->failed = true;
    return p;
}

static val smoothed(const struct window_graph *w, val z, f64 alpha) {
    f64 *weight = room(w, w->W);
    for (i32 i = 0; weight && i < w->W; i++) weight[i] = (i > 0 ? alpha : 1) * pow(1 - alpha, w->W - 1 - i);
    return onnx_2(w->g, "MatMul", z, onnx_tensor(w->g, NULL, ONNX_DOUBLE, 2, (i64[]){w->W, 1}, weight));
}

val wg_ses(const struct window_graph *w, const struct past_graph *p, f64 alpha) { return smoothed(w, p->v, alpha); }

/* 1.0 where row - add >= first: rows of the past. */
static val behind(const struct window_graph *w, const struct past_graph *p, f64 add) {
    const val row = wg_2(w, "Sub", p->row, wg_f64(w, add));
    return onnx_cast(w->g, wg_2(w, "GreaterOrEqual", row, p->first), ONNX_DOUBLE);
}

/* Least squares slope of the rows of the past. */
static val slope(const struct window_graph *w, const struct past_graph *p, val z) {
    struct onnx_graph *g = w->g;
    const val in = behind(w, p, 0), half = wg_f64(w, 0.5), one = wg_f64(w, 1);
    const val mid = wg_2(w, "Mul", wg_2(w, "Add", p->first, wg_f64(w, w->W - 1)), half);
    const val mean = wg_2(w, "Div", onnx_sum(g, wg_2(w, "Mul", z, in), 1), p->n);
    const val far = wg_2(w, "Mul", wg_2(w, "Sub", p->row, mid), in);
    const val up = onnx_sum(g, wg_2(w, "Mul", far, wg_2(w, "Sub", z, mean)), 1), down = onnx_sum(g, wg_2(w, "Mul", far, far), 1);
    return onnx_where(g, wg_2(w, "Less", p->n, wg_f64(w, 2)), wg_f64(w, 0),
                      wg_2(w, "Div", up, wg_2(w, "Max", down, wg_2(w, "Mul", half, one))));
}

/* Row i belongs to column (i - W) mod m, so that step h of the horizon has column h % m: [W, m], or turned. */
static val phases(const struct window_graph *w, i32 m, bool turned) {
    f64 *t = room(w, (i64)w->W * m);
    for (i32 i = 0; t && i < w->W; i++) {
        const i32 k = (i % m + m - w->W % m) % m;
        t[turned ? (i64)k * w->W + i : (i64)i * m + k] = 1;
    }
    return onnx_tensor(w->g, NULL, ONNX_DOUBLE, 2, turned ? (i64[]){m, w->W} : (i64[]){w->W, m}, t);
}

/* Centred moving average over a season, where the past has all of its rows; *mask = these rows. */
static val around(const struct window_graph *w, const struct past_graph *p, i32 m, val *mask) {
    struct onnx_graph *g = w->g;
    const i32 half = m / 2;
    const val zero = wg_f64(w, 0), sum = onnx_2(g, "CumSum", p->v, onnx_i64(g, 1));
    /* sums of rows up to i + half, and up to i - half - 1 */
    const val upto = onnx_pad(g, onnx_slice(g, sum, 1, half, ONNX_ALL), 2, 1, 0, half, zero);
    const val before = onnx_slice(g, onnx_pad(g, sum, 2, 1, half + 1, 0, zero), 1, 0, w->W);
    val window = wg_2(w, "Sub", upto, before);
    if (m % 2 == 0) {
        const val high = onnx_pad(g, onnx_slice(g, p->v, 1, half, ONNX_ALL), 2, 1, 0, half, zero);
        const val low = onnx_slice(g, onnx_pad(g, p->v, 2, 1, half, 0, zero), 1, 0, w->W);
        window = wg_2(w, "Sub", window, wg_2(w, "Mul", wg_2(w, "Add", high, low), wg_f64(w, 0.5)));
    }
    const val fits = onnx_cast(g, wg_2(w, "Less", p->row, wg_f64(w, w->W - half)), ONNX_DOUBLE);
    *mask = wg_2(w, "Mul", behind(w, p, half), fits);
    return wg_2(w, "Div", window, wg_f64(w, m));
}

/* Seasonal differences [batch, m] with mean 0; zeros where the past is shorter than two seasons. */
static val season_index(const struct window_graph *w, const struct past_graph *p, i32 m) {
    struct onnx_graph *g = w->g;
    val mask;
    const val average = around(w, p, m, &mask), by = phases(w, m, false), one = wg_f64(w, 1), zero = wg_f64(w, 0);
    const val sum = onnx_2(g, "MatMul", wg_2(w, "Mul", wg_2(w, "Sub", p->v, average), mask), by);
    const val index = wg_2(w, "Div", sum, wg_2(w, "Max", onnx_2(g, "MatMul", mask, by), one));
    const val centred = wg_2(w, "Sub", index, wg_2(w, "Div", onnx_sum(g, index, 1), wg_f64(w, m)));
    return onnx_where(g, wg_2(w, "Less", p->n, wg_f64(w, 2.0 * m)), zero, centred);
}

val wg_theta(const struct window_graph *w, const struct past_graph *p, i32 m, f64 alpha) {
    struct onnx_graph *g = w->g;
    const i32 H = w->f->spec.horizon;
    const bool seasonal = m > 1 && m <= 1024 && 2 * m <= w->W;
    val z = p->v, index = -1;
    if (seasonal) {
        index = season_index(w, p, m);
        z = wg_2(w, "Sub", z, onnx_2(g, "MatMul", index, phases(w, m, true)));
        /* rows in front of the first value repeat it without its season, too */
        const val at = onnx_cast(g, p->first, ONNX_INT64);
        const val first = onnx_op_int(g, "GatherElements", "axis", 1, 2, (val[]){z, at});
        z = onnx_where(g, onnx_cast(g, behind(w, p, 0), ONNX_BOOL), z, first);
    }
    const val level = smoothed(w, z, alpha), rise = wg_2(w, "Mul", slope(w, p, z), wg_f64(w, 0.5));
    const val left = wg_2(w, "Pow", wg_f64(w, 1 - alpha), p->n);
    const val head = wg_2(w, "Div", wg_2(w, "Sub", wg_f64(w, 1), left), wg_f64(w, alpha));
    f64 *step = room(w, H);
    i64 *phase = arena_array(w->arena, H, sizeof *phase);
    for (i32 h = 0; step && phase && h < H; h++) step[h] = h, phase[h] = seasonal ? h % m : 0;
    if (!step || !phase) return 0;
    const val ahead = wg_2(w, "Add", onnx_tensor(g, NULL, ONNX_DOUBLE, 2, (i64[]){1, H}, step), head);
    val out = wg_2(w, "Add", level, wg_2(w, "Mul", rise, ahead));
    if (seasonal) out = wg_2(w, "Add", out, onnx_gather(g, index, onnx_i64s(g, H, phase), 1));
    return out;
}
