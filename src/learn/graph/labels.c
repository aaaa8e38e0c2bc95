/* labels.c - communities by label propagation (Raghavan, Albert, Kumara 2007), in the semi-synchronous form (Cordasco, Gargano
 * 2010).
 *
 *     sweep   color 0: every node of it takes the label that most of its neighbours have      device 0 | device 1
 *             color 1: the same, with the new labels of color 0                               device 0 | device 1
 *             ..
 *
 * Edges count in both directions and by their weights; of labels with equal weight a node keeps its own, else lots drawn by a
 * hash decide.  Nodes of one color have no edges among them, so they change at the same time without reading each other, and a
 * change raises the weight of edges within communities: it ends, when a sweep changes no label.  A plan is one sweep. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/graph/graph.h"
#include "plan/build.h"

enum kernel_id { K_VOTE, K_SUM, NKERNEL };
enum buffer_id { B_LABEL, B_CHANGED, B_NBUF };

struct labels {
    const struct graph *g;
    u32 *label;     /* [n] by position: a node */
    i32 ndevice;
    f64 **votes;    /* [ndevice][n] of labels, zero between two nodes */
    u32 **seen;     /* [ndevice][n] labels with votes */
    i64 changed;    /* in the last sweep */
    i32 ntask;      /* of the kind K_VOTE */
};

/* Decides ties: another order of the labels for each node, or one label would win all of them. */
static u32 lot(u32 node, u32 label) {
    u64 h = ((u64)node << 32 | label) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
    return (u32)(h >> 32);
}

/* The label with most votes of the neighbours of position i. */
static u32 elect(const struct labels *l, i32 i, f64 *votes, u32 *seen) {
    const struct graph *g = l->g;
    u32 best = l->label[i];
    i64 n = 0;
    for (i64 e = g->row[i]; e < g->row[i + 1]; e++) {
        const u32 label = l->label[g->from[e]];
        const f64 w = g->weight ? g->weight[e] : 1;
        if (w > 0 && votes[label] == 0) seen[n++] = label;
        votes[label] += w;
    }
    const u32 own = best;
    for (i64 k = 0; k < n; k++) {
        const bool tie = votes[seen[k]] == votes[best] && best != own;
        if (votes[seen[k]] > votes[best] || (tie && lot(g->node[i], seen[k]) > lot(g->node[i], best))) best = seen[k];
    }
    for (i64 k = 0; k < n; k++) votes[seen[k]] = 0;
    return best;
}

static void vote(void *self, const struct kernel_call *c) {
    struct labels *l = self;
    f64 *const votes = l->votes[c->task->device];
    u32 *const seen = l->seen[c->task->device];
    i64 changed = 0;
    for (i32 i = c->task->box.b0; i < c->task->box.b1; i++) {
        const u32 best = elect(l, i, votes, seen);
        changed += best != l->label[i];
        l->label[i] = best;
    }
    ((f64 *)c->mem[B_CHANGED])[c->task->node_a] = (f64)changed;
}

static void add(void *self, const struct kernel_call *c) {
    struct labels *l = self;
    const f64 *changed = c->mem[B_CHANGED];
    l->changed = 0;
    for (i32 k = 0; k < l->ntask; k++) l->changed += (i64)changed[k];
}

static struct exec_result result(void *self, void *const *mem) {
    const struct labels *l = self;
    (void)mem;
    return (struct exec_result){.loss = (f64)l->changed, .finite = true};
}

static const struct kernel kernels[NKERNEL] = {
    [K_VOTE] = {.name = "vote", .run = vote, .rows = true, .compute = true},
    [K_SUM] = {.name = "sum", .run = add},
};

/* ------------------------------------------------------------------ the plan ------------------------------------------------ */

