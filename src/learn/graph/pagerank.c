/* pagerank.c - PageRank (Page, Brin, Motwani, Winograd 1999) by power iteration with iterative refinement.
 *
 *     x' = F(x) = d (P x + dangling(x) / n) + (1 - d) / n          P: a node shares its rank among its edges by their weights
 *
 *     exact step    z = x / out weight    x' = F(x) in f64, change = x' - x     residual |change|_1 : the end is decided here
 *     fast steps    change' = d (P change + dangling(change) / n), sum += change'     the same iteration, as F is affine, but
 *                                                                                     what is gathered is f32: half the bytes
 *     fold          x' += sum, then an exact step again
 *
 * A change in f32 has an error of 6e-8 of itself, so each exact step may reduce the residual by about a million before rounding
 * shows; the error of the result is that of f64.  Dangling nodes share their rank among all nodes.  A device owns positions
 * [lo, hi): it reads what all nodes bring, and writes its own range, which goes to the ranks that have other ranges. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/graph/gather.h"
#include "learn/graph/graph.h"
#include "plan/build.h"

#define REDUCE 4e-6 /* of the residual, by fast steps between two exact ones */
enum { STOP_EVERY = 8 };

enum kernel_id { K_FOLD, K_EXACT, K_FAST, K_SUM, NKERNEL };
/* Of both plans.  B_IN: what nodes bring, read; B_OUT: written, for the next step; B_FOLDED, B_PART: sums of each part. */
enum buffer_id { B_IN, B_OUT, B_X, B_FOLDED, B_PART, B_NBUF };

struct sums {
    f64 dangling, residual;
};

struct pagerank {
    const struct graph *g;
    f64 damping, jump;         /* jump: (1 - d) / n */
    f64 *x, *bring;            /* [n] rank; what a node brings along each unit of weight */
    f32 *sum, *inverse;        /* [n] of changes since the last fold; 1 / out weight, 0 = dangling */
    f32 *change[2];            /* [n] change / out weight, of this step and the next */
    struct sums sums;          /* of the last step, all parts in order */
    f64 lost;                  /* dangling change that the present fast step shares out, for each node */
    i32 in;                    /* change[in] is the present one */
};

/* ------------------------------------------------------------------ kernels ------------------------------------------------- */

static void parts_of(const struct kernel_call *c, i32 *k0, i32 *k1) {
    *k0 = c->task->box.b0;
    *k1 = c->task->box.b1;
}

/* x += sum; what nodes bring, and the rank of dangling nodes, in f64. */
static void fold(void *self, const struct kernel_call *c) {
    struct pagerank *p = self;
    struct sums *part = c->mem[B_FOLDED];
    i32 k0, k1;
    parts_of(c, &k0, &k1);
    for (i32 k = k0; k < k1; k++) {
        part[k] = (struct sums){0};
        for (i32 i = p->g->part[k]; i < p->g->part[k + 1]; i++) {
            p->x[i] += (f64)p->sum[i];
            p->sum[i] = 0;
            if (p->g->out[i] > 0) p->bring[i] = p->x[i] / p->g->out[i];
            else p->bring[i] = 0, part[k].dangling += p->x[i];
        }
    }
}

static struct sums add_parts(const struct sums *part, i32 n) {
    struct sums all = {0};
    for (i32 k = 0; k < n; k++) {
        all.dangling += part[k].dangling;
        all.residual += part[k].residual;
    }
    return all;
}

static void exact(void *self, const struct kernel_call *c) {
    struct pagerank *p = self;
    const struct graph *g = p->g;
    struct sums *part = c->mem[B_PART];
    const f64 base = p->jump + p->damping * add_parts(c->mem[B_FOLDED], g->npart).dangling / g->n;
    f32 *const out = c->mem[B_OUT];
    i32 k0, k1;
    parts_of(c, &k0, &k1);
    for (i32 k = k0; k < k1; k++) {
        part[k] = (struct sums){0};
        for (i32 i = g->part[k]; i < g->part[k + 1]; i++) {
            const i64 e = g->row[i];
            const f64 sum = gather_f64(g->from + e, g->weight ? g->weight + e : NULL, g->row[i + 1] - e, p->bring);
            const f64 x = base + p->damping * sum, change = x - p->x[i];
            p->x[i] = x;
            out[i] = (f32)(change * (f64)p->inverse[i]);
            part[k].residual += fabs(change);
            if (p->inverse[i] == 0) part[k].dangling += change;
        }
    }
}

