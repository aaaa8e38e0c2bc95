/* steps.c - batches of a net that forecasts at every step: tiles of the series to train on, chunks of a walk.
 *
 *     rows   0 ..phase.. |------ tile 0 ------|------ tile 1 ------| rest        the phase is drawn anew for each epoch
 *     slices              [  0  |  1  |  2  ]                                    row = slice * windows + window, longest first
 *
 *     step t of a run that begins at row a reads row a + t, and forecasts from origin a + t + 1 on. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "learn/forecast/batch.h"

enum { ORIGINS = 256, READY_MOST = 1 << 24 }; /* origins per call of the base; floats of forecasts that are kept */

static struct slice_place place_of(const struct batcher *b, i32 r) {
    return forecast_slice(b->spec->context, b->spec->cut.slices, b->B, r);
}

static bool is_scored(const struct batcher *b, i64 origin) {
    return origin >= b->scored.first && origin < b->scored.end && (origin - b->scored.first) % b->scored.stride == 0;
}

/* Row r of a float buffer at step t. */
static f32 *at(const struct batcher *b, const struct batch_slot *s, i32 i, i32 t, i32 r) {
    return s->input[i] + ((i64)t * b->B + r) * buf_fp(&b->net->buf[i]);
}

static void fill_ids(const struct batcher *b, const struct batch_slot *s, i32 i, i32 r) {
    const struct buf *buf = &b->net->buf[i];
    i32 *ids = (i32 *)(void *)s->input[i];
    if (slice_ids(buf, place_of(b, r), r, ids)) return;
    for (i32 t = 0; t < buf->T; t++) {
        i32 code = t < s->seen[r] ? b->s->code[buf->item][s->origin[r] + t] : -1;
        ids[(i64)t * b->B + r] = code < 0 ? b->s->nword[buf->item] : code;
    }
}

static i32 fill_y(const struct batcher *b, const struct batch_slot *s, i32 i, i32 r) {
    i32 present = 0;
    for (i32 t = 0; t < b->net->buf[i].T; t++) {
        i64 origin = s->origin[r] + t + 1;
        bool there = t < s->seen[r] && is_scored(b, origin);
        f32 *y = at(b, s, i, t, r);
        for (i32 k = 0; k < b->shape->horizon; k++) {
            y[k] = there && origin + k < b->s->nrow ? series_target(b->s, s->col[r], origin + k) : (f32)NAN;
            present += !isnan(y[k]);
        }
    }
    return present;
}

/* Base forecasts from n <= ORIGINS consecutive origins, first ..: out [n][ld]; copied from b->ready if it holds them. */
static err bases(const struct batcher *b, i32 column, i64 first, i32 n, f32 *out, i64 ld) {
    i64 origin[ORIGINS];
    i32 col[ORIGINS], h = b->shape->horizon;
    for (i32 k = 0; k < n; k++) col[k] = column, origin[k] = first + k;
    if (!b->ready || first + n > b->nready) return base_predict_rows(b->base, b->s, n, col, origin, h, out, ld, b->kern);
    for (i32 k = 0; k < n; k++)
        memcpy(out + k * ld, b->ready + ((i64)column * b->nready + first + k) * h, sizeof *out * (size_t)h);
    return 0;
}

err batch_bases(struct batcher *b, i64 n) {
    i64 h = b->shape->horizon, floats = b->s->ntarget * n * h;
    f32 *ready;
    if (!b->base || forecast_averages(b->spec) || floats > READY_MOST) return 0;
    ARENA_SPILL(&b->arena, ready, floats);
    b->ready = NULL; /* of another base: all are made anew */
    for (i32 c = 0; c < b->s->ntarget; c++)
        for (i64 o = 0; o < n; o += ORIGINS) TRY(bases(b, c, o, (i32)lmin(ORIGINS, n - o), ready + (c * n + o) * h, h));
    b->ready = ready;
    b->nready = n;
    return 0;
}

/* Fills the base forecast of every scored origin; others are never read. */
static err fill_base(const struct batcher *b, const struct batch_slot *s, i32 i, i32 r) {
    i64 ld = (i64)b->B * buf_fp(&b->net->buf[i]), first = s->origin[r] + 1;
    if (!b->base) return 0; /* the storage is zero already */
    i32 from = (i32)lmin(s->seen[r], lmax(0, b->scored.first - first));
    i32 to = (i32)lmin(s->seen[r], lmax(0, b->scored.end - first));
    for (i32 t = from; t < to; t += ORIGINS) TRY(bases(b, s->col[r], first + t, imin(ORIGINS, to - t), at(b, s, i, t, r), ld));
    return 0;
}

