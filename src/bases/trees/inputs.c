/* inputs.c - the inputs of boosted trees: lags, seasons, recent means, the calendar, columns known ahead; see trees.h.
 *
 *     rows      .. r-2s .. r-s ..... o-3 o-2 o-1 | o ... r = o+h ...        s: season; only rows before o are read of targets
 *     of o      lags, means, deviations, past columns        of r      seasons before r, calendar, columns known ahead around r
 *
 * Values of the target enter as differences from the level. A value that is not known at the origin is missing (NaN). */
#include <string.h>

#include "bases/linear.h"
#include "bases/trees/trees.h"
#include "data/time.h"

/* ------------------------------------------------------------------ the list ------------------------------------------------ */

static void put(struct trees_inputs *p, enum trees_kind kind, i32 a, i32 b) {
    if (p->n < TREES_INPUTS) p->list[p->n] = (struct trees_input){(u8)kind, a, b};
    p->n++;
}

static void put_origin(struct trees_inputs *p) {
    const struct trees_shape *q = &p->shape;
    const i32 day = q->season > 1 ? q->season : imin(q->lags, 12);
    const i32 spans[] = {3, imax(4, day / 4), day, 2 * day, q->season2};
    put(p, IN_LEVEL, 0, 0);
    if (q->ncol > 1) put(p, IN_COLUMN, 0, 0);
    for (i32 k = 1; k <= q->lags; k++) put(p, IN_LAG, k, 0);
    for (i32 i = 0; i < (i32)COUNT(spans); i++)
        if (spans[i] > 1) put(p, IN_MEAN, spans[i], 0);
    if (day > 1) put(p, IN_DEV, day, 0);
    if (q->season2 > 1) put(p, IN_DEV, q->season2, 0);
    if (q->season > 1) put(p, IN_CHANGE, q->season, 0);
    if (q->season2 > 1) put(p, IN_CHANGE, q->season2, 0);
    for (i32 c = 0; c < q->npast; c++) {
        put(p, IN_PAST, c, 0);
        put(p, IN_PAST_MEAN, c, imax(2, day));
    }
    for (i32 c = 0; c < q->ncat; c++) put(p, IN_WORD, c, 0);
    p->norigin = p->n;
}

static void put_season(struct trees_inputs *p, i32 season, i32 most) {
    if (season <= 1) return;
    for (i32 k = 0; k < most; k++) put(p, IN_SEASON, k, season);
    put(p, IN_NEAR, -1, season);
    put(p, IN_NEAR, 1, season);
    put(p, IN_PHASE, most, season);
}

static void put_step(struct trees_inputs *p) {
    const struct trees_shape *q = &p->shape;
    if (q->H > 1) put(p, IN_STEP, 0, 0);
    put_season(p, q->season, 4);
    put_season(p, q->season2, 3);
    if (q->calendar & TREES_HOUR) put(p, IN_HOUR, 0, 0);
    if (q->calendar & TREES_WEEKDAY) put(p, IN_WEEKDAY, 0, 0);
    if (q->calendar & TREES_MONTH) put(p, IN_MONTH, 0, 0);
    if (q->calendar & TREES_MONTH) put(p, IN_YEARDAY, 0, 0);
    for (i32 c = 0; c < q->nknown; c++) {
        for (i32 b = -1; b <= 1; b++) put(p, IN_KNOWN, c, b);
        put(p, IN_KNOWN_ON, c, 0);
        if (q->season > 1) put(p, IN_KNOWN_SEASON, c, q->season);
        if (q->season2 > 1) put(p, IN_KNOWN_SEASON, c, q->season2);
        put(p, IN_KNOWN_MEAN, c, imax(3, imin(q->season, 24)));
    }
}

static bool in_range(const struct trees_shape *q) {
    enum { ROWS = 1000000 };
    return q->H >= 1 && q->H <= ROWS && q->lags >= 1 && q->lags <= TREES_LAGS && q->season >= 0 && q->season <= ROWS &&
           q->season2 >= 0 && q->season2 <= ROWS && q->shift >= 0 && q->shift < SHIFT_KINDS && q->ncol >= 1 && q->npast >= 0 &&
           q->nknown >= 0 && q->ncat >= 0 && q->npast < TREES_INPUTS && q->nknown < TREES_INPUTS && q->ncat < TREES_INPUTS &&
           q->calendar >= 0 && q->calendar < 2 * TREES_MONTH;
}

