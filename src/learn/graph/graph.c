/* graph.c - sorts the edges of a graph by where they lead, cuts nodes into parts; results; see graph.h.
 *
 * A thread owns a range of nodes and scans all edges for those that concern it: no two threads write one word, and the order
 * within a row is that of the file for any number of threads. */
#include "learn/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/graph/order.h"

/* TILE_WORK: less than 65536 rows of a part. */
enum { PART_WORK = 4096, TILE_PARTS = 16, TILE_WORK = 130000 };

struct making {
    const struct edge_set *s;
    struct graph *g;
    struct pool *pool;
    bool both, loops;
    i64 *next; /* [n] free place in the row of a position */
    u32 **seen;     /* [workers][n] the row that last had an edge from a position, + 1 */
    i64 *repeated;  /* [workers] */
};

static void run(struct making *k, void (*fn)(void *arg, i32 worker)) {
    if (k->pool) pool_run(k->pool, fn, k);
    else fn(k, 0);
}

/* Positions of a worker. */
static void range(const struct making *k, i32 worker, u32 *lo, u32 *hi) {
    const i64 n = k->g->n, w = k->pool ? pool_size(k->pool) : 1;
    *lo = (u32)(n * worker / w);
    *hi = (u32)(n * (worker + 1) / w);
}

static bool counts(const struct making *k, i64 e) { return k->loops || k->s->from[e] != k->s->to[e]; }

/* An edge counts the other way, too. */
static bool turns(const struct making *k, i64 e) { return k->both && k->s->from[e] != k->s->to[e]; }

static void add_lengths(void *arg, i32 worker) {
    struct making *k = arg;
    u32 lo, hi;
    range(k, worker, &lo, &hi);
    for (i64 e = 0; e < k->s->set.nrow; e++) {
        const u32 a = k->g->at[k->s->from[e]], b = k->g->at[k->s->to[e]];
        const f64 w = k->s->weight ? k->s->weight[e] : 1;
        if (!counts(k, e)) continue;
        if (b - lo < hi - lo) k->g->row[b + 1]++;
        if (a - lo < hi - lo) k->g->out[a] += w;
        if (!turns(k, e)) continue;
        if (a - lo < hi - lo) k->g->row[a + 1]++;
        if (b - lo < hi - lo) k->g->out[b] += w;
    }
}

static inline void put(struct making *k, u32 to, u32 from, i64 e) {
    const i64 place = k->next[to]++;
    k->g->from[place] = from;
    if (k->g->weight) k->g->weight[place] = k->s->weight[e];
}

static void fill(void *arg, i32 worker) {
    struct making *k = arg;
    u32 lo, hi;
    range(k, worker, &lo, &hi);
    for (i64 e = 0; e < k->s->set.nrow; e++) {
        const u32 a = k->g->at[k->s->from[e]], b = k->g->at[k->s->to[e]];
        if (!counts(k, e)) continue;
        if (b - lo < hi - lo) put(k, b, a, e);
        if (turns(k, e) && a - lo < hi - lo) put(k, a, b, e);
    }
}

/* ------------------------------------------------------------------ repeated edges ------------------------------------------ */

enum { REPEATED = -1 }; /* as u32: no position */

/* Marks edges that come again later in the file: the last one counts, with its weight. */
static void mark(void *arg, i32 worker) {
    struct making *k = arg;
    struct graph *g = k->g;
    u32 lo, hi, *const seen = k->seen[worker];
    range(k, worker, &lo, &hi);
    for (u32 b = lo; b < hi; b++) {
        for (i64 e = g->row[b + 1] - 1; e >= g->row[b]; e--) {
            u32 *const last = &seen[g->from[e]];
            if (*last == b + 1) g->from[e] = (u32)REPEATED, k->repeated[worker]++;
            else *last = b + 1;
        }
    }
}

static void sum_out(struct graph *g) {
    for (i32 i = 0; i < g->n; i++) g->out[i] = 0;
    for (i64 e = 0; e < g->m; e++) g->out[g->from[e]] += g->weight ? g->weight[e] : 1;
}

