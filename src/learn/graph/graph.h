/* graph.h - what runs over the edges of a graph: PageRank, connected components, label propagation.
 *
 *     edge_set --graph_new--> graph: the edges sorted by where they lead  --learner.fit--> result: a number for each node
 *
 *     row of a node   | from, from, from | from | | from, from |      cut into parts of about as many edges each
 *     part            |-------- 0 -------|------- 1 -----------|      a device owns a run of parts: the nodes in them
 *
 * Each algorithm is a learner as learner.h has it, without a model file: ranks and threads come with it, and its numbers are the
 * same to the bit on any number of them. */
#ifndef STRETTO_LEARN_GRAPH_GRAPH_H
#define STRETTO_LEARN_GRAPH_GRAPH_H

#include "base/pool.h"
#include "learn/edge_set.h"
#include "learn/map_run.h"

/* PARTS: at most so many, about; BLOCKS: of nodes with edges from them, in the order GRAPH_BY_DEGREE.  TILED: a graph of so many
 * nodes in that order has tiles. */
enum { GRAPH_PARTS = 512, GRAPH_BLOCKS = 4, GRAPH_TILED = 1 << 18 };

/* The edges by the node that they lead to; nodes in an order of their own, that of their positions. */
struct graph {
    i32 n;        /* nodes */
    i64 m;        /* edges; of an undirected graph both ways */
    i64 repeated; /* edges of the file that are not among them as the same edge comes again later */
    u32 *at;      /* [n] position of a node */
    u32 *node;    /* [n] node at a position */
    i64 *row;     /* [n + 1] first edge that leads to a position */
    u32 *from;    /* [m] position that an edge comes from, in the order of the file within a row; of a tile by that position */
    u16 *to;      /* [m] in a tile: row of an edge within its part; NULL = a graph without tiles */
    f64 *weight;  /* [m]; NULL = each counts 1 */
    f64 *out;     /* [n] by position: sum of the weights of edges from there */
    i32 npart;
    i32 *part;    /* [npart + 1] first position of each part; a function of the graph alone */
    /* GRAPH_BY_DEGREE: first position and first part of each block; the last block has the nodes without edges from them. */
    i32 block[GRAPH_BLOCKS + 2], block_part[GRAPH_BLOCKS + 2];
    i32 nclass;   /* GRAPH_BY_COLOR: positions [part_of[c], part_of[c + 1]) of the array `color` have no edges among them */
    i32 *color;   /* [nclass + 1] first position of each color */
};

/* Order of positions.  DEGREE: by the power of two below the number of edges from a node, most first, then by the number of
 * edges to it: what is read most stands together, and rows of one length follow each other.  The nodes are dealt to the blocks
 * in that order, so that each block is a sample of all.  COLOR: nodes without edges between
 * them stand together (greedy coloring, most edges first). */
enum graph_order { GRAPH_BY_DEGREE, GRAPH_BY_COLOR };

/* An edge counts once, as in the graphs of NetworkX: with the weight that comes last in the file.
 * both: edges count in both directions; loops: those from a node to itself count.  E601. */
err graph_new(const struct edge_set *s, enum graph_order order, bool both, bool loops, struct pool *pool, struct graph **out);
/* Divides each weight by the sum of the weights from its node; out is then 1, or 0 without such weights. */
void graph_share(struct graph *g);
/* Tiles (tiles.c): the edges of a part stand in the order of the cache lines of the nodes that they come from: a pass over them
 * reads the values of nodes in order, and the sums of the rows stay in the cache.  Parts of long rows keep the order by rows. */
bool graph_is_tile(const struct graph *g, i32 part);
err graph_tile(struct graph *g, struct pool *pool); /* E601 */
void graph_free(struct graph *g); /* NULL is fine */
/* Cuts positions [lo, hi) into at most n ranges of about equal work; at [n + 1], returns their number. */
i32 graph_cut(const struct graph *g, i32 lo, i32 hi, i32 n, i32 *at);

/* What a fit makes. */
struct graph_result {
    struct model model; /* first */
    i32 n;
    f64 *score;         /* [n] by node: PageRank, sum 1; NULL = none */
    u32 *group;         /* [n] by node: component or community, 0 = the largest, ties by the first node; NULL = none */
    i32 ngroup;
    i64 *members;       /* [ngroup] */
    i64 iterations;
    f64 residual;       /* pagerank: L1 distance of the last two iterates; labels: nodes that changed in the last sweep */
    bool settled;       /* it ended because residual was small enough */
};
static inline struct graph_result *graph_result_of(const struct model *m) { return (struct graph_result *)(uintptr_t)m; }
err graph_result_new(const struct learner *l, i32 n, struct graph_result **out);
/* Groups by size from any label per node, below n.  E601. */
err graph_result_groups(struct graph_result *r, const u32 *label);

/* job->data is an edge set, job->spec a struct graph of the order the algorithm takes (NULL for components). */
extern const struct learner learner_pagerank, learner_components, learner_labels;
extern const struct model_ops graph_ops;

/* Ends of a run of steps: *why is STOP_SIGNAL, STOP_TIME or 0.  Collective. */
err graph_stopped(const struct learn_job *job, f64 deadline, err *why, bool *ended);
f64 graph_deadline(const struct options *o); /* of --time-limit; 0 = none */

#endif
