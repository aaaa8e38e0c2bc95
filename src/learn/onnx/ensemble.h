/* ensemble.h - decision trees as a TreeEnsembleRegressor (ai.onnx.ml version 3): nodes and leaves are collected, then written. */
#ifndef STRETTO_LEARN_ONNX_ENSEMBLE_H
#define STRETTO_LEARN_ONNX_ENSEMBLE_H

#include "onnx/ops.h"

/* Starts as {0} and ends with ensemble_node, or ensemble_free. */
struct ensemble {
    i64 n, nleaf, room[7], leaf_room[4];
    i64 *tree, *node, *input, *yes, *no, *missing_left; /* [n] */
    f32 *cut;                                           /* [n] */
    i64 *leaf_tree, *leaf_node, *leaf_target;           /* [nleaf] */
    f32 *leaf;                                          /* [nleaf] */
    struct str modes;
};

/* A row goes to node `yes` if its input is <= cut; a missing value (NaN) by missing_left. E601. */
struct ensemble_branch {
    i64 tree, node, input, yes, no;
    f32 cut;
    bool missing_left;
};
err ensemble_branch(struct ensemble *e, const struct ensemble_branch *b);
err ensemble_leaf(struct ensemble *e, i64 tree, i64 node); /* its weights follow */
err ensemble_weight(struct ensemble *e, i64 tree, i64 node, i64 target, f32 weight);
/* x FLOAT [rows, inputs] -> sums of weights FLOAT [rows, ntarget], from start [ntarget] on (NULL = 0). */
val ensemble_node(struct ensemble *e, struct onnx_graph *g, val x, i64 ntarget, const f32 *start);
void ensemble_free(struct ensemble *e);

#endif