static void close_gaps(struct graph *g) {
    i64 to = 0, first = 0;
    for (i32 b = 0; b < g->n; b++) {
        const i64 end = g->row[b + 1];
        for (i64 e = first; e < end; e++) {
            if (g->from[e] == (u32)REPEATED) continue;
            if (g->weight) g->weight[to] = g->weight[e];
            g->from[to++] = g->from[e];
        }
        g->row[b + 1] = to;
        first = end;
    }
    g->m = to;
    sum_out(g);
}

static err drop_repeated(struct making *k) {
    const i32 workers = k->pool ? pool_size(k->pool) : 1;
    NEW(k->seen, workers);
    NEW(k->repeated, workers);
    for (i32 w = 0; w < workers; w++) NEW(k->seen[w], k->g->n);
    run(k, mark);
    for (i32 w = 0; w < workers; w++) k->g->repeated += k->repeated[w];
    if (k->g->repeated) close_gaps(k->g);
    return 0;
}

static void drop_making(struct making *k) {
    for (i32 w = 0; k->seen && w < (k->pool ? pool_size(k->pool) : 1); w++) mem_free(k->seen[w]);
    mem_free(k->seen);
    mem_free(k->repeated);
    mem_free(k->next);
}

void graph_share(struct graph *g) {
    f64 most = 0;
    if (!g->weight) return;
    for (i64 e = 0; e < g->m; e++) most = dmax(most, g->weight[e]);
    for (i64 e = 0; e < g->m && most > 0; e++) g->weight[e] /= most;
    sum_out(g);
    for (i64 e = 0; e < g->m; e++)
        if (g->out[g->from[e]] > 0) g->weight[e] /= g->out[g->from[e]];
    for (i32 i = 0; i < g->n; i++) g->out[i] = g->out[i] > 0;
}

/* ------------------------------------------------------------------ rows ---------------------------------------------------- */

static err sort_edges(struct making *k) {
    struct graph *g = k->g;
    run(k, add_lengths);
    for (i32 i = 0; i < g->n; i++) g->row[i + 1] += g->row[i];
    g->m = g->row[g->n];
    NEW(g->from, g->m);
    if (k->s->weight) NEW(g->weight, g->m);
    NEW(k->next, g->n);
    for (i32 i = 0; i < g->n; i++) k->next[i] = g->row[i];
    run(k, fill);
    return drop_repeated(k);
}

/* Edges and, at twice an edge, the nodes themselves. */
static i64 work_before(const struct graph *g, i64 i) { return g->row[i] + 2 * i; }

i32 graph_cut(const struct graph *g, i32 lo, i32 hi, i32 n, i32 *at) {
    const i64 first = work_before(g, lo), all = work_before(g, hi) - first;
    i32 parts = 0, i = lo;
    at[0] = lo;
    for (i32 k = 1; k <= n && i < hi; k++) {
        const i64 upto = first + all * k / n;
        i32 top = hi;
        while (i < top) { /* the first position with at least this work before it */
            const i32 mid = i + (top - i) / 2;
            if (work_before(g, mid) < upto) i = mid + 1;
            else top = mid;
        }
        if (i > at[parts]) at[++parts] = i;
    }
    return parts;
}

/* A block of few edges is one part. */
static err cut_parts(struct graph *g) {
    const i64 all = work_before(g, g->n);
    const bool tiled = g->n >= GRAPH_TILED;
    const i64 most = tiled ? (GRAPH_BLOCKS + 1) * TILE_PARTS + all / TILE_WORK : lmax(1, lmin(GRAPH_PARTS, all / PART_WORK));
    NEW(g->part, most + GRAPH_BLOCKS + 2);
    for (i32 b = 0; b <= GRAPH_BLOCKS; b++) {
        const i32 lo = g->block[b], hi = g->block[b + 1];
        const i64 share = work_before(g, hi) - work_before(g, lo);
        const i64 parts = tiled ? lmax(lmin(TILE_PARTS, share / PART_WORK), share / TILE_WORK + 1) : most * share / lmax(1, all);
        g->npart += graph_cut(g, lo, hi, (i32)lmax(1, parts), g->part + g->npart);
        g->block_part[b + 1] = g->npart;
    }
    return 0;
}

