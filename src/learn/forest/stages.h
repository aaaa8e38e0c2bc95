/* stages.h - how trees grow: tasks in stages, as PRF has them.
 *
 *     stage 0   sample of tree 0 | sample of tree 1 | ..              a tree of few rows is grown whole at once
 *     stage s   T_GR (node, input, rows) | T_GR | .. | subtree | ..   counts by bin; nodes of few rows are finished by one task
 *               T_NS (node) | T_NS | ..                               best split of the node, its rows left and right
 *
 * Trees of a wave grow together; the workers of a rank share its tasks, the ranks share the trees of the wave. */
#ifndef STRETTO_LEARN_FOREST_STAGES_H
#define STRETTO_LEARN_FOREST_STAGES_H

#include <stdatomic.h>

#include "learn/forest/devices.h"
#include "learn/forest/forest.h"

enum { FUSED_ROWS = 32768, TASK_ROWS = 65536 };

enum open_state { OPEN_GAIN, OPEN_SUBTREE, OPEN_SPLIT, OPEN_DONE };
struct open_node {
    i64 lo, hi, mid;       /* entries */
    u64 key;
    i32 depth, left, right; /* children; -1 = none yet */
    enum open_state state;
    bool leaf;             /* no input has a split */
    i32 drawn, slots;      /* inputs that were drawn before this stage, and in it */
    i64 counts;            /* first block of counts; slot k, piece p: block k * pieces + p */
    i32 pieces;
    struct node_split split;
    struct subtree sub;
};

/* A tree that grows. */
struct plant {
    i32 number;
    u64 key;
    i32 *input;            /* [ninput] of the tree */
    i32 ninput;
    struct entry *entry, *spare; /* [rows] of large trees */
    i64 n, nnode, cap;
    struct open_node *node;
};

enum item_kind { ITEM_ROOT, ITEM_GAIN, ITEM_SUBTREE, ITEM_SPLIT };
struct grow_task {
    enum item_kind kind;
    i32 plant, node, slot, piece;
};

/* The growing trees of a rank. */
struct stages {
    const struct tree_data *d;
    const struct forest_spec *q;
    struct forest *f;
    struct grower *worker; /* [workers] */
    i32 workers;
    struct plant *plant;
    i32 nplant, stage;
    struct grow_task *task; /* those of T_GR, then those of T_NS */
    i64 ntask, cap, nsplit, split_cap;
    struct grow_task *split;
    char *counts;          /* blocks of counts_bytes */
    i64 counts_cap;
    struct shared_counts *shared; /* T_GR runs on devices, before the plan of the stage; NULL = in it */
    struct count_node *node;      /* [nnode] the nodes that they count */
    struct grow_task *counted;    /* [nnode] plant and node */
    i32 *input;                   /* [nnode][mtry] */
    i64 nnode, node_cap, counted_cap;
    _Atomic i64 next[2];
    _Atomic err failed;
    struct map_run run;
    bool opened;
};

err stages_open(const struct tree_data *d, struct forest *f, const struct resources *use, struct stages *out);
void stages_close(struct stages *s);
/* Grows trees [from, to) of the forest into f->tree; their importance goes to importance[to - from][ninput]. */
err stages_grow(struct stages *s, i32 from, i32 to, f64 *importance);

#endif