bool trees_inputs_make(const struct trees_shape *shape, struct trees_inputs *out) {
    *out = (struct trees_inputs){.shape = *shape};
    if (!in_range(shape)) return false;
    out->level = imax(imax(shape->season, shape->season2), shape->lags);
    put_origin(out);
    put_step(out);
    return out->n <= TREES_INPUTS;
}

#define HALF_YEARS_S (3 * 183 * 86400LL)

struct trees_shape trees_shape_of(const struct series *s, const struct base_spec *p, i64 rows) {
    const bool second = p->season2 > p->season && p->season2 <= rows / 8 && p->season2 <= BASE_LOOK / 4;
    struct trees_shape q = {.H = p->H,
                            .lags = imax(1, imin(TREES_LAGS, p->L)),
                            .season = p->season > 1 && p->season <= rows / 4 && p->season <= BASE_LOOK / 4 ? p->season : 0,
                            .season2 = second ? p->season2 : 0,
                            .ncol = p->ncol,
                            .npast = s->npast,
                            .nknown = s->nknown,
                            .ncat = s->ncat};
    const i64 step = s->freq.step;
    if (!s->time || p->calendar == INPUTS_NEVER || rows < 2) return q;
    if (step > 0 && step < 86400) q.calendar |= TREES_HOUR;
    if (step > 0 && step <= 86400) q.calendar |= TREES_WEEKDAY;
    if (s->time[rows - 1] - s->time[0] >= HALF_YEARS_S) q.calendar |= TREES_MONTH;
    return q;
}

/* ------------------------------------------------------------------ values -------------------------------------------------- */

/* A column known ahead at a row; NaN outside of the series. */
static inline f32 known_column(const struct series *s, i32 k, i32 col, i64 row) {
    return row >= 0 && row < s->nrow ? series_col(s, series_ahead_of(s, k, col))[row] : (f32)NAN;
}

/* A target or past-only column at a row before the origin. */
static inline f32 seen(const struct series *s, i32 col, i64 row, i64 origin) {
    return row >= 0 && row < origin && row < s->nrow ? series_target(s, col, row) : (f32)NAN;
}

static f64 mean_back(const struct series *s, i32 col, i64 origin, i32 rows) {
    f64 sum = 0, n = 0;
    for (i64 i = lmax(0, origin - rows); i < origin; i++) {
        const f32 v = seen(s, col, i, origin);
        if (!isnan(v)) sum += (f64)v, n += 1;
    }
    return n > 0 ? sum / n : (f64)NAN;
}

static f64 deviation_back(const struct series *s, i32 col, i64 origin, i32 rows) {
    const f64 mean = mean_back(s, col, origin, rows);
    f64 sum = 0, n = 0;
    for (i64 i = lmax(0, origin - rows); i < origin; i++) {
        const f64 d = (f64)seen(s, col, i, origin) - mean;
        if (!isnan(d)) sum += d * d, n += 1;
    }
    return n > 1 ? sqrt(sum / n) : (f64)NAN;
}

static f32 word_at(const struct series *s, i32 cat, i32 col, i64 row) {
    const i32 code = row >= 0 && row < s->nrow ? series_code(s, cat, col, row) : -1;
    return code < 0 ? (f32)NAN : (f32)code;
}

static f32 origin_value(const struct trees_origin *o, const struct trees_input *q) {
    const struct series *s = o->s;
    const i64 at = o->origin;
    const i32 own = s->of_model ? s->of_model[o->col] : o->col;
    const i32 past = series_past_of(s, q->a, o->col);
    switch ((enum trees_kind)q->kind) {
        case IN_LEVEL:
            return o->level;
        case IN_COLUMN:
            return own < 0 ? (f32)NAN : (f32)own; /* new to the model */
        case IN_LAG:
            return seen(s, o->col, at - q->a, at) - o->level;
        case IN_MEAN:
            return (f32)mean_back(s, o->col, at, q->a) - o->level;
        case IN_DEV:
            return (f32)deviation_back(s, o->col, at, q->a);
        case IN_CHANGE:
            return seen(s, o->col, at - 1, at) - seen(s, o->col, at - 1 - q->a, at);
        case IN_PAST:
            return seen(s, past, at - 1, at);
        case IN_PAST_MEAN:
            return (f32)mean_back(s, past, at, q->b);
        case IN_WORD:
            return word_at(s, q->a, o->col, at - 1);
        default:
            return (f32)NAN;
    }
}

