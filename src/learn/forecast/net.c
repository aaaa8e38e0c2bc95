/* net.c - builds the network of a forecaster.
 *
 *   last:    x [n][B][I] -front-> -lstm.0..-> decode [m][B][H] -norm, dropout, head-> [m][B][w*Q] -loss      head/: front, decode
 *   steps:   x [n][B][I] ------------------lstm.0..------------------(+ future)-> [n][B][H] -dropout-head-> [n][B][h*Q] -loss
 *
 *   --projection: lstm.0 is the layer `projected`, and H is the projected width
 *   --bidirectional:  x -reverse-> lstm.0.reverse -reverse-+
 *                     x ---------> lstm.0 -----------------+-concat-> [n][B][2H]      final state: both states concatenated
 *
 *   In training the context may be cut into time slices, which are rows of the batch: n = ceil(steps / slices).  Input
 *   "length" is the number of steps of each row, "after" the row whose final state it starts from.  All rows pass
 *   through the layers behind the recurrent ones, but only rows of last slices have targets.
 *   The backward direction reverses each slice; "before" is the row whose final state it starts from.  It ends in the row of the
 *   first slice; "first_slice" holds the number of that row for each row with targets.
 *
 *   steps (decoder.every_step): a forecast at every row, with a state that is carried on.  For forecasts, n rows are a chunk
 *   of one pass over the series, and input "state.k" is the final state of layer k after the previous chunk.
 *
 * Inputs in this order: x, one ids buffer per category, column, future, first, y, base, length, after, before, first_slice,
 * state.0, ...
 * (input.h; batch.c and steps.c fill them by role). */
#include <math.h>
#include <stdio.h>

#include "learn/forecast/forecast.h"
#include "model/cell/cell.h"

err forecast_check_kern(const struct forecast_spec *spec, const struct kern *k) {
    return net_cell_runs(spec->cell, spec->correction ? spec->precision : PREC_F32, k);
}

err forecast_rows(const struct forecast_spec *spec, i64 windows, i32 ntarget, i32 *nwin, i32 *B) {
    *nwin = (i32)lmin(spec->batch, lmax(1, windows));
    i64 rows = (i64)imax(1, *nwin / imax(1, spec->accumulate)) * ntarget * imax(1, spec->cut.slices);
    if (rows > INT32_MAX / 2)
        return FAIL_AT(E601, NULL, "a smaller --batch, or --accumulate", "a batch of %d windows of %d columns has %lld rows",
                       *nwin, ntarget, (long long)rows);
    *B = (i32)rows;
    return 0;
}

void forecast_series_origins(const struct forecast_spec *spec, const struct series *s, i32 col, i64 rows, i64 *first, i64 *end) {
    *first = lmax(spec->context, s->from[col] + imin(spec->context, spec->horizon));
    *end = lmax(*first, lmin(rows, s->to[col]) - spec->horizon + 1);
}

i64 forecast_epoch(const struct forecast_spec *spec, const struct series *s, i64 rows) {
    i64 all = 0, first, end;
    if (forecast_draws_series(spec, s)) {
        for (i32 c = 0; c < s->ntarget; c++) {
            forecast_series_origins(spec, s, c, rows, &first, &end);
            all += end - first;
        }
        return all / forecast_width(spec, s);
    }
    i64 origins = lmax(0, rows - spec->horizon - spec->context + 1);
    return spec->decoder->every_step ? lmin(origins, lmax(0, rows - spec->horizon) / spec->context) : origins;
}

/* Segments: rows of the series that one step of the cell reads; the output is cut into segments of the same length. */
err forecast_shape(const struct forecast_spec *spec, const struct series *s, i64 rows, struct window_shape *out) {
    i32 seg = imax(1, spec->segment);
    *out = (struct window_shape){.context = spec->context,
                                 .horizon = spec->horizon,
                                 .seg = seg,
                                 .nseg = ceil_div(spec->context, seg),
                                 .scale = (enum window_scale)spec->scale};
    out->out_seg = spec->decoder->segments ? imin(seg, spec->horizon) : spec->horizon;
    out->nout = ceil_div(spec->horizon, out->out_seg);
    for (i32 c = 0; c < s->ntarget && !out->mask; c++)
        for (i64 i = 0; i < lmin(rows, s->nrow) && !out->mask; i++) out->mask = isnan(series_col(s, c)[i]);
    out->calendar = spec->calendar == CALENDAR_YES && s->time ? window_calendar_size(&s->freq) : 0;
    return 0;
}

