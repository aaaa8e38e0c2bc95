/* graph.c - a random forest as an ONNX graph: x DOUBLE [rows, inputs] -> probabilities DOUBLE [rows, classes] and class INT64
 * [rows], or value DOUBLE [rows].
 *
 *     numbers --cuts--> bins, words --places--> bins, missing -> NaN    --trees--> sums of votes
 *
 * Bins are found in the graph, in DOUBLE: a TreeEnsembleRegressor compares FLOAT, which holds them exactly. */
#include "learn/forest/graph.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/onnx/ensemble.h"
#include "learn/table_rows.h"
#include "onnx/ort.h"

enum { ROWS = 1024 };

/* Bin of a number: 1 + cuts below it. [rows, 1] -> [rows, 1] */
static val number_bin(struct onnx_graph *g, const struct bins *b, i32 i, val v) {
    const i64 n = b->cut_at[i + 1] - b->cut_at[i];
    if (n == 0) return onnx_2(g, "Add", onnx_where(g, onnx_1(g, "IsNaN", v), v, onnx_f64(g, 0)), onnx_f64(g, 1));
    const val cut = onnx_tensor(g, NULL, ONNX_DOUBLE, 2, (i64[]){1, n}, b->cut + b->cut_at[i]);
    const val below = onnx_sum(g, onnx_cast(g, onnx_2(g, "Greater", v, cut), ONNX_DOUBLE), 1);
    return onnx_where(g, onnx_1(g, "IsNaN", v), v, onnx_2(g, "Add", below, onnx_f64(g, 1)));
}

/* Bin of a word by its place in the list of the input; others are missing. */
static val word_bin(struct onnx_graph *g, const struct bins *b, i32 i, val v, struct arena *a) {
    const i32 n = b->word_at[i + 1] - b->word_at[i];
    f64 *bin = arena_array(a, n + 1, sizeof *bin);
    if (!bin) {
        g->failed = true;
        return v;
    }
    for (i32 w = 0; w < n; w++) bin[w] = b->word_bin[b->word_at[i] + w];
    bin[n] = (f64)NAN;
    const val there = onnx_2(g, "And", onnx_2(g, "GreaterOrEqual", v, onnx_f64(g, 0)), onnx_2(g, "Less", v, onnx_f64(g, n)));
    const val place = onnx_cast(g, onnx_where(g, there, v, onnx_f64(g, n)), ONNX_INT64);
    return onnx_gather(g, onnx_f64s(g, n + 1, bin), place, 0);
}

static val bins_node(struct onnx_graph *g, const struct bins *b, val x, struct arena *a) {
    val *part = arena_array(a, b->n, sizeof *part);
    if (!part) {
        g->failed = true;
        return x;
    }
    for (i32 i = 0; i < b->n; i++) {
        const val v = onnx_slice(g, x, 1, i, i + 1);
        part[i] = b->words[i] ? word_bin(g, b, i, v, a) : number_bin(g, b, i, v);
    }
    return onnx_cast(g, onnx_concat(g, 1, b->n, part), ONNX_FLOAT);
}

/* Shares of the classes, or the number less the mean of the training (the sums are FLOAT), times the weight of the tree. */
static err add_leaf(struct ensemble *e, const struct forest *f, i32 k, i32 at) {
    const struct tree *t = &f->tree[k];
    const struct tree_node v = t->node[at];
    TRY(ensemble_leaf(e, k, at));
    if (f->nclass == 0) return ensemble_weight(e, k, at, 0, (f32)(f->vote[k] * ((f64)node_value(v) - f->common)));
    if (!(v.next & LEAF_SHARES)) return ensemble_weight(e, k, at, v.next, (f32)f->vote[k]);
    const f32 *share = t->leaf + (i64)(v.next & ~LEAF_SHARES) * f->nclass;
    for (i32 c = 0; c < f->nclass; c++)
        if (share[c] != 0) TRY(ensemble_weight(e, k, at, c, (f32)(f->vote[k] * (f64)share[c])));
    return 0;
}

static err add_tree(struct ensemble *e, const struct forest *f, i32 k) {
    const struct tree *t = &f->tree[k];
    for (i32 i = 0; i < t->n; i++) {
        const struct tree_node v = t->node[i];
        if (v.split == NODE_LEAF) {
            TRY(add_leaf(e, f, k, i));
            continue;
        }
        const struct ensemble_branch b = {.tree = k,
                                          .node = i,
                                          .input = node_input(v),
                                          .yes = i + 1,
                                          .no = v.next,
                                          .cut = (f32)(u8)v.split,
                                          .missing_left = !(v.split >> 8 & 1)};
        TRY(ensemble_branch(e, &b));
    }
    return 0;
}