static void fast(void *self, const struct kernel_call *c) {
    struct pagerank *p = self;
    const struct graph *g = p->g;
    struct sums *part = c->mem[B_PART];
    const f32 *const in = c->mem[B_IN];
    f32 *const out = c->mem[B_OUT];
    i32 k0, k1;
    parts_of(c, &k0, &k1);
    for (i32 k = k0; k < k1; k++) {
        struct sums s = {0};
        for (i32 i = g->part[k]; i < g->part[k + 1]; i++) {
            const i64 e = g->row[i];
            const f64 sum = gather_f32(g->from + e, g->weight ? g->weight + e : NULL, g->row[i + 1] - e, in);
            const f64 change = p->damping * sum + p->lost;
            p->sum[i] += (f32)change;
            out[i] = (f32)change * p->inverse[i];
            s.residual += fabs(change);
            s.dangling += p->inverse[i] == 0 ? change : 0;
        }
        part[k] = s;
    }
}

/* On every rank, which all have the sums of all parts. */
static void add(void *self, const struct kernel_call *c) {
    struct pagerank *p = self;
    p->sums = add_parts(c->mem[B_PART], p->g->npart);
}

static struct exec_result result(void *self, void *const *mem) {
    const struct pagerank *p = self;
    (void)mem;
    return (struct exec_result){.loss = p->sums.residual, .finite = true};
}

static const struct kernel kernels[NKERNEL] = {
    [K_FOLD] = {.name = "fold", .run = fold, .compute = true},
    [K_EXACT] = {.name = "exact", .run = exact, .rows = true, .compute = true},
    [K_FAST] = {.name = "fast", .run = fast, .rows = true, .compute = true},
    [K_SUM] = {.name = "sum", .run = add},
};

/* ------------------------------------------------------------------ plans --------------------------------------------------- */

struct cuts {
    i32 n;
    i32 part[MACHINE_THREADS * 4 + 1]; /* device d has parts [part[d], part[d + 1]) */
};

/* Runs of parts with about equal work; a function of the parts and the number of devices. */
static void cut_devices(const struct graph *g, i32 ndevice, struct cuts *c) {
    const i64 all = g->row[g->n] + 2 * (i64)g->n;
    const i32 want = imin(imin(ndevice, g->npart), MACHINE_THREADS * 4);
    i32 k = 0;
    c->n = 0;
    c->part[0] = 0;
    for (i32 d = 1; d <= want; d++) {
        while (k < g->npart && g->row[g->part[k + 1]] + 2 * (i64)g->part[k + 1] <= all * d / want) k++;
        if (d == want) k = g->npart;
        if (k > c->part[c->n]) c->part[++c->n] = k;
    }
}

static err use(struct builder *b, enum buffer_id buf, enum use_mode mode, i64 lo, i64 hi) {
    return build_use(b, (struct use){.buf = buf, .mode = (u8)mode, .lo = lo, .hi = hi});
}

static err buffers(struct builder *b, const struct graph *g, bool is_exact) {
    const i64 n = g->n, parts = g->npart;
    const struct pbuf buf[B_NBUF] = {
        [B_IN] = {.element = is_exact ? ELEMENT_F64 : ELEMENT_F32, .lent = true, .home = HOME_WRITER,
                  .bytes = n * (is_exact ? 8 : 4), .extent = n},
        [B_OUT] = {.element = ELEMENT_F32, .lent = true, .home = HOME_ALL, .bytes = n * 4, .extent = n},
        [B_X] = {.element = ELEMENT_F64, .lent = true, .home = HOME_WRITER, .bytes = n * 8, .extent = n},
        [B_FOLDED] = {.element = ELEMENT_F64, .home = HOME_WRITER, .bytes = parts * 16, .extent = parts},
        [B_PART] = {.element = ELEMENT_F64, .home = HOME_WRITER, .bytes = parts * 16, .extent = parts},
    };
    u32 at;
    for (i32 k = 0; k < B_NBUF; k++) TRY(build_buffer(b, buf[k], &at));
    return 0;
}

