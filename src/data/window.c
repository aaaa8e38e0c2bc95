/* window.c - see window.h: fills one sample of a batch from a series. */
#include "data/window.h"

#include <math.h>

#include "base/pager.h"
#include "data/time.h"

enum { COPIES = 4, COPY = 4096 }; /* rows that lie on the disk: windows in use at a time; rows of one */

i64 window_origins(const struct window_set *w) {
    return w->end <= w->first ? 0 : (w->end - w->first + w->stride - 1) / w->stride;
}

i32 window_periods(const struct freq *f, i64 period[WINDOW_PERIODS]) {
    static const i64 all[WINDOW_PERIODS] = {86400, 604800, 31556952};
    const f64 row = f->months ? f->months * 2629746.0 : (f64)f->step;
    i32 n = 0;
    for (i32 i = 0; i < WINDOW_PERIODS && row > 0; i++)
        if (row * 2 <= (f64)all[i]) period[n++] = all[i];
    return n;
}

i32 window_calendar_size(const struct freq *f) {
    i64 period[WINDOW_PERIODS];
    return 2 * window_periods(f, period);
}

i32 window_features(const struct window_shape *p, const struct series *s) {
    return (i32)lmin(INT32_MAX, (i64)p->seg * (1 + (p->mask ? 1 : 0) + (i64)s->npast + s->nknown) + p->calendar);
}

i32 window_future_features(const struct window_shape *p, const struct series *s) {
    return (i32)lmin(INT32_MAX, (i64)p->out_seg * s->nknown + p->calendar);
}

static void fill_calendar(const struct series *s, i64 row, f32 *out) {
    const f64 t = (f64)series_time(s, lmax(row, 0));
    i64 period[WINDOW_PERIODS];
    const i32 n = window_periods(&s->freq, period);
    for (i32 i = 0; i < n; i++) {
        const f64 p = (f64)period[i], angle = 6.283185307179586 * fmod(t, p) / p;
        *out++ = (f32)sin(angle);
        *out++ = (f32)cos(angle);
    }
}

/* A column as one sample sees it: rows [from, origin); from `known` on the value of known - 1 is held (series_known). */
struct view {
    const f32 *v;
    i64 at; /* row of v[0] */
    i64 from, known, origin;
};

/* Rows [lo, hi) of a column that are read now, or the whole column; *at: the first of them.  Beyond --memory they may be copies,
 * which are valid until this thread asks for COPIES more. */
static const f32 *rows_of(const struct series *s, i32 col, i64 lo, i64 hi, i64 *at) {
    static _Thread_local f32 copy[COPIES][COPY];
    static _Thread_local u32 turn;
    const f32 *v = series_col(s, col);
    *at = 0;
    if (lo < 0 || hi <= lo || hi - lo > COPY) return v;
    const f32 *there = pager_peek(v + lo, (hi - lo) * (i64)sizeof *v, copy[turn % COPIES]);
    if (there == v + lo) return v;
    turn++;
    *at = lo;
    return there;
}

static struct view view_of(const struct window_shape *p, const struct series *s, i32 col, i64 origin) {
    i64 known = col < series_first_ahead(s) ? series_known(s, col, origin) : origin;
    struct view w = {.from = lmax(0, origin - p->context), .known = known, .origin = origin};
    w.v = rows_of(s, col, lmin(w.from, known - 1), origin, &w.at);
    return w;
}

static f32 seen(const struct view *w, i64 i) { return w->v[(i < w->known ? i : w->known - 1) - w->at]; }

static f32 last_observed(const struct view *w) {
    for (i64 i = w->origin - 1; i >= w->from; i--)
        if (!isnan(seen(w, i))) return seen(w, i);
    return 0.f;
}

/* Mean over the observed values of the window of |v - centre|^power; power 0: of v itself. */
static f64 mean_power(const struct view *w, f64 centre, i32 power) {
    f64 sum = 0;
    i64 n = 0;
    for (i64 i = w->from; i < w->origin; i++) {
        const f64 v = (f64)seen(w, i), d = fabs(v - centre);
        if (isnan(v)) continue;
        sum += power == 0 ? v : power == 1 ? d : d * d;
        n++;
    }
    return n ? sum / (f64)n : 0;
}

i32 window_scale_of(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 *shift, f32 *div) {
    const struct view w = view_of(p, s, col, origin);
    i32 n = 0;
    for (i64 i = w.from; i < origin; i++) n += !isnan(seen(&w, i));
    *shift = 0.f;
    *div = 1.f;
    if (p->scale == WSCALE_LAST || p->scale == WSCALE_WINDOW) *shift = last_observed(&w);
    if (p->scale == WSCALE_MEAN) *shift = (f32)(-s->mean[col] / s->dev[col]);
    if (n < 2) return n;
    if (p->scale == WSCALE_WINDOW) *div = (f32)dmax(WINDOW_FLOOR, sqrt(mean_power(&w, mean_power(&w, 0, 0), 2)));
    if (p->scale == WSCALE_MEAN) *div = (f32)dmax(WINDOW_FLOOR, mean_power(&w, (f64)*shift, 1));
    return n;
}

