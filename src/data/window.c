/* window.c - see window.h: fills one sample of a batch from a series. */
#include "data/window.h"

#include <math.h>

#include "data/time.h"

i64 window_origins(const struct window_set *w) {
    return w->end <= w->first ? 0 : (w->end - w->first + w->stride - 1) / w->stride;
}

/* Periods of the calendar features in seconds: day, week, year. */
static const f64 period[] = {86400.0, 604800.0, 31556952.0};

static f64 row_seconds(const struct freq *f) { return f->months ? f->months * 2629746.0 : (f64)f->step; }

i32 window_calendar_size(const struct freq *f) {
    f64 row = row_seconds(f);
    i32 n = 0;
    for (size_t i = 0; i < COUNT(period) && row > 0; i++) n += row * 2 <= period[i] ? 2 : 0;
    return n;
}

i32 window_features(const struct window_shape *p, const struct series *s) {
    return (i32)lmin(INT32_MAX, (i64)p->seg * (1 + (p->mask ? 1 : 0) + (i64)s->npast + s->nknown) + p->calendar);
}

i32 window_future_features(const struct window_shape *p, const struct series *s) {
    return (i32)lmin(INT32_MAX, (i64)p->out_seg * s->nknown + p->calendar);
}

/* Time of row i; rows past the end are extrapolated by the step. */
static f64 time_of(const struct series *s, i64 i) {
    i64 end = s->nrow - 1;
    return (f64)(i <= end ? s->time[i] : time_add(s->time[end], &s->freq, i - end));
}

static void fill_calendar(const struct series *s, i64 row, f32 *out) {
    f64 step = row_seconds(&s->freq), t = time_of(s, row < 0 ? 0 : row);
    for (size_t i = 0; i < COUNT(period); i++) {
        if (step * 2 > period[i]) continue;
        f64 angle = 6.283185307179586 * fmod(t, period[i]) / period[i];
        *out++ = (f32)sin(angle);
        *out++ = (f32)cos(angle);
    }
}

/* A column as one sample sees it: rows [from, origin); from `known` on the value of known - 1 is held (series_known). */
struct view {
    const f32 *v;
    i64 from, known, origin;
};

static struct view view_of(const struct window_shape *p, const struct series *s, i32 col, i64 origin) {
    i64 known = col < s->ntarget + s->npast ? series_known(s, col, origin) : origin;
    return (struct view){series_col(s, col), lmax(0, origin - p->context), known, origin};
}

static f32 seen(const struct view *w, i64 i) { return w->v[i < w->known ? i : w->known - 1]; }

static f32 last_observed(const struct view *w) {
    for (i64 i = w->origin - 1; i >= w->from; i--)
        if (!isnan(seen(w, i))) return seen(w, i);
    return 0.f;
}

/* Mean over the window's observed values of |v - centre|^power. */
static f64 mean_power(const struct view *w, f64 centre, bool squared) {
    f64 sum = 0;
    i64 n = 0;
    for (i64 i = w->from; i < w->origin; i++) {
        f32 v = seen(w, i);
        if (isnan(v)) continue;
        f64 d = fabs((f64)v - centre);
        sum += squared ? d * d : d;
        n++;
    }
    return n ? sum / (f64)n : 0;
}

