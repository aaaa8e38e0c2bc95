/* window.h - windows of a series as samples of a batch: the set of windows, and the layout of one sample for the network.
 *
 *     v[col]  ...[ seg 0 | seg 1 | ... | seg n-1 ][ horizon: out 0 | out 1 | .. ]
 *                 ^ origin - n*w                  ^ origin
 *
 * A sample is (origin, target column). Only the batch being filled is materialized. Each sample is shifted and divided (enum
 * window_scale) by statistics of its inputs only, so a window gives the same result alone and in any batch. */
#ifndef STRETTO_DATA_WINDOW_H
#define STRETTO_DATA_WINDOW_H

#include "data/series.h"

/* In the order of the words of --scale. */
enum window_scale {
    WSCALE_AUTO,   /* not resolved: as series */
    WSCALE_NONE,   /* as series: columns are always scaled */
    WSCALE_SERIES, /* v */
    WSCALE_WINDOW, /* (v - last) / standard deviation of the window */
    WSCALE_LAST,   /* v - last observed value */
    WSCALE_MEAN    /* raw / mean |raw| of the window */
};

struct window_shape {
    i32 context, horizon;
    i32 seg, nseg;         /* input: nseg segments of seg rows; nseg * seg >= context, zeros before it */
    i32 out_seg, nout;     /* output: nout segments of out_seg rows; nout * out_seg >= horizon, NaN after it */
    enum window_scale scale;
    bool mask;             /* adds a 0/1 presence flag to every input value */
    i32 calendar;          /* calendar features per segment, 0 = none (window_calendar_size) */
};

/* A set of windows: origins first, first + stride, ... < end, for each target column; sample i = (origin i / ntarget, column i
 * % ntarget). */
struct window_set {
    i64 first, end, stride;
    const i64 *at; /* [ntarget] the only origin of each column, and end = first + 1; NULL = the same ones for all columns */
};

i64 window_origins(const struct window_set *w);
static inline i64 window_origin(const struct window_set *w, i64 k) { return w->first + k * w->stride; }

/* Periods of the calendar features in seconds: those of day, week and year that have at least two rows. Returns their number. */
enum { WINDOW_PERIODS = 3 };
i32 window_periods(const struct freq *f, i64 period[WINDOW_PERIODS]);
i32 window_calendar_size(const struct freq *f); /* a sine and a cosine for each period */
i32 window_features(const struct window_shape *p, const struct series *s); /* I: values per input segment */
i32 window_future_features(const struct window_shape *p,
                           const struct series *s); /* known columns + calendar per output segment */

/* Shift and divisor of a sample; returns the number of values in its context. The divisor is at least WINDOW_FLOOR (in
 * deviations of the series), so that flat windows do not amplify errors; 1 with fewer than two values. */
#define WINDOW_FLOOR 0.1
i32 window_scale_of(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 *shift, f32 *div);
/* The shift and the divisor of a scale as words; model files hold them, docs/model-file.md defines them. */
void window_scale_words(enum window_scale scale, const char **shift, const char **divisor);

/* Destination: element (t, f) of sample b is p[(t * B + b) * ld + f]. window_fill_x with steps > 0 fills only the segments
 * from..from + steps (a time slice), the first at t = 0. */
struct window_dst {
    f32 *p;
    i64 ld;
    i32 B;
    i32 from, steps;
};
void window_fill_x(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 shift, f32 div,
                   struct window_dst x, i32 b);
/* For stateful streaming, one row per step: the features of row `row` as seen by a forecast from the next row (seg 1, no
 * scale), into out[window_features]. */
void window_fill_step(const struct window_shape *p, const struct series *s, i64 row, i32 col, f32 *out);
void window_fill_future(const struct window_shape *p, const struct series *s, i64 origin, i32 col, struct window_dst k, i32 b);
/* Targets of the horizon, NaN if not observed or past the end; returns how many are present. */
i32 window_fill_y(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 shift, f32 div,
                  struct window_dst y, i32 b);
/* Converts a forecast in series units [horizon] to the layout of targets. */
void window_fill_base(const struct window_shape *p, const f32 *base, f32 shift, f32 div, struct window_dst y, i32 b);

/* Category of column cat, for target col, at the last row of input segment t (-1 becomes word nword: "missing"). */
i32 window_category(const struct window_shape *p, const struct series *s, i32 cat, i32 col, i64 origin, i32 t);

#endif