/* Ranges of a color for devices: `at` as of graph_cut.  Small colors are for one device. */
static i32 cut_color(const struct graph *g, i32 color, i32 ndevice, i32 *at) {
    enum { LEAST = 2048 };
    const i32 lo = g->color[color], hi = g->color[color + 1];
    const i64 work = g->row[hi] - g->row[lo] + 2 * (i64)(hi - lo);
    return graph_cut(g, lo, hi, (i32)lmax(1, lmin(ndevice, work / LEAST)), at);
}

static i32 count_tasks(const struct graph *g, i32 ndevice, i32 *at) {
    i32 n = 0;
    for (i32 c = 0; c < g->nclass; c++) n += cut_color(g, c, ndevice, at);
    return n;
}

static err use(struct builder *b, enum buffer_id buf, enum use_mode mode, i64 lo, i64 hi) {
    return build_use(b, (struct use){.buf = buf, .mode = (u8)mode, .lo = lo, .hi = hi});
}

/* It reads labels of all colors but its own. */
static err task(struct builder *b, const struct graph *g, i32 color, i32 lo, i32 hi, struct task t) {
    t.kind = K_VOTE;
    t.box = (struct slice){lo, hi, 0, 1};
    t.cost = 5e-9f * (f32)(g->row[hi] - g->row[lo] + hi - lo);
    TRY(build_task(b, t));
    TRY(use(b, B_LABEL, USE_R, 0, g->color[color]));
    TRY(use(b, B_LABEL, USE_R, g->color[color + 1], g->n));
    TRY(use(b, B_LABEL, USE_RW, lo, hi));
    return use(b, B_CHANGED, USE_W, t.node_a, t.node_a + 1);
}

static err tasks(struct builder *b, const struct labels *l, i32 *at) {
    const struct graph *g = l->g;
    i32 k = 0;
    for (i32 c = 0; c < g->nclass; c++) {
        const i32 n = cut_color(g, c, l->ndevice, at);
        for (i32 d = 0; d < n; d++)
            TRY(task(b, g, c, at[d], at[d + 1], (struct task){.device = (u32)(n == 1 ? c % l->ndevice : d), .node_a = k++}));
    }
    TRY(build_task(b, (struct task){.kind = K_SUM, .everywhere = RUN_EVERYWHERE, .box = {0, g->n, 0, 1}}));
    return use(b, B_CHANGED, USE_R, 0, l->ntask);
}

static err make(struct builder *b, const struct machine *m, const struct labels *l, i32 *at) {
    const i64 n = l->g->n;
    u32 buf;
    TRY(build_begin(b, "labels", m, l->ndevice));
    b->plan->exact = true;
    b->plan->B = l->g->n;
    b->plan->grain = b->plan->ngrain = 1;
    TRY(build_buffer(b, (struct pbuf){.element = ELEMENT_I32, .lent = true, .home = HOME_ALL, .bytes = n * 4, .extent = n},
                     &buf));
    TRY(build_buffer(
        b, (struct pbuf){.element = ELEMENT_F64, .home = HOME_WRITER, .bytes = (i64)l->ntask * 8, .extent = l->ntask}, &buf));
    TRY(tasks(b, l, at));
    return build_end(b);
}

static err open_run(struct labels *l, const struct resources *use, struct map_run *out) {
    struct builder b = {0};
    i32 *at;
    NEW(at, l->ndevice + 1);
    l->ntask = count_tasks(l->g, l->ndevice, at);
    const err e = make(&b, map_run_machine(use), l, at);
    mem_free(at);
    if (e < 0) {
        build_drop(&b);
        return e;
    }
    b.plan->predicted = plan_schedule(b.plan, NULL);
    void *lent[B_NBUF] = {[B_LABEL] = l->label};
    const struct client client = {.kernel = kernels, .nkernel = NKERNEL, .self = l, .result = result};
    return plan_run_open(b.plan, &client, use, lent, out);
}

/* ------------------------------------------------------------------ the fit ------------------------------------------------- */

