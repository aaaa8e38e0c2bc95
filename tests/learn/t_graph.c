/* t_graph.c - PageRank, components and communities against plain computations, and the errors of edge lists. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/mem.h"
#include "t.h"

enum { NODES = 40 };

struct edge {
    i32 from, to;
    f64 weight;
};

struct list {
    struct edge e[400];
    i32 n;
    bool weighted;
};

/* Random edges with loops, repeated ones and nodes without any edge from them (those above 30). */
static void fill(struct list *l, i32 n, u32 seed, bool weighted) {
    l->n = n;
    l->weighted = weighted;
    for (i32 i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        l->e[i] = (struct edge){(i32)(seed >> 8) % 30, (i32)(seed >> 20) % NODES, (f64)((seed >> 4) % 5) / 2};
    }
}

static const char *to_file(const char *name, const struct list *l) {
    struct str text = {0};
    str_add(&text, "# edges\n");
    for (i32 i = 0; i < l->n; i++) {
        str_addf(&text, "n%d\tn%d", l->e[i].from, l->e[i].to);
        if (l->weighted) str_addf(&text, "\t%g", l->e[i].weight);
        str_add(&text, "\n");
    }
    const char *path = t_file(name, text.s);
    str_free(&text);
    return path;
}

/* The table of a method as text. */
static char *table(const char *method, const char *path, const char *const *options) {
    stretto_config *c = stretto_config_new();
    char *out = NULL;
    for (i32 i = 0; options && options[i]; i += 2) T_OK(stretto_config_set(c, options[i], options[i + 1]));
    T_OK(stretto_graph(c, method, path, "-", NULL, NULL, 0, &out));
    stretto_config_free(c);
    return out;
}

/* value[k] = what the table says of node "nK"; NaN = the node is not there. */
static void read_table(const char *text, f64 value[NODES]) {
    for (i32 i = 0; i < NODES; i++) value[i] = (f64)NAN;
    for (const char *p = strchr(text, '\n'); p && p[1]; p = strchr(p + 1, '\n')) {
        const i32 node = (i32)strtol(p + 2, NULL, 10);
        value[node] = strtod(strchr(p + 1, ',') + 1, NULL);
    }
}

/* ------------------------------------------------------------------ pagerank ------------------------------------------------ */

/* Power iteration on the dense matrix, as NetworkX builds it: the last of repeated edges counts. */
static void dense_pagerank(const struct list *l, const f64 present[NODES], bool both, f64 x[NODES]) {
    static f64 w[NODES][NODES];
    f64 out[NODES] = {0}, next[NODES];
    i32 n = 0;
    memset(w, 0, sizeof w);
    for (i32 i = 0; i < l->n; i++) {
        w[l->e[i].from][l->e[i].to] = l->weighted ? l->e[i].weight : 1;
        if (both) w[l->e[i].to][l->e[i].from] = l->weighted ? l->e[i].weight : 1;
    }
    for (i32 i = 0; i < NODES; i++) n += !isnan(present[i]);
    for (i32 i = 0; i < NODES; i++) x[i] = isnan(present[i]) ? 0 : 1. / n;
    for (i32 i = 0; i < NODES; i++)
        for (i32 k = 0; k < NODES; k++) out[i] += w[i][k];
    for (i32 step = 0; step < 2000; step++) {
        f64 lost = 0;
        for (i32 i = 0; i < NODES; i++) lost += out[i] > 0 ? 0 : x[i];
        for (i32 k = 0; k < NODES; k++) {
            f64 sum = lost / n;
            for (i32 i = 0; i < NODES; i++) sum += out[i] > 0 ? x[i] * w[i][k] / out[i] : 0;
            next[k] = isnan(present[k]) ? 0 : 0.85 * sum + 0.15 / n;
        }
        memcpy(x, next, sizeof next);
    }
}

