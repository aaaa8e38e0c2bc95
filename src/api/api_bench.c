/* api_bench.c - training steps per second of the configured network, by width and strategy, on made-up numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"

enum { WIDTHS = 4, WAYS = 3, MANY_STEPS = 1 << 20, ROWS = 100000 };

struct bench_row {
    i32 hidden, B;
    char strategy[32], walked[8]; /* how the first recurrent layer is walked: "fold", "ahead", "-" = the kernels' guess */
    f64 ms, predicted_ms, windows_per_s;
};

/* Input buffers full of random numbers; category ids stay 0. */
static err random_inputs(const struct net *net, i32 B, struct arena *a, f32 **input) {
    for (i32 i = 0; i < net->nbuf; i++) {
        const struct buf *b = &net->buf[i];
        if (!b->input) continue;
        i64 n = buf_floats(b, B), fp = buf_fp(b);
        ARENA_NEW(a, input[i], n);
        for (i64 k = 0; !b->ids && k < n; k++)
            if (k % fp < b->F) input[i][k] = (f32)rng_normal(1, RNG_TEST, (u32)i, (u64)k);
    }
    return 0;
}

static err time_steps(struct engine *e, f32 *const *input, i64 cells, i32 repeat, f64 *seconds) {
    struct exec_step step = {.input = input, .loss_scale = 1.f / (f32)cells, .seed = 1, .clip = 1,
                             .hyper = {.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .grad_scale = 1, .step = 1}};
    struct exec_result r;
    *seconds = (f64)INFINITY;
    for (i32 k = 0; k < 2; k++) TRY(exec_step(e->exec, &step, &r));
    for (i32 k = 0; k < repeat; k++) {
        i32 n = 0;
        f64 t0 = clock_now(), t = t0;
        while (n < 3 || (t - t0 < 0.1 && n < 1000)) {
            TRY(exec_step(e->exec, &step, &r));
            n++;
            t = clock_now();
        }
        *seconds = dmin(*seconds, (t - t0) / n);
    }
    return 0;
}

static err bench_one(const struct net *net, const struct workshop *shop, i32 B, i32 cells_per_row, i32 repeat,
                     struct bench_row *row) {
    struct engine engine;
    struct resources use = shop->use;
    struct arena a = {0};
    f32 *input[NET_BUFS] = {0};
    f64 seconds = 0;
    use.parallel = row->strategy;
    use.steps = MANY_STEPS; /* who asks for the speed may wait for the wisdom */
    TRY(engine_new(net, &use, B, B, optim_find("adam"), NULL, NULL, &engine));
    net_weights_init(net, 1, engine.store.theta);
    err e = random_inputs(net, B, &a, input);
    if (e >= 0) e = time_steps(&engine, input, (i64)B * cells_per_row, repeat, &seconds);
    snprintf(row->strategy, sizeof row->strategy, "%.31s", engine.plan->strategy);
    snprintf(row->walked, sizeof row->walked, "%s", plan_walked(engine.plan));
    row->B = B;
    row->ms = 1e3 * seconds;
    row->predicted_ms = 1e3 * engine.plan->predicted;
    row->windows_per_s = B / seconds;
    arena_free(&a);
    engine_free(&engine);
    return e;
}

/* The ways to share out a step that are worth a row: rows where there are enough of them, else units. */
static bool way(i32 k, i32 B, i32 threads, char *out, size_t size) {
    bool rows = ceil_div(B, plan_grain(B)) >= threads;
    snprintf(out, size, k == 0 ? "serial" : k == 1 ? "data_sync:%d" : "unit_split", threads);
    return k == 0 || (threads > 1 && rows == (k == 1));
}

static err bench_width(struct options *o, const struct workshop *shop, i32 hidden, struct bench_row *rows, i32 *n) {
    struct series shape = {.nrow = 0, .ncol = (i32)o->columns, .ntarget = (i32)o->columns, .freq = {.season = 24}};
    struct forecast_spec spec;
    struct window_shape p;
    struct net *net;
    TRY(spec_of(o, &spec));
    spec.hidden = hidden;
    TRY(forecast_shape(&spec, &shape, &p));
    NEW(net, 1);
    err e = forecast_net(&spec, &p, &shape, net);
    i32 nwin, B = 0;
    i64 windows = spec.all_steps ? lmax(1, forecast_epoch(&spec, ROWS / 5 * 4)) : spec.batch;
    if (e >= 0) e = forecast_rows(&spec, windows, shape.ntarget, &nwin, &B);
    for (i32 k = 0; e >= 0 && k < WAYS; k++) {
        struct bench_row *row = &rows[*n];
        row->hidden = hidden;
        if (!way(k, B, shop->machine->ndevice, row->strategy, sizeof row->strategy)) continue;
        e = bench_one(net, shop, B, p.horizon * (spec.all_steps ? p.nseg : 1), (i32)o->repeat, row);
        if (e == -E401 && k > 0) e = 0, err_clear(); /* it does not fit: no row */
        else (*n)++;
    }
    mem_free(net);
    return e;
}

static err bench_all(struct options *o, const struct workshop *shop, struct bench_row *rows, i32 *n) {
    struct series shape = {.nrow = ROWS, .ncol = (i32)o->columns, .ntarget = (i32)o->columns, .freq = {.season = 24}};
    struct forecast_spec spec;
    struct split split;
    TRY(resolve_forecast(o, &shape, NULL, &spec, &split));
    if (opt_given(o, OPT_hidden)) return bench_width(o, shop, spec.hidden, rows, n);
    for (i32 w = 0; w < WIDTHS; w++) TRY(bench_width(o, shop, 32 << w, rows, n));
    return 0;
}

static err show(const struct options *o, const struct workshop *shop, const struct bench_row *rows, i32 n, int json,
                struct str *out) {
    if (!json) {
        str_addf(out, "%s, %s kernels, %s %lldx_, context %lld, horizon %lld\n", shop->machine->cpu, shop->use.kern->name,
                 o->cell, (long long)o->layers, (long long)o->context, (long long)o->horizon);
        str_addf(out, "%8s %8s  %-14s %-6s %10s %12s %14s\n", "hidden", "rows", "strategy", "walked", "step ms", "predicted",
                 "windows/s");
        for (i32 i = 0; i < n; i++)
            str_addf(out, "%8d %8d  %-14s %-6s %10.3f %12.3f %14.0f\n", rows[i].hidden, rows[i].B, rows[i].strategy,
                     rows[i].walked, rows[i].ms, rows[i].predicted_ms, rows[i].windows_per_s);
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
        js_push(list, r);
    }
    err e = js_text(list, out, 2);
    js_free(list);
    return e;
}

stretto_err stretto_bench(stretto_config *config, int json, char **out) {
    struct options o;
    struct workshop shop = {0};
    struct bench_row rows[WAYS * WIDTHS] = {0};
    struct str text = {0};
    i32 n = 0;
    err e = opt_copy(&o, &config->o);
    if (e >= 0) e = workshop_open(&o, NULL, NULL, &shop);
    if (e >= 0) e = bench_all(&o, &shop, rows, &n);
    if (e >= 0) e = show(&o, &shop, rows, n, json, &text);
    workshop_close(&shop);
    opt_free(&o);
    return text_end(e, &text, out);
}
