/* axis.c - see axis.h. */
#include "report/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "report/text.h"

#define TICK_SIZE 11.0 /* pixels of the label font */
#define LABEL_GAP 14.0 /* minimum gap between horizontal labels */
#define ROW_GAP 26.0   /* minimum distance between vertical labels */

f64 text_width(const char *s, f64 size) {
    f64 w = 0;
    for (; *s; s++) {
        if ((*s & 0xc0) == 0x80) continue;
        if (strchr("iljtfrI.,:;|!'() []-", *s)) w += .40;
        else if (strchr("mwMW@%", *s)) w += .95;
        else if (*s >= 'A' && *s <= 'Z') w += .74;
        else w += (unsigned char)*s >= 0x80 ? .80 : .635;
    }
    return w * size;
}

f64 axis_place(const struct axis *a, f64 v) {
    if (a->kind != AXIS_LOG) return (v - a->lo) / (a->hi - a->lo);
    return v > 0 ? log(v / a->lo) / log(a->hi / a->lo) : (f64)NAN;
}

/* True if the labels of all ticks fit into `room` pixels. */
static bool fits(const struct axis *a, f64 room, bool across) {
    for (i32 i = 1; i < a->n; i++) {
        f64 gap = room * (axis_place(a, a->tick[i].at) - axis_place(a, a->tick[i - 1].at));
        f64 need = across ? LABEL_GAP + .5 * (text_width(a->tick[i].text, TICK_SIZE) + text_width(a->tick[i - 1].text, TICK_SIZE))
                          : ROW_GAP;
        if (gap < need) return false;
    }
    return true;
}

static struct figure number_label(const struct axis *a, f64 at, f64 step) {
    const f64 size = a->kind == AXIS_LOG ? fabs(at) : dmax(fabs(a->lo), fabs(a->hi)); /* decades have a unit each */
    const i32 decimals = imax(0, (i32)ceil(-log10(step) - 1e-9));
    if (at != 0 && (size >= 1e13 || decimals > 6)) return text_digits(at, 3);
    if (size < 1e5) return text_fixed(at, decimals);
    const i32 unit = imin(4, (i32)(log10(size) / 3));
    const f64 scale = pow(1000, unit);
    struct figure t = text_fixed(at / scale, imax(0, (i32)ceil(-log10(step / scale) - 1e-9)));
    if (at != 0) strncat(t.s, &"?kMGT"[unit], 1);
    return t;
}

static void add_tick(struct axis *a, f64 at, f64 step) {
    if (a->n == TICKS_MAX) return;
    struct tick *t = &a->tick[a->n++];
    *t = (struct tick){.at = at};
    snprintf(t->text, TICK_TEXT, "%.*s", TICK_TEXT - 1, number_label(a, at, step).s);
}

/* Ticks at multiples of step inside [lo,hi]. */
static void linear_ticks(struct axis *a, f64 step) {
    a->n = 0;
    f64 first = ceil(a->lo / step - 1e-6), last = floor(a->hi / step + 1e-6);
    if (last - first >= TICKS_MAX) last = first + TICKS_MAX - 1;
    for (f64 k = first; k <= last; k++) add_tick(a, k * step, step);
}

static void make_linear(struct axis *a, f64 room, bool across) {
    static const f64 nice[] = {1, 2, 5};
    f64 lo = a->lo, hi = a->hi, power = pow(10, floor(log10((hi - lo) / (TICKS_MAX - 2))));
    for (i32 i = 0; i < 12; i++) {
        f64 step = power * nice[i % 3] * pow(10, i / 3);
        if (a->kind == AXIS_WHOLE && step < 1) continue;
        if ((hi - lo) / step > TICKS_MAX - 3) continue;
        linear_ticks(a, step);
        if (fits(a, room, across)) return;
    }
}

/* Ticks at decades, with 2 and 5 between if there are few; below one decade linear ticks are better. */
static void make_log(struct axis *a, f64 room, bool across) {
    f64 decades = log10(a->hi / a->lo);
    if (decades < 1) {
        a->kind = AXIS_NUMBER;
        make_linear(a, room, across);
        a->kind = AXIS_LOG;
        return;
    }
    static const i32 every_one[] = {0, 1, 2, 3, 5, 10, 20, 50, 100, 200}; /* 0: ticks at 1 2 5; k: every k-th decade */
    for (size_t i = 0; i < COUNT(every_one); i++) {
        i32 every = every_one[i];
        a->n = 0;
        if (decades > TICKS_MAX * imax(1, every)) continue;
        for (f64 k = floor(log10(a->lo)); k <= ceil(log10(a->hi)); k++) {
            static const f64 in[] = {1, 2, 5};
            for (i32 j = 0; j < (every ? 1 : 3); j++) {
                f64 at = in[j] * pow(10, k);
                bool keep = every <= 1 || fmod(fabs(k), every) == 0;
                if (keep && at >= a->lo * .999999 && at <= a->hi * 1.000001) add_tick(a, at, at);
            }
        }
        if (fits(a, room, across)) return;
    }
}

