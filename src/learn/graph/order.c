/* order.c - orders the nodes of a graph: by degree, or by a greedy coloring (Welsh and Powell, 1967); see order.h. */
#include "learn/graph/order.h"

#include "base/mem.h"

/* DEAL: nodes that go to a block together, a cache line of f32; 1 in a graph of fewer than DEAL_FROM nodes. */
enum { CLASSES = 34, LENGTHS = 1024, DEAL = 16, DEAL_FROM = 4096 };

/* 0 for no edge from a node, else 1 + the power of two below their number. */
static i32 class_of(u32 degree) { return degree ? 32 - __builtin_clz(degree) : 0; }

struct degrees {
    u32 *from, *to; /* [n] edges from and to a node */
};

static err count_degrees(const struct edge_set *s, bool both, struct degrees *d) {
    NEW(d->from, s->nnode);
    NEW(d->to, s->nnode);
    for (i64 e = 0; e < s->set.nrow; e++) {
        d->from[s->from[e]]++;
        d->to[s->to[e]]++;
    }
    for (i32 i = 0; both && i < s->nnode; i++) d->from[i] = d->to[i] = d->from[i] + d->to[i];
    return 0;
}

static void free_degrees(struct degrees *d) {
    mem_free(d->from);
    mem_free(d->to);
}

/* Nodes by falling key, those of one key in their order: one pass of a counting sort. */
static err sort_by(const u32 *in, i32 n, const u32 *key, i32 keys, u32 *out) {
    i64 *first;
    NEW(first, keys + 1);
    for (i32 i = 0; i < n; i++) first[keys - (i32)key[i]]++;
    for (i32 k = 0; k < keys; k++) first[k + 1] += first[k];
    for (i32 i = 0; i < n; i++) out[first[keys - 1 - (i32)key[in[i]]]++] = in[i];
    mem_free(first);
    return 0;
}

static err sort_degrees(const struct degrees *d, i32 n, u32 *key, u32 *by_length, u32 *out) {
    for (i32 i = 0; i < n; i++) by_length[i] = (u32)i;
    for (i32 i = 0; i < n; i++) key[i] = d->to[i] < LENGTHS - 1 ? d->to[i] : LENGTHS - 1;
    TRY(sort_by(by_length, n, key, LENGTHS, out));
    for (i32 i = 0; i < n; i++) by_length[i] = out[i];
    for (i32 i = 0; i < n; i++) key[i] = (u32)class_of(d->from[i]);
    return sort_by(by_length, n, key, CLASSES, out);
}

static void set_positions(struct graph *g) {
    for (i32 i = 0; i < g->n; i++) g->at[g->node[i]] = (u32)i;
}

/* Deals the nodes with edges from them to the blocks in turn; those without are the last block. */
static void deal(struct graph *g, const u32 *from_degree, u32 *sorted) {
    i32 linked = 0, to = 0;
    for (; linked < g->n && from_degree[g->node[linked]] > 0; linked++) sorted[linked] = g->node[linked];
    const i32 some = linked < DEAL_FROM ? 1 : DEAL;
    for (i32 b = 0; b < GRAPH_BLOCKS; b++) {
        g->block[b] = to;
        for (i64 i = (i64)b * some; i < linked; i += (i64)GRAPH_BLOCKS * some)
            for (i64 k = i; k < lmin(i + some, linked); k++) g->node[to++] = sorted[k];
    }
    g->block[GRAPH_BLOCKS] = linked;
    g->block[GRAPH_BLOCKS + 1] = g->n;
}

err order_by_degree(const struct edge_set *s, bool both, struct graph *g) {
    struct degrees d = {0};
    u32 *key = NULL, *other = NULL;
    err e = count_degrees(s, both, &d);
    if (e >= 0) e = mem_new((void **)&key, g->n, sizeof *key);
    if (e >= 0) e = mem_new((void **)&other, g->n, sizeof *other);
    if (e >= 0) e = sort_degrees(&d, g->n, key, other, g->node);
    if (e >= 0) deal(g, d.from, other);
    if (e >= 0) set_positions(g);
    free_degrees(&d);
    mem_free(key);
    mem_free(other);
    return e;
}

/* ------------------------------------------------------------------ colors -------------------------------------------------- */

struct coloring {
    i64 *row;         /* [n + 1] neighbours of a node, both ways */
    u32 *near, *order, *key, *other;
    u32 *color, *seen; /* [n] color of a node + 1, 0 = none yet; [n + 1] the node that last saw a color + 1 */
};

static err neighbours(const struct edge_set *s, struct coloring *c) {
    const i32 n = s->nnode;
    i64 *next;
    NEW(c->row, n + 2);
    next = c->row + 1; /* after the filling it holds the ends, which are the beginnings of the next rows */
    for (i64 e = 0; e < s->set.nrow; e++) {
        if (s->from[e] == s->to[e]) continue;
        next[s->from[e] + 1]++;
        next[s->to[e] + 1]++;
    }
    for (i32 i = 0; i < n; i++) next[i + 1] += next[i];
    NEW(c->near, next[n]);
    for (i64 e = 0; e < s->set.nrow; e++) {
        const u32 a = s->from[e], b = s->to[e];
        if (a == b) continue;
        c->near[next[a]++] = b;
        c->near[next[b]++] = a;
    }
    return 0;
}

/* Gives each node, most neighbours first, the smallest color that no neighbour has. */
static i32 color_nodes(struct coloring *c, i32 n) {
    i32 colors = 0;
    for (i32 k = 0; k < n; k++) {
        const u32 v = c->order[k];
        u32 free_color = 1;
        for (i64 j = c->row[v]; j < c->row[v + 1]; j++) c->seen[c->color[c->near[j]]] = v + 1;
        while (c->seen[free_color] == v + 1) free_color++;
        c->color[v] = free_color;
        colors = imax(colors, (i32)free_color);
    }
    return colors;
}

static err color_all(const struct edge_set *s, struct coloring *c, struct graph *g) {
    struct degrees d = {0};
    const i32 n = g->n;
    NEW(c->order, n);
    NEW(c->key, n);
    NEW(c->other, n);
    NEW(c->color, n);
    NEW(c->seen, n + 2);
    TRY(neighbours(s, c));
    err e = count_degrees(s, true, &d);
    if (e >= 0) e = sort_degrees(&d, n, c->key, c->other, c->order);
    free_degrees(&d);
    TRY(e);
    g->nclass = color_nodes(c, n);
    NEW(g->color, g->nclass + 1);
    for (i32 i = 0; i < n; i++) c->key[i] = (u32)g->nclass - c->color[i];
    for (i32 i = 0; i < n; i++) g->color[c->color[i]]++;
    for (i32 k = 0; k < g->nclass; k++) g->color[k + 1] += g->color[k];
    return sort_by(c->order, n, c->key, g->nclass, g->node);
}

err order_by_color(const struct edge_set *s, struct graph *g) {
    struct coloring c = {0};
    const err e = color_all(s, &c, g);
    if (e >= 0) set_positions(g);
    mem_free(c.row);
    mem_free(c.near);
    mem_free(c.order);
    mem_free(c.key);
    mem_free(c.other);
    mem_free(c.color);
    mem_free(c.seen);
    return e;
}
