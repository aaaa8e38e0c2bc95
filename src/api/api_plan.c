/* api_plan.c - the plan of a training step: from data or from shapes alone; machine facts; speed by width. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/plan_place.h"
#include "api/plan_shape.h"
#include "deal/simulate.h"
#include "base/file.h"
#include "base/json.h"
#include "learn/costs.h"
#include "learn/forecast/resolve.h"
#include "learn/series_set.h"
#include "report/svg.h"
#include "step/sent.h"
#include "step/netplan.h"

enum { LONG_RUN = 1 << 30, SHAPE_ROWS = 100000, CUTS = 8, CUT_STEPS = 256, TEXT_WIDTH = 100, SVG_WIDTH = 1000 };

struct stretto_plan {
    struct options o;
    struct machine *machine;
    struct net net;
    struct plan *plan;
    struct plan_request q;
    struct costs *costs; /* measured; NULL = another machine than this host */
    const struct series *data; /* borrowed; NULL = shape */
    struct series shape;
    struct forecast_spec spec;
    i64 windows; /* windows of an epoch */
    i64 seen;    /* rows of the data before the test split */
};

static const struct series *rows_of(const struct stretto_plan *p) { return p->data ? p->data : &p->shape; }

/* The spec of the configured forecaster; without data = `columns` targets and no other columns. */
static err shape_spec(struct stretto_plan *p) {
    struct split split = {0};
    const i32 n = (i32)p->o.columns;
    p->shape = (struct series){.nrow = SHAPE_ROWS, .ncol = n, .ntarget = n, .freq = {.season = 24}};
    TRY(need_forecaster(&p->o, "plan"));
    TRY(resolve_forecast(&p->o, rows_of(p), NULL, &p->spec, &split));
    p->windows = forecast_epoch(&p->spec, rows_of(p), split.train);
    p->seen = split.validation;
    p->shape.nrow = 0; /* the shape has no rows of data */
    return 0;
}

/* Makes the net of a spec and the plan request for it. */
static err shape_net(const struct stretto_plan *self, const struct forecast_spec *spec, struct net *net, struct plan_request *q) {
    const struct series *s = rows_of(self);
    struct window_shape p;
    i32 nwin;
    TRY(forecast_shape(spec, s, self->seen, &p));
    TRY(forecast_rows(spec, self->windows, forecast_width(spec, s), &nwin, &q->B));
    q->net = net;
    q->slices = spec->cut.slices > 1 ? spec->cut.slices : 0;
    q->course = spec->cut.course;
    return forecast_net(spec, &p, s, net);
}

static err this_host(const struct options *o, struct machine *m) {
    const struct kern *k;
    u32 how;
    TRY(machine_host(opt_is_auto(o, OPT_threads) ? 0 : (i32)o->threads, m));
    TRY(pick_kernel(o, &k, &how));
    machine_measure(k, m);
    return 0;
}

/* The last error of a machine text, with the name of its file. */
static err in_file(const char *path, err e) {
    const struct err_record was = *err_last();
    char where[sizeof was.where];
    const size_t option = strlen("--machine");
    if (strncmp(was.where, "--machine", option) != 0) return e;
    str_print(where, sizeof where, "%s%s", path, was.where + option);
    return FAIL_AT((enum err_code)was.code, where, was.fix, "%s", was.text);
}

/* This host with the multiply-add rate of training, or the machine that --machine describes. */
static err machine_of(const struct options *o, struct machine *m) {
    if (strcmp(o->machine, "auto") == 0) return this_host(o, m);
    const bool named = strcspn(o->machine, "./") < strcspn(o->machine, " *"); /* a text begins with a word, as cpu*4 */
    if (!file_exists(o->machine) && named && !strchr(o->machine, '('))
        return FAIL_AT(E103, "--machine", "--machine auto   or   --machine 'host*2(cpu*4)'", "\"%s\": no such file", o->machine);
    if (!file_exists(o->machine)) return machine_parse(o->machine, m);
    char *text;
    i64 n;
    TRY(file_load(o->machine, 1 << 20, &text, &n));
    err e = machine_parse(text, m);
    mem_free(text);
    return e < 0 ? in_file(o->machine, e) : e;
}

