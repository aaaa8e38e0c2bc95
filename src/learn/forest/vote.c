/* vote.c - rows go down the trees: eight at a time, so that the loads of several rows are under way; see forest.h. */
#include <string.h>

#include "learn/forest/forest.h"

err tile_new(i32 ninput, i32 nclass, struct vote_tile *t) {
    *t = (struct vote_tile){0};
    NEW(t->bin, (i64)TILE_ROWS * ninput);
    NEW(t->vote, (i64)TILE_ROWS * imax(1, nclass));
    NEW(t->seen, TILE_ROWS);
    NEW(t->list, TILE_ROWS);
    NEW(t->leaf, TILE_ROWS);
    NEW(t->path, ninput / 64 + 1);
    return 0;
}

void tile_free(struct vote_tile *t) {
    mem_free(t->bin);
    mem_free(t->vote);
    mem_free(t->seen);
    mem_free(t->list);
    mem_free(t->leaf);
    mem_free(t->path);
    *t = (struct vote_tile){0};
}

void tile_fill(struct vote_tile *t, const u8 *bin, i64 stride, i32 ninput, i32 rows) {
    for (i32 i = 0; i < ninput; i++) {
        const u8 *from = bin + stride * i;
        for (i32 r = 0; r < rows; r++) t->bin[(i64)r * ninput + i] = from[r];
    }
}

/* One level down; a leaf stays.  No branch depends on the row: its outcome could not be predicted. */
static inline u32 step(const struct tree_node *node, const u8 *row, u32 at, u32 *inner) {
    const struct tree_node v = node[at];
    const bool leaf = v.split == NODE_LEAF;
    const u8 bin = row[leaf ? 0 : node_input(v)];
    const u32 child = node_left(v, bin) ? at + 1 : v.next;
    *inner |= !leaf;
    return leaf ? at : child;
}

void tile_leaves(const struct vote_tile *t, i32 ninput, const struct tree *tree, i32 n) {
    enum { SIDE = 8 };
    for (i32 k = 0; k < n; k += SIDE) {
        const u8 *row[SIDE];
        u32 at[SIDE] = {0};
        for (i32 i = 0; i < SIDE; i++) row[i] = t->bin + (i64)t->list[imin(k + i, n - 1)] * ninput;
        for (u32 inner = 1; inner;) {
            inner = 0;
            for (i32 i = 0; i < SIDE; i++) at[i] = step(tree->node, row[i], at[i], &inner);
        }
        for (i32 i = 0; i < SIDE && k + i < n; i++) t->leaf[k + i] = at[i];
    }
}

i32 vote_argmax(const f64 *vote, i32 n) {
    i32 best = 0;
    for (i32 k = 1; k < n; k++)
        if (vote[k] > vote[best]) best = k;
    return best;
}

f32 node_value(struct tree_node leaf) {
    f32 v;
    memcpy(&v, &leaf.next, sizeof v);
    return v;
}

void vote_add(i32 nclass, const struct tree *tree, u32 leaf, f64 weight, f64 *vote) {
    const struct tree_node v = tree->node[leaf];
    if (nclass == 0) {
        *vote += weight * (f64)node_value(v);
    } else if (v.next & LEAF_SHARES) {
        const f32 *share = tree->leaf + (i64)(v.next & ~LEAF_SHARES) * nclass;
        for (i32 c = 0; c < nclass; c++) vote[c] += weight * (f64)share[c];
    } else {
        vote[v.next] += weight;
    }
}
