/* ridge.c - the linear map on (window - last value), applied to one window or to a batch.
 *
 *     window x[o-L..o) --minus x[o-1]--> [L] --W--> [H] --plus constant, calendar rows, x[o-1]--> forecast x[o..o+H)
 *     columns known ahead ---------> [inputs] --W--> + */
#include <math.h>
#include <string.h>

#include "data/time.h"
#include "bases/linear.h"

/* The first row of the inputs known ahead. */
static i32 ahead_row(const struct ridge *r) { return r->L + 1 + (r->calendar ? RIDGE_CALENDAR : 0); }

i32 ridge_rows(const struct ridge *r) { return ahead_row(r) + ahead_count(&r->ahead, r->H); }

err ridge_new(const struct ridge *shape, struct ridge **out) {
    if (shape->L < 2 || shape->H < 1) return FAIL(E1, "ridge: %d lags, %d steps", shape->L, shape->H);
    struct ridge r = *shape;
    r.Hp = round_up(r.H, LANES);
    *out = mem_alloc(sizeof r + (size_t)ridge_rows(&r) * (size_t)r.Hp * sizeof(f32));
    if (!*out) return -E601;
    **out = r;
    return 0;
}

void calendar_marks(i64 time, i32 mark[3]) {
    struct civil c;
    time_split(time, &c);
    mark[0] = c.hour;
    mark[1] = 24 + (i32)((time_days(c.year, c.month, c.day) % 7 + 11) % 7); /* 1970-01-01 was a Thursday; 0 = Sunday */
    mark[2] = 24 + 7 + c.month - 1;
}

/* --- forecasts --- */

/* Adds weight times the constant and the calendar rows of an origin to out; returns the last value. */
static void add_rest(const struct ridge *r, f64 weight, const struct series *s, i64 origin, f64 last, i32 H, f32 *out) {
    i32 mark[3] = {0};
    const f32 *bias = r->w + (i64)r->L * r->Hp;
    for (i32 h = 0; h < H; h++) out[h] += (f32)(weight * (last + (f64)bias[h]));
    if (!r->calendar || !s->time || origin < 1) return;
    calendar_marks(series_time(s, origin), mark);
    for (i32 i = 0; i < 3; i++) {
        const f32 *row = bias + (i64)(1 + mark[i]) * r->Hp;
        for (i32 h = 0; h < H; h++) out[h] += (f32)weight * row[h];
    }
}

/* Value at row i as a forecast sees it: gaps (also interpolated cells, as in struct windows) are filled with the last
 * observed value, rows before the series with `none`. */
static inline f32 seen_at(const struct series *s, i32 col, i64 i, f32 before, f32 none) {
    return i < 0 ? none : series_is_target(s, col, i) ? series_col(s, col)[i] : before;
}

/* The value that fills a gap at row i if the window begins there. */
static f32 seen_before(const struct series *s, i32 col, i64 i, f32 none) {
    for (; i >= 0; i--)
        if (series_is_target(s, col, i)) return series_col(s, col)[i];
    return none;
}

/* u[L] = v minus last; returns true if all of v was observed. (Fast path without a dependence between values.) */
static bool window_whole(i32 L, const f32 *v, f32 last, f32 *u) {
    i32 gaps = 0;
    for (i32 k = 0; k < L; k++) {
        u[k] = v[k] - last;
        gaps |= v[k] != v[k];
    }
    return !gaps;
}

/* u[L] = window minus last, gaps filled; returns the last value. */
static f32 window_of(const struct ridge *r, const struct series *s, i32 col, i64 origin, f32 *u) {
    const f32 *x = series_col(s, col);
    const i64 first = origin - r->L;
    const f32 last = last_seen(x, series_known(s, col, origin));
    if (first >= 0 && !s->filled && window_whole(r->L, x + first, last, u)) return last;
    f32 before = seen_before(s, col, first, last);
    for (i32 k = 0; k < r->L; k++) {
        before = seen_at(s, col, first + k, before, last);
        u[k] = before - last;
    }
    return last;
}

