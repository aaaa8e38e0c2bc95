/* components.c - connected components, edges taken in both directions: union-find (Tarjan 1975) as map, merge and update.
 *
 *     map     edges of a micro-batch -> a forest: parent[node] <= node, the root is the smallest node of its tree
 *     merge   forest a takes up the trees of forest b
 *     update  each node -> its root
 *
 * The components do not depend on the order of the edges, so a map over several micro-batches keeps one forest in the part of the
 * first and marks the parts of the others as empty: one forest for each device. */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/graph/graph.h"

enum { EDGES_OF_ROW = 1024, MICROBATCHES = 16 };

struct components {
    const struct edge_set *s;
    const struct plan *plan;
    i64 n;
    u32 *root; /* [n] the model */
};

/* The root of v; every node on the way then points to its grandparent. */
static u32 find(u32 *parent, u32 v) {
    while (parent[v] != v) {
        parent[v] = parent[parent[v]];
        v = parent[v];
    }
    return v;
}

static void join(u32 *parent, u32 a, u32 b) {
    a = find(parent, a);
    b = find(parent, b);
    if (a < b) parent[b] = a;
    else parent[a] = b;
}

/* A part: [n] parents, then 1 = there is no edge in it. */
static void map(void *self, const struct kernel_call *c) {
    const struct components *m = self;
    const struct slice *box = &c->task->box;
    const i32 first = box->b0 / m->plan->grain;
    u32 *parent = c->mem[map_part(first)];
    for (i32 k = first + 1; k * m->plan->grain < box->b1; k++) ((u32 *)c->mem[map_part(k)])[m->n] = 1;
    for (i64 i = 0; i < m->n; i++) parent[i] = (u32)i;
    parent[m->n] = 0;
    const i64 end = lmin((i64)box->b1 * EDGES_OF_ROW, m->s->set.nrow);
    for (i64 e = (i64)box->b0 * EDGES_OF_ROW; e < end; e++) join(parent, m->s->from[e], m->s->to[e]);
}

static void merge(void *self, const struct kernel_call *c) {
    const struct components *m = self;
    u32 *a = c->mem[map_part(c->task->node_a)];
    const u32 *b = c->mem[map_part(c->task->node_b)];
    if (b[m->n]) return;
    if (a[m->n]) {
        memcpy(a, b, (size_t)(m->n + 1) * sizeof *a);
        return;
    }
    for (i64 i = 0; i < m->n; i++)
        if (b[i] != i) join(a, (u32)i, b[i]);
}

static void update(void *self, const struct kernel_call *c) {
    const struct components *m = self;
    const u32 *parent = c->mem[map_part(0)];
    u32 *root = c->mem[MAP_MODEL];
    for (i64 i = 0; i < m->n; i++) root[i] = parent[i] == i ? (u32)i : root[parent[i]]; /* parents come first */
}

static struct exec_result result(void *self, void *const *mem) {
    (void)self;
    (void)mem;
    return (struct exec_result){.finite = true};
}

static const struct kernel kernels[MAP_NKERNEL] = {
    [MAP_MAP] = {.name = "map", .run = map, .rows = true, .compute = true},
    [MAP_MERGE] = {.name = "merge", .run = merge},
    [MAP_UPDATE] = {.name = "update", .run = update},
};

static err run(const struct learn_job *job, struct components *c, struct graph_result *r) {
    const i32 rows = (i32)((c->s->set.nrow + EDGES_OF_ROW - 1) / EDGES_OF_ROW);
    struct map_job m = {.use = &job->use, .kernel = kernels, .self = c, .result = result, .model = c->root,
                        .request = {.rows = rows, .microbatch = map_run_microbatch(rows, MICROBATCHES),
                                    .model_bytes = c->n * (i64)sizeof *c->root, .part = c->n + 1, .element = ELEMENT_I32,
                                    .row_seconds = 10e-9 * EDGES_OF_ROW}};
    struct map_run run;
    struct exec_result out;
    TRY(map_run_open(&m, &run));
    c->plan = run.plan;
    err e = map_run_step(&run, &out);
    if (e >= 0) e = exec_quiet(run.exec);
    if (e >= 0) e = graph_result_groups(r, c->root);
    if (e >= 0) e = map_run_keep(&run, &r->model);
    map_run_close(&run);
    r->iterations = 1;
    r->settled = true;
    return e;
}

static err fit(const struct learn_job *job, struct model **out) {
    struct components c = {.s = edge_set_of(job->data)};
    struct graph_result *r;
    const f64 began = clock_now();
    c.n = c.s->nnode;
    TRY(graph_result_new(&learner_components, c.s->nnode, &r));
    err e = mem_new((void **)&c.root, c.n, sizeof *c.root);
    if (e >= 0) e = run(job, &c, r);
    mem_free(c.root);
    r->model.seconds = clock_now() - began;
    if (e < 0) model_free(&r->model);
    else *out = &r->model;
    return e;
}

const struct learner learner_components = {
    .name = "components", .help = "connected components", .data = &data_edges, .ops = &graph_ops, .fit = fit};
