/* batch.c - fills the input buffers of a net from windows. */
#include "learn/forecast/batch.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "plan/slice.h"

struct slice_place forecast_slice(i32 T, i32 P, i32 B, i32 r) {
    i32 W = B / imax(1, P), k = r / imax(1, W);
    struct slice_place place = {.after = k ? r - W : -1,
                                .before = k < P - 1 ? r + W : -1,
                                .first = k == imax(1, P) - 1 ? r - k * W : -1};
    place.steps = slice_steps(T, imax(1, P), k, &place.from);
    return place;
}

bool slice_ids(const struct buf *buf, struct slice_place place, i32 r, i32 *ids) {
    switch (buf->role) {
    case INPUT_LENGTH: ids[r] = place.steps; return true;
    case INPUT_AFTER: ids[r] = place.after; return true;
    case INPUT_BEFORE: ids[r] = place.before; return true;
    case INPUT_FIRST_SLICE: ids[r] = place.first; return true;
    default: return false;
    }
}

static err new_slot(struct batcher *b, i32 horizon, struct batch_slot *s) {
    for (i32 i = 0; i < b->net->nbuf; i++)
        if (b->net->buf[i].input) ARENA_NEW(&b->arena, s->input[i], buf_floats(&b->net->buf[i], b->B));
    ARENA_NEW(&b->arena, s->origin, b->B);
    ARENA_NEW(&b->arena, s->col, b->B);
    ARENA_NEW(&b->arena, s->shift, b->B);
    ARENA_NEW(&b->arena, s->div, b->B);
    ARENA_NEW(&b->arena, s->seen, b->B);
    ARENA_NEW(&b->arena, s->base, (i64)(b->B / b->slices) * horizon);
    return 0;
}

