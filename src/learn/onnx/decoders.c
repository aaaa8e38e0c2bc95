/* decoders.c - the two decoders as nodes.
 *
 *     decode    all segments as one batch of a single step:  x [1, steps * batch, dp + dc + known], state repeated `steps` times
 *     unroll    a step after the other, each with nodes of its own and the same weights; what leaves one is read by the next */
#include <math.h>

#include "learn/onnx/layers.h"
#include "model/cell/cell.h"

/* [steps, batch, F] -> [1, steps * batch, F] */
static val one_step(struct onnx_graph *g, val v, i32 F) { return onnx_reshape(g, v, DIMS(1, -1, F)); }

/* Two values that are repeated to the same [steps, batch, ..]. */
static val spread_over(struct onnx_graph *g, val v, i32 steps) { return onnx_2(g, "Expand", v, onnx_i64s(g, DIMS(steps, 1, 1))); }

/* The embedding of the segment beside that of the row's category; a row outside of the vocabulary has zeros. */
static val positions(struct net_graph *n, const struct op *op, val like) {
    struct onnx_graph *g = n->g;
    const i32 dc = op->I / 2, dp = op->I - dc, steps = op->spec.steps;
    const val pos = net_constant(n, op, "pos", 3, (i64[]){steps, 1, dp}, net_tensor(n, op, 0));
    const val zero = onnx_2(g, "Mul", onnx_slice(g, like, 2, 0, 1), onnx_f32(g, 0)); /* [1, batch, 1] */
    const val wide = onnx_2(g, "Add", pos, zero);
    if (dc == 0) return wide;
    const i32 vocab = imax(1, op->spec.vocab);
    const val table = net_constant(n, op, "col", 2, (i64[]){vocab, dc}, net_tensor(n, op, 1));
    const val ids = net_in(n, op, 1);
    val col =
        ids >= 0 ? onnx_gather(g, table, ids, 0) : onnx_2(g, "Add", onnx_unsqueeze(g, onnx_slice(g, table, 0, 0, 1), 0), zero);
    return onnx_concat(g, 2, VALS(wide, spread_over(g, col, steps)));
}

void graph_decode(struct net_graph *n, const struct op *op) {
    struct onnx_graph *g = n->g;
    const struct op *shared = &n->net->op[op->spec.share];
    const struct cell *cell = cell_of(shared->spec.cell);
    const val known = net_in(n, op, 2), end = net_in(n, op, 0);
    const i32 nk = known < 0 ? 0 : n->net->buf[op->spec.in[2]].F, H = op->F, steps = op->spec.steps;
    const f32 *wk = nk > 0 ? net_tensor(n, op, op->I / 2 ? 2 : 1) : NULL;
    struct net_graph own = *n; /* the decoder's constants have names of their own beside those of the layer it shares */
    own.prefix = arena_printf(n->arena, "%sdecode.", n->prefix);
    const struct cell_graph c = cell_graph_of(&own, shared, cell, op->I, H, nk, wk);
    val x = positions(n, op, onnx_slice(g, end, 0, 0, 1)), last;
    if (nk > 0) x = onnx_concat(g, 2, VALS(x, known));
    /* the state of every row, once for each step: [states, 1, batch, H] -> [states, steps * batch, H] */
    const val repeated = onnx_2(g, "Expand", onnx_unsqueeze(g, end, 1), onnx_i64s(g, DIMS(1, steps, 1, 1)));
    const val state = onnx_reshape(g, repeated, DIMS(cell->states, -1, H));
    const val y = cell_graph_run(&own, &c, one_step(g, x, op->I + nk), state, &last);
    n->buf[op->out] = onnx_reshape(g, y, DIMS(steps, -1, H));
}

/* The first column of out that is fed back: of several quantiles the one nearest to the median. */
static i32 fed_back(const struct op_spec *s, i32 w) {
    i32 best = 0;
    for (i32 q = 1; q < s->nquantile; q++)
        if (fabsf(s->quantile[q] - 0.5F) < fabsf(s->quantile[best] - 0.5F)) best = q;
    return best * w;
}

void graph_unroll(struct net_graph *n, const struct op *op) {
    struct onnx_graph *g = n->g;
    const struct op_spec *s = &op->spec;
    const struct cell *cell = cell_of(s->cell);
    const i32 w = n->net->buf[s->in[1]].F, H = s->hidden, steps = s->steps, ncell = cell_tensors(cell), fed = fed_back(s, w);
    const struct cell_graph c = cell_graph_of(n, op, cell, op->I, H, 0, NULL);
    const val head = net_turned(n, op, "head.weight", op->F, H, net_tensor(n, op, ncell));
    const val bias = net_constant(n, op, "head.bias", 1, (i64[]){op->F}, net_tensor(n, op, ncell + 1));
    const val future = net_in(n, op, 2), base = net_in(n, op, 3);
    val state = net_in(n, op, 0), u = net_in(n, op, 1), *out = arena_array(n->arena, steps, sizeof *out);
    if (!out) n->g->failed = true;
    for (i32 t = 0; out && t < steps; t++) {
        const val x = future < 0 ? u : onnx_concat(g, 2, VALS(u, onnx_slice(g, future, 0, t, t + 1)));
        const val y = cell_graph_run(n, &c, x, state, &state);
        out[t] = onnx_2(g, "Add", onnx_2(g, "MatMul", y, head), bias);
        u = onnx_slice(g, out[t], 2, fed, fed + w);
        if (base >= 0) u = onnx_2(g, "Add", u, onnx_slice(g, base, 0, t, t + 1));
    }
    if (out) n->buf[op->out] = onnx_concat(g, 0, steps, out);
}
