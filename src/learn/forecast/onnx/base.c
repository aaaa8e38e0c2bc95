/* base.c - base forecasts as nodes: the rules of src/bases/naive.c and their weighted sum. */
#include <math.h>

#include "learn/forecast/onnx/window.h"

static val row_numbers(const struct window_graph *w) {
    f64 *row = arena_array(w->arena, w->W, sizeof *row);
    for (i32 i = 0; row && i < w->W; i++) row[i] = i;
    if (!row) w->g->failed = true;
    return onnx_tensor(w->g, NULL, ONNX_DOUBLE, 2, (i64[]){1, w->W}, row);
}

static struct past_graph past_of(const struct window_graph *w) {
    struct onnx_graph *g = w->g;
    struct past_graph p = {.mask = wg_mask(w, w->hist), .row = row_numbers(w)};
    const val held = wg_hold(w, w->hist, w->W, 1), at = onnx_op_int(g, "ArgMax", "axis", 1, 1, &p.mask);
    const val first = wg_present(w, onnx_op_int(g, "GatherElements", "axis", 1, 2, (val[]){w->hist, at}), wg_f64(w, 0));
    p.v = wg_present(w, held, first);
    p.last = onnx_slice(g, p.v, 1, -1, ONNX_ALL);
    p.first = onnx_cast(g, at, ONNX_DOUBLE);
    p.n = wg_2(w, "Sub", wg_f64(w, w->W), p.first);
    return p;
}

/* [batch, k] -> [batch, H]: columns 0, 1, .. k-1, 0, 1, .. */
static val tiled(const struct window_graph *w, val v, i32 k) {
    const i32 H = w->f->spec.horizon;
    i64 *at = arena_array(w->arena, H, sizeof *at);
    for (i32 h = 0; at && h < H; h++) at[h] = h % k;
    if (!at) w->g->failed = true;
    return onnx_gather(w->g, v, at ? onnx_i64s(w->g, H, at) : 0, 1);
}

/* The numbers of a rule for each step: DOUBLE [1, H]. */
static val by_step(const struct window_graph *w, f64 (*of)(i32 h, i32 season), i32 season) {
    const i32 H = w->f->spec.horizon;
    f64 *v = arena_array(w->arena, H, sizeof *v);
    for (i32 h = 0; v && h < H; h++) v[h] = of(h, season);
    if (!v) w->g->failed = true;
    return onnx_tensor(w->g, NULL, ONNX_DOUBLE, 2, (i64[]){1, H}, v);
}

static f64 seasons_of(i32 h, i32 m) { return h / m + 1; }
static f64 step_of(i32 h, i32 m) {
    (void)m;
    return h;
}

/* The values of a season before the origin, k seasons back. */
static val season_at(const struct window_graph *w, val v, i32 m, i32 k) {
    return onnx_slice(w->g, v, 1, -(i64)k * m, k > 1 ? -(i64)(k - 1) * m : ONNX_ALL);
}

/* season_seen: the nearest earlier season that has a value at this phase, else the last value. */
static val season_seen(const struct window_graph *w, const struct past_graph *p, i32 m) {
    return wg_present(w, season_at(w, wg_hold(w, w->hist, w->W, m), m, 1), p->last);
}

/* Means of the last two seasons over the phases that both have: *now, *before; returns where there are any. */
static val two_seasons(const struct window_graph *w, const struct past_graph *p, i32 m, val *now, val *before) {
    const val a = season_at(w, w->hist, m, 1), b = season_at(w, w->hist, m, 2), zero = wg_f64(w, 0);
    const val both = wg_2(w, "Mul", wg_mask(w, a), wg_mask(w, b)), n = onnx_sum(w->g, both, 1);
    const val least = wg_2(w, "Max", n, wg_f64(w, 1));
    *now = wg_2(w, "Div", onnx_sum(w->g, wg_2(w, "Mul", wg_present(w, a, zero), both), 1), least);
    *before = wg_2(w, "Div", onnx_sum(w->g, wg_2(w, "Mul", wg_present(w, b, zero), both), 1), least);
    const val long_enough = wg_2(w, "GreaterOrEqual", p->n, wg_f64(w, 2.0 * m));
    return wg_2(w, "And", wg_2(w, "Greater", n, zero), long_enough);
}

static val rule_growth_of(const struct window_graph *w, const struct past_graph *p, i32 m) {
    val now, before;
    const val any = two_seasons(w, p, m, &now, &before);
    const val gain = onnx_where(w->g, any, wg_2(w, "Sub", now, before), wg_f64(w, 0));
    return wg_2(w, "Add", tiled(w, season_seen(w, p, m), m), wg_2(w, "Mul", gain, by_step(w, seasons_of, m)));
}

static val rule_ratio_of(const struct window_graph *w, const struct past_graph *p, i32 m) {
    val now, before;
    const val zero = wg_2(w, "Div", w->mean, w->dev), any = two_seasons(w, p, m, &now, &before), none = wg_f64(w, 0);
    now = wg_2(w, "Add", now, zero), before = wg_2(w, "Add", before, zero);
    const val good = wg_2(w, "And", any, wg_2(w, "And", wg_2(w, "Greater", now, none), wg_2(w, "Greater", before, none)));
    const val raw = wg_2(w, "Div", now, onnx_where(w->g, good, before, wg_f64(w, 1)));
    const val near = wg_2(w, "Min", wg_2(w, "Max", raw, wg_f64(w, 0.5)), wg_f64(w, 2));
    const val gain = onnx_where(w->g, good, near, wg_f64(w, 1));
    const val factor = wg_2(w, "Pow", gain, by_step(w, seasons_of, m));
    return wg_2(w, "Sub", wg_2(w, "Mul", wg_2(w, "Add", tiled(w, season_seen(w, p, m), m), zero), factor), zero);
}