static void check_pagerank(const struct list *l, bool both, const char *nodes) {
    const char *const options[] = {"tol", "1e-13", "directed", both ? "no" : "yes", "node-list", nodes, NULL};
    f64 got[NODES], want[NODES], sum = 0;
    char *text = table("pagerank", to_file("pagerank.txt", l), options);
    read_table(text, got);
    dense_pagerank(l, got, both, want);
    for (i32 i = 0; i < NODES; i++) {
        if (isnan(got[i])) continue;
        if (!(fabs(got[i] - want[i]) < 1e-12)) fail_msg("node %d: %.17g, expected %.17g", i, got[i], want[i]);
        sum += got[i];
    }
    assert_true(fabs(sum - 1) < 1e-12);
    stretto_text_free(text);
}

TEST(pagerank_is_that_of_the_dense_matrix) {
    static struct list l;
    for (i32 k = 0; k < 8; k++) {
        fill(&l, 5 + 45 * k, (u32)k + 1, k % 2);
        check_pagerank(&l, k % 4 > 1, "");
    }
}

/* Sweeps of block Gauss-Seidel diverge on this graph: their largest eigenvalue is 1.22. */
TEST(pagerank_settles_where_its_sweeps_diverge) {
    static const struct list l = {
        .e = {{0, 1, 16}, {2, 1, 512}, {3, 1, 64}, {2, 3, 1}, {4, 3, 256}, {1, 4, 16}}, .n = 6, .weighted = true};
    char nodes[600];
    snprintf(nodes, sizeof nodes, "%s", t_file("five.txt", "n0\nn1\nn2\nn3\nn4\n"));
    check_pagerank(&l, false, nodes);
}

/* Nodes whose edges have weight 0 are dangling; all others here are, too. */
TEST(pagerank_of_edges_without_weight) {
    static struct list l;
    l = (struct list){.e = {{0, 1, 0}, {2, 3, 0}}, .n = 2, .weighted = true};
    check_pagerank(&l, false, "");
    l = (struct list){.e = {{0, 1, 0}, {2, 3, 1}, {3, 2, 0}, {4, 1, 2}, {4, 1, 0}}, .n = 5, .weighted = true};
    check_pagerank(&l, false, "");
}

/* ------------------------------------------------------------------ tiles --------------------------------------------------- */

/* MANY: above GRAPH_TILED.  A part of HOT nodes, which a third of the edges lead to, has long rows and is no tile. */
enum { MANY = (1 << 18) + 999, MANY_EDGES = 3 * MANY, HOT = 97, BARE = 7 };

struct big {
    i32 from[MANY_EDGES], to[MANY_EDGES], weight[MANY_EDGES];
    f64 x[MANY], next[MANY], out[MANY], got[MANY];
};

/* Distinct edges: a node has three of different lengths; every BARE-th one has none. */
static i32 big_edges(struct big *b, bool weighted) {
    i32 n = 0;
    u32 seed = 5;
    for (i32 i = 0; i < MANY; i++) {
        for (i32 k = 0; k < 3 && i % BARE > 0; k++) {
            seed = seed * 1664525u + 1013904223u;
            const i32 far = (i32)(seed >> 8) % (MANY / 4);
            b->from[n] = i;
            b->to[n] = k == 0 ? far % HOT : HOT + (i + far + k * (MANY / 3)) % (MANY - HOT);
            b->weight[n++] = weighted ? 1 + (i32)(seed >> 28) : 1;
        }
    }
    return n;
}

static void big_pagerank(struct big *b, i32 n) {
    memset(b->out, 0, sizeof b->out);
    for (i32 e = 0; e < n; e++) b->out[b->from[e]] += b->weight[e];
    for (i32 i = 0; i < MANY; i++) b->x[i] = 1. / MANY;
    for (i32 step = 0; step < 120; step++) {
        f64 lost = 0;
        for (i32 i = 0; i < MANY; i++) lost += b->out[i] > 0 ? 0 : b->x[i];
        for (i32 i = 0; i < MANY; i++) b->next[i] = (0.85 * lost + 0.15) / MANY;
        for (i32 e = 0; e < n; e++) b->next[b->to[e]] += 0.85 * b->x[b->from[e]] * b->weight[e] / b->out[b->from[e]];
        memcpy(b->x, b->next, sizeof b->x);
    }
}

