/* apply.c - forecasts of boosted trees, and trees as a matrix of numbers and back. */
#include <math.h>
#include <string.h>

#include "bases/trees/trees.h"

err trees_new(const struct trees_inputs *in, i32 nnode, struct trees **out) {
    struct trees *t;
    NEW(t, 1);
    t->in = *in;
    err e = mem_new((void **)&t->node, imax(1, nnode), sizeof *t->node);
    if (e >= 0) e = mem_new((void **)&t->root, imax(1, nnode), sizeof *t->root);
    if (e < 0)
        trees_free(t);
    else
        *out = t;
    return e;
}

void trees_free(struct trees *t) {
    if (!t) return;
    mem_free(t->walk);
    mem_free(t->depth);
    mem_free(t->root);
    mem_free(t->node);
    mem_free(t);
}

/* ------------------------------------------------------------------ forecasts ----------------------------------------------- */

/* A step of a walk without a branch that depends on the row: a leaf leads to itself. */
static inline i32 next_node(const struct trees_walk *w, i32 at, const f32 *x) {
    const struct trees_walk q = w[at];
    const f32 v = x[q.input];
    const bool right = q.missing_right ? !(v <= q.cut) : v > q.cut; /* a comparison with NaN is false */
    return q.next[right];
}

/* Four rows at a time, which do not wait for each other. */
static void add_tree(const struct trees *t, i32 tree, i32 n, const f32 *x, f32 *out) {
    enum { TOGETHER = 4 };
    const struct trees_walk *w = t->walk + t->root[tree];
    const struct trees_node *node = t->node + t->root[tree];
    const i32 width = t->in.n, depth = t->depth[tree];
    i32 i = 0;
    for (; i + TOGETHER <= n; i += TOGETHER) {
        const f32 *u = x + (i64)i * width;
        i32 at[TOGETHER] = {0};
        for (i32 d = 0; d < depth; d++)
            for (i32 k = 0; k < TOGETHER; k++) at[k] = next_node(w, at[k], u + (i64)k * width);
        for (i32 k = 0; k < TOGETHER; k++) out[i + k] += node[at[k]].cut;
    }
    for (; i < n; i++) {
        i32 at = 0;
        for (i32 d = 0; d < depth; d++) at = next_node(w, at, x + (i64)i * width);
        out[i] += node[at].cut;
    }
}

void trees_apply(const struct trees *t, i32 n, const f32 *x, f32 *out) {
    for (i32 i = 0; i < n; i++) out[i] = t->start;
    for (i32 k = 0; k < t->ntree; k++) add_tree(t, k, n, x, out);
}

/* Depth of the subtree of a node, which it fills in; `at` counts from the root. */
static i32 link_node(const struct trees_node *node, struct trees_walk *w, i32 at) {
    const struct trees_node q = node[at];
    if (q.input < 0) {
        w[at] = (struct trees_walk){.next = {at, at}};
        return 0;
    }
    w[at] = (struct trees_walk){.cut = q.cut, .input = q.input, .missing_right = q.missing_right, .next = {at + 1, at + q.right}};
    return 1 + imax(link_node(node, w, at + 1), link_node(node, w, at + q.right));
}

err trees_link(struct trees *t) {
    mem_free(t->walk);
    mem_free(t->depth);
    t->walk = NULL;
    t->depth = NULL;
    NEW(t->walk, t->nnode);
    NEW(t->depth, t->ntree);
    for (i32 k = 0; k < t->ntree; k++) t->depth[k] = link_node(t->node + t->root[k], t->walk + t->root[k], 0);
    return 0;
}

struct window_at {
    const struct series *s;
    i32 col;
    i64 origin;
};

/* Work space: inputs of `room` rows, at most TREES_ROWS. */
struct space {
    f32 *x;
    i32 room;
};

/* One window, `room` steps at a time; rows do not depend on each other, so room does not change the bits. */
static void add_window(const struct trees *t, f64 weight, const struct window_at *w, i32 H, struct space space, f32 *out) {
    const i32 n = t->in.n, steps = imin(H, t->in.shape.H);
    f32 *x = space.x, shift[TREES_ROWS], sum[TREES_ROWS], last = 0;
    const struct trees_origin o = trees_origin_take(&t->in, w->s, w->col, w->origin, x);
    for (i32 h0 = 0; h0 < steps; h0 += space.room) {
        const i32 rows = imin(space.room, steps - h0);
        for (i32 i = 0; i < rows; i++) {
            f32 *u = x + (i64)i * n;
            if (i > 0) memcpy(u, x, sizeof *u * (size_t)t->in.norigin);
            shift[i] = trees_step_take(&t->in, &o, h0 + i, u);
        }
        trees_apply(t, rows, x, sum);
        for (i32 i = 0; i < rows; i++) out[h0 + i] += (f32)(weight * (f64)(last = shift[i] + sum[i]));
    }
    for (i32 h = steps; h < H; h++) out[h] += (f32)(weight * (f64)last);
}

