/* forecast_run.c - forecasts of many windows: batches of rows through every member, streamed to a callback in order.
 *
 * Members share one engine: the weights of each are put into its store in turn, for a chunk of rows at a time. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/forecast_batch.h"

enum { ROWS = 448 };

struct runner {
    const struct forecaster *f;
    const struct net *net; /* of the forecaster, or the same in fp32 */
    struct engine engine;
    struct batcher batch;
    f32 *corr;      /* [B][nq][horizon] mean correction over members, in units of div */
    f32 *mean, *both, *band;
    i32 nq;
    struct arena arena;
};

static void runner_free(struct runner *r) {
    engine_free(&r->engine);
    batcher_free(&r->batch);
    arena_free(&r->arena);
}

/* The network as these kernels can run it: a model that was trained in bf16 gives its forecasts in fp32 elsewhere. */
static err choose_net(struct runner *r, const struct series *s, const struct resources *use) {
    const struct forecaster *f = r->f;
    struct net *net;
    struct forecast_spec spec = f->spec;
    r->net = &f->net;
    if (f->nmember == 0 || spec.precision == PREC_F32 || net_runs(&f->net, use->kern) == 0) return 0;
    event_note(use->events, EVENT_NOTE,
               "the model was trained in bf16, which the kernels \"%s\" have not: these forecasts are made in fp32",
               use->kern->name);
    spec.precision = PREC_F32;
    ARENA_NEW(&r->arena, net, 1);
    r->net = net;
    return forecast_net(&spec, &f->shape, s, net);
}

static err runner_new(const struct forecaster *f, const struct series *s, const struct resources *use, i32 B, struct runner *r) {
    *r = (struct runner){.f = f, .nq = imax(1, f->spec.nquantile)};
    i32 h = f->spec.horizon;
    TRY(choose_net(r, s, use));
    if (f->nmember > 0) TRY(engine_new(r->net, use, B, B, NULL, NULL, NULL, &r->engine));
    TRY(batcher_new(f, s, use->kern, B, 1, &r->batch));
    ARENA_NEW(&r->arena, r->corr, (i64)B * r->nq * h);
    ARENA_NEW(&r->arena, r->mean, h);
    ARENA_NEW(&r->arena, r->both, h);
    ARENA_NEW(&r->arena, r->band, (i64)h * imax(1, f->spec.nband));
    return 0;
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
        memcpy(r->engine.store.theta, f->theta[m], sizeof(f32) * (size_t)f->net.ntheta);
        struct exec_step step = {.input = r->batch.slot[0].input, .loss_scale = 0};
        struct exec_result result;
        TRY(exec_step(r->engine.forward, &step, &result));
        add_output(r, exec_buf(r->engine.forward, f->net.op[loss].spec.in[0]), rows);
    }
    return 0;
}

static void sort_small(f32 *v, i32 n) {
    for (i32 i = 1; i < n; i++)
        for (i32 j = i; j > 0 && v[j] < v[j - 1]; j--) {
            f32 t = v[j];
            v[j] = v[j - 1];
            v[j - 1] = t;
        }
}

/* Index of the head's quantile nearest to the median: the point forecast of a quantile head. */
static i32 median_of(const struct forecast_spec *s) {
    i32 best = 0;
    for (i32 q = 1; q < s->nquantile; q++)
        if (fabs(s->band[q] - 0.5) < fabs(s->band[best] - 0.5)) best = q;
    return best;
}

/* Bands of one step: the head's own quantiles weighted by a, residual quantiles of validation for the rest. */
static void bands(const struct runner *r, const struct forecast_row *row, const f32 *corr, i32 k) {
    const struct forecast_spec *s = &r->f->spec;
    const f32 *spread = r->f->spread ? r->f->spread + (i64)row->col * s->nband * s->horizon : NULL;
    f32 a = (f32)r->f->weight, *out = r->band + (i64)k * s->nband;
    for (i32 q = 0; q < s->nband; q++) {
        f32 around = spread ? spread[(i64)q * s->horizon + k] * row->div : 0.f;
        if (s->nquantile > 0) out[q] = row->base[k] + a * row->div * corr[(i64)q * s->horizon + k] + (1.f - a) * around;
        else out[q] = row->mean[k] + around;
    }
    sort_small(out, s->nband);
}

static err emit_row(struct runner *r, i32 b, forecast_row_fn *fn, void *self) {
    const struct forecaster *f = r->f;
    const struct batch_slot *s = &r->batch.slot[0];
    i32 h = f->spec.horizon;
    const f32 *base = s->base + (i64)b * h, *corr = r->corr + (i64)b * r->nq * h;
    const f32 *point = f->spec.nquantile > 0 ? corr + (i64)median_of(&f->spec) * h : corr;
    for (i32 k = 0; k < h; k++) {
        f32 extra = f->nmember > 0 ? s->div[b] * point[k] : 0.f;
        r->both[k] = base[k] + extra;
        r->mean[k] = base[k] + (f32)f->weight * extra;
    }
    struct forecast_row row = {.origin = s->origin[b],
                               .col = s->col[b],
                               .mean = r->mean,
                               .base = base,
                               .both = r->both,
                               .band = f->spec.nband ? r->band : NULL,
                               .shift = s->shift[b],
                               .div = s->div[b],
                               .seen = s->seen[b]};
    for (i32 k = 0; k < h; k++) bands(r, &row, corr, k);
    return fn(self, &row);
}

static err run_set(struct runner *r, const struct window_set *set, forecast_row_fn *fn, void *self) {
    i64 n = window_origins(set) * r->batch.s->ntarget;
    for (i64 i = 0; i < n; i += r->batch.B) {
        i32 rows = batch_fill_set(&r->batch, 0, set, i);
        if (r->batch.failed < 0) {
            err_put(&r->batch.why);
            return r->batch.failed;
        }
        if (r->f->nmember > 0) TRY(members(r, rows));
        for (i32 b = 0; b < rows; b++) TRY(emit_row(r, b, fn, self));
    }
    return 0;
}

err forecast_windows(const struct forecaster *f, const struct series *s, const struct window_set *set,
                     const struct resources *use, forecast_row_fn *fn, void *self) {
    i64 n = window_origins(set) * s->ntarget;
    if (n <= 0) return 0;
    struct runner r;
    err e = runner_new(f, s, use, (i32)lmin(n, ROWS), &r);
    if (e >= 0) e = run_set(&r, set, fn, self);
    runner_free(&r);
    return e;
}