/* Measured costs of this host, for what runs for hours: those that are known, and those that take seconds to measure. */
static err measured_costs(struct stretto_plan *p, struct resources *use) {
    NEW(p->costs, 1);
    use->steps = LONG_RUN;
    TRY(pool_new(p->machine->ndevice, &use->pool));
    const err e = costs_open(&p->net, use, p->q.B, optim_find(p->o.optim), COSTS_WAITING, p->costs);
    pool_free(use->pool);
    p->q.costs = p->costs->n > 0 ? p->costs : NULL;
    return e;
}

/* Makes the plan.  Execution modes of the layers are those of --kernel NAME:fold, or of the wisdom of this machine. */
static err make_plan(struct stretto_plan *p, struct resources *use) {
    struct wisdom wisdom;
    const bool here = strcmp(p->o.machine, "auto") == 0;
    TRY(pick_kernel(&p->o, &use->kern, &use->how));
    if (!here && use->how == 0) return plan_make(&p->q, &p->plan);
    TRY(wisdom_open(p->machine->cpu, &wisdom));
    use->wisdom = &wisdom;
    err e = here ? measured_costs(p, use) : 0;
    use->steps = 0;
    if (e >= 0) e = plan_make(&p->q, &p->plan);
    if (e >= 0) e = engine_choose_how(p->plan, &p->net, use);
    wisdom_close(&wisdom);
    return e;
}

static err open_plan(stretto_config *config, stretto_data *data, struct stretto_plan *p) {
    TRY(opt_copy(&p->o, &config->o));
    NEW(p->machine, 1);
    TRY(machine_of(&p->o, p->machine));
    const struct optim *optim;
    p->data = data ? series_of(data->set) : NULL;
    TRY(shape_spec(p));
    optim = optim_find(p->o.optim);
    struct resources use = {.machine = p->machine};
    plan_wishes(&p->o, &use);
    if (use.place && strcmp(use.place, "all") == 0) use.place = NULL;
    p->q = engine_request(&p->net, &use, 0, optim);
    TRY(shape_net(p, &p->spec, &p->net, &p->q));
    return make_plan(p, &use);
}

stretto_err stretto_plan_new(stretto_config *config, stretto_data *data, stretto_plan **out) {
    struct stretto_plan *p;
    *out = NULL;
    NEW(p, 1);
    err e = open_plan(config, data, p);
    if (e < 0) stretto_plan_free(p);
    else *out = p;
    return e;
}

void stretto_plan_free(stretto_plan *self) {
    if (!self) return;
    plan_free(self->plan);
    mem_free(self->machine);
    mem_free(self->costs);
    opt_free(&self->o);
    mem_free(self);
}

stretto_err stretto_plan_print(const stretto_plan *self, char **out) {
    struct str text = {0};
    plan_print(self->plan, &self->net, &text);
    return text_give(&text, out);
}

/* Messages between ranks, and the gradients that are sent as sparse rows. */
static err messages_line(const struct plan *p, const struct net *n, const struct plan_sent *sent, struct str *text) {
    if (p->nrank < 2) return 0;
    str_addf(text, "%lld messages a step between %d ranks, ", (long long)sent->messages, p->nrank);
    text_bytes(sent->most, text);
    for (i32 k = 0; k < p->ntable; k++)
        str_addf(text, "%s%s", k ? ", " : "; gradients of ", n->op[p->table[k].op].spec.name);
    if (p->ntable > 0) {
        str_add(text, " are sent as sparse rows, at most ");
        text_bytes(sent->lines_most, text);
        str_add(text, " instead of ");
        text_bytes(sent->lines_whole, text);
    }
    str_add(text, "\n");
    return str_ok(text);
}

static void put_choices(struct js *o, const struct plan *p) {
    struct js *all = js_array();
    for (i32 k = 0; k < netplan(p)->nchoice; k++) {
        const struct plan_choice *c = &netplan(p)->choice[k];
        struct js *one = js_object();
        js_put_text(one, "strategy", c->name);
        js_put_f64(one, "predicted_ms", 1e3 * c->seconds);
        js_put_i64(one, "device_bytes", c->bytes);
        js_push(all, one);
    }
    js_put(o, "best", all);
}