err forecast_input(struct net *n, enum input_role role, i32 item, i32 T, i32 F, i32 *out) {
    static const struct {
        const char *name;
        bool ids;
    } input[] = {{0},
#define INPUT(role, name, ids) {name, ids},
                 FORECAST_INPUTS(INPUT)
#undef INPUT
    };
    char name[24];
    bool several = role == INPUT_CATEGORY || role == INPUT_STATE;
    if (several) snprintf(name, sizeof name, "%s.%d", input[role].name, item);
    TRY(net_input(n, several ? name : input[role].name, T, F, input[role].ids, out));
    n->buf[*out].role = (i32)role;
    n->buf[*out].item = item;
    return 0;
}

i32 forecast_find_input(const struct net *n, enum input_role role) {
    for (i32 i = 0; i < n->nbuf; i++)
        if (n->buf[i].input && n->buf[i].role == (i32)role) return i;
    return -1;
}

static err categories(struct net *n, const struct window_shape *p, const struct series *s, i32 *x) {
    for (i32 k = 0; k < s->ncat; k++) {
        i32 ids, wide;
        char name[24];
        TRY(forecast_input(n, INPUT_CATEGORY, k, p->nseg, 1, &ids));
        struct op_spec embed = head_op(n, "embed");
        embed.vocab = s->nword[k] + 1;
        embed.units = imin(16, imax(2, s->nword[k] / 2 + 1));
        wide = ids;
        snprintf(name, sizeof name, "embed.%d", k);
        TRY(head_chain(n, embed, name, &wide));
        snprintf(name, sizeof name, "join.%d", k);
        TRY(head_beside(n, name, wide, x));
    }
    return 0;
}

/* Adds a recurrent op of layer k that reads in[0] (in[1..3]: initial state and slice inputs, -1 = none). Returns its number. */
static err cell_op(struct net *n, const struct forecast_spec *spec, i32 k, bool reverse, const i32 in[4], i32 *out) {
    struct op_spec s = head_op(n, spec->projection > 0 ? "projected" : "recurrent");
    for (i32 i = 0; i < 4; i++) s.in[i] = in[i];
    snprintf(s.name, sizeof s.name, "%s.%d%s", cell_of((enum cell_kind)spec->cell)->name, k, reverse ? ".reverse" : "");
    return net_op(n, &s, out);
}

static err drop_between(struct net *n, const struct forecast_spec *spec, i32 k, i32 *x) {
    char name[24];
    if (k + 1 == spec->layers || spec->dropout <= 0) return 0;
    snprintf(name, sizeof name, "dropout.%d", k);
    return head_chain(n, head_op(n, "dropout"), name, x);
}

/* The inputs that link time slices (input.h). */
struct cut {
    i32 length, after, before, first; /* buffers, -1 = none */
};

/* Declares them for `steps` steps in P slices; before and first only if a backward direction reads them. */
static err sliced(struct net *n, i32 steps, i32 P, bool both, struct cut *out) {
    *out = (struct cut){-1, -1, -1, -1};
    if (steps % P != 0) TRY(forecast_input(n, INPUT_LENGTH, 0, 1, 1, &out->length));
    if (P > 1) TRY(forecast_input(n, INPUT_AFTER, 0, 1, 1, &out->after));
    if (P < 2 || !both) return 0;
    TRY(forecast_input(n, INPUT_BEFORE, 0, 1, 1, &out->before));
    return forecast_input(n, INPUT_FIRST_SLICE, 0, 1, 1, &out->first);
}

/* Reverses the time steps of each row of x. */
static err turned(struct net *n, const char *what, i32 k, i32 x, i32 length, i32 *out) {
    struct op_spec turn = head_op(n, "reverse");
    turn.in[0] = x;
    turn.in[1] = length;
    snprintf(turn.name, sizeof turn.name, "%s.%d", what, k);
    return net_op(n, &turn, out);
}

/* Adds layer k in both directions: two ops; joins their outputs, except in the top layer. */
static err both_ways(struct net *n, const struct forecast_spec *spec, i32 k, const struct cut *cut, i32 *x, i32 dir[2]) {
    char name[24];
    i32 t, back;
    TRY(turned(n, "turn", k, *x, cut->length, &t));
    TRY(cell_op(n, spec, k, false, (i32[]){n->op[t].end >= 0 ? n->op[t].end : *x, -1, cut->length, cut->after}, &dir[0]));
    TRY(cell_op(n, spec, k, true, (i32[]){n->op[t].out, -1, cut->length, cut->before}, &dir[1]));
    if (k + 1 == spec->layers) return 0;
    TRY(turned(n, "back", k, n->op[dir[1]].out, cut->length, &back));
    *x = n->op[dir[0]].out;
    snprintf(name, sizeof name, "both.%d", k);
    return head_beside(n, name, n->op[back].out, x);
}

