/* graph.h - the model as an ONNX graph: entries of struct model_ops. */
#ifndef STRETTO_LEARN_FOREST_GRAPH_H
#define STRETTO_LEARN_FOREST_GRAPH_H

#include "learn/forest/forest.h"

err forest_graph(const struct model *m, struct onnx_graph *g, const struct graph_wishes *wish);
err forest_graph_check(const struct model *m, const struct dataset *d, const struct resources *use, struct ort *run,
                       const struct graph_wishes *wish, struct graph_gap *gap);

#endif