static err make(struct making *k, enum graph_order order) {
    struct graph *g = k->g;
    g->n = k->s->nnode;
    NEW(g->at, g->n);
    NEW(g->node, g->n);
    NEW(g->row, g->n + 1);
    NEW(g->out, g->n);
    TRY(order == GRAPH_BY_DEGREE ? order_by_degree(k->s, k->both, g) : order_by_color(k->s, g));
    TRY(sort_edges(k));
    if (order != GRAPH_BY_DEGREE) return 0;
    TRY(cut_parts(g));
    return g->n < GRAPH_TILED ? 0 : graph_tile(g, k->pool);
}

err graph_new(const struct edge_set *s, enum graph_order order, bool both, bool loops, struct pool *pool, struct graph **out) {
    struct making k = {.s = s, .pool = pool, .both = both, .loops = loops};
    *out = NULL;
    NEW(k.g, 1);
    const err e = make(&k, order);
    drop_making(&k);
    if (e < 0) {
        graph_free(k.g);
        return e;
    }
    *out = k.g;
    return 0;
}

void graph_free(struct graph *g) {
    if (!g) return;
    mem_free(g->at);
    mem_free(g->node);
    mem_free(g->row);
    mem_free(g->from);
    mem_free(g->to);
    mem_free(g->weight);
    mem_free(g->out);
    mem_free(g->part);
    mem_free(g->color);
    mem_free(g);
}

/* ------------------------------------------------------------------ results ------------------------------------------------- */

err graph_result_new(const struct learner *l, i32 n, struct graph_result **out) {
    NEW(*out, 1);
    (*out)->model.learner = l;
    (*out)->n = n;
    return 0;
}

struct size_of {
    i64 members;
    u32 first, label;
};

static int by_size(const void *a, const void *b) {
    const struct size_of *x = a, *y = b;
    if (x->members != y->members) return x->members > y->members ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static err count_groups(struct graph_result *r, const u32 *label, struct size_of *size, u32 *number) {
    i32 k = 0;
    for (i32 i = 0; i < r->n; i++) {
        if (number[label[i]] == 0) {
            size[k] = (struct size_of){.first = (u32)i, .label = label[i]};
            number[label[i]] = (u32)++k;
        }
        size[number[label[i]] - 1].members++;
    }
    qsort(size, (size_t)k, sizeof *size, by_size);
    NEW(r->members, k);
    for (i32 j = 0; j < k; j++) {
        r->members[j] = size[j].members;
        number[size[j].label] = (u32)j;
    }
    for (i32 i = 0; i < r->n; i++) r->group[i] = number[label[i]];
    r->ngroup = k;
    return 0;
}

err graph_result_groups(struct graph_result *r, const u32 *label) {
    struct size_of *size = NULL;
    u32 *number = NULL;
    err e = mem_new((void **)&r->group, r->n, sizeof *r->group);
    if (e >= 0) e = mem_new((void **)&size, r->n, sizeof *size);
    if (e >= 0) e = mem_new((void **)&number, r->n, sizeof *number);
    if (e >= 0) e = count_groups(r, label, size, number);
    mem_free(size);
    mem_free(number);
    return e;
}

static void free_result(struct model *m) {
    struct graph_result *r = graph_result_of(m);
    mem_free(r->score);
    mem_free(r->group);
    mem_free(r->members);
    mem_free(r);
}

const struct model_ops graph_ops = {.free = free_result};

/* ------------------------------------------------------------------ steps --------------------------------------------------- */

f64 graph_deadline(const struct options *o) { return o->time_limit > 0 ? clock_now() + o->time_limit : 0; }

err graph_stopped(const struct learn_job *job, f64 deadline, err *why, bool *ended) {
    bool signal, late;
    TRY(map_run_stopped(&job->use, deadline, &signal, &late));
    *ended = signal || late;
    *why = signal ? STOP_SIGNAL : late ? STOP_TIME : 0;
    return 0;
}
