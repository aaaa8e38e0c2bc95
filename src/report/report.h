/* report.h - everything a report shows, as plain data, and the page made from it.
 *
 * Whoever has finished a run fills a struct report (all pointers stay the caller's; what is NULL, 0 or NaN is left out) and gets
 * one HTML file that needs nothing else: no script, no other file, light and dark, printable.
 *
 *     verdict | scores   | forecast        first screen: is it good?
 *             | curves   | error by step
 *     parts, forecasts, data, time slices, timeline, plan, machine, options, notes
 */
#ifndef STRETTO_REPORT_REPORT_H
#define STRETTO_REPORT_REPORT_H

#include "report/svg.h"
#include "report/table.h"

struct report_fact { const char *name, *value; };

struct report_option {
    const char *name, *value;
    const char *origin; /* "default", "preset long", "--lr", "load.yaml:3"; anything but "default" stands out */
};

/* Training of one ensemble member. */
struct report_curve {
    i32 ntrain, nvalid;
    const f64 *train_step, *train;
    const f64 *valid_step, *valid;
    i32 best; /* index into valid whose weights were kept, -1 = none */
};

/* One window: the context, then horizon steps.  time may be NULL: then history ends at step 0. */
struct report_forecast {
    const char *title;     /* "Passengers" */
    i32 nhistory, horizon;
    const f64 *time;       /* [nhistory + horizon] seconds since 1970 */
    const f64 *history;    /* [nhistory] */
    const f64 *actual;     /* [horizon], NULL = not known yet */
    const f64 *model, *base; /* [horizon]; base may be NULL */
    const f64 *low, *high; /* [horizon] outer quantiles, or NULL */
    f64 low_q, high_q;     /* .1 and .9 */
};

struct report_line {
    const char *name; /* "model", "snaive (12)" */
    enum role role;
    const f64 *value; /* [horizon] */
};

/* Base + a * correction, and what each part was worth. */
struct report_parts {
    const char *base;              /* "mix", "ridge"; NULL = no such parts */
    const char *base_detail;       /* "theta 61 %, season + growth 39 %", "penalty 0.1", or NULL */
    const struct score_table *fold; /* candidates for the base on the forward-chaining folds, or NULL */
    const char *correction;        /* "lstm 1x32"; NULL = none */
    const char *correction_detail; /* "on what the base leaves, mean of 5 seeds", or NULL */
    bool guarded;
    f64 t, a;                      /* statistic of the paired differences, weight given to the correction */
    i32 blocks;                    /* validation blocks behind t */
    const char *metric;            /* of the next three, e.g. "MAE" on the test part */
    f64 base_error, full_error;    /* base alone; base + a * correction; NaN = not known */
    const char *note;              /* a sentence, or NULL */
};

struct report_split {
    const char *name;         /* "train" */
    i64 row0, row1;           /* rows [row0,row1) */
    const char *first, *last; /* dates, or NULL */
    i64 windows;
};

/* A recurrent layer whose windows were cut in time.  [0] forward, [1] backward. */
struct report_slices {
    const char *layer;
    i32 nslice, steps;      /* slices of a step, all windows together; steps of a slice */
    f64 rounds[2];          /* mean over training */
    f64 again[2];           /* steps that ran again, as a share of the first round */
    f64 forgets;            /* w; 0 = not known */
    f64 useful;             /* efficiency: first / (first + again), both ways */
    i64 serial, trained;    /* training steps with slices one after another, of so many */
    f64 gap[2];             /* the last that was not close, as a share of the values */
    i32 nround[2];
    const i32 *ran[2];      /* [nround][nslice] steps of each slice in each round of the last step */
};

struct report {
    const char *title, *command, *created, *version;
    f64 seconds;               /* training time, NaN = not known */
    i64 parameters;            /* 0 = not known */

    const struct score_table *scores;

    const char *loss;          /* "pinball" */
    i32 ncurve;
    const struct report_curve *curve;

    i32 nforecast;
    const struct report_forecast *forecast; /* the first one is on the first screen */

    const char *step_metric;   /* "MAE" */
    i32 horizon, nline;
    const struct report_line *line;

    struct report_parts parts;

    i32 nsplit, ndata;
    const struct report_split *split;
    const struct report_fact *data;

    i32 nslices;
    const struct report_slices *slices;
    f64 slice_gap;             /* of the loss, against whole windows; NaN = not known */

    const char *plan;          /* text of the plan */
    i64 nspan;
    const struct span *span;   /* one or a few steps */

    i32 nmachine, noption, nnote, nwarning;
    const struct report_fact *machine;
    const struct report_option *option;
    const char *const *note;
    const char *const *warning;
};

/* The page as text (E601 when memory is refused), or as a file that is complete or not there at all (E701..E703). */
err report_html(const struct report *r, struct str *out);
err report_write(const struct report *r, const char *path);

/* One forecast as an SVG file of its own: `--plot F.svg`. */
err report_plot(const struct report_forecast *f, const char *path);

#endif