struct trees_origin trees_origin_take(const struct trees_inputs *p, const struct series *s, i32 col, i64 origin, f32 *u) {
    struct trees_origin o = {.s = s, .col = col, .origin = origin};
    const f64 level = mean_back(s, col, origin, p->level);
    o.last = last_seen(series_col(s, col), series_known(s, col, origin));
    o.level = isnan(level) ? o.last : (f32)level;
    for (i32 i = 0; i < p->norigin; i++) u[i] = origin_value(&o, &p->list[i]);
    return o;
}

/* Rows to go back from step h to the last row at its phase that is known. */
static inline i64 phase_back(i32 h, i32 season) { return (i64)(h / season + 1) * season; }

static f32 phase_mean(const struct trees_origin *o, i64 row, i32 h, const struct trees_input *q) {
    f64 sum = 0, n = 0;
    for (i32 k = 0; k < q->a; k++) {
        const f32 v = seen(o->s, o->col, row - phase_back(h, q->b) - (i64)k * q->b, o->origin);
        if (!isnan(v)) sum += (f64)v, n += 1;
    }
    return n > 0 ? (f32)(sum / n) : (f32)NAN;
}

static f32 known_mean(const struct series *s, i32 k, i32 col, i64 row, i32 rows) {
    f64 sum = 0, n = 0;
    for (i64 i = row - rows + 1; i <= row; i++) {
        const f32 v = known_column(s, k, col, i);
        if (!isnan(v)) sum += (f64)v, n += 1;
    }
    return n > 0 ? (f32)(sum / n) : (f32)NAN;
}

struct moment {
    f32 hour, weekday, month, yearday;
};

static struct moment moment_of(const struct series *s, i64 row) {
    struct civil c;
    i64 days;
    time_split(series_time(s, row), &c);
    days = time_days(c.year, c.month, c.day);
    return (struct moment){(f32)(c.hour + c.minute / 60.0), (f32)((days % 7 + 11) % 7), (f32)c.month,
                           (f32)(days - time_days(c.year, 1, 1))};
}

/* end: one past the last row whose known columns a forecast has. */
static f32 step_value(const struct trees_origin *o, const struct trees_input *q, i32 h, i64 end, const struct moment *m) {
    const struct series *s = o->s;
    const i64 row = o->origin + h;
    switch ((enum trees_kind)q->kind) {
        case IN_STEP:
            return (f32)h;
        case IN_SEASON:
            return seen(s, o->col, row - phase_back(h, q->b) - (i64)q->a * q->b, o->origin) - o->level;
        case IN_NEAR:
            return seen(s, o->col, row - phase_back(h, q->b) + q->a, o->origin) - o->level;
        case IN_PHASE:
            return phase_mean(o, row, h, q) - o->level;
        case IN_HOUR:
            return m->hour;
        case IN_WEEKDAY:
            return m->weekday;
        case IN_MONTH:
            return m->month;
        case IN_YEARDAY:
            return m->yearday;
        case IN_KNOWN:
            return row + q->b < end ? known_column(s, q->a, o->col, row + q->b) : (f32)NAN;
        case IN_KNOWN_ON:
            return known_column(s, q->a, o->col, row) - known_column(s, q->a, o->col, o->origin - 1);
        case IN_KNOWN_SEASON:
            return known_column(s, q->a, o->col, row) - known_column(s, q->a, o->col, row - phase_back(h, q->b));
        case IN_KNOWN_MEAN:
            return known_mean(s, q->a, o->col, row, q->b);
        default:
            return (f32)NAN;
    }
}

static f32 shift_of(const struct trees_inputs *p, const struct trees_origin *o, i32 h) {
    const struct trees_shape *q = &p->shape;
    if (q->shift == SHIFT_LEVEL) return o->level;
    if (q->shift == SHIFT_LAST || q->season <= 1) return o->last;
    const f32 v = seen(o->s, o->col, o->origin + h - phase_back(h, q->season), o->origin);
    return isnan(v) ? o->last : v;
}

f32 trees_step_take(const struct trees_inputs *p, const struct trees_origin *o, i32 h, f32 *u) {
    struct moment m = {0};
    if (p->shape.calendar && o->s->time) m = moment_of(o->s, o->origin + h);
    for (i32 i = p->norigin; i < p->n; i++) u[i] = step_value(o, &p->list[i], h, o->origin + p->shape.H, &m);
    return shift_of(p, o, h);
}