static err room(struct labels *l, const struct resources *use) {
    const struct machine *m = map_run_machine(use);
    l->ndevice = m->ndevice;
    NEW(l->label, l->g->n);
    NEW(l->votes, l->ndevice);
    NEW(l->seen, l->ndevice);
    for (i32 d = 0; d < l->ndevice; d++) {
        if (m->device[d].rank != comm_rank(use->comm)) continue;
        NEW(l->votes[d], l->g->n);
        NEW(l->seen[d], l->g->n);
    }
    for (i32 i = 0; i < l->g->n; i++) l->label[i] = l->g->node[i];
    return 0;
}

static void drop(struct labels *l) {
    for (i32 d = 0; d < l->ndevice; d++) {
        if (l->votes) mem_free(l->votes[d]);
        if (l->seen) mem_free(l->seen[d]);
    }
    mem_free(l->votes);
    mem_free(l->seen);
    mem_free(l->label);
}

/* before: nodes that changed in the sweep before; their number goes on to fall by the same factor, down to 0. */
static void say(const struct learn_job *job, const struct graph_result *r, f64 before, f64 began) {
    char text[96];
    const f64 falls = r->residual / dmax(1, before), seconds = clock_now() - began;
    const f64 more = r->residual == 0 ? 0 : falls < 1 ? 1 + log(r->residual) / -log(falls) : (f64)job->o->max_iter;
    const i64 steps = lmin(job->o->max_iter, r->iterations + (i64)ceil(dmin(more, 1e9)));
    snprintf(text, sizeof text, "labels: %.0f changed", r->residual);
    event_emit(job->use.events, &(struct event){.kind = EVENT_WORK, .text = text, .step = r->iterations, .steps = steps,
                                                .seconds = seconds,
                                                .left = seconds / (f64)r->iterations * (f64)(steps - r->iterations)});
}

static err sweeps(const struct learn_job *job, struct labels *l, struct map_run *run, struct graph_result *r) {
    const i64 most = job->o->max_iter;
    const f64 deadline = graph_deadline(job->o), began = clock_now();
    bool ended = false;
    while (!r->settled && !ended && r->iterations < most) {
        struct exec_result out;
        TRY(map_run_step(run, &out));
        TRY(exec_quiet(run->exec));
        const f64 before = r->iterations++ ? r->residual : (f64)l->g->n;
        r->residual = (f64)l->changed;
        r->settled = l->changed == 0;
        say(job, r, before, began);
        TRY(graph_stopped(job, deadline, &r->model.stopped, &ended));
    }
    if (r->settled) r->model.stopped = 0;
    return 0;
}

static err groups(const struct labels *l, struct graph_result *r) {
    u32 *label;
    NEW(label, l->g->n);
    for (i32 i = 0; i < l->g->n; i++) label[l->g->node[i]] = l->label[i];
    const err e = graph_result_groups(r, label);
    mem_free(label);
    return e;
}

static err fit_all(const struct learn_job *job, struct labels *l, struct graph_result *r) {
    struct map_run run;
    TRY(room(l, &job->use));
    TRY(open_run(l, &job->use, &run));
    err e = sweeps(job, l, &run, r);
    if (e >= 0) e = groups(l, r);
    if (e >= 0) e = map_run_keep(&run, &r->model);
    map_run_close(&run);
    return e;
}

static err fit(const struct learn_job *job, struct model **out) {
    struct labels l = {.g = job->spec};
    struct graph_result *r;
    const f64 began = clock_now();
    TRY(graph_result_new(&learner_labels, l.g->n, &r));
    const err e = fit_all(job, &l, r);
    drop(&l);
    r->model.seconds = clock_now() - began;
    if (e < 0) model_free(&r->model);
    else *out = &r->model;
    return e;
}

const struct learner learner_labels = {
    .name = "labels", .help = "communities by label propagation",
    .data = &data_edges, .ops = &graph_ops, .fit = fit};
