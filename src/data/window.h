/* window.h - rows of a batch as views of a series: which windows there are, and how one is laid out for the network.
 *
 *     v[col]  ...[ seg 0 | seg 1 | ... | seg n-1 ][ horizon: out 0 | out 1 | .. ]
 *                 ^ origin - n*w                  ^ origin
 *
 * A row is (origin, target column).  Nothing is materialised but the batch that is being filled.  Per row the values are shifted
 * and divided (see enum window_scale) with numbers from the inputs only, so a window gives the same result alone and in any
 * batch. */
#ifndef STRETTO_DATA_WINDOW_H
#define STRETTO_DATA_WINDOW_H

#include "data/series.h"

/* In the order of the words of --scale. */
enum window_scale {
    WSCALE_AUTO,   /* not resolved: as series */
    WSCALE_NONE,   /* as series: columns are always scaled */
    WSCALE_SERIES, /* v */
    WSCALE_WINDOW, /* (v - last) / deviation of the window */
    WSCALE_LAST,   /* v - last observed value */
    WSCALE_MEAN    /* raw / mean |raw| of the window */
};

struct window_shape {
    i32 context, horizon;
    i32 seg, nseg;         /* input: nseg segments of seg rows; nseg * seg >= context, zeros in front */
    i32 out_seg, nout;     /* output: nout segments of out_seg rows; nout * out_seg >= horizon, NaN behind */
    enum window_scale scale;
    bool mask;             /* a 0/1 value beside every input value: present */
    i32 calendar;          /* calendar features per segment, 0 = none (window_calendar_size) */
};

/* A set of windows: origins first, first + stride, ... < end, times all target columns; row i = (origin i / ntarget, column i %
 * ntarget). */
struct window_set {
    i64 first, end, stride;
};

i64 window_origins(const struct window_set *w);
static inline i64 window_origin(const struct window_set *w, i64 k) { return w->first + k * w->stride; }

i32 window_calendar_size(const struct freq *f); /* sines and cosines that this frequency can tell apart */
i32 window_features(const struct window_shape *p, const struct series *s); /* I: values per input segment */
i32 window_future_features(const struct window_shape *p,
                           const struct series *s); /* known columns + calendar per output segment */

/* Shift and divisor of a row.  The divisor is at least WINDOW_FLOOR (in deviations of the series), so that flat windows do not
 * blow up what follows; 1 when fewer than two values are there.  Returns how many values the context holds. */
#define WINDOW_FLOOR 0.1
i32 window_scale_of(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 *shift, f32 *div);

/* Where a row goes: element (t, f) of row b at p[(t * B + b) * ld + f].  window_fill_x: of the segments from..from + steps alone
 * where steps > 0 (a slice of the window), the first of them at t = 0. */
struct window_dst {
    f32 *p;
    i64 ld;
    i32 B;
    i32 from, steps;
};
void window_fill_x(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 shift, f32 div,
                   struct window_dst x, i32 b);
/* One step of a model that reads a row at a time and never begins anew: the features of row `row` as a forecast from the row
 * after it sees them (seg 1, no scale), to out[window_features]. */
void window_fill_step(const struct window_shape *p, const struct series *s, i64 row, i32 col, f32 *out);
void window_fill_future(const struct window_shape *p, const struct series *s, i64 origin, struct window_dst k, i32 b);
/* Targets of the horizon, NaN where not observed or past the end; returns how many are present. */
i32 window_fill_y(const struct window_shape *p, const struct series *s, i64 origin, i32 col, f32 shift, f32 div,
                  struct window_dst y, i32 b);
/* A forecast in series units [horizon] laid out like targets. */
void window_fill_base(const struct window_shape *p, const f32 *base, f32 shift, f32 div, struct window_dst y, i32 b);

/* Category of column cat at the last row of input segment t (-1 becomes word nword: "missing"). */
i32 window_category(const struct window_shape *p, const struct series *s, i32 cat, i64 origin, i32 t);

#endif