err trees_add_rows(const struct trees *t, f64 weight, const struct series *s, const struct row_list *rows, i32 H, f32 *out,
                   i64 ldo) {
    f32 *x;
    NEW(x, (i64)TREES_ROWS * t->in.n);
    for (i64 r = 0; r < rows->n; r++)
        add_window(t, weight, &(struct window_at){s, rows->col[r], rows->origin[r]}, H, (struct space){x, TREES_ROWS},
                   out + r * ldo);
    mem_free(x);
    return 0;
}

void trees_add(const struct trees *t, f64 weight, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    f32 x[8 * TREES_INPUTS];
    add_window(t, weight, &(struct window_at){s, col, origin}, H, (struct space){x, imin(TREES_ROWS, 8 * TREES_INPUTS / t->in.n)},
               out);
}

/* ------------------------------------------------------------------ as a matrix --------------------------------------------- */

i64 trees_tensor(const struct trees *t, f32 *w) {
    const i64 n = (1 + (i64)t->nnode) * TREES_FIELDS;
    if (!w) return n;
    memcpy(w, (const f32[TREES_FIELDS]){t->start, (f32)t->ntree, 0, 0}, sizeof(f32) * TREES_FIELDS);
    for (i32 i = 0; i < t->nnode; i++) {
        const struct trees_node *q = &t->node[i];
        memcpy(w + (i64)(1 + i) * TREES_FIELDS,
               (const f32[TREES_FIELDS]){(f32)q->input, q->cut, (f32)q->right, (f32)q->missing_right},
               sizeof(f32) * TREES_FIELDS);
    }
    return n;
}

/* An integer of [least, most]. */
static bool whole(f32 v, i32 least, i32 most, i32 *out) {
    if (!(v >= (f32)least && v <= (f32)most) || v != floorf(v)) return false;
    *out = (i32)v;
    return true;
}

static bool read_node(const f32 *w, i32 ninput, i32 behind, struct trees_node *q) {
    q->cut = w[1];
    if (!isfinite(w[1]) || !whole(w[0], -1, ninput - 1, &q->input)) return false;
    if (q->input < 0) return w[2] == 0.f && w[3] == 0.f;
    return whole(w[2], 2, behind, &q->right) && whole(w[3], 0, 1, &q->missing_right);
}

/* Walks a tree in preorder from node *at; moves *at behind it. Every right child lies where the left subtree ends. */
static bool read_tree(struct trees *t, const f32 *w, i32 *at) {
    i32 right[TREES_DEPTH], depth = 0;
    for (;;) {
        struct trees_node *q = &t->node[*at];
        if (*at >= t->nnode || !read_node(w + (i64)(1 + *at) * TREES_FIELDS, t->in.n, t->nnode - 1 - *at, q)) return false;
        if (q->input >= 0) {
            if (depth == TREES_DEPTH) return false;
            right[depth++] = *at + q->right;
            ++*at;
            continue;
        }
        ++*at;
        if (depth == 0) return true;
        if (right[--depth] != *at) return false;
    }
}

err trees_read(const struct trees_inputs *in, const f32 *w, i64 nw, struct trees **out) {
    struct trees *t;
    const i64 n = w ? nw / TREES_FIELDS - 1 : 0;
    i32 at = 0, ntree;
    *out = NULL;
    if (n < 1 || n > TREES_NODES || nw % TREES_FIELDS || !isfinite(w[0]) || !whole(w[1], 1, (i32)n, &ntree)) return 0;
    TRY(trees_new(in, (i32)n, &t));
    t->start = w[0];
    t->nnode = (i32)n;
    bool ok = true;
    while (ok && t->ntree < ntree) {
        t->root[t->ntree++] = at;
        ok = read_tree(t, w, &at);
    }
    ok = ok && at == t->nnode;
    const err e = ok ? trees_link(t) : 0;
    if (ok && e >= 0)
        *out = t;
    else
        trees_free(t);
    return e;
}

/* ------------------------------------------------------------------ the shape as text --------------------------------------- */

#define SHAPE(X) X(H) X(lags) X(season) X(season2) X(shift) X(ncol) X(npast) X(nknown) X(ncat) X(calendar)

void trees_shape_write(const struct trees_shape *q, struct str *out) {
    const char *before = "(";
#define X(field)                                  \
    str_addf(out, "%s%d", before, (i32)q->field); \
    before = ":";
    SHAPE(X)
#undef X
    str_add(out, ")");
}

/* The number at *s, which ends with ':' or at `end`; moves *s behind it. */
static bool next_number(const char **s, const char *end, i32 *out) {
    i64 v = -1;
    if (*s >= end) return false;
    const char *colon = memchr(*s, ':', (size_t)(end - *s));
    const size_t n = (size_t)((colon ? colon : end) - *s);
    if (!str_to_i64(*s, n, &v) || v < 0 || v > 1000000) return false;
    *out = (i32)v;
    *s += n + (colon != NULL);
    return true;
}

bool trees_shape_read(const char *s, size_t n, struct trees_shape *out) {
    const char *end = s + n;
    i32 v = 0;
    *out = (struct trees_shape){0};
#define X(field)                                 \
    if (!next_number(&s, end, &v)) return false; \
    out->field = (__typeof__(out->field))v;
    SHAPE(X)
#undef X
    return s == end;
}
