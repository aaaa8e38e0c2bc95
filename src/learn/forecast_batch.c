/* forecast_batch.c - fills the input buffers of a net from windows. */
#include "learn/forecast_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static err new_slot(struct batcher *b, i32 horizon, struct batch_slot *s) {
    for (i32 i = 0; i < b->net->nbuf; i++)
        if (b->net->buf[i].input) ARENA_NEW(&b->arena, s->input[i], buf_floats(&b->net->buf[i], b->B));
    ARENA_NEW(&b->arena, s->origin, b->B);
    ARENA_NEW(&b->arena, s->col, b->B);
    ARENA_NEW(&b->arena, s->shift, b->B);
    ARENA_NEW(&b->arena, s->div, b->B);
    ARENA_NEW(&b->arena, s->seen, b->B);
    ARENA_NEW(&b->arena, s->base, (i64)b->B * horizon);
    return 0;
}

err batcher_new(const struct forecaster *f, const struct net *net, const struct window_shape *shape, const struct series *s,
                const struct kern *kern, i32 B, i32 nslot, struct batcher *out) {
    *out = (struct batcher){
        .s = s, .spec = &f->spec, .shape = shape, .net = net, .base = f->base, .kern = kern, .B = B, .nslot = nslot};
    for (i32 i = 0; i < nslot; i++) {
        err e = new_slot(out, f->spec.horizon, &out->slot[i]);
        if (e < 0) {
            batcher_free(out);
            return e;
        }
    }
    return 0;
}

void batcher_free(struct batcher *b) { arena_free(&b->arena); }

static struct window_dst dst(const struct batcher *b, const struct batch_slot *s, i32 i) {
    return (struct window_dst){.p = s->input[i], .ld = buf_fp(&b->net->buf[i]), .B = b->B};
}

/* The last values of the context, as targets are laid out: what an unrolled decoder begins with. */
static void fill_first(const struct batcher *bt, const struct batch_slot *s, i32 i, i32 b) {
    const struct window_shape *p = bt->shape;
    struct window_dst x = dst(bt, s, 0), to = dst(bt, s, i);
    const f32 *last = x.p + ((i64)(p->nseg - 1) * x.B + b) * x.ld; /* its last segment begins with the seg values of the column */
    memcpy(to.p + b * to.ld, last + p->seg - p->out_seg, sizeof(f32) * (size_t)p->out_seg);
}

/* Row b of one input buffer.  Names were given by forecast_net.c. */
static i32 fill_input(const struct batcher *bt, struct batch_slot *s, i32 i, i32 b, bool real) {
    const struct buf *buf = &bt->net->buf[i];
    const struct window_shape *p = bt->shape;
    i64 origin = s->origin[b];
    i32 col = s->col[b];
    if (buf->ids) {
        i32 *ids = (i32 *)(void *)s->input[i];
        for (i32 t = 0; t < buf->T; t++) {
            bool column = strcmp(buf->name, "column") == 0;
            ids[(i64)t * bt->B + b] = column ? col : window_category(p, bt->s, (i32)strtol(buf->name + 9, NULL, 10), origin, t);
        }
        return 0;
    }
    struct window_dst to = dst(bt, s, i);
    if (strcmp(buf->name, "x") == 0) window_fill_x(p, bt->s, origin, col, s->shift[b], s->div[b], to, b);
    if (strcmp(buf->name, "first") == 0) fill_first(bt, s, i, b);
    if (strcmp(buf->name, "future") == 0) window_fill_future(p, bt->s, origin, to, b);
    if (strcmp(buf->name, "base") == 0) window_fill_base(p, s->base + (i64)b * p->horizon, s->shift[b], s->div[b], to, b);
    if (strcmp(buf->name, "y") != 0) return 0;
    if (real) return window_fill_y(p, bt->s, origin, col, s->shift[b], s->div[b], to, b);
    for (i32 k = 0; k < p->nout * p->out_seg; k++)
        to.p[((i64)(k / p->out_seg) * to.B + b) * to.ld + k % p->out_seg] = (f32)NAN;
    return 0;
}

void batch_fill(struct batcher *b, i32 slot, i32 rows) {
    struct batch_slot *s = &b->slot[slot];
    i32 h = b->shape->horizon;
    for (i32 r = rows; r < b->B; r++) {
        s->origin[r] = s->origin[0];
        s->col[r] = s->col[0];
    }
    for (i32 r = 0; r < b->B; r++)
        s->seen[r] = window_scale_of(b->shape, b->s, s->origin[r], s->col[r], &s->shift[r], &s->div[r]);
    err e = 0;
    if (b->base) e = base_predict_rows(b->base, b->s, b->B, s->col, s->origin, h, s->base, h, b->kern);
    else
        for (i32 r = 0; r < b->B; r++)
            for (i32 k = 0; k < h; k++) s->base[(i64)r * h + k] = s->shift[r];
    if (e < 0) {
        b->failed = e;
        b->why = *err_last();
    }
    s->present = 0;
    s->rows = rows;
    for (i32 i = 0; i < b->net->nbuf; i++)
        if (b->net->buf[i].input)
            for (i32 r = 0; r < b->B; r++) s->present += fill_input(b, s, i, r, r < rows && s->seen[r] > 0);
}

void batch_fill_train(void *batcher, i64 k, i32 slot) {
    struct batcher *b = batcher;
    struct batch_slot *s = &b->slot[slot];
    i64 n = window_origins(&b->set);
    i32 ncol = b->s->ntarget, rows = b->nwin * ncol;
    for (i32 w = 0; w < b->nwin; w++) {
        i64 item = k * b->nwin + w;
        i64 at = rng_shuffle(b->seed, (u32)(item / n), n, item % n);
        for (i32 c = 0; c < ncol; c++) {
            s->origin[w * ncol + c] = window_origin(&b->set, at);
            s->col[w * ncol + c] = c;
        }
    }
    batch_fill(b, slot, rows);
}

i32 batch_fill_set(struct batcher *b, i32 slot, const struct window_set *set, i64 i0) {
    struct batch_slot *s = &b->slot[slot];
    i32 ncol = b->s->ntarget;
    i64 n = window_origins(set) * ncol;
    i32 rows = (i32)lmin(b->B, n - i0);
    for (i32 r = 0; r < rows; r++) {
        s->origin[r] = window_origin(set, (i0 + r) / ncol);
        s->col[r] = (i32)((i0 + r) % ncol);
    }
    batch_fill(b, slot, rows);
    return rows;
}