static const char *big_file(const struct big *b, i32 n, bool weighted) {
    struct str text = {0};
    for (i32 e = 0; e < n; e++) {
        str_addf(&text, "%d %d", b->from[e], b->to[e]);
        if (weighted) str_addf(&text, " %d", b->weight[e]);
        str_add(&text, "\n");
    }
    const char *path = t_file("big.txt", text.s);
    str_free(&text);
    return path;
}

/* Names also the nodes without edges. */
static const char *big_nodes(void) {
    struct str text = {0};
    for (i32 i = 0; i < MANY; i++) str_addf(&text, "%d\n", i);
    const char *path = t_file("big_nodes.txt", text.s);
    str_free(&text);
    return path;
}

static void check_big(struct big *b, bool weighted) {
    char nodes[600];
    snprintf(nodes, sizeof nodes, "%s", big_nodes());
    const char *const one[] = {"threads", "1", "tol", "1e-13", "node-list", nodes, NULL};
    const char *const two[] = {"ranks", "2", "threads", "3", "tol", "1e-13", "node-list", nodes, NULL};
    const i32 n = big_edges(b, weighted);
    const char *path = big_file(b, n, weighted);
    char *text = table("pagerank", path, one), *other = table("pagerank", path, two);
    f64 off = 0;
    assert_string_equal(other, text);
    memset(b->got, 0, sizeof b->got);
    for (const char *p = strchr(text, '\n'); p && p[1]; p = strchr(p + 1, '\n')) {
        char *end;
        const i64 node = strtol(p + 1, &end, 10);
        b->got[node] = strtod(end + 1, NULL);
    }
    big_pagerank(b, n);
    for (i32 i = 0; i < MANY; i++) off += fabs(b->got[i] - b->x[i]);
    if (!(off < 1e-11)) fail_msg("L1 distance %.3g to power iteration", off);
    stretto_text_free(text);
    stretto_text_free(other);
}

TEST(pagerank_of_many_nodes_is_that_of_power_iteration) {
    struct big *b;
    T_OK(mem_new((void **)&b, 1, sizeof *b));
    check_big(b, false);
    check_big(b, true);
    mem_free(b);
}

/* ------------------------------------------------------------------ groups -------------------------------------------------- */

TEST(components_are_those_of_a_closure) {
    static struct list l;
    static bool near[NODES][NODES];
    for (i32 seed = 1; seed < 6; seed++) {
        f64 got[NODES];
        fill(&l, 6 * seed, (u32)seed, false);
        memset(near, 0, sizeof near);
        for (i32 i = 0; i < l.n; i++) near[l.e[i].from][l.e[i].to] = near[l.e[i].to][l.e[i].from] = true;
        for (i32 i = 0; i < NODES; i++) near[i][i] = true;
        for (i32 k = 0; k < NODES; k++)
            for (i32 i = 0; i < NODES; i++)
                for (i32 j = 0; j < NODES; j++) near[i][j] = near[i][j] || (near[i][k] && near[k][j]);
        char *text = table("components", to_file("components.txt", &l), NULL);
        read_table(text, got);
        for (i32 i = 0; i < NODES; i++)
            for (i32 j = 0; j < NODES; j++)
                if (!isnan(got[i]) && !isnan(got[j])) assert_int_equal(got[i] == got[j], near[i][j]);
        stretto_text_free(text);
    }
}

/* Cliques of 8 and 5 nodes with one edge between them. */
TEST(labels_find_two_cliques) {
    static struct list l;
    f64 got[NODES];
    l = (struct list){.e = {{0, 12, 1}}, .n = 1};
    for (i32 i = 0; i < 13; i++)
        for (i32 k = i + 1; k < 13; k++)
            if ((i < 8) == (k < 8)) l.e[l.n++] = (struct edge){i, k, 1};
    char *text = table("labels", to_file("labels.txt", &l), NULL);
    read_table(text, got);
    for (i32 i = 0; i < 13; i++) assert_true(got[i] == (i < 8 ? 0 : 1));
    stretto_text_free(text);
}

