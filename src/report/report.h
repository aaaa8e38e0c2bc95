/* report.h - the content of a report as plain data, and the HTML page made from it.
 *
 * The caller fills a struct report (it keeps ownership of all pointers; fields that are NULL, 0 or NaN are left out) and gets
 * one self-contained HTML file: no script, no other file, light and dark, printable.
 *
 *     verdict | scores   | forecast        first screen: is it good?
 *             | curves   | error by step, figures of the learner
 *     parts, forecasts, data, time slices, parameter store, timeline, plan, machine, options, notes */
#ifndef STRETTO_REPORT_REPORT_H
#define STRETTO_REPORT_REPORT_H

#include "report/svg.h"
#include "report/table.h"

struct report_fact { const char *name, *value; };

struct report_option {
    const char *name, *value;
    const char *origin; /* "default", "preset long", "--lr", "load.yaml:3"; anything but "default" is highlighted */
};

/* Training of one ensemble member. */
struct report_curve {
    i32 ntrain, nvalid;
    const f64 *train_step, *train;
    const f64 *valid_step, *valid;
    i32 best; /* index into valid of the kept weights, -1 = none */
};

/* One window: context, then horizon. time may be NULL: the history then ends at step 0. */
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

/* The forecast as base + a * correction, and the error of each part. */
struct report_parts {
    const char *base;              /* "mix", "ridge"; NULL = no base */
    const char *base_detail;       /* "theta 61 %, season + growth 39 %", "penalty 0.1", or NULL */
    const struct score_table *fold; /* candidates for the base on the forward-chaining folds, or NULL */
    const char *correction;        /* "lstm 1x32"; NULL = none */
    const char *correction_detail; /* "on what the base leaves, mean of 5 seeds", or NULL */
    bool guarded;
    f64 t, a;                      /* t: statistic of the paired differences; a: weight of the correction */
    i32 blocks;                    /* number of validation blocks in t */
    const char *metric;            /* metric of the next three, e.g. "MAE" on the test part */
    f64 base_error, full_error;    /* base alone; base + a * correction; NaN = not known */
    const char *note;              /* a sentence, or NULL */
};

struct report_split {
    const char *name;         /* "train" */
    i64 row0, row1;           /* rows [row0,row1) */
    const char *first, *last; /* dates, or NULL */
    i64 windows;
};

/* A time-sliced recurrent layer. [0] forward, [1] backward. */
struct report_slices {
    const char *layer;
    i32 nslice, steps;      /* slices per training step, all windows together; steps per slice */
    f64 rounds[2];          /* mean number of rounds over training */
    f64 again[2];           /* rerun steps as a fraction of the first round */
    f64 forgets;            /* forget window w in steps; 0 = unknown */
    f64 useful;             /* efficiency: first / (first + again), over both directions */
    i64 serial, trained;    /* training steps that ran the slices serially; of how many */
    f64 gap[2];             /* last gap above the tolerance, relative to the values */
    i32 nround[2];
    const i32 *ran[2];      /* [nround][nslice] steps of each slice in each round of the last step */
};

/* A training through a parameter store. */
struct report_store {
    const char *policy;        /* "ssp:3, 2 servers, codec bf16" */
    bool shared;               /* workers are threads that update one vector: pushes are updates, nothing is sent */
    i32 servers, workers;      /* servers: ranks that only serve */
    i64 pushes, refused;       /* refused: not finite */
    i64 messages, sent, whole; /* between ranks: messages, bytes, bytes of the same messages as f32 without a codec */
    f64 waited;                /* share of the workers' time */
    i32 nstale;
    const i64 *stale;          /* [nstale] pushes by staleness in updates, from 0 on; the last bin: and more */
    i32 ndecision;
    const struct report_fact *decision; /* of --store auto: "step 40", "local:4: workers waited 12% of the time" */
};

/* A picture of the learner's own: confusion matrix, importance of columns, clusters. */
struct report_figure {
    const char *id;            /* anchor: "confusion" */
    const char *heading, *lead; /* lead: a sentence below the heading, or NULL */
    const char *svg;           /* an <svg> element (svg.h) */
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
    const struct report_forecast *forecast; /* the first is shown on the first screen */

    const char *step_metric;   /* "MAE" */
    i32 horizon, nline;
    const struct report_line *line;

    i32 nfigure;
    const struct report_figure *figure;

    struct report_parts parts;

    i32 nsplit, ndata;
    const struct report_split *split;
    const struct report_fact *data;

    i32 nslices;
    const struct report_slices *slices;
    f64 slice_gap;             /* relative difference of the loss to unsliced windows; NaN = unknown */

    const struct report_store *store; /* NULL = trained without one */

    const char *plan;          /* plan as text */
    i64 nspan;
    const struct span *span;   /* spans of one or a few steps */

    i32 nmachine, noption, nnote, nwarning;
    const struct report_fact *machine;
    const struct report_option *option;
    const char *const *note;
    const char *const *warning;
};

/* The page as text (E601 if memory is refused), or as a file that is written completely or not at all (E701..E703). */
err report_html(const struct report *r, struct str *out);
err report_write(const struct report *r, const char *path);

/* One forecast as an SVG file: `--plot F.svg`. */
err report_plot(const struct report_forecast *f, const char *path);

#endif