static err describe(const struct forest *f, struct onnx_graph *g) {
    struct js *words = js_array(), *classes = js_array(), *o = js_object();
    struct str text = {0};
    for (i32 i = 0; i < f->bins.n; i++) {
        struct js *list = js_array();
        for (i32 w = f->bins.word_at[i]; f->bins.words[i] && w < f->bins.word_at[i + 1]; w++)
            js_push(list, js_new_text(f->bins.word[w]));
        js_push(words, list);
    }
    for (i32 c = 0; c < f->nclass; c++) js_push(classes, js_new_text(f->class[c]));
    js_put(o, "words", words);
    js_put(o, "classes", classes);
    const err e = js_text(o, &text, 0);
    if (e >= 0) onnx_meta(g, "stretto.words", str_text(&text));
    js_free(o);
    str_free(&text);
    TRY(e);
    return table_rows_describe(g, f->bins.n, f->bins.name);
}

err forest_graph(const struct model *m, struct onnx_graph *g, const struct graph_wishes *wish) {
    const struct forest *f = forest_of(m);
    const i32 C = imax(1, f->nclass);
    const struct onnx_dim dim[] = {{"rows", 0}, {NULL, f->bins.n}}, out[] = {{"rows", 0}, {NULL, C}};
    struct ensemble e = {0};
    struct arena room = {0};
    (void)wish;
    const val x = bins_node(g, &f->bins, onnx_input(g, "x", ONNX_DOUBLE, 2, dim), &room);
    arena_free(&room);
    for (i32 k = 0; k < f->ntree && !g->failed; k++)
        if (add_tree(&e, f, k) < 0) g->failed = true;
    const val vote = onnx_cast(g, ensemble_node(&e, g, x, C, NULL), ONNX_DOUBLE);
    if (f->nclass == 0)
        onnx_output(g, onnx_2(g, "Add", onnx_squeeze(g, vote, 1), onnx_f64(g, f->common)), "value", ONNX_DOUBLE, 1, dim);
    else {
        onnx_output(g, onnx_squeeze(g, onnx_op_int(g, "ArgMax", "axis", 1, 1, &vote), 1), "class", ONNX_INT64, 1, dim);
        onnx_output(g, vote, "probabilities", ONNX_DOUBLE, 2, out);
    }
    return describe(f, g);
}

/* ------------------------------------------------------------------ the comparison ------------------------------------------ */

static f64 place_of(const struct bins *b, i32 i, const char *word) {
    for (i32 w = b->word_at[i]; w < b->word_at[i + 1]; w++)
        if (strcmp(b->word[w], word) == 0) return w - b->word_at[i];
    return -1;
}

static void fill_column(const struct bins *b, i32 i, const struct column *c, i64 n, f64 *x) {
    for (i64 r = 0; r < n; r++) {
        f64 *to = x + r * b->n + i;
        if (c->type == COL_TIME || (c->type == COL_CATEGORY) != b->words[i])
            *to = (f64)NAN;
        else if (c->type == COL_NUMBER)
            *to = c->number[r];
        else
            *to = c->code[r] < 0 ? -1 : place_of(b, i, c->word[c->code[r]]);
    }
}

/* In units of the deviation of the target, or of a share. */
static f64 unit_of(const struct forest *f) {
    const f64 n = f->oob.rows, var = n > 1 ? f->oob.square / n - f->oob.sum / n * (f->oob.sum / n) : 0;
    return f->nclass == 0 && var > 0 ? sqrt(var) : 1;
}

static err compare(const struct forest *f, const struct dataset *d, const struct resources *use, struct ort *run, struct arena *a,
                   struct graph_gap *gap) {
    const struct table_set *s = table_set_of(d);
    const i64 n = lmin(ROWS, d->nrow), C = imax(1, f->nclass);
    const struct column **column;
    f64 *x, *own;
    struct ort_tensor out = {.name = f->nclass > 0 ? "probabilities" : "value", .type = ONNX_DOUBLE};
    ARENA_NEW(a, column, f->bins.n);
    ARENA_NEW(a, x, n * f->bins.n);
    ARENA_NEW(a, own, n * C);
    TRY(bins_find(&f->bins, s, column));
    for (i32 i = 0; i < f->bins.n; i++) fill_column(&f->bins, i, column[i], n, x);
    TRY(forest_predict(f, s, 0, n, use->pool, own));
    const struct ort_tensor in = {.name = "x", .type = ONNX_DOUBLE, .ndim = 2, .dim = {n, f->bins.n}, .data = x};
    TRY(ort_run(run, 1, &in, 1, &out));
    TRY(ort_need(&out, n * C));
    const f64 unit = unit_of(f);
    for (i64 i = 0; i < n * C; i++) graph_gap_add(gap, fabs(own[i] - ((const f64 *)out.data)[i]) / unit);
    gap->windows = n;
    return 0;
}

err forest_graph_check(const struct model *m, const struct dataset *d, const struct resources *use, struct ort *run,
                       const struct graph_wishes *wish, struct graph_gap *gap) {
    struct arena room = {0};
    (void)wish;
    *gap = (struct graph_gap){0};
    const err e = compare(forest_of(m), d, use, run, &room, gap);
    arena_free(&room);
    return e;
}
