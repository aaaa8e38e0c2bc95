/* graph_out.c - the table of a graph's nodes and its first lines; see graph_out.h. */
#include "api/graph_out.h"

#include <stdlib.h>

#include "base/mem.h"

enum { DIGITS = 17 };

/* ------------------------------------------------------------------ order --------------------------------------------------- */

struct ranked {
    f64 score;
    u32 node;
};

/* a comes after b: less rank, or as much and a higher number. */
static bool after(const struct ranked *a, const struct ranked *b) {
    return a->score < b->score || (a->score == b->score && a->node > b->node);
}

static int in_order(const void *a, const void *b) { return after(a, b) ? 1 : -1; }

/* heap[0] comes after all others: moves it down to where it belongs. */
static void sink(struct ranked *heap, i64 n) {
    for (i64 k = 0, child = 1; child < n; k = child, child = 2 * k + 1) {
        if (child + 1 < n && after(&heap[child + 1], &heap[child])) child++;
        if (!after(&heap[child], &heap[k])) return;
        const struct ranked kept = heap[k];
        heap[k] = heap[child];
        heap[child] = kept;
    }
}

/* The first n of all in a heap whose root is the last of them: one pass, whatever n is. */
err graph_by_rank(const struct graph_result *g, i32 n, u32 *node) {
    struct ranked *heap;
    NEW(heap, imax(1, n));
    for (i32 i = 0; i < n; i++) heap[i] = (struct ranked){g->score[i], (u32)i};
    qsort(heap, (size_t)n, sizeof *heap, in_order);
    for (i32 i = 0; i < n / 2; i++) {
        const struct ranked kept = heap[i];
        heap[i] = heap[n - 1 - i];
        heap[n - 1 - i] = kept;
    }
    for (i32 i = n; n > 0 && i < g->n; i++) {
        const struct ranked next = {g->score[i], (u32)i};
        if (after(&next, &heap[0])) continue;
        heap[0] = next;
        sink(heap, n);
    }
    qsort(heap, (size_t)n, sizeof *heap, in_order);
    for (i32 i = 0; i < n; i++) node[i] = heap[i].node;
    mem_free(heap);
    return 0;
}

/* Groups are numbered by size: nodes by group, those of one group in their order. */
static err by_group(const struct graph_result *g, u32 *node) {
    i64 *next;
    NEW(next, g->ngroup + 1);
    for (i32 k = 0; k < g->ngroup; k++) next[k + 1] = next[k] + g->members[k];
    for (i32 i = 0; i < g->n; i++) node[next[g->group[i]]++] = (u32)i;
    mem_free(next);
    return 0;
}

/* ------------------------------------------------------------------ the table ----------------------------------------------- */

static void line(const struct graph_out *o, u32 i, struct str *out) {
    char room[32];
    str_add_csv(out, edge_set_name(o->s, i, room));
    if (o->g->score) str_print(room, sizeof room, ",%.*g\n", DIGITS, o->g->score[i]);
    else str_print(room, sizeof room, ",%u\n", o->g->group[i]);
    str_add(out, room);
}

err graph_table(const struct graph_out *o, struct str *out) {
    const struct graph_result *g = o->g;
    u32 *node = NULL;
    err e = o->by_rank ? mem_new((void **)&node, g->n, sizeof *node) : 0;
    if (e >= 0 && node) e = g->score ? graph_by_rank(g, g->n, node) : by_group(g, node);
    str_addf(out, "node,%s\n", o->column);
    for (i32 i = 0; e >= 0 && i < g->n; i++) line(o, node ? node[i] : (u32)i, out);
    mem_free(node);
    return e < 0 ? e : str_ok(out);
}

/* ------------------------------------------------------------------ the first ----------------------------------------------- */

static i32 count(const struct graph_out *o) { return imin(o->top, o->g->score ? o->g->n : o->g->ngroup); }

/* The nodes of the highest rank, or the first node of each of the largest groups. */
static err find_first(const struct graph_out *o, i32 n, u32 *node) {
    const struct graph_result *g = o->g;
    if (g->score) return graph_by_rank(g, n, node);
    for (i32 i = g->n - 1; i >= 0; i--)
        if (g->group[i] < (u32)n) node[g->group[i]] = (u32)i;
    return 0;
}

static f64 share_of(const struct graph_out *o, i32 k, u32 node) {
    return o->g->score ? o->g->score[node] : (f64)o->g->members[k] / o->g->n;
}

static void add_lines(const struct graph_out *o, const u32 *node, i32 n, struct str *out) {
    const struct graph_result *g = o->g;
    char room[16];
    f64 sum = 0;
    if (g->score) str_addf(out, "  %4s  %-24s  %12s  %7s\n", "#", "node", "rank", "sum");
    else str_addf(out, "  %9s  %12s  %7s  %7s  %s\n", o->column, "nodes", "share", "sum", "first node");
    for (i32 k = 0; k < n; k++) {
        const f64 share = share_of(o, k, node[k]);
        const char *name = edge_set_name(o->s, node[k], room);
        sum += share;
        if (g->score) str_addf(out, "  %4d  %-24s  %12.6g  %6.2f%%\n", k + 1, name, share, 100 * sum);
        else str_addf(out, "  %9d  %12lld  %6.2f%%  %6.2f%%  %s\n", k, (long long)g->members[k], 100 * share, 100 * sum, name);
    }
}

err graph_top_text(const struct graph_out *o, struct str *out) {
    const i32 n = count(o);
    u32 *node;
    if (n == 0) return str_ok(out);
    NEW(node, n);
    const err e = find_first(o, n, node);
    if (e >= 0) add_lines(o, node, n, out);
    mem_free(node);
    return e < 0 ? e : str_ok(out);
}

err graph_top_json(const struct graph_out *o, struct js *to) {
    const i32 n = count(o);
    struct js *list = js_array();
    char room[16];
    u32 *node = NULL;
    err e = mem_new((void **)&node, imax(1, n), sizeof *node);
    if (e >= 0) e = find_first(o, n, node);
    for (i32 k = 0; e >= 0 && k < n; k++) {
        struct js *one = js_object();
        js_put_text(one, o->g->score ? "node" : "first", edge_set_name(o->s, node[k], room));
        if (o->g->score) js_put_f64(one, "rank", o->g->score[node[k]]);
        else js_put_i64(one, "nodes", o->g->members[k]);
        js_push(list, one);
    }
    mem_free(node);
    js_put(to, o->g->score ? "top" : "largest", list);
    return e;
}
