/* ensemble.c - see ensemble.h. */
#include "learn/onnx/ensemble.h"

static err add_node(struct ensemble *e, const struct ensemble_branch *b, const char *mode) {
    const i64 k = e->n;
    GROW(e->tree, k, e->room[0]);
    GROW(e->node, k, e->room[1]);
    GROW(e->input, k, e->room[2]);
    GROW(e->yes, k, e->room[3]);
    GROW(e->no, k, e->room[4]);
    GROW(e->missing_left, k, e->room[5]);
    GROW(e->cut, k, e->room[6]);
    e->tree[k] = b->tree, e->node[k] = b->node, e->input[k] = b->input, e->yes[k] = b->yes, e->no[k] = b->no;
    e->missing_left[k] = b->missing_left;
    e->cut[k] = b->cut;
    str_addf(&e->modes, "%s%s", k ? " " : "", mode);
    e->n++;
    return 0;
}

err ensemble_branch(struct ensemble *e, const struct ensemble_branch *b) { return add_node(e, b, "BRANCH_LEQ"); }

err ensemble_leaf(struct ensemble *e, i64 tree, i64 node) {
    return add_node(e, &(struct ensemble_branch){.tree = tree, .node = node}, "LEAF");
}

err ensemble_weight(struct ensemble *e, i64 tree, i64 node, i64 target, f32 weight) {
    const i64 k = e->nleaf;
    GROW(e->leaf_tree, k, e->leaf_room[0]);
    GROW(e->leaf_node, k, e->leaf_room[1]);
    GROW(e->leaf_target, k, e->leaf_room[2]);
    GROW(e->leaf, k, e->leaf_room[3]);
    e->leaf_tree[k] = tree, e->leaf_node[k] = node, e->leaf_target[k] = target, e->leaf[k] = weight;
    e->nleaf++;
    return 0;
}

void ensemble_free(struct ensemble *e) {
    i64 *const whole[] = {e->tree, e->node, e->input, e->yes, e->no, e->missing_left, e->leaf_tree, e->leaf_node, e->leaf_target};
    for (size_t i = 0; i < COUNT(whole); i++) mem_free(whole[i]);
    mem_free(e->cut);
    mem_free(e->leaf);
    str_free(&e->modes);
    *e = (struct ensemble){0};
}

val ensemble_node(struct ensemble *e, struct onnx_graph *g, val x, i64 ntarget, const f32 *start) {
    val out = 0;
#define WHOLE(attribute, list, count) \
    { .name = attribute, .type = ATTR_INTS, .n = count, .ints = list }
#define REAL(attribute, list, count) \
    { .name = attribute, .type = ATTR_FLOATS, .n = count, .floats = list }
    const struct onnx_attr attr[] = {WHOLE("nodes_treeids", e->tree, e->n),
                                     WHOLE("nodes_nodeids", e->node, e->n),
                                     WHOLE("nodes_featureids", e->input, e->n),
                                     WHOLE("nodes_truenodeids", e->yes, e->n),
                                     WHOLE("nodes_falsenodeids", e->no, e->n),
                                     WHOLE("nodes_missing_value_tracks_true", e->missing_left, e->n),
                                     REAL("nodes_values", e->cut, e->n),
                                     {.name = "nodes_modes", .type = ATTR_STRINGS, .s = str_text(&e->modes)},
                                     WHOLE("target_treeids", e->leaf_tree, e->nleaf),
                                     WHOLE("target_nodeids", e->leaf_node, e->nleaf),
                                     WHOLE("target_ids", e->leaf_target, e->nleaf),
                                     REAL("target_weights", e->leaf, e->nleaf),
                                     {.name = "n_targets", .type = ATTR_INT, .i = ntarget},
                                     REAL(start ? "base_values" : NULL, start, ntarget),
                                     {0}};
#undef WHOLE
#undef REAL
    if (e->modes.failed) g->failed = true;
    onnx_node(g, "TreeEnsembleRegressor", 1, &x, 1, &out, attr);
    ensemble_free(e);
    return out;
}
