/* graph.c - a forecaster as an ONNX graph: its parts in order (window.h), and what the file says about itself. */
#include <stdio.h>

#include "base/json.h"
#include "learn/forecast/onnx/window.h"
#include "learn/forecast/ops.h"

i32 forecast_graph_rows(const struct forecaster *f) {
    i32 rows = imax(f->spec.context, forecast_lags(&f->spec));
    for (i32 i = 0; f->base && i < f->base->npart; i++)
        rows = imax(rows, f->base->part[i].kind == BASE_RIDGE  ? 2 * f->base->ridge->L
                          : f->base->part[i].kind == BASE_LAST ? 1
                                                               : BASE_LOOK);
    return rows;
}

i32 forecast_graph_ahead(const struct forecaster *f) { return imax(f->spec.horizon, f->shape.nout * f->shape.out_seg); }

/* The output of a net as FLOAT [batch, outputs, horizon]. */
static val laid_out(const struct window_graph *w, val out) {
    const struct window_shape *p = &w->f->shape;
    const i32 Q = head_outputs(&w->f->spec);
    struct onnx_graph *g = w->g;
    const i32 nout = w->f->spec.decoder->every_step ? 1 : p->nout;
    const val parts = onnx_reshape(g, out, DIMS(nout, -1, Q, p->out_seg));
    const val v = onnx_reshape(g, onnx_transpose(g, parts, 4, (i64[]){1, 2, 0, 3}), DIMS(0, 0, -1));
    return onnx_slice(g, v, 2, 0, p->horizon);
}

/* One past the last recurrent op. */
static i32 top_op(const struct net *net) {
    i32 l = net->nop;
    while (l > 0 && net->op[l - 1].end < 0) l--;
    return l;
}

/* With decoder.every_step the head sees what is known ahead at every step; the last one alone makes the forecast. */
static err member(const struct window_graph *w, const struct net *net, const struct net_graph *inputs, i32 m, val *out) {
    struct net_graph n = *inputs;
    char prefix[32];
    snprintf(prefix, sizeof prefix, w->f->nmember > 1 ? "member.%d." : "", m);
    n.prefix = prefix;
    n.theta = w->f->theta[m];
    const i32 top = w->f->spec.decoder->every_step ? top_op(net) : 0;
    TRY(net_graph(&n, 0, top));
    if (top > 0) n.buf[net->op[top - 1].out] = onnx_slice(w->g, n.buf[net->op[top - 1].out], 0, -1, ONNX_ALL);
    TRY(net_graph(&n, top, net->nop - 1));
    *out = laid_out(w, n.buf[net->op[net->nop - 1].spec.in[0]]);
    return 0;
}

/* The mean of all members; where the network forecasts from the centre of the window, its distance from the base. */
static err network(const struct window_graph *w, const struct net *net, val *raw) {
    const struct forecast_spec *spec = &w->f->spec;
    struct net_graph inputs = {.g = w->g, .net = net, .arena = w->arena, .lengths = -1};
    val sum = -1, out;
    wg_net_inputs(w, &inputs);
    for (i32 m = 0; m < w->f->nmember; m++) {
        TRY(member(w, net, &inputs, m, &out));
        sum = sum < 0 ? out : onnx_2(w->g, "Add", sum, out);
    }
    if (w->f->nmember > 1) sum = onnx_2(w->g, "Mul", sum, onnx_f32(w->g, 1.F / (f32)w->f->nmember));
    *raw = sum;
    if (!forecast_averages(spec)) return 0;
    const val gap = onnx_unsqueeze(w->g, wg_2(w, "Div", wg_2(w, "Sub", w->shift, w->base), w->div), 1);
    const i32 Q = head_outputs(spec), located = spec->family ? 1 : Q;
    const val moved = onnx_2(w->g, "Add", onnx_slice(w->g, sum, 1, 0, located), onnx_cast(w->g, gap, ONNX_FLOAT));
    *raw = located == Q ? moved : onnx_concat(w->g, 1, VALS(moved, onnx_slice(w->g, sum, 1, located, Q)));
    return 0;
}

/* ------------------------------------------------------------------ what the file says -------------------------------------- */

static struct js *names(const char *const *name, i32 n) {
    struct js *list = js_array();
    for (i32 i = 0; i < n; i++) js_push(list, js_new_text(name[i]));
    return list;
}

/* Names of the covariates: of a panel, those of the file. */
static const char *const *covariates(const struct schema *c, i32 from) {
    return (const char *const *)(c->panel ? c->column + 1 + from : c->name + c->ntarget + from);
}

static err describe(const struct window_graph *w) {
    const struct schema *c = &w->f->schema;
    struct js *o = js_object(), *words = js_array(), *levels = js_array();
    struct str text = {0};
    js_put(o, "series", names((const char *const *)c->name, c->ntarget));
    js_put(o, "past", names(covariates(c, 0), c->npast));
    js_put(o, "known", names(covariates(c, c->npast), c->nknown));
    js_put(o, "category", names((const char *const *)c->cat_name, c->ncat));
    for (i32 k = 0; k < c->ncat; k++) js_push(words, names((const char *const *)c->word[k], c->nword[k]));
    js_put(o, "words", words);
    for (i32 q = 0; q < w->f->spec.nband; q++) js_push(levels, js_new_f64(w->f->spec.quantiles.v[q]));
    js_put(o, "quantiles", levels);
    js_put(o, "frequency", js_new_text(c->freq.name));
    js_put(o, "context", js_new_i64(w->f->spec.context));
    js_put(o, "horizon", js_new_i64(w->f->spec.horizon));
    js_put(o, "history", js_new_i64(w->W));
    js_put(o, "ahead", js_new_i64(w->ahead));
    err e = js_text(o, &text, 0);
    js_free(o);
    if (e >= 0) onnx_meta(w->g, "stretto.inputs", str_text(&text));
    str_free(&text);
    return e;
}

err forecast_graph(const struct model *m, struct onnx_graph *g, const struct graph_wishes *wish) {
    const struct forecaster *f = forecaster_in(m);
    struct arena room = {0};
    struct window_graph w = {.g = g, .f = f, .arena = &room, .W = forecast_graph_rows(f)};
    w.ahead = forecast_graph_ahead(f);
    val raw = -1;
    wg_inputs(&w);
    wg_base(&w);
    err e = f->nmember > 0 ? network(&w, &f->net, &raw) : 0;
    if (e >= 0) wg_outputs(&w, raw, !wish->mean_only);
    if (e >= 0) e = describe(&w);
    arena_free(&room);
    return e;
}
