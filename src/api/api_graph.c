/* api_graph.c - `stretto graph`: PageRank, components and communities of an edge list, as a table of nodes and a summary. */
#include <string.h>

#include "api/graph_out.h"
#include "api/ranks.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "exec/policy.h"
#include "learn/graph/graph.h"

struct method {
    const struct learner *learner;
    const char *column;
    bool sorted, both; /* the edges are sorted into a struct graph; they count both ways whatever --directed says */
    enum graph_order order;
};

static const struct method methods[] = {
    {.learner = &learner_pagerank, .column = "rank", .sorted = true, .order = GRAPH_BY_DEGREE},
    {.learner = &learner_components, .column = "component", .both = true},
    {.learner = &learner_labels, .column = "label", .sorted = true, .both = true, .order = GRAPH_BY_COLOR},
};

struct graph_run {
    struct options o;
    const struct method *method;
    struct run_context ctx;
    struct events events;
    stretto_event_fn *fn;
    void *user;
    struct dataset *data;
    struct graph *graph;
    struct model *m;
    f64 read_seconds;
};

static err find_method(const char *name, const struct method **out) {
    for (size_t i = 0; i < COUNT(methods); i++) {
        *out = &methods[i];
        if (strcmp(methods[i].learner->name, name) == 0) return 0;
    }
    return FAIL_AT(E103, "METHOD", "pagerank   or   components   or   labels", "there is no method \"%.60s\" for graphs", name);
}

static void forward(void *self, const struct event *e) {
    const struct graph_run *r = self;
    if (comm_rank(r->ctx.comm) == 0) forward_event(e, r->fn, r->user);
}

/* ------------------------------------------------------------------ the summary --------------------------------------------- */

static struct graph_out out_of(const struct graph_run *r) {
    return (struct graph_out){.s = edge_set_of(r->data),
                              .g = graph_result_of(r->m),
                              .method = r->method->learner->name,
                              .column = r->method->column,
                              .top = (i32)r->o.top,
                              .by_rank = strcmp(r->o.sort, "rank") == 0};
}

static void first_line(const struct graph_run *r, struct str *out) {
    const struct graph_result *g = graph_result_of(r->m);
    str_addf(out, "%s of %d nodes, %lld edges", r->method->learner->name, g->n, (long long)r->data->nrow);
    if (r->graph && r->graph->repeated) str_add(out, " (repeated ones count once)");
    if (g->score) str_addf(out, ": %lld iterations, last change %.2g\n", (long long)g->iterations, g->residual);
    else if (r->method->sorted) str_addf(out, ": %d group%s after %lld sweeps\n", g->ngroup, g->ngroup == 1 ? "" : "s",
                                       (long long)g->iterations);
    else str_addf(out, ": %d group%s\n", g->ngroup, g->ngroup == 1 ? "" : "s");
}

static err summary_text(const struct graph_run *r, struct str *out) {
    const struct graph_out o = out_of(r);
    first_line(r, out);
    return graph_top_text(&o, out);
}

static err summary_json(const struct graph_run *r, struct str *out) {
    const struct graph_out view = out_of(r);
    const struct graph_result *g = view.g;
    struct js *o = js_object();
    js_put_text(o, "method", r->method->learner->name);
    js_put_i64(o, "nodes", g->n);
    js_put_i64(o, "edges", r->data->nrow);
    if (g->group) js_put_i64(o, "groups", g->ngroup);
    if (r->method->sorted) js_put_i64(o, "iterations", g->iterations);
    if (r->method->sorted) js_put_f64(o, g->score ? "residual" : "changed", g->residual);
    js_put_bool(o, "settled", g->settled);
    js_put_f64(o, "read_seconds", r->read_seconds);
    js_put_f64(o, "seconds", g->model.seconds);
    err e = graph_top_json(&view, o);
    if (e >= 0) e = js_text(o, out, 2);
    js_free(o);
    return e;
}

static err plot(const struct graph_run *r) {
    const struct graph_out o = out_of(r);
    struct str lead = {0};
    first_line(r, &lead);
    err e = str_ok(&lead);
    if (e >= 0) e = file_option(graph_plot(&o, str_text(&lead), r->o.plot), "--plot");
    str_free(&lead);
    return e;
}