static err task(struct builder *b, enum kernel_id kind, const struct graph *g, const struct cuts *c, i32 d) {
    const i32 k0 = c->part[d], k1 = c->part[d + 1], lo = g->part[k0], hi = g->part[k1];
    const f32 seconds = 1e-9f * (f32)(kind == K_FOLD ? hi - lo : g->row[hi] - g->row[lo] + 2 * (hi - lo));
    TRY(build_task(b, (struct task){.kind = (u8)kind, .device = (u32)d, .box = {k0, k1, 0, 1}, .cost = seconds}));
    TRY(use(b, B_X, USE_RW, lo, hi));
    if (kind == K_FOLD) {
        TRY(use(b, B_IN, USE_W, lo, hi));
        return use(b, B_FOLDED, USE_W, k0, k1);
    }
    TRY(use(b, B_IN, USE_R, 0, g->n));
    if (kind == K_EXACT) TRY(use(b, B_FOLDED, USE_R, 0, g->npart));
    TRY(use(b, B_OUT, USE_W, lo, hi));
    return use(b, B_PART, USE_W, k0, k1);
}

static err tasks(struct builder *b, const struct graph *g, const struct cuts *c, bool is_exact) {
    for (i32 d = 0; is_exact && d < c->n; d++) TRY(task(b, K_FOLD, g, c, d));
    for (i32 d = 0; d < c->n; d++) TRY(task(b, is_exact ? K_EXACT : K_FAST, g, c, d));
    TRY(build_task(b, (struct task){.kind = K_SUM, .everywhere = RUN_EVERYWHERE, .box = {0, g->npart, 0, 1}}));
    return use(b, B_PART, USE_R, 0, g->npart);
}

static err make(struct builder *b, const struct machine *m, const struct graph *g, const struct cuts *c, bool is_exact) {
    TRY(build_begin(b, is_exact ? "pagerank exact" : "pagerank", m, c->n));
    b->plan->exact = true;
    b->plan->B = b->plan->ngrain = g->npart;
    b->plan->grain = 1;
    TRY(buffers(b, g, is_exact));
    TRY(tasks(b, g, c, is_exact));
    return build_end(b);
}

/* in: of change, for a fast step; the other one is written. */
static err open_run(struct pagerank *p, const struct resources *use, const struct cuts *c, bool is_exact, i32 in,
                    struct map_run *out) {
    struct builder b = {0};
    const err e = make(&b, map_run_machine(use), p->g, c, is_exact);
    if (e < 0) {
        build_drop(&b);
        return e;
    }
    b.plan->predicted = plan_schedule(b.plan, NULL);
    void *lent[B_NBUF] = {
        [B_IN] = is_exact ? (void *)p->bring : p->change[in], [B_OUT] = p->change[is_exact ? 0 : !in], [B_X] = p->x};
    const struct client client = {.kernel = kernels, .nkernel = NKERNEL, .self = p, .result = result};
    return plan_run_open(b.plan, &client, use, lent, out);
}

/* ------------------------------------------------------------------ the fit ------------------------------------------------- */

static err room(struct pagerank *p) {
    const struct graph *g = p->g;
    NEW(p->x, g->n);
    NEW(p->bring, g->n);
    NEW(p->sum, g->n);
    NEW(p->inverse, g->n);
    for (i32 k = 0; k < 2; k++) NEW(p->change[k], g->n);
    for (i32 i = 0; i < g->n; i++) {
        p->x[i] = 1. / g->n;
        p->inverse[i] = g->out[i] > 0 ? (f32)(1 / g->out[i]) : 0;
    }
    return 0;
}

static void drop(struct pagerank *p) {
    mem_free(p->x);
    mem_free(p->bring);
    mem_free(p->sum);
    mem_free(p->inverse);
    for (i32 k = 0; k < 2; k++) mem_free(p->change[k]);
}

struct course {
    const struct learn_job *job;
    struct map_run exact, fast[2]; /* fast[k] reads change[k]: messages keep the addresses of their buffers */
    struct cuts cuts;
    f64 tolerance, deadline, began;
    i64 most;
    struct graph_result *r;
};