/* Calendar steps, finest first: unit and how many of them. */
enum unit { SECOND, MINUTE, HOUR, DAY, MONTH, YEAR };
static const struct {
    enum unit unit;
    i32 n;
} calendar[] = {{SECOND, 1},  {SECOND, 5}, {SECOND, 15}, {SECOND, 30}, {MINUTE, 1}, {MINUTE, 5}, {MINUTE, 15},
                {MINUTE, 30}, {HOUR, 1},   {HOUR, 3},    {HOUR, 6},    {HOUR, 12},  {DAY, 1},    {DAY, 2},
                {DAY, 7},     {DAY, 14},   {MONTH, 1},   {MONTH, 3},   {MONTH, 6},  {YEAR, 1},   {YEAR, 2},
                {YEAR, 5},    {YEAR, 10},  {YEAR, 20},   {YEAR, 50},   {YEAR, 100}, {YEAR, 500}, {YEAR, 1000}};

static const char *const month_name[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static void add_time(struct axis *a, f64 at, enum unit unit) {
    if (at < a->lo - .5 || at > a->hi + .5 || a->n == TICKS_MAX) return;
    struct tick *t = &a->tick[a->n++];
    struct civil c;
    *t = (struct tick){.at = at};
    time_split((i64)floor(at), &c);
    const char *month = month_name[c.month - 1];
    const long long year = (long long)c.year;
    if (unit == YEAR) snprintf(t->text, TICK_TEXT, "%lld", year);
    else if (unit == MONTH) snprintf(t->text, TICK_TEXT, "%s", month);
    else if (unit == DAY) snprintf(t->text, TICK_TEXT, "%d %s", c.day, month);
    else if (unit == SECOND) snprintf(t->text, TICK_TEXT, "%02d:%02d:%02d", c.hour, c.minute, c.second);
    else snprintf(t->text, TICK_TEXT, "%02d:%02d", c.hour, c.minute);
    if (unit == MONTH || unit == DAY) snprintf(t->under, TICK_TEXT, "%lld", year);
    else if (unit < DAY) snprintf(t->under, TICK_TEXT, "%d %s %lld", c.day, month, year);
}

static void time_ticks(struct axis *a, enum unit unit, i32 n) {
    static const i64 length[] = {1, 60, 3600, 86400};
    a->n = 0;
    if (unit < DAY) {
        f64 step = (f64)(length[unit] * n);
        for (f64 k = ceil(a->lo / step - 1e-9); k * step <= a->hi + .5 && a->n < TICKS_MAX; k++) add_time(a, k * step, unit);
        return;
    }
    if (unit == DAY) { /* weeks start on Monday: day 4 of the epoch */
        for (i64 d = (i64)floor(a->lo / 86400); (f64)d * 86400 <= a->hi + .5 && a->n < TICKS_MAX; d++)
            if (((d - 4) % n + n) % n == 0) add_time(a, (f64)d * 86400, unit);
        return;
    }
    struct civil c;
    time_split((i64)floor(a->lo), &c);
    i64 step = unit == MONTH ? n : 12 * n, k = c.year * 12 + c.month - 1;
    for (k -= (k % step + step) % step; a->n < TICKS_MAX; k += step) {
        f64 at = (f64)time_days(k / 12, (i32)(k % 12) + 1, 1) * 86400;
        if (at > a->hi + .5) return;
        add_time(a, at, unit);
    }
}

/* Keeps the second label line only where it changes and fits. */
static void thin_under(struct axis *a, f64 room) {
    char last[TICK_TEXT] = "";
    f64 end = -1e9;
    for (i32 i = 0; i < a->n; i++) {
        struct tick *t = &a->tick[i];
        bool same = strcmp(t->under, last) == 0;
        memcpy(last, t->under, sizeof last);
        f64 mid = room * axis_place(a, t->at), half = .5 * text_width(t->under, TICK_SIZE);
        if (same || mid - half < end + 6) t->under[0] = 0;
        else end = mid + half;
    }
}

static void make_time(struct axis *a, f64 room) {
    for (size_t i = 0; i < COUNT(calendar); i++) {
        static const f64 length[] = {1, 60, 3600, 86400, 28 * 86400, 365 * 86400};
        if ((a->hi - a->lo) / (length[calendar[i].unit] * calendar[i].n) > TICKS_MAX) continue;
        time_ticks(a, calendar[i].unit, calendar[i].n);
        if (a->n < TICKS_MAX && fits(a, room, true)) break;
    }
    thin_under(a, room);
}

void axis_make(struct axis *a, enum axis_kind kind, f64 lo, f64 hi, f64 room, bool across) {
    if (!(isfinite(lo) && isfinite(hi) && lo <= hi) || (kind == AXIS_LOG && lo <= 0)) {
        lo = kind == AXIS_LOG ? 1 : 0;
        hi = kind == AXIS_LOG ? 10 : 1;
    }
    f64 size = dmax(fabs(lo), fabs(hi)), least = dmax(kind == AXIS_TIME ? 60 : kind == AXIS_WHOLE ? 1 : 1e-12, 1e-9 * size);
    if (kind == AXIS_LOG) {
        if (hi < lo * 1.0001) {
            lo /= 2;
            hi *= 2;
        }
    } else if (hi - lo < least) { /* a single value: add a margin */
        f64 air = kind != AXIS_NUMBER ? least : size > 0 ? dmax(1e-12, .1 * size) : 1;
        lo -= air;
        hi += air;
    }
    if (!across && kind != AXIS_LOG) { /* margin above and below, but not across zero */
        f64 air = .04 * (hi - lo);
        lo = lo >= 0 && lo < air ? 0 : lo - air;
        hi += air;
    }
    *a = (struct axis){.kind = kind, .lo = lo, .hi = hi};
    if (kind == AXIS_LOG) make_log(a, room, across);
    else if (kind == AXIS_TIME) make_time(a, room);
    else make_linear(a, room, across);
}
