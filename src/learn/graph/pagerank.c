/* pagerank.c - PageRank (Page, Brin, Motwani, Winograd 1999) by block Gauss-Seidel with iterative refinement; see pagerank.h.
 *
 *     round   sweep, sweep, ..   until c changes by REDUCE of the residual, or by about the tolerance
 *             fold               residual |F(x) - x|_1 in f64: the end is decided here
 *
 * A c in f32 has an error of 6e-8 of itself, so a round may reduce the residual by about a million; the error of the result is
 * that of f64.  Gauss-Seidel with the sum of c taken away needs fewer sweeps than power iteration in the graphs that we know,
 * but there are others where it diverges: a round that reduces the residual by less than power iteration would is the last one
 * of its kind. */
#include "learn/graph/pagerank.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"

#define REDUCE 1e-6    /* of the residual, in a round */
#define DIVERGES 4     /* times the smallest change of a round */
#define LEAST 1e-5     /* rounding in f32 alone makes no round look slower than power iteration */

struct course {
    const struct learn_job *job;
    struct map_run run[PAGERANK_NSTEP];
    enum pagerank_step step; /* of the next sweeps */
    f64 tolerance, deadline, began;
    i64 most;
    struct graph_result *r;
};

/* Console: the residual, which was 1, goes on to fall by the same factor in each iteration. */
static void say(const struct course *c) {
    char text[96];
    const struct graph_result *r = c->r;
    const f64 falls = dmin(1, r->residual), all = falls < 1 ? (f64)r->iterations * log(c->tolerance) / log(falls) : (f64)c->most;
    const i64 steps = lmax(r->iterations, lmin(c->most, falls > 0 ? (i64)ceil(dmin(all, (f64)c->most)) : 0));
    const f64 seconds = clock_now() - c->began;
    snprintf(text, sizeof text, "pagerank: residual %.2g", r->residual);
    event_emit(c->job->use.events, &(struct event){.kind = EVENT_WORK, .text = text, .step = r->iterations, .steps = steps,
                                                   .seconds = seconds,
                                                   .left = seconds / (f64)r->iterations * (f64)(steps - r->iterations)});
}

/* One iteration; r->residual is then its loss. */
static err iterate(struct course *c, enum pagerank_step step) {
    struct exec_result out;
    TRY(map_run_step(&c->run[step], &out));
    TRY(exec_quiet(c->run[step].exec));
    c->r->residual = out.loss;
    c->r->iterations++;
    say(c);
    return 0;
}

/* Sweeps of a round, one iteration less than allowed. */
static err sweeps(struct course *c, bool *ended) {
    struct graph_result *r = c->r;
    const f64 upto = dmax(0.9 * c->tolerance, REDUCE * r->residual);
    f64 before = r->residual, least = before;
    while (!*ended && r->iterations + 1 < c->most) {
        TRY(iterate(c, c->step));
        TRY(graph_stopped(c->job, c->deadline, &r->model.stopped, ended));
        const f64 next = r->residual * dmin(1, r->residual / before); /* about what a fold will find */
        if (next < upto || r->residual > DIVERGES * least) return 0;
        before = r->residual;
        least = dmin(least, before);
    }
    return 0;
}

static err rounds(struct course *c, const struct pagerank *p) {
    struct graph_result *r = c->r;
    bool ended = false;
    r->residual = 1;
    while (!r->settled && !ended && r->iterations < c->most) {
        const f64 before = r->residual;
        const i64 first = r->iterations;
        TRY(sweeps(c, &ended));
        TRY(iterate(c, PAGERANK_FOLD));
        r->settled = r->residual < c->tolerance;
        const f64 power = pow(p->damping, (f64)(r->iterations - first));
        if (r->residual > dmax(2 * power, LEAST) * before) c->step = PAGERANK_PLAIN;
    }
    if (r->settled) r->model.stopped = 0;
    return 0;
}

/* The ranks of all nodes, on every rank: one more step than was tested comes free, F(x) = x + rest. */
static err collect(struct course *c, struct pagerank *p) {
    const struct plan *plan = c->run[PAGERANK_FOLD].plan;
    const struct graph *g = p->g;
    for (i32 i = 0; i < g->n; i++) p->x[i] += p->rest[i];
    for (i32 b = 0; b <= GRAPH_BLOCKS && comm_size(c->job->use.comm) > 1; b++) {
        for (i32 d = 0; d < plan->ndevice; d++) {
            i32 lo, hi;
            pagerank_range(g, b, d, plan->ndevice, &lo, &hi);
            if (lo == hi) continue;
            TRY(comm_broadcast_from(c->job->use.comm, plan->place[d].rank, "ranks", p->x + lo, (i64)(hi - lo) * 8));
        }
    }
    NEW(c->r->score, g->n);
    for (i32 i = 0; i < g->n; i++) c->r->score[g->node[i]] = p->x[i];
    return 0;
}

static err fit_all(struct course *c, struct pagerank *p) {
    TRY(pagerank_open(p, c->job->spec, c->job->o->damping));
    for (i32 k = 0; k < PAGERANK_NSTEP; k++)
        TRY(pagerank_plan_run(p, (enum pagerank_step)k, &c->job->use, &c->run[k]));
    TRY(rounds(c, p));
    TRY(collect(c, p));
    return map_run_keep(&c->run[PAGERANK_SWEEP], &c->r->model);
}

static err fit(const struct learn_job *job, struct model **out) {
    const struct options *o = job->o;
    struct pagerank p = {0};
    struct course c = {.job = job, .step = PAGERANK_SWEEP, .tolerance = o->tol, .deadline = graph_deadline(o),
                       .began = clock_now(), .most = o->max_iter};
    TRY(graph_result_new(&learner_pagerank, ((const struct graph *)job->spec)->n, &c.r));
    const err e = fit_all(&c, &p);
    for (i32 k = 0; k < PAGERANK_NSTEP; k++) map_run_close(&c.run[k]);
    pagerank_drop(&p);
    c.r->model.seconds = clock_now() - c.began;
    if (e < 0) model_free(&c.r->model);
    else *out = &c.r->model;
    return e;
}

const struct learner learner_pagerank = {
    .name = "pagerank", .help = "importance of nodes by the links to them", .data = &data_edges, .ops = &graph_ops, .fit = fit};