/* ------------------------------------------------------------------ threads, ranks, lists ----------------------------------- */

/* Large enough for several parts and devices. */
static const char *large(void) {
    struct str text = {0};
    u32 s = 7;
    for (i32 i = 0; i < 60000; i++) {
        s = s * 1664525u + 1013904223u;
        str_addf(&text, "%u %u\n", (s >> 7) % 5000, (s >> 12) % 3000 * ((s >> 9) % 3) / 2);
    }
    const char *path = t_file("large.txt", text.s);
    str_free(&text);
    return path;
}

/* More threads than nodes in a block, many times, as only some orders of the threads show a missing dependency. */
TEST(threads_change_no_bit_of_few_nodes) {
    static const char *const alone[] = {"threads", "1", "tol", "1e-13", NULL};
    static const char *const with[] = {"threads", "3", "tol", "1e-13", NULL};
    const char *path = t_file("few.txt", "a b\na b\nb c\nc a\nd a\n");
    char *want = table("pagerank", path, alone);
    for (i32 k = 0; k < 20; k++) {
        char *got = table("pagerank", path, with);
        assert_string_equal(got, want);
        stretto_text_free(got);
    }
    stretto_text_free(want);
}

TEST(threads_and_ranks_change_no_bit) {
    static const char *const method[] = {"pagerank", "components", "labels"};
    static const char *const with[][5] = {
        {"threads", "2"}, {"threads", "3"}, {"ranks", "2"}, {"threads", "2", "ranks", "3"}};
    static const char *const alone[] = {"threads", "1", NULL};
    const char *path = large();
    for (size_t m = 0; m < COUNT(method); m++) {
        char *want = table(method[m], path, alone);
        for (size_t k = 0; k < COUNT(with); k++) {
            char *got = table(method[m], path, with[k]);
            assert_string_equal(got, want);
            stretto_text_free(got);
        }
        stretto_text_free(want);
    }
}

/* ------------------------------------------------------------------ order, first lines, stop -------------------------------- */

/* The value behind the first comma of line k, from 0 after the header. */
static f64 value_of(const char *text, i32 k) {
    const char *p = text;
    for (i32 i = 0; i <= k; i++) p = strchr(p, '\n') + 1;
    return strtod(strchr(p, ',') + 1, NULL);
}

TEST(sorted_tables_fall_and_groups_grow) {
    static const char *const sorted[] = {"sort", "rank", NULL};
    static struct list l;
    fill(&l, 300, 5, false);
    const char *path = to_file("sorted.txt", &l);
    char *ranks = table("pagerank", path, sorted), *groups = table("components", path, sorted);
    char *all = table("pagerank", path, NULL);
    i32 n = 0;
    assert_int_equal(strlen(ranks), strlen(all)); /* the same lines */
    for (const char *p = all; *p; p++) n += *p == '\n';
    for (i32 k = 1; k < n - 1; k++) {
        assert_true(value_of(ranks, k) <= value_of(ranks, k - 1));
        assert_true(value_of(groups, k) >= value_of(groups, k - 1));
    }
    stretto_text_free(ranks);
    stretto_text_free(groups);
    stretto_text_free(all);
}

/* A few of many are chosen as the order of all has them, ties included. */
TEST(the_first_nodes_are_those_of_the_sorted_table) {
    static const char *const sorted[] = {"sort", "rank", NULL};
    const char *path = large();
    char *all = table("pagerank", path, sorted), *few = NULL;
    stretto_config *c = stretto_config_new();
    T_OK(stretto_config_set(c, "top", "700"));
    T_OK(stretto_graph(c, "pagerank", path, "", NULL, NULL, 1, &few));
    const char *line = strchr(all, '\n') + 1, *p = few;
    for (i32 k = 0; k < 700; k++, line = strchr(line, '\n') + 1) {
        char want[40];
        snprintf(want, sizeof want, "\"node\": \"%.*s\"", (int)strcspn(line, ","), line);
        p = strstr(p, "\"node\"");
        assert_non_null(p);
        assert_memory_equal(p, want, strlen(want));
        p += 6;
    }
    assert_null(strstr(p, "\"node\""));
    stretto_config_free(c);
    stretto_text_free(all);
    stretto_text_free(few);
}

