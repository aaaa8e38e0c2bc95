/* state.c - what a checkpoint of a forest holds: the trees that are grown, one after the other, and the sums over them. */
#include <string.h>

#include "learn/forest/stages.h"
#include "learn/snapshots.h"

struct tree_sizes { /* of all trees together */
    i64 node, leaf; /* leaves: floats */
};

static struct tree_sizes sum_sizes(const i32 *size, i64 ntree, i32 nclass) {
    struct tree_sizes s = {0};
    for (i64 k = 0; k < ntree; k++) {
        s.node += size[2 * k];
        s.leaf += (i64)size[2 * k + 1] * nclass;
    }
    return s;
}

static void list_sums(const struct forest *f, const struct forest_stage *stage, struct snapshot *to) {
    snapshot_add(to, "importance", DTYPE_F64, f->importance, f->bins.n);
    snapshot_add(to, "stages", DTYPE_I64, stage, FOREST_STAGES * 3);
}

err forest_list_state(const struct forest *f, const struct forest_stage *stage, struct snapshot *to) {
    i64 *ntree;
    i32 *size;
    struct tree_node *node;
    f32 *leaf;
    ARENA_NEW(&to->arena, ntree, 1);
    ARENA_NEW(&to->arena, size, 2 * f->ntree);
    *ntree = f->ntree;
    for (i32 k = 0; k < f->ntree; k++) {
        size[2 * k] = f->tree[k].n;
        size[2 * k + 1] = f->tree[k].nleaf;
    }
    const struct tree_sizes all = sum_sizes(size, f->ntree, f->nclass);
    ARENA_NEW(&to->arena, node, all.node);
    ARENA_NEW(&to->arena, leaf, all.leaf + 1);
    snapshot_add(to, "trees", DTYPE_I64, ntree, 1);
    snapshot_add(to, "sizes", DTYPE_I32, size, 2 * f->ntree);
    snapshot_add(to, "nodes", DTYPE_I32, node, 2 * all.node);
    snapshot_add(to, "leaves", DTYPE_F32, leaf, all.leaf);
    list_sums(f, stage, to);
    for (i32 k = 0; k < f->ntree; k++) {
        const struct tree *t = &f->tree[k];
        memcpy(node, t->node, sizeof *node * (size_t)t->n);
        if (t->nleaf > 0) memcpy(leaf, t->leaf, sizeof *leaf * (size_t)t->nleaf * (size_t)f->nclass);
        node += t->n;
        leaf += (i64)t->nleaf * f->nclass;
    }
    return 0;
}

static err take_sizes(const struct snapshots *s, struct forest *f, i32 **size, struct arena *a) {
    struct snapshot head = {0};
    i64 ntree = 0;
    snapshot_add(&head, "trees", DTYPE_I64, &ntree, 1);
    TRY(snapshots_take(s, &head));
    if (ntree < 0 || ntree > f->spec.trees) return snapshots_unsound(s);
    ARENA_NEW(a, *size, 2 * ntree);
    head.n = 0;
    snapshot_add(&head, "sizes", DTYPE_I32, *size, 2 * ntree);
    TRY(snapshots_take(s, &head));
    for (i64 k = 0; k < 2 * ntree; k++)
        if ((*size)[k] < (k % 2 == 0)) return snapshots_unsound(s);
    f->ntree = (i32)ntree;
    return 0;
}

static err take_trees(const struct snapshots *s, struct forest *f, const i32 *size, struct forest_stage *stage, struct arena *a) {
    const struct tree_sizes all = sum_sizes(size, f->ntree, f->nclass);
    struct snapshot state = {0};
    struct tree_node *node;
    f32 *leaf;
    ARENA_NEW(a, node, all.node);
    ARENA_NEW(a, leaf, all.leaf + 1);
    snapshot_add(&state, "nodes", DTYPE_I32, node, 2 * all.node);
    snapshot_add(&state, "leaves", DTYPE_F32, leaf, all.leaf);
    list_sums(f, stage, &state);
    TRY(snapshots_take(s, &state));
    for (i32 k = 0; k < f->ntree; k++) {
        struct tree *t = &f->tree[k];
        t->n = size[2 * k];
        t->nleaf = size[2 * k + 1];
        NEW(t->node, t->n);
        memcpy(t->node, node, sizeof *node * (size_t)t->n);
        if (t->nleaf > 0) NEW(t->leaf, (i64)t->nleaf * f->nclass);
        if (t->nleaf > 0) memcpy(t->leaf, leaf, sizeof *leaf * (size_t)t->nleaf * (size_t)f->nclass);
        if (!tree_is_sound(t, f->bins.n, f->nclass)) return snapshots_unsound(s);
        node += t->n;
        leaf += (i64)t->nleaf * f->nclass;
    }
    return 0;
}

err forest_take_state(const struct snapshots *s, struct forest *f, struct forest_stage *stage) {
    struct arena a = {0};
    i32 *size = NULL;
    if (!s->resumes) return 0;
    err e = take_sizes(s, f, &size, &a);
    if (e >= 0) e = take_trees(s, f, size, stage, &a);
    arena_free(&a);
    return e;
}
