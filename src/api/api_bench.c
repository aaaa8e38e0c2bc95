/* api_bench.c - training steps per second of the configured network, by width and strategy, on random data. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/mem.h"
#include "learn/costs.h"
#include "learn/forecast/batch.h"
#include "learn/forecast/resolve.h"

enum { WIDTHS = 4, MANY_STEPS = 1 << 20, ROWS = 100000 };
/* Strategies that get a row of the table, where they fit.  SLICED: cuts windows into time slices. */
enum { SERIAL, DATA, UNIT, WAVE, PIPELINE, ASKED, SLICED, WAYS };

struct bench_row {
    i32 hidden, B;
    char strategy[64], walked[8]; /* walked: execution mode of the first recurrent layer: "fold", "ahead", "-" = the kernels
                                   * choose */
    f64 ms, predicted_ms, windows_per_s;
    bool chosen; /* the strategy of --parallel auto */
};

/* A net and its batch: windows, or slices of them. */
struct subject {
    struct net net;
    struct forecast_spec spec;
    i32 B, cells;        /* rows; forecast cells of each row */
    struct costs *costs; /* measured, for the predicted times */
};

static i32 slices_of(const struct subject *s) { return imax(1, s->spec.cut.slices); }

/* Fills the input buffers with random numbers. Category ids stay 0; slice inputs link the rows; targets are set where a
 * window has them. */
static err random_inputs(const struct subject *s, struct arena *a, f32 **input) {
    for (i32 i = 0; i < s->net.nbuf; i++) {
        const struct buf *b = &s->net.buf[i];
        if (!b->input) continue;
        i64 n = buf_floats(b, s->B), fp = buf_fp(b);
        bool ends = !s->spec.decoder->every_step && b->role == INPUT_Y; /* targets only in the rows of the last slices */
        ARENA_NEW(a, input[i], n);
        for (i64 k = 0; !b->ids && k < n; k++)
            if (k % fp < b->F)
                input[i][k] = ends && k / fp % s->B < s->B - s->B / slices_of(s) ? (f32)NAN
                                                                               : (f32)rng_normal(1, RNG_TEST, (u32)i, (u64)k);
        i32 *ids = (i32 *)(void *)input[i];
        for (i32 r = 0; b->ids && r < s->B; r++)
            slice_ids(b, forecast_slice(forecast_steps(&s->spec), slices_of(s), s->B, r), r, ids);
    }
    return 0;
}

static err time_steps(struct engine *e, f32 *const *input, i64 cells, i32 repeat, f64 *seconds) {
    struct step_args step = {.input = input, .loss_scale = 1.f / (f32)cells, .seed = 1, .clip = 1,
                             .hyper = {.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1, .step = 1}};
    struct exec_result r;
    *seconds = (f64)INFINITY;
    for (i32 k = 0; k < 2; k++) TRY(step_run(e->exec, &step, &r));
    for (i32 k = 0; k < repeat; k++) {
        i32 n = 0;
        f64 t0 = clock_now(), t = t0;
        while (n < 3 || (t - t0 < 0.1 && n < 1000)) {
            TRY(step_run(e->exec, &step, &r));
            n++;
            t = clock_now();
        }
        *seconds = dmin(*seconds, (t - t0) / n);
    }
    return 0;
}

static struct resources uses_of(const struct subject *s, const struct run_context *ctx) {
    struct resources use = ctx->use;
    use.costs = s->costs;
    use.slices = s->spec.cut.slices;
    use.course = s->spec.cut.course;
    return use;
}

static err bench_one(const struct subject *s, const struct run_context *ctx, i32 repeat, struct bench_row *row) {
    struct engine engine;
    struct resources use = uses_of(s, ctx);
    struct arena a = {0};
    f32 *input[NET_BUFS] = {0};
    f64 seconds = 0;
    use.parallel = row->strategy;
    use.steps = MANY_STEPS; /* enough steps for autotuning to measure */
    TRY(engine_new(&s->net, &use, s->B, 0, optim_find("adam"), &engine));
    net_weights_init(&s->net, 1, engine.store.theta);
    err e = random_inputs(s, &a, input);
    if (e >= 0) e = time_steps(&engine, input, (i64)s->B * s->cells, repeat, &seconds);
    snprintf(row->strategy, sizeof row->strategy, "%s", engine.plan->strategy);
    snprintf(row->walked, sizeof row->walked, "%s", plan_walked(engine.plan));
    row->B = s->B;
    row->ms = 1e3 * seconds;
    row->predicted_ms = 1e3 * engine.plan->predicted;
    row->windows_per_s = s->B / slices_of(s) / seconds;
    arena_free(&a);
    engine_free(&engine);
    return e;
}

