/* forecast_net.c - the layers of a forecaster.
 *
 *   decode:  x [n][B][I] -seg-> [n][B][d] -lstm.0..- end -decode(column, future)-> [m][B][H] -dropout-head-> [m][B][w*Q] -loss
 *   direct:  x [n][B][I] ------------------lstm.0..- end ----------last (+ future)-> [1][B][H] -dropout-head-> [1][B][h*Q] -loss
 *
 * Inputs in this order: x, one ids buffer per category, column, future, y, base (forecast_batch.c fills them by name). */
#include <math.h>
#include <stdio.h>

#include "learn/forecast.h"

/* Segments: rows per input of the cell, and the output cut the same way. */
err forecast_shape(const struct forecast_spec *spec, const struct series *s, struct window_shape *out) {
    i32 seg = imax(1, spec->segment);
    *out = (struct window_shape){.context = spec->context,
                                 .horizon = spec->horizon,
                                 .seg = seg,
                                 .nseg = ceil_div(spec->context, seg),
                                 .scale = spec->scale};
    out->out_seg = spec->decode ? imin(seg, spec->horizon) : spec->horizon;
    out->nout = ceil_div(spec->horizon, out->out_seg);
    for (i32 c = 0; c < s->ntarget && !out->mask; c++)
        for (i64 i = 0; i < s->nrow && !out->mask; i++) out->mask = isnan(series_col(s, c)[i]);
    out->calendar = spec->calendar && s->time ? window_calendar_size(&s->freq) : 0;
    return 0;
}

/* Adds an op that reads `in` and hands on its output. */
static err chain(struct net *n, struct op_spec spec, const char *name, i32 *buf) {
    i32 op;
    snprintf(spec.name, sizeof spec.name, "%s", name);
    spec.in[0] = *buf;
    TRY(net_op(n, &spec, &op));
    *buf = n->op[op].out;
    return 0;
}

static struct op_spec op(const char *layer) { return (struct op_spec){.layer = layer, .in = {-1, -1, -1}, .share = -1}; }

static err categories(struct net *n, const struct window_shape *p, const struct series *s, i32 *x) {
    for (i32 k = 0; k < s->ncat; k++) {
        i32 ids, wide;
        char name[24];
        snprintf(name, sizeof name, "category.%d", k);
        TRY(net_input(n, name, p->nseg, 1, true, &ids));
        struct op_spec embed = op("embed"), join = op("concat");
        embed.vocab = s->nword[k] + 1;
        embed.units = imin(16, imax(2, s->nword[k] / 2 + 1));
        wide = ids;
        snprintf(name, sizeof name, "embed.%d", k);
        TRY(chain(n, embed, name, &wide));
        join.in[1] = wide;
        snprintf(name, sizeof name, "join.%d", k);
        TRY(chain(n, join, name, x));
    }
    return 0;
}

/* The stack of recurrent layers; returns the buffer of the top's end state and the op of the top. */
static err recurrent(struct net *n, const struct forecast_spec *spec, i32 x, i32 *end, i32 *top) {
    for (i32 k = 0; k < spec->layers; k++) {
        struct op_spec cell = op("recurrent");
        cell.cell = spec->cell;
        cell.units = spec->hidden;
        cell.in[0] = x;
        static const char *const kind[] = {
#define CELL(name) #name,
#include "model/cell/cells.def"
#undef CELL
        };
        snprintf(cell.name, sizeof cell.name, "%s.%d", kind[spec->cell], k);
        TRY(net_op(n, &cell, top));
        *end = n->op[*top].end;
        x = n->op[*top].out;
        char name[24];
        if (k + 1 < spec->layers && spec->dropout > 0) {
            struct op_spec drop = op("dropout");
            drop.rate = spec->dropout;
            snprintf(name, sizeof name, "dropout.%d", k);
            TRY(chain(n, drop, name, &x));
        }
    }
    return 0;
}

static err head(struct net *n, const struct forecast_spec *spec, const struct window_shape *p, i32 h, i32 y, i32 base) {
    if (spec->norm) TRY(chain(n, op("norm"), "norm", &h));
    if (spec->dropout > 0) {
        struct op_spec drop = op("dropout");
        drop.rate = spec->dropout;
        TRY(chain(n, drop, "dropout", &h));
    }
    struct op_spec dense = op("dense"), loss = op("loss_mse");
    dense.units = p->out_seg * imax(1, spec->nquantile);
    dense.zero_init = spec->base[0] != 'n'; /* base none: an ordinary start */
    TRY(chain(n, dense, "head", &h));
    char layer[24];
    snprintf(layer, sizeof layer, "loss_%s", spec->loss);
    loss.layer = layer;
    loss.in[0] = h;
    loss.in[1] = y;
    loss.in[2] = base;
    loss.nquantile = spec->nquantile;
    for (i32 q = 0; q < spec->nquantile; q++) loss.quantile[q] = (f32)spec->band[q];
    snprintf(loss.name, sizeof loss.name, "loss");
    i32 last;
    return net_op(n, &loss, &last);
}

err forecast_net(const struct forecast_spec *spec, const struct window_shape *p, const struct series *s, struct net *n) {
    i32 x, column = -1, future = -1, y, base, end = -1, top = -1, h;
    net_init(n);
    TRY(net_input(n, "x", p->nseg, window_features(p, s), false, &x));
    TRY(categories(n, p, s, &x));
    i32 nf = window_future_features(p, s);
    if (spec->decode) TRY(net_input(n, "column", 1, 1, true, &column));
    if (nf > 0) TRY(net_input(n, "future", p->nout, nf, false, &future));
    TRY(net_input(n, "y", p->nout, p->out_seg, false, &y));
    TRY(net_input(n, "base", p->nout, p->out_seg, false, &base));
    if (spec->decode) {
        struct op_spec seg = op("dense");
        seg.units = spec->hidden;
        seg.act = ACT_RELU;
        TRY(chain(n, seg, "segment", &x));
    }
    TRY(recurrent(n, spec, x, &end, &top));
    h = end;
    if (spec->decode) {
        struct op_spec decode = op("decode");
        decode.steps = p->nout;
        decode.vocab = s->ntarget;
        decode.share = top;
        decode.in[1] = column;
        decode.in[2] = future;
        TRY(chain(n, decode, "decode", &h));
    } else {
        TRY(chain(n, op("last"), "last", &h));
        struct op_spec join = op("concat");
        join.in[1] = future;
        if (future >= 0) TRY(chain(n, join, "ahead", &h));
    }
    return head(n, spec, p, h, y, base);
}
