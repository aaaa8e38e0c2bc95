/* edge_set.h - the data kind `edges`: the links of a graph, one a line.
 *
 *     # any comment          -->   node 0 = "a", node 1 = "b", node 2 = "c": in the order of their first appearance
 *     a b                          from 0 0
 *     a c                          to   1 2
 *
 * Columns are separated by blanks, tabs or a comma; a third column holds weights.  Lines that begin with # or % are comments.
 * Nodes are named by any words.  The file is plain text, .gz or .zst. */
#ifndef STRETTO_LEARN_EDGE_SET_H
#define STRETTO_LEARN_EDGE_SET_H

#include "data/vocab.h"
#include "learn/learner.h"

struct edge_set {
    struct dataset set;  /* first; set.nrow = edges, set.ncol = 2, or 3 with weights */
    i32 nnode;
    u32 *from, *to;      /* [nrow] numbers of nodes */
    f64 *weight;         /* [nrow] finite, >= 0; NULL = the file has none: each counts 1 */
    u32 *id;             /* [nnode] names of the nodes where all are integers; else NULL */
    struct vocab name;   /* .. of all others, by number */
    bool listed;         /* the nodes are those of a node list */
};

extern const struct data_kind data_edges;

static inline struct edge_set *edge_set_of(const struct dataset *d) { return (struct edge_set *)(uintptr_t)d; }

/* Reads a file with `threads` threads.  node_list: a file that names every node, one a line, which gives their order; "" = none.
 * E201 without edges, E202 for bytes that are no text, E203 for a wrong number of columns, E204 for a weight that is negative or
 * not finite, E103 for a node that the list lacks, E601, E701; all name file and line. */
err edge_set_read(const char *path, const char *node_list, i32 threads, struct dataset **out);

/* The name of a node; integers are written into `room`. */
const char *edge_set_name(const struct edge_set *s, u32 node, char room[16]);

#endif
