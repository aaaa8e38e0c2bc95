/* graph_out.h - what `stretto graph` gives: the table of nodes, the first nodes or largest groups, a picture. */
#ifndef STRETTO_API_GRAPH_OUT_H
#define STRETTO_API_GRAPH_OUT_H

#include "base/json.h"
#include "learn/graph/graph.h"

struct graph_out {
    const struct edge_set *s;
    const struct graph_result *g;
    const char *method, *column; /* pagerank, rank */
    i32 top;                     /* of option top: at most so many of the first */
    bool by_rank;                /* of option sort: the table begins with the highest rank or the largest group */
};

/* CSV with a line for each node.  E601. */
err graph_table(const struct graph_out *o, struct str *out);
/* The first `top` nodes by rank, or groups by size: as lines with columns, or as a member of `to`.  E601. */
err graph_top_text(const struct graph_out *o, struct str *out);
err graph_top_json(const struct graph_out *o, struct js *to);
/* The ranks, or sizes of groups, from the largest on, on logarithmic axes: an SVG file, or a page with `lead` where the name
 * ends in .html.  E601, E701 .. E703. */
err graph_plot(const struct graph_out *o, const char *lead, const char *path);

/* The n highest ranks, ties by number, as a list of nodes [n], highest first.  E601. */
err graph_by_rank(const struct graph_result *g, i32 n, u32 *node);

#endif
