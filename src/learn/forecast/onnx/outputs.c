/* outputs.c - the forecast as the graph's outputs: base and correction by their shares, bands, original units (forecast/out.c).
 */
#include <math.h>

#include "base/special.h"
#include "learn/forecast/onnx/window.h"
#include "learn/forecast/out.h"

static val constant(const struct window_graph *w, i32 ndim, const i64 *dim, const f64 *v) {
    if (!v) w->g->failed = true;
    return v ? onnx_tensor(w->g, NULL, ONNX_DOUBLE, ndim, dim, v) : 0;
}

/* DOUBLE [1, horizon]: the share of the correction at each step. */
static val weights(const struct window_graph *w, f64 sign, f64 add) {
    const i32 H = w->f->spec.horizon;
    f64 *v = arena_array(w->arena, H, sizeof *v);
    for (i32 k = 0; v && k < H; k++) v[k] = add + sign * (f64)forecast_weight(w->f, k);
    return constant(w, 2, (i64[]){1, H}, v);
}

/* Output p of the network as DOUBLE [batch, horizon]. */
static val output(const struct window_graph *w, val raw, i32 p) {
    return onnx_cast(w->g, onnx_squeeze(w->g, onnx_slice(w->g, raw, 1, p, p + 1), 1), ONNX_DOUBLE);
}

static val original(const struct window_graph *w, val v) { return wg_2(w, "Add", wg_2(w, "Mul", v, w->dev), w->mean); }

/* The mean in units of the series. */
static val mean_of(const struct window_graph *w, val raw) {
    const struct forecast_spec *spec = &w->f->spec;
    if (raw < 0) return w->base;
    const val part = wg_2(w, "Mul", output(w, raw, head_point(spec)), weights(w, 1, 0));
    if (!forecast_counts(spec)) return wg_2(w, "Add", w->base, wg_2(w, "Mul", part, w->div));
    const val most = wg_2(w, "Min", wg_2(w, "Add", wg_log_mean(w), part), wg_f64(w, FAMILY_LOG_MEAN));
    return wg_2(w, "Div", wg_2(w, "Sub", onnx_1(w->g, "Exp", most), w->mean), w->dev);
}

/* Residual quantile q of each step, of the series of each window: DOUBLE [batch or 1, horizon]. */
static val residuals(const struct window_graph *w, i32 q) {
    const struct forecaster *f = w->f;
    const i32 H = f->spec.horizon, n = f->schema.ntarget;
    const bool scores = f->spec.family && f->nmember > 0;
    f64 *v = arena_array(w->arena, (i64)n * H, sizeof *v);
    for (i64 i = 0; v && i < (i64)n * H; i++) {
        v[i] = f->spread ? (f64)f->spread[(i / H * f->spec.nband + q) * H + i % H] : 0;
        if (scores && isnan(v[i])) v[i] = special_normal_quantile(f->spec.quantiles.v[q]);
        if (scores) v[i] = dmax(-FAMILY_FAR, dmin(FAMILY_FAR, v[i]));
    }
    const val table = constant(w, 2, (i64[]){n, H}, v);
    return w->series < 0 ? table : onnx_gather(w->g, table, w->series, 0);
}

/* The unit of residual quantiles: [batch, 1]. */
static val unit(const struct window_graph *w) {
    const struct forecaster *f = w->f;
    const f32 power = f->spread ? f->spread[forecast_quantiles(f, f->schema.ntarget)] : 0;
    val shift, div;
    if (power < 0) return w->div;
    if (!(power > 0)) return wg_f64(w, 1);
    wg_scale(w, WSCALE_WINDOW, forecast_lags(&f->spec), &shift, &div);
    return wg_2(w, "Pow", div, wg_f64(w, (f64)power));
}

static val softplus(const struct window_graph *w, val v) { /* log(1 + exp v), also for large v */
    struct onnx_graph *g = w->g;
    const val tail = onnx_1(g, "Log", wg_2(w, "Add", wg_f64(w, 1), onnx_1(g, "Exp", onnx_1(g, "Neg", onnx_1(g, "Abs", v)))));
    return wg_2(w, "Add", wg_2(w, "Max", v, wg_f64(w, 0)), tail);
}

/* Quantile q in units of the series: [batch, horizon]. */
static val quantile(const struct window_graph *w, val raw, val mean, val size, i32 q) {
    const struct forecast_spec *spec = &w->f->spec;
    const val r = wg_2(w, "Mul", residuals(w, q), size);
    if (raw >= 0 && spec->family) { /* normal: location + deviation * score */
        const val deviation = wg_2(w, "Add", softplus(w, output(w, raw, 1)), wg_f64(w, 1e-3));
        return wg_2(w, "Add", mean, wg_2(w, "Mul", w->div, wg_2(w, "Mul", deviation, r)));
    }
    if (raw < 0 || !spec->output->quantiles) return wg_2(w, "Add", mean, r);
    const val own = wg_2(w, "Mul", wg_2(w, "Mul", output(w, raw, q), w->div), weights(w, 1, 0));
    return wg_2(w, "Add", wg_2(w, "Add", w->base, own), wg_2(w, "Mul", weights(w, -1, 1), r));
}

/* Without a network a quantile head has the bands of its base with all of the residuals (own_quantile with weight 0). */
static bool expressible(const struct window_graph *w, bool network) {
    const struct forecast_spec *spec = &w->f->spec;
    if (!spec->family || (!network && !spec->family->counts)) return true;
    if (network && !spec->family->counts && spec->family->nparam == 2) return true;
    onnx_refuse(w->g, "quantiles of the head \"%s\" (leave them out: --mean-only)", spec->head);
    w->g->fix = "--mean-only";
    return false;
}

static void add_quantiles(const struct window_graph *w, val raw, val mean) {
    const i32 Q = w->f->spec.nband, H = w->f->spec.horizon;
    val *band = arena_array(w->arena, Q, sizeof *band), sorted[2] = {0};
    const struct onnx_dim dim[] = {{"batch", 0}, {NULL, H}, {NULL, Q}};
    if (!band) w->g->failed = true;
    if (!band || !expressible(w, raw >= 0)) return;
    const val size = unit(w);
    for (i32 q = 0; q < Q; q++) band[q] = onnx_unsqueeze(w->g, quantile(w, raw, mean, size, q), 2);
    onnx_node(w->g, "TopK", 2, (val[]){onnx_concat(w->g, 2, Q, band), onnx_i64s(w->g, DIMS(Q))}, 2, sorted,
              (struct onnx_attr[]){{.name = "largest", .type = ATTR_INT, .i = 0}, {0}});
    const val scale = onnx_unsqueeze(w->g, w->dev, 2), shift = onnx_unsqueeze(w->g, w->mean, 2);
    onnx_output(w->g, wg_2(w, "Add", wg_2(w, "Mul", sorted[0], scale), shift), "quantiles", ONNX_DOUBLE, 3, dim);
}

void wg_outputs(struct window_graph *w, val raw, bool quantiles) {
    const struct onnx_dim dim[] = {{"batch", 0}, {NULL, w->f->spec.horizon}};
    const val mean = mean_of(w, raw);
    onnx_output(w->g, original(w, mean), "mean", ONNX_DOUBLE, 2, dim);
    if (quantiles && w->f->spec.nband > 0) add_quantiles(w, raw, mean);
}
