/* ensemble.c - trees as the lists of a TreeEnsembleRegressor (ai.onnx.ml version 3). */
#include <string.h>

#include "learn/forecast/onnx/trees.h"

/* [nnode] each, in the order of the nodes; leaves [nleaf]. */
struct lists {
    i64 *tree, *node, *input, *yes, *no, *missing;
    f32 *cut;
    i64 *leaf_tree, *leaf_node, *leaf_target;
    f32 *leaf;
    i64 n, nleaf;
};

static bool make_room(struct lists *l, i32 n, struct arena *a) {
    i64 **whole[] = {&l->tree, &l->node, &l->input, &l->yes, &l->no, &l->missing, &l->leaf_tree, &l->leaf_node, &l->leaf_target};
    for (size_t i = 0; i < COUNT(whole); i++)
        if (!(*whole[i] = arena_array(a, n, sizeof **whole[i]))) return false;
    l->cut = arena_array(a, n, sizeof *l->cut);
    l->leaf = arena_array(a, n, sizeof *l->leaf);
    return l->cut && l->leaf;
}

/* Nodes of a tree are numbered from its root; the left child follows its parent. */
static void add_node(struct lists *l, i64 tree, i64 at, const struct trees_node *q) {
    l->tree[l->n] = tree;
    l->node[l->n] = at;
    if (q->input < 0) {
        l->leaf_tree[l->nleaf] = tree;
        l->leaf_node[l->nleaf] = at;
        l->leaf[l->nleaf++] = q->cut;
    } else {
        l->input[l->n] = q->input;
        l->cut[l->n] = q->cut;
        l->yes[l->n] = at + 1;
        l->no[l->n] = at + q->right;
        l->missing[l->n] = !q->missing_right;
    }
    l->n++;
}

static err modes(const struct trees *t, struct str *out) {
    for (i32 i = 0; i < t->nnode; i++) str_addf(out, "%s%s", i ? " " : "", t->node[i].input < 0 ? "LEAF" : "BRANCH_LEQ");
    return str_ok(out);
}

val trees_node_of(const struct window_graph *w, const struct trees *t, val x) {
    struct lists l = {0};
    struct str mode = {0};
    val out = 0;
    if (!make_room(&l, t->nnode, w->arena) || modes(t, &mode) < 0) {
        w->g->failed = true;
        str_free(&mode);
        return 0;
    }
    for (i32 k = 0; k < t->ntree; k++) {
        const i32 end = k + 1 < t->ntree ? t->root[k + 1] : t->nnode;
        for (i32 i = t->root[k]; i < end; i++) add_node(&l, k, i - t->root[k], &t->node[i]);
    }
#define WHOLE(attribute, list, count) \
    { .name = attribute, .type = ATTR_INTS, .n = count, .ints = list }
#define REAL(attribute, list, count) \
    { .name = attribute, .type = ATTR_FLOATS, .n = count, .floats = list }
    const struct onnx_attr attr[] = {WHOLE("nodes_treeids", l.tree, l.n),
                                     WHOLE("nodes_nodeids", l.node, l.n),
                                     WHOLE("nodes_featureids", l.input, l.n),
                                     WHOLE("nodes_truenodeids", l.yes, l.n),
                                     WHOLE("nodes_falsenodeids", l.no, l.n),
                                     WHOLE("nodes_missing_value_tracks_true", l.missing, l.n),
                                     REAL("nodes_values", l.cut, l.n),
                                     {.name = "nodes_modes", .type = ATTR_STRINGS, .s = str_text(&mode)},
                                     WHOLE("target_treeids", l.leaf_tree, l.nleaf),
                                     WHOLE("target_nodeids", l.leaf_node, l.nleaf),
                                     WHOLE("target_ids", l.leaf_target, l.nleaf),
                                     REAL("target_weights", l.leaf, l.nleaf),
                                     REAL("base_values", &t->start, 1),
                                     {.name = "n_targets", .type = ATTR_INT, .i = 1},
                                     {0}};
#undef WHOLE
#undef REAL
    onnx_node(w->g, "TreeEnsembleRegressor", 1, &x, 1, &out, attr);
    str_free(&mode);
    return out;
}
