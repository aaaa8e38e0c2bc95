/* pagerank.h - the state of PageRank and its steps, as plans; used by pagerank.c.
 *
 *     F(x) = M x + (1 - d) / n    M: a node shares d of its rank among its edges by their weights, or, where it has no edges
 *                                 (dangling), among all nodes
 *     x     ranks, sum 1
 *     rest  F(x) - x, in f64
 *     c     a correction of x that solves c = rest + M c; in f32, as bring = c / out weight
 *
 *     sweep   block 0: c = rest + M c   block 1: the same, with the new c of block 0   block 2 ..      (block Gauss-Seidel)
 *     fold    x += c, scaled to sum 1; rest follows; c = rest
 *
 * The c of all nodes have a sum that is known: `missing`.  What lacks in the sum of the others is taken for the c of dangling
 * nodes: sweeps need not visit these, and the eigenvector of M that falls slowest has no part in c.  What c brings is exact in
 * f32, so a fold, which sums in f64, makes no error by taking c for what it is: rest is that of the x that results, however c
 * came about. */
#ifndef STRETTO_LEARN_GRAPH_PAGERANK_H
#define STRETTO_LEARN_GRAPH_PAGERANK_H

#include "learn/graph/graph.h"

struct pagerank {
    const struct graph *g;
    f64 damping, jump;          /* jump: (1 - d) / n */
    f64 *x, *rest;              /* [n] of the ranges of this rank's devices */
    f32 *bring, *inverse;       /* [n] c / out weight; 1 / out weight, 0 = dangling */
    f32 *next;                  /* [n] of the step: new values of bring */
    /* Sum of c; L1 change of c in the last sweep.  After a fold, of all blocks: L1 norm of rest. */
    f64 block_sum[GRAPH_BLOCKS + 1], block_change[GRAPH_BLOCKS + 1];
    f64 missing;                /* 1 - the sum of x: 1 before the first fold, then 0 */
    f64 each, scale;            /* of a fold: rank that a node gets from dangling nodes; x is multiplied by `scale` */
};

/* E601.  x = 0; c = 1 / n, which the first sweeps improve.  drop: allowed after a failure, and on {0}. */
err pagerank_open(struct pagerank *p, const struct graph *g, f64 damping);
void pagerank_drop(struct pagerank *p);

/* FOLD: loss of the step = L1 norm of rest.  SWEEP, PLAIN: L1 change of c.  PLAIN: no block reads the new c of another one;
 * that is power iteration, whose changes fall by the damping factor at least, in every graph. */
enum pagerank_step { PAGERANK_FOLD, PAGERANK_SWEEP, PAGERANK_PLAIN, PAGERANK_NSTEP };
err pagerank_plan_run(struct pagerank *p, enum pagerank_step step, const struct resources *use, struct map_run *out);
/* Positions [*lo, *hi) of a block that device d of n owns. */
void pagerank_range(const struct graph *g, i32 block, i32 d, i32 n, i32 *lo, i32 *hi);

#endif