/* Console: iterations to come follow from the residual, which falls by the damping factor at least. */
static void say(const struct course *c, f64 damping) {
    char text[96];
    const f64 left = c->r->residual > c->tolerance ? log(c->tolerance / c->r->residual) / log(damping) : 0;
    const i64 steps = lmin(c->most, c->r->iterations + (i64)left);
    snprintf(text, sizeof text, "pagerank: residual %.2g", c->r->residual);
    const f64 seconds = clock_now() - c->began;
    event_emit(c->job->use.events, &(struct event){.kind = EVENT_WORK, .text = text, .step = c->r->iterations, .steps = steps,
                                                   .seconds = seconds,
                                                   .left = seconds / (f64)c->r->iterations * (f64)(steps - c->r->iterations)});
}

/* One iteration; *late: the time limit has passed. */
static err iterate(struct course *c, struct pagerank *p, bool is_exact, bool *late) {
    struct map_run *run = is_exact ? &c->exact : &c->fast[p->in];
    struct exec_result out;
    p->in = is_exact ? 0 : !p->in; /* for the next step */
    p->lost = p->damping * p->sums.dangling / p->g->n;
    TRY(map_run_step(run, &out));
    TRY(exec_quiet(run->exec));
    c->r->residual = out.loss;
    c->r->iterations++;
    if (c->r->iterations % STOP_EVERY) return 0;
    say(c, p->damping);
    return graph_stopped(c->job, c->deadline, late);
}

static err run(struct course *c, struct pagerank *p) {
    struct graph_result *r = c->r;
    bool late = false;
    while (!r->settled && !late && r->iterations < c->most) {
        TRY(iterate(c, p, true, &late));
        r->settled = r->residual < c->tolerance;
        const f64 upto = dmax(0.9 * c->tolerance, REDUCE * r->residual);
        while (!r->settled && !late && r->residual >= upto && r->iterations + 1 < c->most) TRY(iterate(c, p, false, &late));
    }
    r->model.stopped = late ? STOP_TIME : 0;
    return 0;
}

/* The ranks of all nodes, on every rank. */
static err collect(struct course *c, const struct pagerank *p) {
    const struct plan *plan = c->exact.plan;
    const struct graph *g = p->g;
    for (i32 i = 0; i < g->n; i++) p->x[i] += (f64)p->sum[i];
    for (i32 d = 0; d < c->cuts.n && comm_size(c->job->use.comm) > 1; d++) {
        const i32 lo = g->part[c->cuts.part[d]], hi = g->part[c->cuts.part[d + 1]];
        TRY(comm_broadcast_from(c->job->use.comm, plan->place[d].rank, "ranks", p->x + lo, (i64)(hi - lo) * 8));
    }
    NEW(c->r->score, g->n);
    for (i32 i = 0; i < g->n; i++) c->r->score[g->node[i]] = p->x[i];
    return 0;
}

static err fit_all(struct course *c, struct pagerank *p) {
    cut_devices(p->g, map_run_machine(&c->job->use)->ndevice, &c->cuts);
    TRY(room(p));
    TRY(open_run(p, &c->job->use, &c->cuts, true, 0, &c->exact));
    for (i32 k = 0; k < 2; k++) TRY(open_run(p, &c->job->use, &c->cuts, false, k, &c->fast[k]));
    TRY(run(c, p));
    TRY(collect(c, p));
    return map_run_keep(&c->fast[0], &c->r->model);
}

static err fit(const struct learn_job *job, struct model **out) {
    const struct options *o = job->o;
    const struct graph *g = job->spec;
    struct pagerank p = {.g = g, .damping = o->damping, .jump = (1 - o->damping) / g->n};
    struct course c = {.job = job, .tolerance = o->tol, .deadline = graph_deadline(o), .began = clock_now(),
                       .most = o->max_iter};
    TRY(graph_result_new(&learner_pagerank, g->n, &c.r));
    const err e = fit_all(&c, &p);
    map_run_close(&c.exact);
    for (i32 k = 0; k < 2; k++) map_run_close(&c.fast[k]);
    drop(&p);
    c.r->model.seconds = clock_now() - c.began;
    if (e < 0) model_free(&c.r->model);
    else *out = &c.r->model;
    return e;
}

const struct learner learner_pagerank = {
    .name = "pagerank", .help = "importance of nodes by the links to them", .data = &data_edges, .ops = &graph_ops, .fit = fit};
