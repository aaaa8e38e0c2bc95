/* axis.h - axis ticks at round values: numbers, logarithms, calendar time. */
#ifndef STRETTO_REPORT_AXIS_H
#define STRETTO_REPORT_AXIS_H

#include "base/bits.h"

enum axis_kind { AXIS_NUMBER, AXIS_WHOLE, AXIS_LOG, AXIS_TIME }; /* whole: ticks at integers only; time: seconds since 1970 */

enum { TICKS_MAX = 24, TICK_TEXT = 24 };

struct tick {
    f64 at;
    char text[TICK_TEXT];
    char under[TICK_TEXT]; /* second label line: the year below "Jan", the date below "06:00"; "" = none */
};

struct axis {
    enum axis_kind kind;
    f64 lo, hi; /* range of the axis */
    i32 n;
    struct tick tick[TICKS_MAX];
};

/* Makes an axis over the data range [lo,hi] with as many ticks as are readable on `room` pixels: horizontal (across) or
 * vertical, which gets a small margin. Empty, infinite or zero ranges also give a usable axis. */
void axis_make(struct axis *a, enum axis_kind kind, f64 lo, f64 hi, f64 room, bool across);

/* Position of v on the axis, 0 at lo and 1 at hi; NaN if its logarithm does not exist. */
f64 axis_place(const struct axis *a, f64 v);

/* Estimated width in pixels of UTF-8 text in a sans-serif font of `size` pixels; overestimates. */
f64 text_width(const char *s, f64 size);

#endif
