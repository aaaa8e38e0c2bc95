/* tree.h - trees of a forest: how a node is kept, grown and read.
 *
 *     rows of a tree --counts by bin--> best split of each drawn input --> best input --> rows left | rows right --> ..
 *
 * A node's rows are entries (row, class or value, weight) in one piece of an array; a split cuts the piece in two, in order.
 * Counts and sums are integers, so the same tree comes however rows and inputs are shared out.  Trees lie in preorder: the left
 * child follows its parent. */
#ifndef STRETTO_LEARN_FOREST_TREE_H
#define STRETTO_LEARN_FOREST_TREE_H

#include "learn/forest/bins.h"

enum forest_criterion { CRITERION_GINI, CRITERION_ENTROPY, CRITERION_GAIN_RATIO };

enum { TREE_DEPTH = 1000 }; /* deepest node of any tree */

/* Plain values, written by resolve. */
struct forest_spec {
    i32 trees, depth, min_leaf; /* depth 0 = TREE_DEPTH */
    i32 mtry;                   /* inputs drawn at a node; 0 = by the number of inputs */
    i32 reduce;                 /* inputs of a tree, chosen by their importance in its root; 0 = all */
    enum forest_criterion criterion;
    bool weighted, balanced, permutation;
    u64 seed;
    i32 fused, piece;           /* rows that one worker finishes alone; rows of a task of counts (stages.h) */
};

/* Inner node: left child next in the array, right child at `next`; a row goes left if (u8)(bin - right) <= bin - right of the
 * node.  Leaf: class, row of `leaf` + LEAF_SHARES, or the bits of an f32. */
struct tree_node {
    u32 split; /* input << 9 | missing cells go right << 8 | bin; NODE_LEAF */
    u32 next;
};
#define NODE_LEAF 0xffffffffu
#define LEAF_SHARES 0x80000000u
enum { TREE_INPUTS = 1 << 22 };

static inline u32 node_input(struct tree_node n) { return n.split >> 9; }
/* Bins of a row to the left: those from 0 or, where missing cells go right, from 1 on. */
static inline bool node_left(struct tree_node n, u8 bin) {
    const u8 right = (u8)(n.split >> 8 & 1);
    return (u8)(bin - right) <= (u8)((u8)n.split - right);
}

struct tree {
    struct tree_node *node; /* [n] */
    f32 *leaf;              /* [nleaf][nclass] shares of the classes in leaves that hold several */
    i32 n, nleaf;
};
void tree_free(struct tree *t);
/* Every row reaches a leaf: children lie behind their parent. */
bool tree_is_sound(const struct tree *t, i32 ninput, i32 nclass);

/* What trees grow on. */
struct tree_data {
    i64 rows;
    i32 ninput, nclass;    /* nclass 0 = numbers */
    const u8 *bin;         /* the bin of a row at an input is bin[row + step * input]: [ninput][rows], step = rows */
    i64 step;
    const i32 *nbin;       /* [ninput] */
    const struct bin_target *target;
    const f64 *class_weight; /* [nclass]; NULL = all 1 */
    const i64 *xlogx;      /* [weights + 1] x log2 x in units of 2^-XLOG_BITS; NULL = gini or numbers */
};
enum { XLOG_BITS = 24 };

/* Times that a row is drawn for a tree: Poisson(1), a pure function of (key, row).  0 = out of bag. */
u64 tree_key(u64 seed, i32 tree);
u32 tree_weight(u64 key, i64 row);

struct entry {
    u32 row; /* or its offset, where a subtree has its rows in its own order (grow.c) */
    u32 tag; /* weight << 24 | class or value */
};
static inline u32 entry_value(struct entry e) { return e.tag & 0xffffff; }
static inline u32 entry_weight(struct entry e) { return e.tag >> 24; }
/* Entries of a tree's rows in order of rows; returns their number. */
i64 tree_entries(const struct tree_data *d, u64 key, struct entry *out);

/* ------------------------------------------------------------------ counts -------------------------------------------------- */

/* Counts of a node by bin.  Classes: count [bins][nclass].  Numbers: count [bins], sum [bins]. */
struct counts {
    i32 *count;
    i64 *sum;
};
i64 counts_bytes(i32 nclass); /* of count and sum for BINS bins, count first */
struct counts counts_at(void *memory, i32 nclass);
void counts_add(const struct tree_data *d, i32 input, const struct entry *e, i64 n, struct counts to);

