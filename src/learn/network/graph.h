/* graph.h - a network as an ONNX graph again, and test data of ONNX beside it. */
#ifndef STRETTO_LEARN_NETWORK_GRAPH_H
#define STRETTO_LEARN_NETWORK_GRAPH_H

#include "learn/network/network.h"
#include "onnx/ort.h"

/* x [steps, batch, inputs] -> y [steps or 1, batch, outputs]. */
err network_graph(const struct model *m, struct onnx_graph *g, const struct graph_wishes *wish);
/* Random inputs of 8 steps, or the rows of a table. */
err network_graph_check(const struct model *m, const struct dataset *d, const struct resources *use, struct ort *run,
                        const struct graph_wishes *wish, struct graph_gap *out);

/* Test data of ONNX: input_N.pb of the inputs of the graph in their order, output_N.pb.  Weights among the inputs become
 * constants of the file. E701, E905. */
err network_test_bind(struct onnx_file *f, const char *folder, struct arena *a);
/* Runs the network on the input of the folder: *worst = largest difference from the output beyond rtol and atol, in units of
 * atol + rtol |output|. */
err network_test_run(const struct network *w, const struct network_io *io, const char *folder, const struct kern *k, f64 *worst);

#endif
