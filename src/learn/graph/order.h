/* order.h - the order of a graph's nodes in memory (enum graph_order): fills at, node and, for colors, color. */
#ifndef STRETTO_LEARN_GRAPH_ORDER_H
#define STRETTO_LEARN_GRAPH_ORDER_H

#include "learn/graph/graph.h"

err order_by_degree(const struct edge_set *s, bool both, struct graph *g);
err order_by_color(const struct edge_set *s, struct graph *g);

#endif
