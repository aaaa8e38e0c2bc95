/* stream.c - runs a series through the network in chunks of rows and carries the states of every member from chunk to chunk. */
#include "learn/forecast/stream.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/forecast/out.h"

enum { CHUNK = 1024, CHUNK_LEAST = 16, CHUNK_ROWS = 8192 }; /* rows of the series; of the batch, columns included */
enum { LAYERS_MAX = 8 };

struct stream {
    const struct forecaster *f;
    const struct series *s;
    struct window_shape shape;   /* nseg = rows of a chunk */
    struct net net;
    struct engine engine;        /* not bound if no member runs */
    struct batcher batch;
    i32 nlayer, from[LAYERS_MAX], end[LAYERS_MAX]; /* buffers: state in, state out */
    i64 floats;                  /* states of a member */
    f32 *state;                  /* [members][floats] */
    f32 *corr;                   /* [nseg][ncol][nq * horizon], mean over the members */
    i32 *seen;                   /* [ncol] targets met so far */
    i32 members;
    struct row_out out;
    struct arena arena;
};

/* Finds the input buffers of the states and the buffers of the final states. */
static void find_states(struct stream *st) {
    for (i32 l = 0; l < st->net.nop; l++) {
        const struct op *op = &st->net.op[l];
        i32 in = op->end >= 0 ? op->spec.in[1] : -1;
        if (in < 0 || st->nlayer == LAYERS_MAX) continue;
        st->from[st->nlayer] = in;
        st->end[st->nlayer++] = op->end;
        st->floats += buf_floats(&st->net.buf[in], st->batch.B);
    }
}

static i32 chunk_rows(i32 wanted, const struct forecaster *f, i32 ncol) {
    if (wanted > 0) return wanted;
    i32 most = imin(CHUNK, imax(CHUNK_LEAST, CHUNK_ROWS / imax(1, ncol)));
    return imin(most, imax(CHUNK_LEAST, f->spec.context));
}

static err prepare(struct stream *st, const struct resources *use, i32 chunk, i32 members) {
    const struct forecaster *f = st->f;
    struct forecast_spec spec = f->spec;
    struct resources serial = resources_whole(use);
    i32 ncol = st->s->ntarget, nq = head_outputs(&spec);
    if (members > 0 && f->net.nop > 0) spec.precision = forecast_precision(f, use);
    st->shape = f->shape;
    st->shape.nseg = chunk_rows(chunk, f, ncol);
    st->members = members;
    TRY(forecast_stream_net(&spec, &st->shape, st->s, &st->net));
    if (members > 0) TRY(engine_new(&st->net, &serial, ncol, ncol, NULL, &st->engine));
    TRY(batcher_new(f, &st->net, &st->shape, st->s, use->kern, ncol, 1, &st->batch));
    find_states(st);
    ARENA_NEW(&st->arena, st->state, imax(1, members) * st->floats);
    ARENA_NEW(&st->arena, st->corr, (i64)st->shape.nseg * ncol * nq * spec.horizon);
    ARENA_NEW(&st->arena, st->seen, ncol);
    return row_out_new(f, st->s, &st->arena, &st->out);
}

err stream_new(const struct forecaster *f, const struct series *s, const struct resources *use, i32 chunk, i32 members,
               struct stream **out) {
    struct stream *st;
    NEW(st, 1);
    st->f = f;
    st->s = s;
    err e = prepare(st, use, chunk, members);
    if (e < 0) {
        stream_free(st);
        return e;
    }
    *out = st;
    return 0;
}

void stream_free(struct stream *st) {
    if (!st) return;
    engine_free(&st->engine);
    batcher_free(&st->batch);
    arena_free(&st->arena);
    mem_free(st);
}

i64 stream_bytes(const struct stream *st) {
    return (i64)sizeof *st + st->batch.arena.used + st->arena.used +
           (st->engine.forward ? engine_planned_bytes(&st->engine) : 0);
}

/* --- the walk --- */

static i64 first_row(const struct stream *st, const struct window_set *set) { return lmax(0, set->first - st->shape.context); }
static i64 end_row(const struct window_set *set) { return window_origin(set, window_origins(set) - 1); } /* the last origin */

static void begin(struct stream *st, const struct window_set *set) {
    memset(st->state, 0, sizeof(f32) * (size_t)(imax(1, st->members) * st->floats));
    memset(st->seen, 0, sizeof *st->seen * (size_t)st->batch.B);
    st->batch.scored = *set;
}

static err fill(struct stream *st, i64 row) {
    batch_fill_walk(&st->batch, 0, row);
    return batcher_failed(&st->batch);
}