/* Adds the stack of recurrent layers over x. Returns the ops of the top layer; dir[1] = -1 if it is forward only. In a
 * stream each layer starts from a state that is an input. */
static err recurrent(struct net *n, const struct forecast_spec *spec, bool stream, const struct cut *cut, i32 x, i32 dir[2]) {
    i32 state = -1;
    for (i32 k = 0; k < spec->layers; k++) {
        dir[1] = -1;
        if (stream) TRY(forecast_input(n, INPUT_STATE, k, cell_of(spec->cell)->states, spec->hidden, &state));
        if (spec->bidirectional) {
            TRY(both_ways(n, spec, k, cut, &x, dir));
        } else {
            TRY(cell_op(n, spec, k, false, (i32[]){x, state, cut->length, cut->after}, &dir[0]));
            x = n->op[dir[0]].out;
        }
        TRY(drop_between(n, spec, k, &x));
    }
    return 0;
}

static err loss(struct net *n, const struct forecast_spec *spec, i32 h, i32 y, i32 base) {
    char layer[32];
    snprintf(layer, sizeof layer, "loss_%s", spec->loss);
    struct op_spec s = net_spec(layer, "loss", h);
    s.in[1] = y;
    s.in[2] = base;
    head_quantiles(spec, &s);
    return net_op(n, &s, NULL);
}

static err outputs(struct net *n, const struct forecast_spec *spec, const struct window_shape *p, i32 h, i32 y, i32 base) {
    if (spec->norm) TRY(head_chain(n, head_op(n, "norm"), "norm", &h));
    if (spec->dropout > 0) TRY(head_chain(n, head_op(n, "dropout"), "dropout", &h));
    struct op_spec dense = head_op(n, "dense");
    dense.units = p->out_seg * head_outputs(spec);
    dense.zero_init = forecast_corrects(spec); /* else the output layer starts from random weights */
    TRY(head_chain(n, dense, "head", &h));
    return loss(n, spec, h, y, base);
}

bool forecast_can_slice(const struct forecast_spec *spec) {
    return spec->decoder->every_step || spec->cut.course.slice_rounds == 0;
}

/* The head's own input stands among the others in the order of their roles. */
static err own_input(struct head_net *b, const struct head *head, bool early) {
    const bool here = head->own != INPUT_NONE && (head->own < INPUT_FUTURE) == early;
    return here ? forecast_input(b->n, head->own, 0, 1, head->own_is_segment ? b->shape->out_seg : 1, &b->own) : 0;
}

static err build(const struct forecast_spec *spec, const struct window_shape *shape, const struct series *s, bool stream,
                 struct net *n) {
    const struct head *head = spec->decoder;
    const i32 P = stream ? 1 : imax(1, spec->cut.slices);
    struct window_shape p = *shape;
    struct head_net b = {.n = n, .spec = spec, .shape = &p, .s = s, .own = -1, .future = -1, .top = {-1, -1}};
    struct cut cut;
    i32 x, h;
    net_init(n);
    n->options = spec->for_net;
    p.nseg = ceil_div(shape->nseg, P);
    if (head->every_step) p.nout = p.nseg;
    TRY(forecast_input(n, INPUT_X, 0, p.nseg, window_features(&p, s), &x));
    TRY(categories(n, &p, s, &x));
    const i32 nf = window_future_features(&p, s);
    TRY(own_input(&b, head, true));
    if (nf > 0) TRY(forecast_input(n, INPUT_FUTURE, 0, p.nout, nf, &b.future));
    TRY(own_input(&b, head, false));
    TRY(forecast_input(n, INPUT_Y, 0, p.nout, p.out_seg, &b.y));
    TRY(forecast_input(n, INPUT_BASE, 0, p.nout, p.out_seg, &b.base));
    TRY(sliced(n, shape->nseg, P, spec->bidirectional, &cut));
    b.first_slice = cut.first;
    if (head->front) TRY(head->front(&b, &x));
    TRY(recurrent(n, spec, stream, &cut, x, b.top));
    TRY(head->decode(&b, &h));
    return head->own_output ? loss(n, spec, h, b.y, b.base) : outputs(n, spec, &p, h, b.y, b.base);
}

err forecast_stream_net(const struct forecast_spec *spec, const struct window_shape *p, const struct series *s, struct net *n) {
    return build(spec, p, s, true, n);
}

err forecast_net(const struct forecast_spec *spec, const struct window_shape *shape, const struct series *s, struct net *n) {
    if (spec->cut.slices > 1 && !forecast_can_slice(spec))
        return FAIL(E1, "a net that is not cut in time, in %d slices", spec->cut.slices);
    return build(spec, shape, s, false, n);
}
