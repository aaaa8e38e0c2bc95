/* file.c - a forest in a model file: the nodes of each tree, the bins, the votes; see ckpt/model_file.h. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "learn/forest/forest.h"

/* ------------------------------------------------------------------ write -------------------------------------------------- */

static void put_inputs(const struct bins *b, struct js *o) {
    struct js *inputs = js_array();
    for (i32 i = 0; i < b->n; i++) {
        struct js *one = js_object();
        js_put_text(one, "name", b->name[i]);
        js_put_i64(one, "cuts", b->cut_at[i + 1] - b->cut_at[i]);
        if (b->words[i]) {
            struct js *words = js_array();
            for (i32 w = b->word_at[i]; w < b->word_at[i + 1]; w++) js_push(words, js_new_text(b->word[w]));
            js_put(one, "words", words);
        }
        js_push(inputs, one);
    }
    js_put(o, "inputs", inputs);
}

static err put_trees(const struct forest *f, struct tens_list *l) {
    char name[48];
    for (i32 k = 0; k < f->ntree; k++) {
        const struct tree *t = &f->tree[k];
        snprintf(name, sizeof name, "tree.%d.node", k);
        TRY(tens_add(l, name, DTYPE_I32, t->n, 2, t->node));
        snprintf(name, sizeof name, "tree.%d.leaf", k);
        if (t->nleaf > 0) TRY(tens_add(l, name, DTYPE_F32, t->nleaf, f->nclass, t->leaf));
    }
    return 0;
}

err forest_save(const struct model *m, struct tens_list *l, struct str *json) {
    const struct forest *f = forest_of(m);
    const struct bins *b = &f->bins;
    struct js *o = js_object(), *classes = js_array();
    js_put_text(o, "target", f->target);
    for (i32 k = 0; k < f->nclass; k++) js_push(classes, js_new_text(f->class[k]));
    js_put(o, "classes", classes);
    js_put_i64(o, "trees", f->ntree);
    js_put_f64(o, "common", f->common);
    put_inputs(b, o);
    const err e = js_text(o, json, 0);
    js_free(o);
    TRY(e);
    if (b->cut_at[b->n] > 0) TRY(tens_add(l, "bins.cut", DTYPE_F64, b->cut_at[b->n], 0, b->cut));
    if (b->word_at[b->n] > 0) TRY(tens_add(l, "bins.word", DTYPE_U8, b->word_at[b->n], 0, b->word_bin));
    TRY(tens_add(l, "forest.vote", DTYPE_F64, f->ntree, 0, f->vote));
    TRY(tens_add(l, "forest.importance", DTYPE_F64, b->n, 0, f->importance));
    if (f->permuted) TRY(tens_add(l, "forest.permuted", DTYPE_F64, b->n, 0, f->permuted));
    TRY(tens_add(l, "forest.oob", DTYPE_F64, SCORE_SUMS, 0, &f->oob));
    if (f->nclass > 0) TRY(tens_add(l, "forest.confusion", DTYPE_I64, f->nclass, f->nclass, f->confusion));
    TRY(tens_add(l, "forest.stages", DTYPE_I64, FOREST_STAGES, 3, f->stage));
    return put_trees(f, l);
}

/* ------------------------------------------------------------------ read --------------------------------------------------- */

static err no_forest(const char *path, const char *what) {
    return FAIL_AT(E901, NULL, "the model file that `stretto train` wrote", "%s: %s", path, what);
}

static err take_inputs(const struct js *inputs, const char *path, struct bins *b) {
    i64 nword = 0, ncut = 0;
    b->n = (i32)js_len(inputs);
    if (b->n < 1 || b->n > TREE_INPUTS) return no_forest(path, "it names no inputs");
    for (i32 i = 0; i < b->n; i++) {
        const i64 cuts = js_i64(js_get(js_at(inputs, i), "cuts"), -1);
        if (cuts < 0 || cuts > CUTS_MOST) return no_forest(path, "an input has an impossible number of bins");
        ncut += cuts;
        nword += js_len(js_get(js_at(inputs, i), "words"));
    }
    ARENA_NEW(&b->arena, b->name, b->n);
    ARENA_NEW(&b->arena, b->words, b->n);
    ARENA_NEW(&b->arena, b->cut_at, b->n + 1);
    ARENA_NEW(&b->arena, b->word_at, b->n + 1);
    ARENA_NEW(&b->arena, b->cut, ncut + 1);
    ARENA_NEW(&b->arena, b->word, nword + 1);
    ARENA_NEW(&b->arena, b->word_bin, nword + 1);
    for (i32 i = 0; i < b->n; i++) {
        const struct js *one = js_at(inputs, i), *words = js_get(one, "words");
        TRY(arena_keep(&b->arena, &b->name[i], js_str(js_get(one, "name"), "")));
        b->words[i] = words != NULL;
        b->cut_at[i + 1] = b->cut_at[i] + (i32)js_i64(js_get(one, "cuts"), 0);
        b->word_at[i + 1] = b->word_at[i] + (i32)js_len(words);
        for (i32 w = 0; w < js_len(words); w++)
            TRY(arena_keep(&b->arena, &b->word[b->word_at[i] + w], js_str(js_at(words, w), "")));
    }
    return 0;
}