/* ------------------------------------------------------------------ the run ------------------------------------------------- */

static err read_edges(struct graph_run *r, const char *path) {
    const f64 began = clock_now();
    TRY(edge_set_read(path, r->o.node_list, r->ctx.machine->ndevice, &r->data));
    event_note(&r->events, EVENT_NOTE, "%s", r->data->summary);
    const bool both = r->method->both || !r->o.directed;
    if (r->method->sorted)
        TRY(graph_new(edge_set_of(r->data), r->method->order, both, !r->method->both, r->ctx.use.pool, &r->graph));
    if (r->method->learner == &learner_pagerank) graph_share(r->graph);
    r->read_seconds = clock_now() - began;
    return 0;
}

static err fit(struct graph_run *r) {
    /* A sweep reads in its step what other ranks write in it, so no message may wait for the next step as weights do. */
    static const struct policy at_once = {.name = "at once", .help = "synchronous; every message is there when its step ends"};
    struct learn_job job = {.o = &r->o, .data = r->data, .spec = r->graph, .use = r->ctx.use};
    job.use.policy = &at_once;
    TRY(ranks_share_fit(&r->ctx, r->method->learner, &job, &r->m));
    const struct graph_result *g = graph_result_of(r->m);
    if (!g->settled && !r->m->stopped)
        event_note(&r->events, EVENT_WARNING, "%s did not settle in %lld iterations (--max-iter): the last one changed %.3g",
                   r->method->learner->name, (long long)g->iterations, g->residual);
    return 0;
}

/* A file that cannot be written is no reason to withhold the others. */
static err write_files(const struct graph_run *r, const char *out_path) {
    const struct graph_out o = out_of(r);
    struct str text = {0};
    err e = 0;
    if (*out_path) {
        e = graph_table(&o, &text);
        if (e >= 0) e = file_write_text(out_path, &text);
        else str_free(&text);
    }
    if (!r->o.plot || !*r->o.plot) return e;
    const struct err_record why = *err_last();
    const err drawn = plot(r);
    if (e < 0) err_put(&why);
    return e < 0 ? e : drawn;
}

static err give(const struct graph_run *r, const char *out_path, bool json, char **out) {
    struct str text = {0};
    const bool direct = strcmp(out_path, "-") == 0;
    if (comm_rank(r->ctx.comm) > 0) {
        str_add(&text, "");
        return text_give(&text, out);
    }
    TRY(write_files(r, direct ? "" : out_path));
    const struct graph_out o = out_of(r);
    return text_end(direct ? graph_table(&o, &text) : json ? summary_json(r, &text) : summary_text(r, &text), &text, out);
}

static void end(struct graph_run *r) {
    if (r->m) model_free(r->m);
    graph_free(r->graph);
    dataset_free(r->data);
    run_context_close(&r->ctx);
    opt_free(&r->o);
}

/* Set by a signal handler. */
static volatile int stop;

void stretto_graph_stop(void) { stop = 1; }

stretto_err stretto_graph(stretto_config *config, const char *method, const char *path, const char *out_path,
                          stretto_event_fn *fn, void *user, int json, char **out) {
    struct graph_run r = {.fn = fn, .user = user};
    *out = NULL;
    TRY(find_method(method, &r.method));
    events_add(&r.events, (struct sink){forward, &r});
    err e = opt_copy(&r.o, &config->o);
    if (e >= 0) e = opt_set_id(&r.o, OPT_device, "cpu", &OPT_API); /* edges are read at random: what graphs need is memory */
    if (e >= 0) e = run_context_open(&r.o, &r.events, &stop, true, &r.ctx);
    if (e >= 0) e = read_edges(&r, path);
    if (e >= 0) e = fit(&r);
    if (e >= 0) e = give(&r, out_path, json != 0, out);
    if (e >= 0) e = r.m->stopped == STOP_TIME ? STRETTO_STOP_TIME : r.m->stopped == STOP_SIGNAL ? STRETTO_STOP_SIGNAL : 0;
    end(&r);
    stop = 0;
    return e;
}