/* What was reached is a table of all nodes; the next call is not stopped. */
TEST(a_stop_ends_with_what_was_reached) {
    static const char *const method[] = {"pagerank", "labels"};
    const char *path = large();
    for (size_t m = 0; m < COUNT(method); m++) {
        stretto_config *c = stretto_config_new();
        char *cut = NULL, *whole = NULL;
        stretto_graph_stop();
        assert_int_equal(stretto_graph(c, method[m], path, "-", NULL, NULL, 0, &cut), STRETTO_STOP_SIGNAL);
        T_OK(stretto_graph(c, method[m], path, "-", NULL, NULL, 0, &whole));
        i32 lines = 0;
        for (const char *p = cut; *p; p++) lines += *p == '\n';
        for (const char *p = whole; *p; p++) lines -= *p == '\n';
        assert_int_equal(lines, 0);
        assert_string_not_equal(cut, whole);
        stretto_text_free(cut);
        stretto_text_free(whole);
        stretto_config_free(c);
    }
}

TEST(a_node_list_names_all_nodes) {
    char list[600];
    snprintf(list, sizeof list, "%s", t_file("nodes.txt", "n3\nn1\nn2\n"));
    const char *const options[] = {"node-list", list, NULL};
    char *text = table("components", t_file("listed.txt", "from,to\nn1,n2\n"), options);
    assert_string_equal(text, "node,component\nn3,1\nn1,0\nn2,0\n");
    stretto_text_free(text);
}

/* ------------------------------------------------------------------ errors -------------------------------------------------- */

static void refuses(const char *text, i32 code, const char *where) {
    stretto_config *c = stretto_config_new();
    char *out = NULL;
    if (code == 103) T_OK(stretto_config_set(c, "node-list", t_file("list.txt", "a\nb\n")));
    T_FAILS(stretto_graph(c, "pagerank", t_file("bad.txt", text), "-", NULL, NULL, 0, &out), code);
    assert_null(out);
    if (!strstr(stretto_errwhere(), where)) fail_msg("%s instead of %s", stretto_errwhere(), where);
    stretto_config_free(c);
}

TEST(bad_edges_are_refused_with_their_line) {
    refuses("# none\n", 201, "bad.txt");
    refuses("a b\n\nc\n", 203, "bad.txt:3");
    refuses("a b 1\nb c\n", 203, "bad.txt:2");
    refuses("1 2 1\n2 3 x\n", 204, "bad.txt:2:3");
    refuses("1 2 1\n2 3 -1\n", 204, "bad.txt:2:3");
    refuses("1 2 1\n2 3 inf\n", 204, "bad.txt:2:3");
    refuses("a b\nb c\n", 103, "bad.txt:2:2");
}

T_MAIN(cmocka_unit_test(pagerank_is_that_of_the_dense_matrix), cmocka_unit_test(pagerank_settles_where_its_sweeps_diverge),
       cmocka_unit_test(pagerank_of_edges_without_weight), cmocka_unit_test(pagerank_of_many_nodes_is_that_of_power_iteration),
       cmocka_unit_test(components_are_those_of_a_closure),
       cmocka_unit_test(labels_find_two_cliques), cmocka_unit_test(threads_and_ranks_change_no_bit),
       cmocka_unit_test(threads_change_no_bit_of_few_nodes), cmocka_unit_test(sorted_tables_fall_and_groups_grow),
       cmocka_unit_test(the_first_nodes_are_those_of_the_sorted_table), cmocka_unit_test(a_stop_ends_with_what_was_reached),
       cmocka_unit_test(a_node_list_names_all_nodes), cmocka_unit_test(bad_edges_are_refused_with_their_line))