/* Copies a tensor of this shape. */
static err take_tensor(const struct st_file *file, const char *name, enum dtype type, i64 rows, i64 cols, void *to) {
    const struct tens *t;
    if (rows == 0) return 0;
    TRY(model_tensor(file, name, type, rows, cols, &t));
    memcpy(to, t->data, (size_t)tens_count(t) * dtype_size(type));
    return 0;
}

static err take_tree(const struct st_file *file, const char *path, struct forest *f, i32 k) {
    struct tree *t = &f->tree[k];
    char name[48];
    snprintf(name, sizeof name, "tree.%d.node", k);
    const struct tens *node = st_find(file, name);
    if (!node || node->dtype != DTYPE_I32 || node->ndim != 2 || node->dim[1] != 2 || node->dim[0] < 1 ||
        node->dim[0] > INT32_MAX)
        return no_forest(path, "a tree has no nodes");
    t->n = (i32)node->dim[0];
    NEW(t->node, t->n);
    memcpy(t->node, node->data, sizeof *t->node * (size_t)t->n);
    snprintf(name, sizeof name, "tree.%d.leaf", k);
    const struct tens *leaf = st_find(file, name);
    if (leaf) {
        t->nleaf = leaf->ndim == 2 && leaf->dim[0] < INT32_MAX ? (i32)leaf->dim[0] : 0;
        NEW(t->leaf, (i64)t->nleaf * imax(1, f->nclass));
        TRY(take_tensor(file, name, DTYPE_F32, t->nleaf, f->nclass, t->leaf));
    }
    return tree_is_sound(t, f->bins.n, f->nclass) ? 0 : no_forest(path, "the nodes of a tree are damaged");
}

static err take_arrays(const struct st_file *file, struct forest *f) {
    const struct bins *b = &f->bins;
    TRY(take_tensor(file, "bins.cut", DTYPE_F64, b->cut_at[b->n], 0, b->cut));
    TRY(take_tensor(file, "bins.word", DTYPE_U8, b->word_at[b->n], 0, b->word_bin));
    TRY(take_tensor(file, "forest.vote", DTYPE_F64, f->ntree, 0, f->vote));
    TRY(take_tensor(file, "forest.importance", DTYPE_F64, b->n, 0, f->importance));
    if (st_find(file, "forest.permuted")) {
        ARENA_NEW(&f->arena, f->permuted, b->n);
        TRY(take_tensor(file, "forest.permuted", DTYPE_F64, b->n, 0, f->permuted));
    }
    TRY(take_tensor(file, "forest.oob", DTYPE_F64, SCORE_SUMS, 0, &f->oob));
    TRY(take_tensor(file, "forest.confusion", DTYPE_I64, f->nclass, f->nclass, f->confusion));
    return take_tensor(file, "forest.stages", DTYPE_I64, FOREST_STAGES, 3, f->stage);
}

err forest_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json,
                struct model **out) {
    const struct js *classes = js_get(json, "classes");
    struct forest *f;
    NEW(f, 1);
    *out = &f->model;
    f->spec = forest_spec_of(o);
    f->nclass = (i32)js_len(classes);
    f->ntree = (i32)js_i64(js_get(json, "trees"), 0);
    f->common = js_f64(js_get(json, "common"), 0);
    TRY(arena_keep(&f->arena, &f->target, js_str(js_get(json, "target"), "")));
    TRY(take_inputs(js_get(json, "inputs"), path, &f->bins));
    if (f->ntree < 1 || f->nclass > (1 << 16)) return no_forest(path, "it holds no trees");
    f->spec.trees = f->ntree;
    TRY(forest_room(f));
    for (i32 k = 0; k < f->nclass; k++) TRY(arena_keep(&f->arena, &f->class[k], js_str(js_at(classes, k), "")));
    TRY(take_arrays(file, f));
    for (i32 k = 0; k < f->ntree; k++) TRY(take_tree(file, path, f, k));
    return 0;
}