stretto_err stretto_plan_summary(const stretto_plan *self, int json, char **out) {
    const struct plan *p = self->plan;
    struct str text = {0};
    struct plan_sent sent;
    const i32 parts = imax(1, self->spec.accumulate);
    TRY(plan_sent(p, parts, &sent));
    if (!json) {
        str_addf(&text, "strategy %s on %s: %d samples in %d micro-batches of %d, %u tasks on %d device%s", p->strategy,
                 self->machine->name, p->B, p->ngrain, p->grain, p->ntask, p->ndevice, p->ndevice > 1 ? "s" : "");
        if (parts > 1) str_addf(&text, "; %d such batches make a step", parts);
        str_addf(&text, "\npredicted %.3f ms per %s, %.1f MiB held, %.2f MiB exchanged, %s\n", 1e3 * p->predicted,
                 parts > 1 ? "batch" : "step", (f64)p->peak_bytes / 1048576.0, (f64)p->exchange_bytes / 1048576.0,
                 p->exact ? "exact" : "not exact");
        plan_choices(p, &text);
        if (netplan(p)->tried > 1) str_add(&text, "\n");
        return text_end(messages_line(p, &self->net, &sent, &text), &text, out);
    }
    struct js *o = js_object();
    js_put_text(o, "strategy", p->strategy);
    js_put_text(o, "machine", self->machine->name);
    js_put_i64(o, "rows", p->B);
    js_put_i64(o, "grains", p->ngrain);
    js_put_i64(o, "tasks", p->ntask);
    js_put_i64(o, "devices", p->ndevice);
    js_put_f64(o, "predicted_ms", 1e3 * p->predicted);
    js_put_i64(o, "peak_bytes", p->peak_bytes);
    js_put_i64(o, "exchange_bytes", p->exchange_bytes);
    js_put_i64(o, "message_bytes", sent.most);
    js_put_i64(o, "message_bytes_whole", sent.whole);
    js_put_bool(o, "exact", p->exact);
    js_put_i64(o, "plans_compared", netplan(p)->tried);
    put_choices(o, p);
    err e = js_text(o, &text, 2);
    js_free(o);
    return text_end(e, &text, out);
}

/* Slice counts that get a row of the table: that of the plan, and every fourth power of two while slices keep a minimum
 * length. A short window gets at least one, since `train` accepts it too. */
static i32 slice_counts(const struct stretto_plan *p, i32 count[CUTS]) {
    const i32 steps = forecast_steps(&p->spec);
    i32 n = 0, own = p->q.slices;
    for (i32 P = 4; n < CUTS - 1 && steps / P >= CUT_STEPS; P *= 4) {
        if (own > (n ? count[n - 1] : 1) && own < P) count[n++] = own;
        if (n < CUTS) count[n++] = P;
    }
    if (n < CUTS && own > (n ? count[n - 1] : 1)) count[n++] = own;
    if (n == 0 && steps > 1) count[n++] = steps < 8 ? 2 : 4;
    return n;
}

/* Predicts whole windows with every other strategy, and windows cut into time slices. */
static err compare_cuts(const struct stretto_plan *self, struct net *net, struct str *text) {
    struct plan_request whole = self->q, cut[CUTS];
    struct forecast_spec spec = self->spec;
    i32 count[CUTS], n = slice_counts(self, count);
    spec.cut.slices = 1;
    TRY(shape_net(self, &spec, &net[0], &whole));
    for (i32 i = 0; i < n; i++) {
        cut[i] = self->q;
        spec.cut.slices = count[i];
        cut[i].forgets = self->o.forgets > 0 ? (i32)self->o.forgets : imax(1, forecast_steps(&spec) / count[i] / 4);
        TRY(shape_net(self, &spec, &net[1 + i], &cut[i]));
    }
    TRY(plan_compare_sliced(&whole, cut, n, text));
    if (n > 0)
        str_addf(text, "w, the steps after which the model forgets its initial state, is %s\n",
                 self->o.forgets > 0 ? "as given" : "assumed: a quarter of a slice (--forgets STEPS)");
    return 0;
}

/* All times of the table are predictions. */
static void add_cost_model(const struct stretto_plan *self, struct str *text) {
    const struct device *d = &self->machine->device[0];
    const bool here = strcmp(self->o.machine, "auto") == 0;
    if (self->q.costs)
        str_add(text, "times follow from the measured times of tasks on this host; those of tasks that were not measured "
                      "(time slices) are predicted");
    else
        str_add(text, "times are predicted");
    str_addf(text, " by a cost model, at %.3g GF/s (%s) and %.3g GB/s (%s) a device\n", d->gflops,
             here ? "measured now" : "as described or assumed", d->gbytes, here ? "assumed" : "as described or assumed");
}

stretto_err stretto_plan_place(const stretto_plan *self, const char *method, char **out) {
    struct str text = {0};
    return text_end(plan_place(&self->q, method, &text), &text, out);
}

