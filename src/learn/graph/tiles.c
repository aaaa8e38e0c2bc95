/* tiles.c - sorts the edges of a part by the node that they come from; see graph.h. */
#include <string.h>

#include "base/mem.h"
#include "learn/graph/graph.h"

/* LINE: values of one cache line, as a power of two.  LONG_ROWS: edges of a mean row; a tile would wait for its own sums. */
enum { LINE = 4, LONG_ROWS = 64 };

struct tiling {
    struct graph *g;
    struct pool *pool;
    u32 *from;     /* [m] new order */
    f64 *weight;
    i64 **next;    /* [workers][n / line + 1] free place of the edges from a cache line */
};

bool graph_is_tile(const struct graph *g, i32 part) {
    const i64 rows = g->part[part + 1] - g->part[part];
    return g->to && g->row[g->part[part + 1]] - g->row[g->part[part]] < LONG_ROWS * rows;
}

static void copy_part(struct tiling *t, i64 first, i64 n) {
    const struct graph *g = t->g;
    memcpy(t->from + first, g->from + first, (size_t)n * sizeof *t->from);
    if (g->weight) memcpy(t->weight + first, g->weight + first, (size_t)n * sizeof *t->weight);
}

/* A counting sort. */
static void sort_part(struct tiling *t, i32 part, i64 *next) {
    const struct graph *g = t->g;
    const i32 lo = g->part[part], hi = g->part[part + 1], lines = ((g->n - 1) >> LINE) + 1;
    memset(next, 0, (size_t)(lines + 1) * sizeof *next);
    for (i64 e = g->row[lo]; e < g->row[hi]; e++) next[(g->from[e] >> LINE) + 1]++;
    next[0] = g->row[lo];
    for (i32 k = 0; k < lines; k++) next[k + 1] += next[k];
    for (i32 i = lo; i < hi; i++) {
        for (i64 e = g->row[i]; e < g->row[i + 1]; e++) {
            const i64 place = next[g->from[e] >> LINE]++;
            t->from[place] = g->from[e];
            g->to[place] = (u16)(i - lo);
            if (g->weight) t->weight[place] = g->weight[e];
        }
    }
}

static void sort_parts(void *arg, i32 worker) {
    struct tiling *t = arg;
    const struct graph *g = t->g;
    const i32 workers = t->pool ? pool_size(t->pool) : 1;
    for (i32 k = worker; k < g->npart; k += workers) {
        if (graph_is_tile(g, k)) sort_part(t, k, t->next[worker]);
        else copy_part(t, g->row[g->part[k]], g->row[g->part[k + 1]] - g->row[g->part[k]]);
    }
}

static err sort_all(struct tiling *t) {
    struct graph *g = t->g;
    const i32 workers = t->pool ? pool_size(t->pool) : 1;
    NEW(g->to, g->m);
    NEW(t->from, g->m);
    if (g->weight) NEW(t->weight, g->m);
    NEW(t->next, workers);
    for (i32 w = 0; w < workers; w++) NEW(t->next[w], ((g->n - 1) >> LINE) + 2);
    if (t->pool) pool_run(t->pool, sort_parts, t);
    else sort_parts(t, 0);
    return 0;
}

err graph_tile(struct graph *g, struct pool *pool) {
    struct tiling t = {.g = g, .pool = pool};
    const err e = sort_all(&t);
    for (i32 w = 0; t.next && w < (pool ? pool_size(pool) : 1); w++) mem_free(t.next[w]);
    mem_free(t.next);
    mem_free(e < 0 ? t.from : g->from);
    mem_free(e < 0 ? t.weight : g->weight);
    if (e < 0) return e;
    g->from = t.from;
    g->weight = t.weight;
    return 0;
}
