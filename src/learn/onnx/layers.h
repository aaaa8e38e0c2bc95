/* layers.h - a network as nodes of an ONNX graph: every op becomes operators with the op's weights as constants.
 *
 *     buffer [T][B][F] of the net  <->  value [T, batch, F]       ids [T][B]  <->  INT64 [T, batch]       end  <->  [states,
 * batch, H]
 *
 * The inputs of the net are set by the caller; what has no operators is refused by name (onnx_refuse).  Products are made in
 * fp32, whatever precision the net was trained in. */
#ifndef STRETTO_LEARN_ONNX_LAYERS_H
#define STRETTO_LEARN_ONNX_LAYERS_H

#include "model/layer.h"
#include "onnx/ops.h"

struct net_graph {
    struct onnx_graph *g;
    const struct net *net;
    const f32 *theta;   /* of the whole net */
    const char *prefix; /* of the names of constants: "member.0." */
    val buf[NET_BUFS];  /* -1 = absent */
    val lengths;        /* INT32 [batch]: steps of each row, where rows have their own; -1 = all steps */
    struct arena *arena;
};

/* Adds ops [first, end), whose outputs are then in buf. E601. */
err net_graph(struct net_graph *n, i32 first, i32 end);

/* --- for the files of this folder --- */

/* Tensor i of an op in canonical order (layer_store), in the arena; NULL = no memory, kept in the graph. */
f32 *net_tensor(struct net_graph *n, const struct op *op, i32 i);
/* A constant named PREFIX OP.WHAT; rows or cols 0: without that axis. */
val net_constant(struct net_graph *n, const struct op *op, const char *what, i32 ndim, const i64 *dim, const f32 *data);
/* W [rows][cols] as a constant [cols, rows], the right side of a product. */
val net_turned(struct net_graph *n, const struct op *op, const char *what, i32 rows, i32 cols, const f32 *w);
static inline val net_in(const struct net_graph *n, const struct op *op, i32 i) {
    return op->spec.in[i] < 0 ? -1 : n->buf[op->spec.in[i]];
}

/* The weights of a cell as constants. known: extra inputs behind those of the layer, with weights known [G * H][nknown]. */
struct cell_graph {
    const struct cell *cell;
    i32 I, H, P;    /* P: width of the output; H unless projected */
    bool reverse;   /* runs from the last step to the first */
    val W, R, B;    /* of the operators; of a cell without one: weight_ih turned, weight_hh turned, bias */
    val hh, ch, hr; /* vectors of a diagonal cell; the projection */
};
struct cell_graph cell_graph_of(struct net_graph *n, const struct op *op, const struct cell *cell, i32 I, i32 H, i32 nknown,
                                const f32 *known);
/* Runs over x [T, batch, I] from the state [states, batch, H] (-1 = zero): y [T, batch, H]; *end [states, batch, H]. */
val cell_graph_run(struct net_graph *n, const struct cell_graph *c, val x, val state, val *end);

typedef void layer_graph(struct net_graph *n, const struct op *op);
layer_graph graph_recurrent, graph_projected, graph_decode, graph_unroll;

#endif