static val rule_average_of(const struct window_graph *w, const struct past_graph *p, i32 m) {
    val sum = -1, n = -1;
    for (i32 k = 1; k <= 3; k++) {
        const val s = season_at(w, w->hist, m, k), mask = wg_mask(w, s), v = wg_present(w, s, wg_f64(w, 0));
        sum = sum < 0 ? v : wg_2(w, "Add", sum, v);
        n = n < 0 ? mask : wg_2(w, "Add", n, mask);
    }
    const val mean = wg_2(w, "Div", sum, wg_2(w, "Max", n, wg_f64(w, 1)));
    return tiled(w, onnx_where(w->g, wg_2(w, "Greater", n, wg_f64(w, 0)), mean, season_seen(w, p, m)), m);
}

/* The line through the first and the last value. */
static val rule_drift_of(const struct window_graph *w, const struct past_graph *p) {
    val last = 0;
    onnx_node(w->g, "ArgMax", 1, &p->mask, 1, &last,
              (struct onnx_attr[]){
                  {.name = "axis", .type = ATTR_INT, .i = 1}, {.name = "select_last_index", .type = ATTR_INT, .i = 1}, {0}});
    const val at = onnx_cast(w->g, last, ONNX_DOUBLE), run = wg_2(w, "Sub", at, p->first);
    const val rise = wg_2(w, "Sub", p->last, onnx_slice(w->g, p->v, 1, 0, 1));
    const val slope = wg_2(w, "Div", rise, wg_2(w, "Max", run, wg_f64(w, 1)));
    const val far = wg_2(w, "Add", by_step(w, step_of, 1), wg_2(w, "Sub", wg_f64(w, w->W), at));
    return wg_2(w, "Add", p->last, wg_2(w, "Mul", slope, far));
}

static val rule_mean_of(const struct window_graph *w, const struct past_graph *p) {
    const val v = wg_present(w, w->hist, wg_f64(w, 0)), n = onnx_sum(w->g, p->mask, 1);
    return wg_2(w, "Div", onnx_sum(w->g, v, 1), wg_2(w, "Max", n, wg_f64(w, 1)));
}

static val part_of(const struct window_graph *w, const struct base_part *b, const struct past_graph *p) {
    const i32 m = imax(1, b->season);
    switch (b->kind) {
        case BASE_LAST:
            return p->last;
        case BASE_SEASON:
            return tiled(w, season_seen(w, p, m), m);
        case BASE_GROWTH:
            return rule_growth_of(w, p, m);
        case BASE_RATIO:
            return rule_ratio_of(w, p, m);
        case BASE_AVERAGE:
            return rule_average_of(w, p, m);
        case BASE_DRIFT:
            return rule_drift_of(w, p);
        case BASE_MEAN:
            return rule_mean_of(w, p);
        case BASE_SES:
            return wg_ses(w, p, b->alpha);
        case BASE_THETA:
            return wg_theta(w, p, b->season, b->alpha);
        case BASE_TREES:
            return wg_trees(w, w->f->base->trees);
        case BASE_RIDGE:
            return wg_ridge(w, w->f->base->ridge);
        default:
            onnx_refuse(w->g, "the part \"%s\" of the base (--base)", base_kind_name(b->kind));
            return p->last;
    }
}

/* What a model without a base begins with (level_of in batch.c). */
static val level(const struct window_graph *w) {
    val shift = w->shift, div;
    if (forecast_counts(&w->f->spec)) {
        wg_scale(w, WSCALE_MEAN, w->f->spec.context, &shift, &div);
        const val x = wg_mask(w, w->window), n = onnx_sum(w->g, x, 1);
        shift = wg_2(w, "Add", shift, onnx_where(w->g, wg_2(w, "Less", n, wg_f64(w, 2)), wg_f64(w, 0), div));
    }
    return shift;
}

void wg_base(struct window_graph *w) {
    const struct base *b = w->f->base;
    const i32 H = w->f->spec.horizon;
    val sum = -1;
    const struct past_graph p = b ? past_of(w) : (struct past_graph){0};
    for (i32 i = 0; b && i < b->npart; i++) {
        const val part = wg_2(w, "Mul", part_of(w, &b->part[i], &p), wg_f64(w, b->part[i].weight));
        sum = sum < 0 ? part : wg_2(w, "Add", sum, part);
    }
    if (!b) sum = level(w);
    f64 *zero = arena_array(w->arena, H, sizeof *zero);
    if (!zero)
        w->g->failed = true;
    else
        sum = wg_2(w, "Add", sum, onnx_tensor(w->g, NULL, ONNX_DOUBLE, 2, (i64[]){1, H}, zero)); /* one value: for all steps */
    w->base = wg_rounded(w, sum);
}