void window_scale_words(enum window_scale scale, const char **shift, const char **divisor) {
    *shift = scale == WSCALE_MEAN ? "-mean/dev" : scale == WSCALE_LAST || scale == WSCALE_WINDOW ? "last" : "0";
    *divisor = scale == WSCALE_MEAN ? "mean |v - shift|" : scale == WSCALE_WINDOW ? "deviation" : "1";
}

/* First row of segment t of a window. */
static i64 segment_row(const struct window_shape *p, i64 origin, i32 t) { return origin - (i64)(p->nseg - t) * p->seg; }

/* Number of segments to fill. */
static i32 wanted(const struct window_shape *p, const struct window_dst *x) { return x->steps > 0 ? x->steps : p->nseg; }

/* What a feature block holds. */
enum block { VALUES, PRESENCE };

/* Fills one feature block, starting at feature f0: the seg values of a column in every segment, or 1 for a present value. Missing
 * values and rows before the context become 0. */
static void fill_block(const struct window_shape *p, struct view w, enum block kind, f32 shift, f32 div, struct window_dst x,
                       i32 b, i32 f0) {
    f32 inverse = 1.f / div;
    i64 start = segment_row(p, w.origin, x.from);
    for (i32 t = 0; t < wanted(p, &x); t++) {
        f32 *out = x.p + ((i64)t * x.B + b) * x.ld + f0;
        for (i32 j = 0; j < p->seg; j++) {
            i64 i = start + (i64)t * p->seg + j;
            f32 v = i < w.from ? (f32)NAN : seen(&w, i);
            out[j] = isnan(v) ? 0.f : kind == PRESENCE ? 1.f : (v - shift) * inverse;
        }
    }
}

void window_fill_x(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 shift, f32 div,
                   struct window_dst x, i32 b) {
    i32 f = 0;
    const struct view target = view_of(p, s, col, origin);
    fill_block(p, target, VALUES, shift, div, x, b, f);
    f += p->seg;
    if (p->mask) {
        fill_block(p, target, PRESENCE, shift, div, x, b, f);
        f += p->seg;
    }
    for (i32 k = 0; k < s->npast + s->nknown; k++, f += p->seg)
        fill_block(p, view_of(p, s, series_past_of(s, k, col), origin), VALUES, 0.f, 1.f, x, b, f);
    for (i32 t = 0; p->calendar && t < wanted(p, &x); t++)
        fill_calendar(s, segment_row(p, origin, x.from + t + 1) - 1, x.p + ((i64)t * x.B + b) * x.ld + f);
}

void window_fill_step(const struct window_shape *p, const struct series *s, i64 row, i32 col, f32 *out) {
    const struct window_shape one = {.context = 1, .seg = 1, .nseg = 1, .mask = p->mask, .calendar = p->calendar};
    window_fill_x(&one, s, row + 1, col, 0.f, 1.f, (struct window_dst){.p = out, .B = 1}, 0);
}

void window_fill_future(const struct window_shape *p, const struct series *s, i64 origin, i32 col, struct window_dst k, i32 b) {
    for (i32 t = 0; t < p->nout; t++) {
        f32 *out = k.p + ((i64)t * k.B + b) * k.ld;
        i64 row = origin + (i64)t * p->out_seg;
        for (i32 c = 0; c < s->nknown; c++, out += p->out_seg) {
            i64 at;
            const f32 *x = rows_of(s, series_ahead_of(s, c, col), row, lmin(row + p->out_seg, s->nrow), &at);
            for (i32 j = 0; j < p->out_seg; j++) {
                f32 v = row + j < s->nrow ? x[row + j - at] : 0.f;
                out[j] = isnan(v) ? 0.f : v;
            }
        }
        if (p->calendar) fill_calendar(s, row, out);
    }
}

i32 window_fill_y(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 shift, f32 div,
                  struct window_dst y, i32 b) {
    f32 inverse = 1.f / div;
    i32 present = 0;
    i64 at;
    const f32 *v = rows_of(s, col, origin, lmin(origin + p->horizon, s->nrow), &at);
    for (i32 i = 0; i < p->nout * p->out_seg; i++) {
        f32 *out = y.p + ((i64)(i / p->out_seg) * y.B + b) * y.ld + i % p->out_seg;
        const bool there = i < p->horizon && origin + i < s->nrow && !series_filled(s, col, origin + i);
        *out = there ? (v[origin + i - at] - shift) * inverse : (f32)NAN;
        present += !isnan(*out);
    }
    return present;
}

void window_fill_base(const struct window_shape *p, const f32 *base, f32 shift, f32 div, struct window_dst y, i32 b) {
    f32 inverse = 1.f / div;
    for (i32 i = 0; i < p->nout * p->out_seg; i++) {
        f32 *out = y.p + ((i64)(i / p->out_seg) * y.B + b) * y.ld + i % p->out_seg;
        *out = i < p->horizon ? (base[i] - shift) * inverse : 0.f;
    }
}

i32 window_category(const struct window_shape *p, const struct series *s, i32 cat, i32 col, i64 origin, i32 t) {
    i64 row = segment_row(p, origin, t + 1) - 1;
    i32 code = row >= 0 && row < s->nrow ? series_code(s, cat, col, row) : -1;
    return code < 0 ? s->nword[cat] : code;
}