/* The expression of a row; false: it has none. */
static bool strategy_row(i32 k, const struct options *o, const struct forecast_spec *spec, i32 threads, char *out, size_t size) {
    static const char *const cut[] = {"serial", "data", "unit", "wave", "pipeline"};
    if (k == SLICED) snprintf(out, size, "time");
    else if (k == ASKED) snprintf(out, size, "%s", o->parallel);
    else snprintf(out, size, k == SERIAL ? "%s" : "%s:%d", cut[k], threads);
    if (k == SLICED) return spec->cut.slices > 1;
    if (k == ASKED) return spec->cut.slices <= 1;
    return k == SERIAL || threads > 1;
}

static err subject_of(const struct options *o, const struct forecast_spec *spec, i32 slices, struct subject *s) {
    struct series shape = {.nrow = 0, .ncol = (i32)o->columns, .ntarget = (i32)o->columns, .freq = {.season = 24}};
    struct window_shape p;
    i32 nwin;
    s->spec = *spec;
    s->spec.cut.slices = slices;
    TRY(forecast_shape(&s->spec, &shape, 0, &p));
    TRY(forecast_net(&s->spec, &p, &shape, &s->net));
    const bool tiles = spec->decoder->every_step && !opt_given(o, OPT_batch);
    const i64 windows = tiles ? lmax(1, forecast_epoch(spec, &shape, ROWS / 5 * 4)) : spec->batch;
    s->cells = p.horizon * (spec->decoder->every_step ? ceil_div(p.nseg, slices) : 1);
    return forecast_rows(&s->spec, windows, shape.ntarget, &nwin, &s->B);
}

/* The name of the plan of an expression. */
static err name_of(const struct subject *s, const struct run_context *ctx, char *strategy, size_t size) {
    struct resources use = uses_of(s, ctx);
    struct plan *p;
    use.parallel = strategy;
    const struct plan_request q = engine_request(&s->net, &use, s->B, optim_find("adam"));
    TRY(plan_make(&q, &p));
    snprintf(strategy, size, "%s", p->strategy);
    plan_free(p);
    return 0;
}

/* Measures a row, unless one from `from` on has measured its plan already.  *n: rows so far. */
static err bench_row(const struct subject *s, const struct run_context *ctx, i32 repeat, struct bench_row *rows, i32 from,
                     i32 *n) {
    struct bench_row *row = &rows[*n];
    char name[sizeof row->strategy];
    snprintf(name, sizeof name, "%s", row->strategy);
    err e = name_of(s, ctx, name, sizeof name);
    for (i32 i = from; i < *n && e >= 0; i++)
        if (strcmp(rows[i].strategy, name) == 0) return 0;
    if (e >= 0) e = bench_one(s, ctx, repeat, row);
    if (e >= 0) (*n)++;
    if (e != -E401 || *n == from) return e;
    err_clear(); /* the strategy does not fit this net: no row */
    return 0;
}

/* Marks the row of the strategy that --parallel auto would take. */
static err mark_chosen(const struct subject *s, const struct run_context *ctx, struct bench_row *from,
                       const struct bench_row *end) {
    char name[sizeof from->strategy] = "auto";
    TRY(name_of(s, ctx, name, sizeof name));
    for (; from < end; from++) from->chosen = strcmp(from->strategy, name) == 0;
    return 0;
}

static err bench_ways(struct options *o, const struct run_context *ctx, const struct forecast_spec *spec, struct subject *s,
                      struct bench_row *rows, i32 *n) {
    const i32 from = *n;
    for (i32 k = 0; k < WAYS; k++) {
        struct bench_row *row = &rows[*n];
        *row = (struct bench_row){.hidden = spec->hidden};
        if (!strategy_row(k, o, spec, ctx->machine->ndevice, row->strategy, sizeof row->strategy)) continue;
        if (k == SERIAL || k == SLICED) {
            TRY(subject_of(o, spec, k == SLICED ? spec->cut.slices : 1, s));
            struct resources use = uses_of(s, ctx);
            use.steps = MANY_STEPS;
            TRY(costs_open(&s->net, &use, s->B, optim_find("adam"), COSTS_BENCH, s->costs));
        }
        TRY(bench_row(s, ctx, (i32)o->repeat, rows, from, n));
    }
    return mark_chosen(s, ctx, rows + from, rows + *n);
}