err batcher_new(const struct forecaster *f, const struct net *net, const struct window_shape *shape, const struct series *s,
                const struct kern *kern, i32 B, i32 nslot, struct batcher *out) {
    *out = (struct batcher){.s = s,
                            .spec = &f->spec,
                            .shape = shape,
                            .net = net,
                            .base = f->base,
                            .kern = kern,
                            .B = B,
                            .slices = 1,
                            .row1 = B,
                            .width = forecast_width(&f->spec, s)};
    if (forecast_find_input(net, INPUT_AFTER) >= 0) out->slices = imax(1, f->spec.cut.slices);
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

err batcher_failed(const struct batcher *b) {
    if (b->failed < 0) err_put(&b->why);
    return b->failed;
}

static struct window_dst dst(const struct batcher *b, const struct batch_slot *s, i32 i) {
    return (struct window_dst){.p = s->input[i], .ld = buf_fp(&b->net->buf[i]), .B = b->B};
}

bool batch_lays_out(const struct batcher *b, i32 i, i32 r) {
    const struct buf *buf = &b->net->buf[i];
    return batch_ours(b, r) || buf->role == INPUT_Y || slice_has_ids(buf);
}

/* The last values of the context, as targets are laid out: what an unrolled decoder begins with. */
static void fill_first(const struct batcher *bt, const struct batch_slot *s, i32 i, i32 r, i32 steps) {
    const struct window_shape *p = bt->shape;
    struct window_dst x = dst(bt, s, 0), to = dst(bt, s, i);
    const f32 *last = x.p + ((i64)(steps - 1) * x.B + r) * x.ld; /* its last segment begins with the seg values of the column */
    memcpy(to.p + r * to.ld, last + p->seg - p->out_seg, sizeof(f32) * (size_t)p->out_seg);
}

static void fill_ids(const struct batcher *bt, const struct batch_slot *s, i32 i, i32 r, struct slice_place place) {
    const struct buf *buf = &bt->net->buf[i];
    i32 *ids = (i32 *)(void *)s->input[i];
    if (slice_ids(buf, place, r, ids)) return;
    if (buf->role == INPUT_COLUMN) {
        ids[r] = forecast_column(bt->s, s->col[r]);
        return;
    }
    for (i32 t = 0; t < buf->T; t++)
        ids[(i64)t * bt->B + r] = t < place.steps
                                      ? window_category(bt->shape, bt->s, buf->item, s->col[r], s->origin[r], place.from + t)
                                      : bt->s->nword[buf->item];
}

/* Targets of a head of counts, and the logarithms of the means that the base stands for. */
static i32 count_targets(const struct batcher *bt, i64 origin, i32 col, struct window_dst to, i32 r) {
    const struct window_shape *p = bt->shape;
    i32 present = 0;
    for (i32 k = 0; k < p->nout * p->out_seg; k++) {
        const bool there = k < p->horizon && origin + k < bt->s->nrow && series_is_target(bt->s, col, origin + k);
        to.p[((i64)(k / p->out_seg) * to.B + r) * to.ld + k % p->out_seg] =
            there ? (f32)head_whole(series_raw(bt->s, col, origin + k)) : (f32)NAN;
        present += there;
    }
    return present;
}

static void log_means(const struct batcher *bt, const f32 *base, i32 col, struct window_dst to, i32 r) {
    const struct window_shape *p = bt->shape;
    const f64 mean = bt->s->mean[col], dev = bt->s->dev[col];
    for (i32 k = 0; k < p->nout * p->out_seg; k++)
        to.p[((i64)(k / p->out_seg) * to.B + r) * to.ld + k % p->out_seg] =
            k < p->horizon ? (f32)head_log_mean((f64)base[k] * dev + mean, mean) : 0.F;
}

static void no_targets(const struct batcher *bt, struct window_dst to, i32 r) {
    const struct window_shape *p = bt->shape;
    for (i32 k = 0; k < p->nout * p->out_seg; k++)
        to.p[((i64)(k / p->out_seg) * to.B + r) * to.ld + k % p->out_seg] = (f32)NAN;
}

/* Row r of one input buffer; returns the targets that are there.  Rows that do not end their window have no targets, and zeros
 * for what lies ahead: nothing reads what is made of it. */
static i32 fill_input(const struct batcher *bt, struct batch_slot *s, i32 i, i32 r, bool real) {
    const struct buf *buf = &bt->net->buf[i];
    const struct window_shape *p = bt->shape;
    const struct slice_place place = forecast_slice(p->nseg, bt->slices, bt->B, r);
    i64 origin = s->origin[r];
    i32 col = s->col[r], windows = bt->B / bt->slices;
    bool ends = r >= bt->B - windows;
    if (buf->ids) {
        fill_ids(bt, s, i, r, place);
        return 0;
    }
    struct window_dst to = dst(bt, s, i);
    if (buf->role == INPUT_X) {
        to.from = place.from;
        to.steps = place.steps;
        window_fill_x(p, bt->s, origin, col, s->shift[r], s->div[r], to, r);
    }
    if (buf->role == INPUT_FIRST) fill_first(bt, s, i, r, place.steps);
    if (buf->role == INPUT_FUTURE && ends) window_fill_future(p, bt->s, origin, col, to, r);
    const bool counts = forecast_counts(bt->spec);
    if (buf->role == INPUT_BASE && ends && counts) log_means(bt, s->base + (i64)(r % windows) * p->horizon, col, to, r);
    else if (buf->role == INPUT_BASE && ends && !forecast_averages(bt->spec)) /* else zero: the network is on its own */
        window_fill_base(p, s->base + (i64)(r % windows) * p->horizon, s->shift[r], s->div[r], to, r);
    if (buf->role != INPUT_Y) return 0;
    if (real && ends && counts) return count_targets(bt, origin, col, to, r);
    if (real && ends) return window_fill_y(p, bt->s, origin, col, s->shift[r], s->div[r], to, r);
    no_targets(bt, to, r);
    return 0;
}

/* Scale of each window, for all of its rows; the others repeat window 0.  Rows that are not laid out need none, but it must be
 * known whether they have seen anything. */
static void fill_scale(struct batcher *b, struct batch_slot *s, i32 rows, i32 windows) {
    for (i32 r = rows; r < windows; r++) {
        s->origin[r] = s->origin[0];
        s->col[r] = s->col[0];
    }
    for (i32 r = 0; r < windows; r++) {
        s->seen[r] = b->shape->context;
        s->shift[r] = 0, s->div[r] = 1;
        if (batch_ours(b, r) || b->slices > 1 || b->shape->mask)
            s->seen[r] = window_scale_of(b->shape, b->s, s->origin[r], s->col[r], &s->shift[r], &s->div[r]);
    }
    for (i32 r = windows; r < b->B; r++) {
        i32 w = r % windows;
        s->origin[r] = s->origin[w], s->col[r] = s->col[w], s->seen[r] = s->seen[w];
        s->shift[r] = s->shift[w], s->div[r] = s->div[w];
    }
}

/* Copies the base forecasts of rows [from, to) if all of them are kept. */
static bool copy_ready(const struct batcher *b, struct batch_slot *s, i32 from, i32 to) {
    const i64 h = b->shape->horizon;
    if (!b->ready) return false;
    for (i32 r = from; r < to; r++)
        if (s->origin[r] >= b->nready) return false;
    for (i32 r = from; r < to; r++)
        memcpy(s->base + r * h, b->ready + (s->col[r] * b->nready + s->origin[r]) * h, sizeof *s->base * (size_t)h);
    return true;
}

/* What a model without a base begins with: the shift of the window; for counts, whose correction is a factor, its mean. */
static f32 level_of(const struct batcher *b, const struct batch_slot *s, i32 r) {
    struct window_shape look = *b->shape;
    f32 shift = s->shift[r], div = 0;
    if (forecast_counts(b->spec)) {
        look.scale = WSCALE_MEAN;
        if (window_scale_of(&look, b->s, s->origin[r], s->col[r], &shift, &div) < 2) div = 0;
    }
    return shift + div;
}

static void fill_base(struct batcher *b, struct batch_slot *s, i32 windows) {
    i32 h = b->shape->horizon, from = b->slices > 1 ? 0 : b->row0, to = b->slices > 1 ? windows : b->row1;
    const bool has = b->base && (b->shows_base || !forecast_averages(b->spec));
    err e = 0;
    f32 *base = s->base + (i64)from * h;
    if (has && to > from && !copy_ready(b, s, from, to))
        e = base_predict_rows(b->base, b->s, to - from, s->col + from, s->origin + from, h, base, h, b->kern);
    for (i32 r = from; r < to && !has; r++) {
        const f32 level = level_of(b, s, r);
        for (i32 k = 0; k < h; k++) s->base[(i64)r * h + k] = level;
    }
    if (e < 0) {
        b->failed = e;
        b->why = *err_last();
    }
}

void batch_fill(struct batcher *b, i32 slot, i32 rows) {
    struct batch_slot *s = &b->slot[slot];
    i32 windows = b->B / b->slices;
    fill_scale(b, s, rows, windows);
    fill_base(b, s, windows);
    s->present = 0;
    s->rows = rows;
    for (i32 i = 0; i < b->net->nbuf; i++)
        for (i32 r = 0; r < b->B && b->net->buf[i].input; r++)
            if (batch_lays_out(b, i, r))
                s->present += fill_input(b, s, i, r, r % windows < rows && s->seen[r] > 0);
}

i64 batch_in_span(const struct batcher *b, i64 n, i64 k, i32 w, bool *begins) {
    const i64 part = k % b->spans, step = k / b->spans;
    const i64 lo = n * part / b->spans, m = n * (part + 1) / b->spans - lo;
    const i64 from = lo + m * w / b->nwin, len = lmax(1, lo + m * (w + 1) / b->nwin - from);
    *begins = step % len == 0;
    return lmin(n - 1, from + step % len);
}

static i64 series_windows(const struct batcher *b) { return b->before[b->s->ntarget]; }

err batch_draw_from(struct batcher *b, struct window_set set) {
    const struct series *s = b->s;
    i64 first, end;
    b->set = set;
    if (!forecast_draws_series(b->spec, s)) return 0;
    if (!b->first) {
        ARENA_NEW(&b->arena, b->first, s->ntarget);
        ARENA_NEW(&b->arena, b->before, s->ntarget + 1);
    }
    for (i32 c = 0; c < s->ntarget; c++) {
        forecast_series_origins(b->spec, s, c, set.end + b->spec->horizon - 1, &first, &end);
        b->first[c] = first;
        b->before[c + 1] = b->before[c] + end - first;
    }
    return series_windows(b) > 0
               ? 0
               : FAIL_AT(E301, NULL, "a shorter --horizon, or --context, or less --validation and --test",
                         "no series of the panel has a window of a horizon of %d rows in the training part", b->spec->horizon);
}

/* The series of a window of the panel. */
static i32 series_of_window(const struct batcher *b, i64 window) {
    i32 lo = 0, hi = b->s->ntarget;
    while (hi - lo > 1) {
        const i32 mid = lo + (hi - lo) / 2;
        if (b->before[mid] <= window)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Origin of an item in training order, for all columns. */
static i64 drawn(const struct batcher *b, i64 item) {
    const i64 n = window_origins(&b->set);
    bool begins;
    if (b->spans > 0) return window_origin(&b->set, batch_in_span(b, n, item / b->nwin, (i32)(item % b->nwin), &begins));
    return window_origin(&b->set, rng_shuffle(b->seed, (u32)(item / n), n, item % n));
}

/* Origin and column of an item of a panel whose series are drawn: one window of one series. */
static i64 drawn_series(const struct batcher *b, i64 item, i32 *col) {
    const i64 n = series_windows(b), window = rng_shuffle(b->seed, (u32)(item / n), n, item % n);
    *col = series_of_window(b, window);
    return b->first[*col] + window - b->before[*col];
}

void batch_fill_train(void *batcher, i64 k, i32 slot) {
    struct batcher *b = batcher;
    struct batch_slot *s = &b->slot[slot];
    for (i32 w = 0; w < b->nwin; w++) {
        const i64 item = k * b->nwin + w, shared = b->first ? 0 : drawn(b, item);
        for (i32 c = 0; c < b->width; c++) {
            const i32 r = w * b->width + c;
            s->col[r] = c;
            s->origin[r] = b->first ? drawn_series(b, item * b->width + c, &s->col[r]) : shared;
        }
    }
    batch_fill(b, slot, b->nwin * b->width);
}

/* Of one window: none where its context has seen nothing. */
static i64 window_cells(const struct batcher *b, i64 origin, i32 col) {
    f32 shift, div;
    i64 present = 0;
    if (b->shape->mask && window_scale_of(b->shape, b->s, origin, col, &shift, &div) == 0) return 0;
    for (i64 i = origin; i < lmin(origin + b->shape->horizon, b->s->nrow); i++) present += series_is_target(b->s, col, i);
    return present;
}

i64 batch_cells(const struct batcher *b, i64 k) {
    i64 present = 0;
    for (i32 w = 0; w < b->nwin; w++) {
        const i64 item = k * b->nwin + w, shared = b->first ? 0 : drawn(b, item);
        for (i32 c = 0; c < b->width; c++) {
            i32 col = c;
            const i64 origin = b->first ? drawn_series(b, item * b->width + c, &col) : shared;
            present += window_cells(b, origin, col);
        }
    }
    return present;
}

i32 batch_fill_set(struct batcher *b, i32 slot, const struct window_set *set, i64 i0) {
    struct batch_slot *s = &b->slot[slot];
    i32 ncol = b->s->ntarget;
    i64 n = window_origins(set) * ncol;
    i32 rows = (i32)lmin(b->B, n - i0);
    for (i32 r = 0; r < rows; r++) {
        s->col[r] = (i32)((i0 + r) % ncol);
        s->origin[r] = set->at ? set->at[s->col[r]] : window_origin(set, (i0 + r) / ncol);
    }
    batch_fill(b, slot, rows);
    return rows;
}
