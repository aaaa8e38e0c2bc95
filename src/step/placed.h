/* placed.h - the layers and micro-batches of a pipeline as a graph of nodes for methods of placement (place/place.h). */
#ifndef STRETTO_STEP_PLACED_H
#define STRETTO_STEP_PLACED_H

#include "place/place.h"
#include "step/netplan.h"

/* The graph of a net with `columns` micro-batches of `rows` rows each, costs as of its serial plan.  Its units are layers, or
 * several that share weights.  place_graph_free frees it. */
err placed_graph(const struct net *n, const struct plan *serial, i32 rows, i32 columns, struct place_graph *out);

#endif
