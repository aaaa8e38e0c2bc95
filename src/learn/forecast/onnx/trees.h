/* trees.h - the node of boosted trees. */
#ifndef STRETTO_LEARN_FORECAST_ONNX_TREES_H
#define STRETTO_LEARN_FORECAST_ONNX_TREES_H

#include "bases/trees/trees.h"
#include "learn/forecast/onnx/window.h"

/* ensemble.c: TreeEnsembleRegressor on rows x FLOAT [rows, inputs]: FLOAT [rows, 1]. */
val trees_node_of(const struct window_graph *w, const struct trees *t, val x);

#endif
