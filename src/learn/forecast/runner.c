/* runner.c - a forecaster bound for forecasts: batches of rows through every member (runner.h).
 *
 * Members share one engine: it uses the weights of each in turn, for a chunk of rows at a time. */
#include <string.h>

#include "learn/forecast/runner.h"

void runner_free(struct runner *r) {
    if (r->own) r->engine.store.theta = r->own;
    engine_free(&r->engine);
    batcher_free(&r->batch);
    arena_free(&r->arena);
}

/* The network in a precision that these kernels can run. */
static err choose_net(struct runner *r, const struct series *s, const struct resources *use) {
    const struct forecaster *f = r->f;
    struct net *net;
    struct forecast_spec spec = f->spec;
    r->net = &f->net;
    if (f->nmember == 0) return 0;
    spec.precision = forecast_precision(f, use);
    spec.cut.slices = 1;
    if (spec.precision == f->spec.precision) return 0;
    ARENA_NEW(&r->arena, net, 1);
    r->net = net;
    return forecast_net(&spec, &f->shape, s, net);
}

static err bind_rows(const struct forecaster *f, const struct series *s, const struct resources *use, i32 B, struct runner *r) {
    *r = (struct runner){.f = f, .nq = head_outputs(&f->spec)};
    i32 h = f->spec.horizon;
    const struct resources whole = resources_whole(use);
    TRY(choose_net(r, s, use));
    B = engine_forward_rows(r->net, B);
    if (f->nmember > 0) TRY(engine_new(r->net, &whole, B, B, NULL, &r->engine));
    r->own = r->engine.store.theta;
    TRY(batcher_new(f, &f->net, &f->shape, s, use->kern, B, 1, &r->batch));
    r->batch.shows_base = true;
    ARENA_NEW(&r->arena, r->corr, (i64)B * r->nq * h);
    return row_out_new(f, s, &r->arena, &r->out);
}

/* A device that has no memory for so many rows may have it for fewer. */
err runner_new(const struct forecaster *f, const struct series *s, const struct resources *use, i32 B, struct runner *r) {
    const bool on_device = strcmp(use->machine->device[0].kind, "cpu") != 0;
    for (;; B /= 2) {
        const err e = bind_rows(f, s, use, B, r);
        if (e != -E601 || B < 2 || !on_device) return e;
        runner_free(r);
    }
}

/* Adds a member's output, [nout][B][q*seg + j], to corr. */
static void add_output(struct runner *r, const f32 *out, i32 rows) {
    const struct window_shape *p = &r->f->shape;
    i64 ld = round_up(p->out_seg * r->nq, LANES);
    f32 share = 1.f / (f32)r->f->nmember;
    for (i32 b = 0; b < rows; b++)
        for (i32 q = 0; q < r->nq; q++)
            for (i32 k = 0; k < p->horizon; k++) {
                i32 t = k / p->out_seg, j = k % p->out_seg;
                r->corr[((i64)b * r->nq + q) * p->horizon + k] +=
                    share * out[((i64)t * r->engine.forward_B + b) * ld + q * p->out_seg + j];
            }
}

static err members(struct runner *r, i32 rows) {
    const struct forecaster *f = r->f;
    memset(r->corr, 0, sizeof(f32) * (size_t)rows * (size_t)r->nq * (size_t)f->spec.horizon);
    i32 loss = f->net.nop - 1;
    for (i32 m = 0; m < f->nmember; m++) {
        step_lend_weights(r->engine.forward, f->theta[m]);
        struct step_args step = {.input = r->batch.slot[0].input, .loss_scale = 0};
        struct exec_result result;
        TRY(step_run(r->engine.forward, &step, &result));
        const f32 *out = step_buf(r->engine.forward, f->net.op[loss].spec.in[0]);
        TRY(step_failed(r->engine.forward));
        add_output(r, out, rows);
    }
    return 0;
}

struct forecast_row runner_row(const struct runner *r, i32 b) {
    const struct batch_slot *s = &r->batch.slot[0];
    return (struct forecast_row){.origin = s->origin[b],
                                 .col = s->col[b],
                                 .base = s->base + (i64)b * r->f->spec.horizon,
                                 .shift = s->shift[b],
                                 .div = s->div[b],
                                 .seen = s->seen[b]};
}

/* A network on its own forecasts from the centre of the window: its distance from the base is what the base lacks. */
static void from_base(struct runner *r, i32 rows) {
    const struct batch_slot *s = &r->batch.slot[0];
    const i64 h = r->f->spec.horizon;
    const i32 located = r->f->spec.family ? 1 : r->nq; /* of a distribution the first parameter */
    for (i32 b = 0; b < rows; b++)
        for (i32 q = 0; q < located; q++)
            for (i64 k = 0; k < h; k++) r->corr[((i64)b * r->nq + q) * h + k] += (s->shift[b] - s->base[b * h + k]) / s->div[b];
}

err runner_rows(struct runner *r, const struct window_set *set, i64 at, i32 *rows) {
    *rows = batch_fill_set(&r->batch, 0, set, at);
    TRY(batcher_failed(&r->batch));
    if (r->f->nmember == 0) return 0;
    TRY(members(r, *rows));
    if (forecast_averages(&r->f->spec)) from_base(r, *rows);
    return 0;
}
