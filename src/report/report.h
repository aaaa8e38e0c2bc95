/* report.h - the content of a report as plain data, and the HTML page made from it.
 *
 * The caller fills a struct report (it keeps ownership of all pointers; fields that are NULL, 0 or NaN are left out) and gets
 * one self-contained HTML file: no script, no other file, light and dark, printable.
 *
 *     verdict, scores        is it better than a naive forecast?
 *     forecast, series       test windows and the time after the last record; worst, median and best series
 *     errors                 by step of the horizon, by hour, weekday and month; calibration of the quantiles; the learner's own
 *     columns, parts         what the forecast rests on
 *     quality, data          what is doubtful in the data, and how they were split
 *     details (folded)       training, time slices, parameter store, timeline, plan, machine, options, notes */
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
    const char *note;      /* a line below the title: "worst of 8, MASE 1.43"; NULL = none */
    i32 nhistory, horizon;
    const f64 *time;       /* [nhistory + horizon] seconds since 1970 */
    const f64 *history;    /* [nhistory] */
    const f64 *actual;     /* [horizon], NULL = not known yet */
    const f64 *model, *base; /* [horizon]; base may be NULL */
    i32 nlevel;            /* quantiles that are drawn as bands around each other; 0 or 1 = no band */
    const f64 *level;      /* [nlevel] ascending: .1 .5 .9 */
    const f64 *quantile;   /* [nlevel][horizon] */
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
    bool folded;               /* about the run, not the model: among the details */
};

/* Share of the targets at or below each quantile. */
struct report_calibration {
    i32 n;
    const f64 *level, *below; /* [n] nominal, observed; both 0..1 */
    i64 cells;                /* targets that were counted */
    i32 nstep;                /* coverage of the outermost band at each step of the horizon; 0 = not known */
    const f64 *step;          /* [nstep] */
    f64 from, to;             /* that band */
};

/* Errors by a part of the calendar: the hours of the day, the days of the week, the months of the year. */
struct report_calendar {
    const char *name;          /* "Error by hour of the day" */
    i32 n;
    const char *const *label;  /* [n] */
    const f64 *model, *naive;  /* [n] NaN = no target; naive may be NULL */
};

/* How much the error grows when a column no longer says anything about its window. */
struct report_column {
    const char *name;
    f64 value;      /* relative increase of the error: .12 = 12 % */
    f64 low, high;  /* least and largest of the repetitions */
};
struct report_columns {
    const char *how; /* how it was measured */
    i32 n;           /* largest value first */
    const struct report_column *of;
};

/* A finding of `stretto check`. */
struct report_finding {
    bool warning;                        /* false: an error */
    const char *code, *where, *text, *fix; /* "W034"; where and fix may be "" */
};
struct report_quality {
    const char *how;   /* what was examined, or why nothing was; NULL = no section */
    i32 nfact, nfinding;
    const struct report_fact *fact;
    const struct report_finding *finding;
};

struct report {
    const char *title, *command, *created, *version;
    f64 seconds;               /* training time, NaN = not known */
    i64 parameters;            /* 0 = not known */

    const struct score_table *scores;

    const char *loss;          /* "pinball" */
    i32 ncurve;
    const struct report_curve *curve;

    i32 nforecast, nahead, nseries;
    const struct report_forecast *forecast; /* windows of the test part; the first is shown first */
    const struct report_forecast *ahead;    /* after the last record */
    const struct report_forecast *series;   /* worst, median and best series */
    const char *series_lead;                /* how they were chosen */

    struct report_calibration calibration;
    i32 ncalendar;
    const struct report_calendar *calendar;
    const char *calendar_naive;             /* name of the naive forecast in it, NULL = none */
    struct report_columns columns;
    struct report_quality quality;

    const char *step_metric;   /* "MAE" */
    i32 horizon, nline;
    const struct report_line *line;

    i32 nfigure;
    const struct report_figure *figure; /* of the learner, after the errors */

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