static void fill_numbers(const struct batcher *b, const struct batch_slot *s, i32 i, i32 r) {
    const struct buf *buf = &b->net->buf[i];
    for (i32 t = 0; t < buf->T; t++) {
        f32 *to = at(b, s, i, t, r);
        i64 row = s->origin[r] + t;
        if (t >= s->seen[r])
            memset(to, 0, sizeof *to * (size_t)buf->F);
        else if (buf->role == INPUT_X)
            window_fill_step(b->shape, b->s, row, s->col[r], to);
        else
            window_fill_future(b->shape, b->s, row + 1, s->col[r], (struct window_dst){.p = to, .B = 1}, 0);
    }
}

/* Fills row r of every input except the states, which stream.c owns. */
static err fill_row(const struct batcher *b, struct batch_slot *s, i32 r) {
    for (i32 i = 0; i < b->net->nbuf; i++) {
        const struct buf *buf = &b->net->buf[i];
        if (!buf->input || buf->role == INPUT_STATE) continue;
        if (buf->role == INPUT_Y) s->present += fill_y(b, s, i, r);
        else if (!batch_lays_out(b, i, r)) continue;
        else if (buf->ids) fill_ids(b, s, i, r);
        else if (buf->role == INPUT_BASE) TRY(fill_base(b, s, i, r));
        else fill_numbers(b, s, i, r);
    }
    return 0;
}

static void fill_rows(struct batcher *b, i32 slot) {
    struct batch_slot *s = &b->slot[slot];
    err e = 0;
    s->present = 0;
    s->rows = b->B;
    for (i32 r = 0; r < b->B && e >= 0; r++) e = fill_row(b, s, r);
    if (e < 0) {
        b->failed = e;
        b->why = *err_last();
    }
}

/* First row of a tile. With spans, tiles come in the order of time; else each epoch visits every tile once, in a new order and
 * shifted by a new phase. */
static i64 tile_first(const struct batcher *b, i64 item) {
    i64 C = b->shape->context, rows = window_origins(&b->set) + C - 1, n = lmax(1, rows / C), room = lmax(0, rows - n * C);
    u32 epoch = (u32)(item / n);
    bool begins;
    if (b->spans > 0) return b->set.first - C + C * batch_in_span(b, n, item / b->nwin, (i32)(item % b->nwin), &begins);
    /* stored slice states belong to fixed tiles */
    f32 share = b->spec->cut.course.slice_rounds > 0 ? 0 : rng_uniform(b->seed, RNG_PHASE, epoch, 0);
    i64 phase = lmin(room, (i64)((f64)share * (f64)(room + 1)));
    return b->set.first - C + phase + C * rng_shuffle(b->seed, epoch, n, item % n);
}

void batch_fill_tiles(void *batcher, i64 k, i32 slot) {
    struct batcher *b = batcher;
    struct batch_slot *s = &b->slot[slot];
    i32 ncol = b->s->ntarget, W = b->nwin * ncol;
    s->batch = k;
    for (i32 r = 0; r < b->B; r++) {
        struct slice_place place = place_of(b, r);
        s->origin[r] = tile_first(b, k * b->nwin + r % W / ncol) + place.from;
        s->col[r] = r % ncol;
        s->seen[r] = place.steps;
    }
    fill_rows(b, slot);
}

i64 batch_cells_tiles(const struct batcher *b, i64 k) {
    i64 present = 0;
    for (i32 w = 0; w < b->nwin; w++) {
        const i64 first = tile_first(b, k * b->nwin + w) + 1;
        for (i64 o = first; o < first + b->shape->context; o++)
            for (i64 i = o; is_scored(b, o) && i < lmin(o + b->shape->horizon, b->s->nrow); i++)
                for (i32 c = 0; c < b->s->ntarget; c++) present += series_is_target(b->s, c, i);
    }
    return present;
}

void batch_fill_walk(struct batcher *b, i32 slot, i64 first) {
    struct batch_slot *s = &b->slot[slot];
    for (i32 r = 0; r < b->B; r++) {
        s->origin[r] = first;
        s->col[r] = r;
        s->seen[r] = (i32)lmin(b->shape->nseg, lmax(0, b->s->nrow - first));
    }
    fill_rows(b, slot);
}

void training_fill(struct batcher *b, i64 k, i32 slot) {
    (b->spec->decoder->every_step ? batch_fill_tiles : batch_fill_train)(b, k, slot);
}

i64 training_cells(const struct batcher *b, i64 k) {
    return b->spec->decoder->every_step ? batch_cells_tiles(b, k) : batch_cells(b, k);
}
