/* layers.c - see layers.h: the table of layers, and those without a recurrence. */
#include "learn/onnx/layers.h"

#include <string.h>

f32 *net_tensor(struct net_graph *n, const struct op *op, i32 i) {
    struct tensor_info info[8];
    op->layer->tensors(op, info);
    f32 *w = arena_array(n->arena, (i64)info[i].rows * imax(1, info[i].cols), sizeof *w);
    if (w)
        layer_store(op, i, n->theta + op->theta0, w);
    else
        n->g->failed = true;
    return w;
}

val net_constant(struct net_graph *n, const struct op *op, const char *what, i32 ndim, const i64 *dim, const f32 *data) {
    const char *name = arena_printf(n->arena, "%s%s.%s", n->prefix, op->spec.name, what);
    return data ? onnx_tensor(n->g, name, ONNX_FLOAT, ndim, dim, data) : 0;
}

val net_turned(struct net_graph *n, const struct op *op, const char *what, i32 rows, i32 cols, const f32 *w) {
    f32 *t = w ? arena_array(n->arena, (i64)rows * cols, sizeof *t) : NULL;
    if (!t) n->g->failed = true;
    for (i32 r = 0; t && r < rows; r++)
        for (i32 c = 0; c < cols; c++) t[(i64)c * rows + r] = w[(i64)r * cols + c];
    return net_constant(n, op, what, 2, (i64[]){cols, rows}, t);
}

static void graph_dense(struct net_graph *n, const struct op *op) {
    const val w = net_turned(n, op, "weight", op->F, op->I, net_tensor(n, op, 0));
    const val b = net_constant(n, op, "bias", 1, (i64[]){op->F}, net_tensor(n, op, 1));
    val y = onnx_2(n->g, "Add", onnx_2(n->g, "MatMul", net_in(n, op, 0), w), b);
    if (op->spec.act == ACT_RELU) y = onnx_1(n->g, "Relu", y);
    if (op->spec.act == ACT_TANH) y = onnx_1(n->g, "Tanh", y);
    n->buf[op->out] = y;
}

static void graph_norm(struct net_graph *n, const struct op *op) {
    struct onnx_graph *g = n->g;
    const val x = net_in(n, op, 0), count = onnx_f32(g, (f32)op->F);
    const val weight = net_constant(n, op, "weight", 1, (i64[]){op->F}, net_tensor(n, op, 0));
    const val bias = net_constant(n, op, "bias", 1, (i64[]){op->F}, net_tensor(n, op, 1));
    const val d = onnx_2(g, "Sub", x, onnx_2(g, "Div", onnx_sum(g, x, 2), count));
    const val var = onnx_2(g, "Div", onnx_sum(g, onnx_2(g, "Mul", d, d), 2), count);
    const val s = onnx_1(g, "Sqrt", onnx_2(g, "Add", var, onnx_f32(g, 1e-5F)));
    n->buf[op->out] = onnx_2(g, "Add", onnx_2(g, "Mul", onnx_2(g, "Div", d, s), weight), bias);
}

static void graph_embed(struct net_graph *n, const struct op *op) {
    const val w = net_constant(n, op, "weight", 2, (i64[]){op->spec.vocab, op->F}, net_tensor(n, op, 0));
    n->buf[op->out] = onnx_gather(n->g, w, net_in(n, op, 0), 0);
}

/* A second input of one step is repeated for all steps. */
static void graph_concat(struct net_graph *n, const struct op *op) {
    val b = net_in(n, op, 1);
    if (n->net->buf[op->spec.in[1]].T == 1 && op->T > 1) b = onnx_2(n->g, "Expand", b, onnx_i64s(n->g, DIMS(op->T, 1, 1)));
    n->buf[op->out] = onnx_concat(n->g, 2, VALS(net_in(n, op, 0), b));
}

static void graph_add(struct net_graph *n, const struct op *op) {
    n->buf[op->out] = onnx_2(n->g, "Add", net_in(n, op, 0), net_in(n, op, 1));
}

static void graph_dropout(struct net_graph *n, const struct op *op) { n->buf[op->out] = net_in(n, op, 0); }
static void graph_last(struct net_graph *n, const struct op *op) {
    n->buf[op->out] = onnx_slice(n->g, net_in(n, op, 0), 0, 0, 1);
}

/* Rows of their own length are reversed within it. */
static void graph_reverse(struct net_graph *n, const struct op *op) {
    val y = 0;
    if (op->end >= 0) n->buf[op->end] = net_in(n, op, 0);
    if (n->lengths < 0) {
        n->buf[op->out] = onnx_reverse(n->g, net_in(n, op, 0), 0);
        return;
    }
    onnx_node(
        n->g, "ReverseSequence", VALS(net_in(n, op, 0), onnx_cast(n->g, n->lengths, ONNX_INT64)), 1, &y,
        (struct onnx_attr[]){{.name = "batch_axis", .type = ATTR_INT, .i = 1}, {.name = "time_axis", .type = ATTR_INT}, {0}});
    n->buf[op->out] = y;
}

/* The mean over the steps of a row; steps behind its end count as zero. */
static void graph_mean(struct net_graph *n, const struct op *op) {
    struct onnx_graph *g = n->g;
    const val sum = onnx_sum(g, net_in(n, op, 0), 0);
    val count = onnx_f32(g, (f32)n->net->buf[op->spec.in[0]].T);
    if (n->lengths >= 0) count = onnx_reshape(g, onnx_cast(g, n->lengths, ONNX_FLOAT), DIMS(1, -1, 1));
    n->buf[op->out] = onnx_2(g, "Div", sum, count);
}

static const struct {
    const char *layer;
    layer_graph *graph;
} table[] = {
    {"dense", graph_dense},
    {"recurrent", graph_recurrent},
    {"projected", graph_projected},
    {"last", graph_last},
    {"mean", graph_mean},
    {"reverse", graph_reverse},
    {"decode", graph_decode},
    {"unroll", graph_unroll},
    {"embed", graph_embed},
    {"concat", graph_concat},
    {"add", graph_add},
    {"dropout", graph_dropout},
    {"norm", graph_norm},
};

static layer_graph *find(const char *layer) {
    for (size_t i = 0; i < COUNT(table); i++)
        if (strcmp(table[i].layer, layer) == 0) return table[i].graph;
    return NULL;
}

err net_graph(struct net_graph *n, i32 first, i32 end) {
    for (i32 l = first; l < end; l++) {
        const struct op *op = &n->net->op[l];
        layer_graph *graph = find(op->layer->name);
        if (graph)
            graph(n, op);
        else
            onnx_refuse(n->g, "the layer \"%s\" (%s)", op->spec.name, op->layer->name);
        if (!graph) n->buf[op->out] = 0;
    }
    return n->g->failed ? -E601 : 0;
}
