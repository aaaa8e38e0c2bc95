/* tree.h - the fixed binary tree that merges the partial results of micro-batches, on any device or rank.
 *
 *     micro-batches   0   1   2   3   4   5   6
 *     level 0         0<--1   2<--3   4<--5   6        pair (a,b): result a += result b
 *     level 1         0<------2       4<------6
 *     level 2         0<--------------4                the sum ends in result 0
 *
 * The order of additions is that of the tree for any number of devices and ranks, and so are the bits. */
#ifndef STRETTO_PLAN_TREE_H
#define STRETTO_PLAN_TREE_H

#include "base/bits.h"

struct merge_pair {
    i32 a, b, end; /* a holds the sum of micro-batches [a,b), b that of [b,end) */
    i32 level;
};

/* The pairs of the tree over n micro-batches, in order; out has room for n.  Returns their number, n - 1. */
i32 merge_pairs(i32 n, struct merge_pair *out);

#endif