stretto_err stretto_plan_deal(stretto_config *config, char **out) {
    struct str text = {0};
    struct machine *m;
    NEW(m, 1);
    err e = machine_of(&config->o, m);
    if (e >= 0) e = deal_table(m, &text);
    mem_free(m);
    return text_end(e, &text, out);
}

stretto_err stretto_plan_compare(const stretto_plan *self, char **out) {
    struct str text = {0};
    struct net *net = NULL;
    const bool cut = forecast_can_slice(&self->spec);
    err e = cut ? mem_new((void **)&net, CUTS + 1, sizeof *net) : plan_compare(&self->q, &text);
    if (e >= 0 && net) e = compare_cuts(self, net, &text);
    if (e >= 0) add_cost_model(self, &text);
    mem_free(net);
    return text_end(e, &text, out);
}

stretto_err stretto_plan_save(const stretto_plan *self, const char *path) {
    struct str text = {0};
    plan_print(self->plan, &self->net, &text);
    plan_shape_line(&self->o, &text);
    return file_write_text(path, &text);
}

/* The predicted schedule of a plan as spans, one track per device. */
static err schedule(const struct stretto_plan *p, struct arena *a, struct span **out) {
    const struct plan *plan = p->plan;
    struct plan_span *when;
    ARENA_NEW(a, when, plan->ntask + 1);
    ARENA_NEW(a, *out, plan->ntask + 1);
    plan_schedule(plan, when);
    for (u32 i = 0; i < plan->ntask; i++) {
        char name[64];
        plan_task_name(plan, &p->net, i, name);
        (*out)[i] = (struct span){.name = arena_printf(a, "%s", name),
                                  .lane = arena_printf(a, "device %d", (i32)plan->task[i].device),
                                  .t0 = when[i].t0,
                                  .t1 = when[i].t1};
    }
    return 0;
}

stretto_err stretto_plan_draw(const stretto_plan *self, int svg, char **out) {
    struct str text = {0};
    struct arena a = {0};
    struct span *span;
    err e = 0;
    if (!svg) plan_draw_text(self->plan, TEXT_WIDTH, &text);
    else if ((e = schedule(self, &a, &span)) >= 0) svg_timeline(&text, span, self->plan->ntask, SVG_WIDTH, true);
    arena_free(&a);
    return text_end(e, &text, out);
}

/* The plan file and the wisdom entries used: as comments in the text (o NULL), or as JSON members. */
static err put_wisdom(const struct machine *m, struct str *text, struct js *o) {
    struct wisdom w;
    struct str line = {0};
    TRY(wisdom_open(m->cpu, &w));
    const char *where = w.off ? "off" : w.path ? w.path : "nowhere to keep it";
    struct js *list = o ? js_array() : NULL;
    if (!o) str_addf(text, "# wisdom: %s, %d answer%s%s%s\n", where, w.n, w.n == 1 ? "" : "s", w.damage[0] ? "; " : "", w.damage);
    for (i32 i = 0; i < w.n; i++) {
        line.len = 0;
        wisdom_line(&w.entry[i], &line);
        if (o) js_push(list, js_new_text(str_text(&line)));
        else str_addf(text, "# %s\n", str_text(&line));
    }
    if (o) {
        js_put_text(o, "wisdom", where);
        js_put(o, "answers", list);
    }
    err e = str_ok(&line);
    str_free(&line);
    wisdom_close(&w);
    return e;
}

stretto_err stretto_machine_info(int json, char **out) {
    struct machine *m;
    struct str text = {0};
    TRY(kern_init()); /* a STRETTO_ISA that this host cannot satisfy */
    NEW(m, 1);
    err e = machine_host(0, m);
    if (e >= 0 && !json) {
        machine_print(m, &text);
        devices_list(&text, NULL);
        e = put_wisdom(m, &text, NULL);
    } else if (e >= 0) {
        struct js *o = js_object();
        js_put_text(o, "processor", m->cpu);
        js_put_i64(o, "cores", m->ncore);
        js_put_i64(o, "memory", m->memory);
        js_put_i64(o, "cache_l2", m->cache_l2);
        js_put_i64(o, "cache_l3", m->cache_l3);
        js_put_text(o, "kernels", kern_best()->name);
        struct js *list = js_array();
        devices_list(NULL, list);
        js_put(o, "devices", list);
        e = put_wisdom(m, &text, o);
        if (e >= 0) e = js_text(o, &text, 2);
        js_free(o);
    }
    mem_free(m);
    return text_end(e, &text, out);
}