static err bench_width(struct options *o, const struct run_context *ctx, const struct forecast_spec *spec, i32 hidden,
                       struct bench_row *rows, i32 *n) {
    struct forecast_spec wide = *spec;
    struct subject *s;
    wide.hidden = hidden;
    NEW(s, 1);
    s->costs = mem_alloc(sizeof *s->costs);
    err e = s->costs ? bench_ways(o, ctx, &wide, s, rows, n) : -E601;
    mem_free(s->costs);
    mem_free(s);
    return e;
}

static err bench_all(struct options *o, const struct run_context *ctx, struct bench_row *rows, i32 *n) {
    struct forecast_spec spec;
    struct split split = {0};
    struct series shape = {.nrow = ROWS, .ncol = (i32)o->columns, .ntarget = (i32)o->columns, .freq = {.season = 24}};
    if (opt_given(o, OPT_batch) && opt_given(o, OPT_context) && !opt_is_auto(o, OPT_context))
        shape.nrow = lmax(ROWS, 2 * o->batch * o->context); /* enough rows for the given batch */
    TRY(need_forecaster(o, "bench"));
    TRY(resolve_forecast(o, &shape, NULL, &spec, &split));
    if (opt_given(o, OPT_hidden)) return bench_width(o, ctx, &spec, spec.hidden, rows, n);
    for (i32 w = 0; w < WIDTHS; w++) TRY(bench_width(o, ctx, &spec, 32 << w, rows, n));
    return 0;
}

static err show(const struct options *o, const struct run_context *ctx, const struct bench_row *rows, i32 n, int json,
                struct str *out) {
    if (!json) {
        const struct device_wish *on = ctx->devices.n > 0 ? &ctx->devices.at[0] : NULL;
        str_addf(out, "%s, ", ctx->machine->cpu);
        if (on && strcmp(on->kind, "cpu") != 0) str_addf(out, "device %s:%d, ", on->kind, on->card);
        else str_addf(out, "%s kernels, ", ctx->use.kern->name);
        str_addf(out, "%s %lldx_, context %lld, horizon %lld\n", o->cell, (long long)o->layers, (long long)o->context,
                 (long long)o->horizon);
        str_addf(out, "%8s %8s  %-14s %-6s %10s %12s %14s\n", "hidden", "rows", "strategy", "mode", "step ms", "predicted",
                 "windows/s");
        for (i32 i = 0; i < n; i++)
            str_addf(out, "%8d %8d  %-14s %-6s %10.3f %12.3f %14.*f%s\n", rows[i].hidden, rows[i].B, rows[i].strategy,
                     rows[i].walked, rows[i].ms, rows[i].predicted_ms, rows[i].windows_per_s < 100 ? 1 : 0,
                     rows[i].windows_per_s, rows[i].chosen ? "  auto" : "");
        return 0;
    }
    struct js *list = js_array();
    for (i32 i = 0; i < n; i++) {
        struct js *r = js_object();
        js_put_i64(r, "hidden", rows[i].hidden);
        js_put_i64(r, "rows", rows[i].B);
        js_put_text(r, "strategy", rows[i].strategy);
        js_put_text(r, "walked", rows[i].walked);
        js_put_f64(r, "step_ms", rows[i].ms);
        js_put_f64(r, "predicted_ms", rows[i].predicted_ms);
        js_put_f64(r, "windows_per_s", rows[i].windows_per_s);
        js_put_bool(r, "auto", rows[i].chosen);
        js_push(list, r);
    }
    err e = js_text(list, out, 2);
    js_free(list);
    return e;
}

stretto_err stretto_bench(stretto_config *config, int json, char **out) {
    struct options o;
    struct run_context ctx = {0};
    struct bench_row rows[WAYS * WIDTHS + 1] = {0};
    struct str text = {0};
    i32 n = 0;
    err e = opt_copy(&o, &config->o);
    if (e >= 0) e = run_context_open(&o, NULL, NULL, false, &ctx);
    if (e >= 0) e = bench_all(&o, &ctx, rows, &n);
    if (e >= 0) e = show(&o, &ctx, rows, n, json, &text);
    run_context_close(&ctx);
    opt_free(&o);
    return text_end(e, &text, out);
}