/* Runs member m over the filled chunk; theta [ntheta]. */
static err run(struct stream *st, i32 m, const f32 *theta, struct exec_result *r) {
    f32 *state = st->state + m * st->floats;
    struct step_args step = {.input = st->batch.slot[0].input, .loss_scale = 1};
    memcpy(st->engine.store.theta, theta, sizeof(f32) * (size_t)st->net.ntheta);
    for (i32 k = 0; k < st->nlayer; k++) {
        i64 n = buf_floats(&st->net.buf[st->from[k]], st->batch.B);
        memcpy(st->batch.slot[0].input[st->from[k]], state, sizeof(f32) * (size_t)n);
        state += n;
    }
    TRY(step_run(st->engine.forward, &step, r));
    state = st->state + m * st->floats;
    for (i32 k = 0; k < st->nlayer; k++) {
        i64 n = buf_floats(&st->net.buf[st->from[k]], st->batch.B);
        memcpy(state, step_buf(st->engine.forward, st->end[k]), sizeof(f32) * (size_t)n);
        state += n;
    }
    return step_failed(st->engine.forward);
}

err stream_loss(struct stream *st, const f32 *theta, const struct window_set *set, f64 *loss) {
    f64 sum = 0;
    i64 cells = 0;
    *loss = (f64)NAN;
    if (window_origins(set) <= 0) return 0;
    begin(st, set);
    for (i64 row = first_row(st, set); row < end_row(set); row += st->shape.nseg) {
        struct exec_result r;
        TRY(fill(st, row));
        TRY(run(st, 0, theta, &r));
        sum += r.loss;
        cells += st->batch.slot[0].present;
    }
    if (cells) *loss = sum / (f64)cells;
    return 0;
}

/* The mean output of all members over the chunk. */
static err members(struct stream *st) {
    const struct forecaster *f = st->f;
    i64 width = (i64)head_outputs(&f->spec) * f->spec.horizon, rows = (i64)st->shape.nseg * st->batch.B;
    f32 share = 1.f / (f32)imax(1, f->nmember);
    memset(st->corr, 0, sizeof(f32) * (size_t)(rows * width));
    for (i32 m = 0; m < f->nmember; m++) {
        struct exec_result r;
        TRY(run(st, m, f->theta[m], &r));
        const f32 *out = step_buf(st->engine.forward, st->net.op[st->net.nop - 1].spec.in[0]);
        TRY(step_failed(st->engine.forward));
        i64 ld = round_up64(width, LANES);
        for (i64 i = 0; i < rows; i++)
            for (i64 k = 0; k < width; k++) st->corr[i * width + k] += share * out[i * ld + k];
    }
    return 0;
}

/* Outputs the forecasts of origins row + t + 1. */
static err emit(struct stream *st, i64 row, i32 t, forecast_row_fn *fn, void *self) {
    i32 ncol = st->batch.B, base = forecast_find_input(&st->net, INPUT_BASE);
    i64 origin = row + t + 1, h = st->f->spec.horizon, width = head_outputs(&st->f->spec) * h;
    const struct window_set *set = &st->batch.scored;
    bool wanted = origin >= set->first && origin < set->end && (origin - set->first) % set->stride == 0;
    for (i32 c = 0; c < ncol; c++) {
        i64 at = (i64)t * ncol + c;
        st->seen[c] += series_is_target(st->s, c, origin - 1);
        if (!wanted) continue;
        struct forecast_row part = {.origin = origin,
                                    .col = c,
                                    .base = st->batch.slot[0].input[base] + at * buf_fp(&st->net.buf[base]),
                                    .div = 1,
                                    .seen = st->seen[c]};
        TRY(row_out_emit(&st->out, part, st->corr + at * width, fn, self));
    }
    return 0;
}

static err walk(struct stream *st, const struct window_set *set, forecast_row_fn *fn, void *self) {
    begin(st, set);
    for (i64 row = first_row(st, set); row < end_row(set); row += st->shape.nseg) {
        i32 steps = (i32)lmin(st->shape.nseg, end_row(set) - row);
        TRY(fill(st, row));
        if (st->f->nmember > 0) TRY(members(st));
        for (i32 t = 0; t < steps; t++) TRY(emit(st, row, t, fn, self));
    }
    return 0;
}

err forecast_stream(const struct forecaster *f, const struct series *s, const struct window_set *set, const struct resources *use,
                    i32 chunk, forecast_row_fn *fn, void *self) {
    struct stream *st;
    if (window_origins(set) <= 0) return 0;
    TRY(stream_new(f, s, use, chunk, f->nmember, &st));
    err e = walk(st, set, fn, self);
    stream_free(st);
    return e;
}