/* All entries of a node. */
struct totals {
    i64 weight, sum;
    i64 phi;     /* classes without weights: sum over classes of n^2, or of n log n */
    i32 *class;  /* [nclass] */
    bool pure;   /* one class, or one value */
};
void totals_of(const struct tree_data *d, const struct entry *e, i64 n, struct totals *out);

struct node_split {
    i32 input, bin;
    bool found, missing_right;
    f64 gain;  /* weight of the node * its decrease of the criterion */
    f64 score; /* by which inputs of a node are compared: the gain, or the gain ratio */
};
/* The best split of a node at one input, from its counts.  side: [2][nclass] work space. */
struct node_split split_counts(const struct tree_data *d, const struct forest_spec *q, i32 input, const struct totals *all,
                               struct counts c, i32 *side);
/* The same from n entries, for few of them: sorted by bin.  work [2 * n]. */
struct node_split split_entries(const struct tree_data *d, const struct forest_spec *q, i32 input, const struct totals *all,
                                const struct entry *e, i32 n, u32 *work, i32 *side);
/* Few enough entries for the second one to be faster. */
static inline bool split_is_few(const struct tree_data *d, i32 input, i64 n) {
    return n <= 16 || (n < 32768 && n * 8 < (i64)d->nbin[input] * imax(4, d->nclass));
}

/* Cuts the entries of a node: those of the left child first, each side in order; returns their number.  spare [n]. */
i64 entries_split(const struct tree_data *d, const struct node_split *s, struct entry *e, i64 n, struct entry *spare);

/* ------------------------------------------------------------------ subtrees ------------------------------------------------ */

/* Inputs of a node, one after the other: a permutation of the tree's inputs, by the key of the node. */
struct drawing {
    i32 n, drawn;
    i32 *input; /* [n] those of the tree; put back by drawing_end */
    i32 *swaps; /* [n] */
    u64 key;
};
i32 drawing_next(struct drawing *w); /* the next input; only while drawn < n */
void drawing_end(struct drawing *w);
static inline u64 node_key(u64 key, bool right) {
    return (key ^ (right ? 0xd1342543de82ef95u : 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
}

/* A worker's memory. */
struct grower {
    const struct tree_data *d;
    const struct forest_spec *q;
    i64 room;              /* entries */
    struct entry *entry, *spare; /* [room] */
    u32 *work;             /* [2 * BINS * ..] for split_entries */
    void *counts;          /* counts_bytes */
    i32 *side;             /* [2 * nclass] */
    i32 *class;            /* [nclass] */
    i32 *input, *swaps;    /* [ninput] */
    struct tree_node *node; /* [2 * room] */
    f64 *gain;             /* [2 * room] of inner nodes */
    f32 *leaf;             /* [leaf_room][nclass] */
    i64 leaf_room;
    struct grow_item *stack; /* [TREE_DEPTH + 2] */
    u8 *local;             /* [LOCAL_BYTES] bins of a subtree's rows, row by row */
};
err grower_new(const struct tree_data *d, const struct forest_spec *q, i64 room, struct grower *out);
void grower_free(struct grower *g);

/* A subtree whose rows fit the memory of a worker, in preorder. */
struct subtree {
    struct tree_node *node; /* [n]; inner nodes count from the first of these */
    f64 *gain;              /* [n] 0 in leaves */
    f32 *leaf;
    i32 n, nleaf;
};
void subtree_free(struct subtree *t);
/* Where a subtree begins. */
struct grow_item {
    i64 lo, hi;   /* entries */
    u64 key;
    i32 depth;
    i32 parent;   /* of a right child, -1 = none */
};
/* Grows entries e[0, n), which it permutes.  input [ninput]: those of the tree. */
err subtree_grow(struct grower *g, struct entry *e, i64 n, u64 key, i32 depth, const i32 *input, i32 ninput, struct subtree *out);

/* Node of a leaf: a class, shares of classes (appended to leaf[*nleaf]), or a mean. */
struct tree_node leaf_of(const struct tree_data *d, const struct totals *all, f32 *leaf, i32 *nleaf);
/* True if a node stays a leaf whatever its inputs hold. */
static inline bool node_is_leaf(const struct forest_spec *q, const struct totals *all, i32 depth) {
    return all->pure || all->weight < 2 * (i64)q->min_leaf || depth >= (q->depth ? q->depth : TREE_DEPTH);
}

#endif