static void add_ahead(const struct ridge *r, f32 weight, const struct series *s, i32 col, i64 origin, i32 steps, f32 *out) {
    const i32 X = ahead_count(&r->ahead, r->H);
    f32 u[AHEAD_MOST];
    ahead_take(&r->ahead, s, col, origin, r->H, u);
    for (i32 x = 0; x < X; x++) {
        const f32 *row = r->w + (i64)(ahead_row(r) + x) * r->Hp;
        for (i32 h = 0; h < steps; h++) out[h] += weight * u[x] * row[h];
    }
}

enum { ROWS = 64 };

void ridge_add(const struct ridge *r, f64 weight, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    const i32 steps = imin(H, r->H);
    const i64 first = origin - r->L;
    const f32 last = last_seen(series_col(s, col), series_known(s, col, origin));
    f32 before = seen_before(s, col, first, last);
    for (i32 k = 0; k < r->L; k++) {
        before = seen_at(s, col, first + k, before, last);
        const f32 u = (f32)weight * (before - last), *row = r->w + (i64)k * r->Hp;
        for (i32 h = 0; h < steps; h++) out[h] += u * row[h];
    }
    add_ahead(r, (f32)weight, s, col, origin, steps, out);
    add_rest(r, weight, s, origin, (f64)last, steps, out);
    for (i32 h = steps; h < H; h++) out[h] += (f32)weight * last; /* the fit has fewer steps: repeat the last value */
}

/* Blocks of ROWS rows: windows into u, one product, columns known ahead into u, another one, then what a single forecast adds. */
static void add_block(const struct ridge *r, f64 weight, const struct series *s, const struct row_list *rows, i64 at, i32 H,
                      f32 *out, i64 ldo, const struct kern *kern, f32 *u, f32 *c) {
    f32 last[ROWS];
    const i32 n = (i32)lmin(ROWS, rows->n - at), steps = imin(H, r->H), X = ahead_count(&r->ahead, r->H);
    for (i32 i = 0; i < n; i++) last[i] = window_of(r, s, rows->col[at + i], rows->origin[at + i], u + (i64)i * r->L);
    kern->gemm_nn(n, r->H, r->L, u, r->L, r->w, r->Hp, c, r->Hp, false);
    for (i32 i = 0; i < n && X > 0; i++) ahead_take(&r->ahead, s, rows->col[at + i], rows->origin[at + i], r->H, u + (i64)i * X);
    if (X > 0) kern->gemm_nn(n, r->H, X, u, X, r->w + (i64)ahead_row(r) * r->Hp, r->Hp, c, r->Hp, true);
    for (i32 i = 0; i < n; i++) {
        f32 *to = out + (at + i) * ldo;
        const f32 *from = c + (i64)i * r->Hp;
        for (i32 h = 0; h < steps; h++) to[h] += (f32)weight * from[h];
        add_rest(r, weight, s, rows->origin[at + i], (f64)last[i], steps, to);
        for (i32 h = steps; h < H; h++) to[h] += (f32)weight * last[i];
    }
}

err ridge_add_rows(const struct ridge *r, f64 weight, const struct series *s, const struct row_list *rows, i32 H, f32 *out,
                   i64 ldo, const struct kern *k) {
    f32 *u, *c;
    if (!k) {
        for (i64 i = 0; i < rows->n; i++) ridge_add(r, weight, s, rows->col[i], rows->origin[i], H, out + i * ldo);
        return 0;
    }
    i64 block = lmin(ROWS, rows->n); /* a single row takes the same path as many: equal bits alone and in a batch */
    NEW(u, block * imax(r->L, ahead_count(&r->ahead, r->H)));
    err e = mem_new((void **)&c, block * r->Hp, sizeof *c);
    if (e >= 0)
        for (i64 at = 0; at < rows->n; at += ROWS) add_block(r, weight, s, rows, at, H, out, ldo, k, u, c);
    mem_free(u);
    if (e >= 0) mem_free(c);
    return e;
}
