/* ridge.c - the linear map of src/bases/ridge.c as one product, with its constant, calendar and columns known ahead. */
#include <math.h>

#include "data/time.h"
#include "learn/forecast/onnx/window.h"

/* Rows [from, from + n) of the map as a constant [n, H]. */
static val rows_of(const struct window_graph *w, const struct ridge *r, i64 from, i64 n) {
    f64 *m = arena_array(w->arena, n * r->H, sizeof *m);
    for (i64 i = 0; m && i < n; i++)
        for (i32 h = 0; h < r->H; h++) m[i * r->H + h] = (f64)r->w[(from + i) * r->Hp + h];
    if (!m) w->g->failed = true;
    return onnx_tensor(w->g, NULL, ONNX_DOUBLE, 2, (i64[]){n, r->H}, m);
}

/* The rows of hour, weekday and month of the first step. */
static val calendar_rows(const struct window_graph *w, const struct ridge *r) {
    struct onnx_graph *g = w->g;
    const val time = onnx_squeeze(g, onnx_slice(g, onnx_slice(g, w->time, 1, -w->ahead, ONNX_ALL), 1, 0, 1), 1);
    const struct calendar_graph at = wg_calendar(w, time);
    const val weekday = onnx_2(g, "Add", at.weekday, onnx_i64(g, 24)), month = onnx_2(g, "Add", at.month, onnx_i64(g, 31));
    const val table = rows_of(w, r, (i64)r->L + 1, RIDGE_CALENDAR);
    const val two = onnx_2(g, "Add", onnx_gather(g, table, at.hour, 0), onnx_gather(g, table, weekday, 0));
    return onnx_2(g, "Add", two, onnx_gather(g, table, month, 0));
}

/* Means of groups of rows of one column known ahead: [batch, groups]. */
static val ahead_groups(const struct window_graph *w, const struct ridge *r, i32 col, i32 n) {
    const i32 total = r->ahead.back + r->H, width = n * r->ahead.group;
    struct onnx_graph *g = w->g;
    const val fill = wg_f64(w, (f64)NAN), zero = wg_f64(w, 0);
    const val seen = onnx_slice(g, onnx_pad(g, w->known, 3, 1, total, 0, fill), 1, -(i64)(r->ahead.back + w->ahead), ONNX_ALL);
    const val v = wg_covariate(w, onnx_slice(g, seen, 1, 0, total), col, w->f->schema.npast + col);
    const val padded = onnx_pad(g, v, 2, 1, 0, width - total, fill);
    const val mask = onnx_reshape(g, wg_mask(w, padded), DIMS(-1, n, r->ahead.group));
    const val x = onnx_reshape(g, wg_present(w, padded, zero), DIMS(-1, n, r->ahead.group));
    const val count = onnx_squeeze(g, onnx_sum(g, mask, 2), 2), sum = onnx_squeeze(g, onnx_sum(g, x, 2), 2);
    return wg_2(w, "Div", sum, wg_2(w, "Max", count, wg_f64(w, 1)));
}

static val ahead_part(const struct window_graph *w, const struct ridge *r) {
    const i64 first = (i64)r->L + 1 + (r->calendar ? RIDGE_CALENDAR : 0);
    const i32 X = ridge_rows(r) - (i32)first, n = X / r->ahead.ncol;
    val *part = arena_array(w->arena, r->ahead.ncol, sizeof *part);
    if (!part) {
        w->g->failed = true;
        return 0;
    }
    for (i32 c = 0; c < r->ahead.ncol; c++) part[c] = ahead_groups(w, r, c, n);
    return onnx_2(w->g, "MatMul", onnx_concat(w->g, 1, r->ahead.ncol, part), rows_of(w, r, first, X));
}

/* Steps behind those of the fit repeat the last value. */
static val all_steps(const struct window_graph *w, const struct ridge *r, val out, val last) {
    const i32 H = w->f->spec.horizon;
    if (r->H >= H) return onnx_slice(w->g, out, 1, 0, H);
    const val more =
        wg_2(w, "Add", last,
             onnx_tensor(w->g, NULL, ONNX_DOUBLE, 2, (i64[]){1, H - r->H}, arena_array(w->arena, H - r->H, sizeof(f64))));
    return onnx_concat(w->g, 1, VALS(out, more));
}

val wg_ridge(const struct window_graph *w, const struct ridge *r) {
    struct onnx_graph *g = w->g;
    const val held = wg_hold(w, w->hist, w->W, 1);
    const val last = wg_present(w, onnx_slice(g, held, 1, -1, ONNX_ALL), wg_f64(w, 0));
    const val x = onnx_slice(g, wg_present(w, held, last), 1, -(i64)r->L, ONNX_ALL);
    val out = onnx_2(g, "MatMul", wg_2(w, "Sub", x, last), rows_of(w, r, 0, r->L));
    out = wg_2(w, "Add", wg_2(w, "Add", out, rows_of(w, r, r->L, 1)), last);
    if (r->calendar) out = wg_2(w, "Add", out, calendar_rows(w, r));
    if (r->ahead.ncol > 0) out = wg_2(w, "Add", out, ahead_part(w, r));
    return all_steps(w, r, out, last);
}