static f64 mean_value(const struct view *w) {
    f64 sum = 0;
    i64 n = 0;
    for (i64 i = w->from; i < w->origin; i++) {
        f32 v = seen(w, i);
        if (!isnan(v)) sum += (f64)v, n++;
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
    if (p->scale == WSCALE_WINDOW) *div = (f32)dmax(WINDOW_FLOOR, sqrt(mean_power(&w, mean_value(&w), true)));
    if (p->scale == WSCALE_MEAN) *div = (f32)dmax(WINDOW_FLOOR, mean_power(&w, (f64)*shift, false));
    return n;
}

/* First row of segment t of a window. */
static i64 segment_row(const struct window_shape *p, i64 origin, i32 t) { return origin - (i64)(p->nseg - t) * p->seg; }

/* Number of segments to fill. */
static i32 wanted(const struct window_shape *p, const struct window_dst *x) { return x->steps > 0 ? x->steps : p->nseg; }

/* Fills one feature block: the seg values of a column in every segment, starting at feature f0; missing values and rows before
 * the context become 0. */
static void fill_block(const struct window_shape *p, struct view w, f32 shift, f32 div, struct window_dst x, i32 b, i32 f0) {
    f32 inverse = 1.f / div;
    i64 start = segment_row(p, w.origin, x.from);
    for (i32 t = 0; t < wanted(p, &x); t++) {
        f32 *out = x.p + ((i64)t * x.B + b) * x.ld + f0;
        for (i32 j = 0; j < p->seg; j++) {
            i64 i = start + (i64)t * p->seg + j;
            f32 v = i < w.from ? (f32)NAN : seen(&w, i);
            out[j] = isnan(v) ? 0.f : (v - shift) * inverse;
        }
    }
}

static void fill_mask(const struct window_shape *p, struct view w, struct window_dst x, i32 b, i32 f0) {
    i64 start = segment_row(p, w.origin, x.from);
    for (i32 t = 0; t < wanted(p, &x); t++) {
        f32 *out = x.p + ((i64)t * x.B + b) * x.ld + f0;
        for (i32 j = 0; j < p->seg; j++) {
            i64 i = start + (i64)t * p->seg + j;
            out[j] = i < w.from || isnan(seen(&w, i)) ? 0.f : 1.f;
        }
    }
}

void window_fill_x(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 shift, f32 div,
                   struct window_dst x, i32 b) {
    i32 f = 0;
    fill_block(p, view_of(p, s, col, origin), shift, div, x, b, f);
    f += p->seg;
    if (p->mask) {
        fill_mask(p, view_of(p, s, col, origin), x, b, f);
        f += p->seg;
    }
    for (i32 c = s->ntarget; c < s->ncol; c++, f += p->seg) fill_block(p, view_of(p, s, c, origin), 0.f, 1.f, x, b, f);
    for (i32 t = 0; p->calendar && t < wanted(p, &x); t++)
        fill_calendar(s, segment_row(p, origin, x.from + t + 1) - 1, x.p + ((i64)t * x.B + b) * x.ld + f);
}

void window_fill_step(const struct window_shape *p, const struct series *s, i64 row, i32 col, f32 *out) {
    f32 v = series_seen(s, col, row, row + 1);
    *out++ = isnan(v) ? 0.f : v;
    if (p->mask) *out++ = isnan(v) ? 0.f : 1.f;
    for (i32 c = s->ntarget; c < s->ncol; c++) {
        v = c < s->ntarget + s->npast ? series_seen(s, c, row, row + 1) : series_col(s, c)[row];
        *out++ = isnan(v) ? 0.f : v;
    }
    if (p->calendar) fill_calendar(s, row, out);
}

void window_fill_future(const struct window_shape *p, const struct series *s, i64 origin, struct window_dst k, i32 b) {
    for (i32 t = 0; t < p->nout; t++) {
        f32 *out = k.p + ((i64)t * k.B + b) * k.ld;
        i64 row = origin + (i64)t * p->out_seg;
        for (i32 c = s->ntarget + s->npast; c < s->ncol; c++, out += p->out_seg)
            for (i32 j = 0; j < p->out_seg; j++) {
                f32 v = row + j < s->nrow ? series_col(s, c)[row + j] : 0.f;
                out[j] = isnan(v) ? 0.f : v;
            }
        if (p->calendar) fill_calendar(s, row, out);
    }
}

i32 window_fill_y(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 shift, f32 div,
                  struct window_dst y, i32 b) {
    f32 inverse = 1.f / div;
    i32 present = 0;
    for (i32 i = 0; i < p->nout * p->out_seg; i++) {
        f32 *out = y.p + ((i64)(i / p->out_seg) * y.B + b) * y.ld + i % p->out_seg;
        *out = i < p->horizon && origin + i < s->nrow ? (series_target(s, col, origin + i) - shift) * inverse : (f32)NAN;
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

i32 window_category(const struct window_shape *p, const struct series *s, i32 cat, i64 origin, i32 t) {
    i64 row = segment_row(p, origin, t + 1) - 1;
    i32 code = row >= 0 && row < s->nrow ? s->code[cat][row] : -1;
    return code < 0 ? s->nword[cat] : code;
}
