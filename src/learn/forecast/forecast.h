/* forecast.h - the forecaster: a base forecast plus a correction by a recurrent net; the guard sets the weight of the correction.
 *
 *     series --windows--> base(window) + a * div * net((window - shift) / div)      a = guard weight, earned on validation
 *     --combine average:  base + a * share * (shift + div * net(..) - base)         shares.h
 *
 *     fit.c    choose base, train members, guard, bands         net.c    layers from the spec, head/ what follows them
 *     members.c trains each ensemble member                     prepare.c net, plan, buffers, batches of a fit
 *     batch.c  rows of a batch for the network                  score.c  scores beside naive baselines
 *     file.c   model file                                       state.c  checkpoints
 *     run.c    forecasts window by window                       stream.c forecasts in one pass (decoder.every_step)
 *
 * Base, correction and guard can each be switched off, and each is shown in the report. */
#ifndef STRETTO_LEARN_FORECAST_FORECAST_H
#define STRETTO_LEARN_FORECAST_FORECAST_H

#include "data/window.h"
#include "learn/forecast/calendar.h"
#include "learn/forecast/head/head.h"
#include "learn/learner.h"
#include "bases/base.h"
#include "model/chain.h"
#include "model/loss/family.h"
#include "train/guard.h"
#include "train/loop.h"
#include "train/metrics.h"

enum { MEMBERS_MAX = 100 };
/* Bins of nonconformity scores (adapt.c); what stands behind the residual quantiles: the power, the scores of calibration. */
enum { BAND_BINS = 97, BAND_FACTS = 1 + BAND_BINS };

/* --combine: the network learns the errors of the base, or the series itself, and its forecast is averaged with the base's by
 * shares from validation (Bates and Granger 1969), one for each piece of the horizon. */
enum { COMBINE_AUTO, COMBINE_RESIDUAL, COMBINE_AVERAGE };
enum { SHARES_MOST = 16 };
struct shares {
    i32 n;                /* pieces of the horizon; 0 = the network's forecast counts in full */
    f64 of[SHARES_MOST];  /* 0..1 */
};

enum { CALENDAR_AUTO, CALENDAR_YES, CALENDAR_NO }; /* in the order of the words of --calendar */

/* Time slices of a fit. */
struct slice_spec {
    i32 slices;                 /* time slices of the context during training (P); 0 or 1 = none */
    i32 least;                  /* training may lower `slices` to this; = slices: fixed */
    i32 rank_most;              /* training may raise the option slice_rank to this; = slice_rank: fixed */
    struct chain_course course; /* how the rounds over them run */
};

/* What to learn and how, derived from the options; plain values only. */
struct forecast_spec {
    /* The options by name (base/option_structs.h): horizon, context, segment (0 = one row at a time), batch (origins per step),
     * steps (0 = from epochs), stride (rows between scored origins), .. */
    union {
        struct learner_options for_learner;
        struct {
#define OPTION_LEARNER OPTION_MEMBER
#include "base/option_members.h"
        };
    };
    union {
        struct net_options for_net;
        struct {
#define OPTION_NET OPTION_MEMBER32
#include "base/option_members.h"
        };
    };
    union {
        struct optim_options for_optim;
        struct {
#define OPTION_OPTIM OPTION_MEMBER32
#include "base/option_members.h"
        };
    };
    union {
        struct loop_options for_loop;
        struct {
#define OPTION_LOOP OPTION_MEMBER
#include "base/option_members.h"
        };
    };
    /* Derived from the options above. */
    const struct head *decoder;     /* --decoder and --loss-steps: how forecasts follow from the recurrent layers */
    const struct head_output *output; /* --head: what a forecast value is made of */
    struct slice_spec cut;          /* slices of the context in training */
    const struct family *family;    /* of the head's distribution, whose parameters are the outputs; NULL = none */
    i32 nquantile;                  /* outputs that are quantiles; 0 = one output, or parameters */
    i32 nband;                      /* quantiles that are forecast (by the head, or from validation residuals); 0 = none */
};

/* What the data must look like for the model, and how its values were scaled. */
struct schema {
    i32 ncol, ntarget, npast, nknown, ncat, nstatic; /* as in struct series */
    bool panel;
    const char **column;   /* of a panel: [1 + npast + nknown] columns of the file */
    const char **name;     /* [ncol] */
    const char **cat_name; /* [ncat] */
    const char ***word;    /* [ncat][nword] vocabulary of training */
    i32 *nword;
    f64 *mean, *dev;                /* [ncol] */
    struct freq freq;
    struct arena arena;
};

struct slice_record; /* slices/slices.h */
struct store_record; /* store/account.h */

struct forecaster {
    struct model model;
    struct forecast_spec spec;
    struct schema schema;
    struct window_shape shape;
    struct net net;                 /* over whole windows; nop 0 = no network */
    i32 nmember;
    f32 *theta[MEMBERS_MAX];        /* [ntheta] best weights of each member */
    struct base *base;
    struct base *ridge;             /* ridge forecast to compare with, if the base is no ridge; NULL = too few windows */
    f64 *mase;                      /* [ntarget] denominator of MASE, from the records before the test split */
    i64 seen_rows;                  /* rows from the start of the file whose targets training has used */
    i64 seen_from, seen_time;       /* first and last time of those rows; INT64_MIN = not known, or rows without times */
    struct guard guard;
    f64 weight;                     /* a: share of the correction that is used, 0..1 */
    struct shares shares;           /* --combine average */
    /* Residual quantiles [ntarget][nband][horizon], then BAND_FACTS: they are in units of the window's deviation to this power
     * (below 0: of the row's div, as older files have them), then shares of calibration in each bin of nonconformity; then the
     * templates of sample paths (paths.h), NaN = none. */
    f32 *spread;
    /* for the report */
    struct choice choice;           /* base auto */
    struct mix mix;                 /* base mix */
    struct trees_choice trees;      /* base auto and mix: trees beside it */
    bool trees_refitted;            /* the trees of the base have seen the validation rows */
    bool has_choice, has_mix, has_guard;
    i64 steps_done;
    f64 step_predicted, step_measured; /* seconds of a training step: by the plan's cost model, and measured */
    struct slice_record *slices;    /* statistics of time slices in training; NULL = loaded from a file */
    struct store_record *store;     /* account of the parameter store in training; NULL = none was used, or loaded from a file */
};

/* The network learns the series itself, and is averaged with the base. */
static inline bool forecast_averages(const struct forecast_spec *spec) {
    return spec->combine == COMBINE_AVERAGE && spec->base[0] != 'n' && !spec->decoder->every_step;
}
/* Its outputs are corrections of a base: they start at zero. */
static inline bool forecast_corrects(const struct forecast_spec *spec) {
    return spec->base[0] != 'n' && !forecast_averages(spec);
}

/* Share of the network at step k of the horizon, before the guard's weight. */
static inline f32 forecast_share(const struct forecaster *f, i32 k) {
    const struct shares *s = &f->shares;
    return s->n > 0 ? (f32)s->of[(i64)k * s->n / f->spec.horizon] : 1.f;
}
/* Quantiles and samples are whole numbers from 0 on: a head of counts, also where no network gives a distribution. */
static inline bool forecast_counts(const struct forecast_spec *spec) { return spec->family && spec->family->counts; }
static inline f32 forecast_weight(const struct forecaster *f, i32 k) { return (f32)f->weight * forecast_share(f, k); }

static inline i64 forecast_quantiles(const struct forecaster *f, i32 ntarget) {
    return (i64)ntarget * f->spec.nband * f->spec.horizon; /* floats of spread, without what follows them */
}
i64 forecast_spread_floats(const struct forecaster *f, i32 ntarget); /* all of them */

/* Rows that a window of a training step has: one for each target column, and in a panel as many as few series have, each of a
 * window of its own. */
enum { PANEL_WIDTH = 8 };
static inline bool forecast_draws_series(const struct forecast_spec *spec, const struct series *s) {
    return s->panel && !spec->decoder->every_step;
}
static inline i32 forecast_width(const struct forecast_spec *spec, const struct series *s) {
    return forecast_draws_series(spec, s) ? imin(s->ntarget, PANEL_WIDTH) : s->ntarget;
}

/* The model's number of a target column of a series; -1 = training has not seen this series of a panel. */
static inline i32 forecast_column(const struct series *s, i32 col) { return s->of_model ? s->of_model[col] : col; }

static inline struct forecaster *forecaster_in(const struct model *m) { return (struct forecaster *)(uintptr_t)m; }

/* Steps of the recurrent layers over a window. */
static inline i32 forecast_steps(const struct forecast_spec *s) { return ceil_div(s->context, imax(1, s->segment)); }

/* Windows of an epoch if training may use rows [0, rows) of the series: one per origin, or tiles of a context with
 * decoder.every_step.  In a panel, windows of all series by forecast_width. */
i64 forecast_epoch(const struct forecast_spec *spec, const struct series *s, i64 rows);
/* Origins [*first, *end) of windows of a series of a panel whose horizon ends before `rows`: they see a horizon of its rows, or a
 * context.  Earlier rows of the context are missing values. */
void forecast_series_origins(const struct forecast_spec *spec, const struct series *s, i32 col, i64 rows, i64 *first, i64 *end);

/* Windows that a step uses of `windows`, after --accumulate, and its rows: one per window, target column and slice. E601 if
 * the number overflows. */
err forecast_rows(const struct forecast_spec *spec, i64 windows, i32 ntarget, i32 *nwin, i32 *B);

/* E103 if the kernels have no products in the spec's precision; the fix names one that they have. */
err forecast_check_kern(const struct forecast_spec *spec, const struct kern *k);

/* Fits a scaled series. Returns 0, a failure, or STOP_SIGNAL after it has written a checkpoint (*out stays NULL). */
err forecast_fit(const struct learn_job *job, struct model **out);
void forecast_free(struct model *m); /* the forecaster; NULL is fine */
/* Called after comm_recover on a rank whose fit is over: joins the exchange in which the other ranks compare their progress. */
err forecast_healed(struct comm *c);

/* E301 if the split leaves no window to train on; the fix has numbers that would work. folds: of the test split, 1 = one
 * fold. */
err forecast_check_length(const struct split *split, const struct forecast_spec *spec, i32 folds);

/* --- forecasts of many windows, streamed --- */
struct forecast_row {
    i64 origin;
    i32 col;
    const f32 *mean;   /* [horizon] final forecast, series (scaled) units */
    const f32 *base;   /* [horizon] */
    const f32 *both;   /* [horizon] base + full correction (before the guard) */
    const f32 *band;   /* [horizon][nband] quantiles, NULL when nband = 0 */
    const f32 *raw;    /* [outputs][horizon] output of the network, mean over the members */
    f64 col_mean, col_dev; /* of the column: a value v is v * col_dev + col_mean in original units */
    f32 shift, div;
    i32 seen;          /* values present in the context */
};
typedef err forecast_row_fn(void *self, const struct forecast_row *row);

/* Forecasts every window of the set, all target columns, in order of origin, then column. With decoder.every_step this is
 * one pass over the rows that starts a context before the first origin. Bands adapt to the recent coverage (adapt.c). */
err forecast_windows(const struct forecaster *f, const struct series *s, const struct window_set *set,
                     const struct resources *use, forecast_row_fn *fn, void *self);

/* A forecast in original units. */
struct forecast_sample {
    i64 origin;
    i32 col;
    f64 *mean, *base;     /* [horizon] */
    f64 *band;            /* [horizon][nband] or NULL */
};
err forecast_sample(const struct forecaster *f, const struct series *s, const struct forecast_row *row, struct arena *a,
                    struct forecast_sample *out);

/* --- scores --- */
enum { SCORE_ROWS = 5, SCORE_SAMPLES = 4 };
enum score_row_id { SCORE_MODEL, SCORE_BASE, SCORE_NAIVE, SCORE_SNAIVE, SCORE_RIDGE };

struct forecast_scores {
    struct metrics *row[SCORE_ROWS];  /* NULL = no such row (snaive without a season, or a base that is itself a naive rule) */
    char name[SCORE_ROWS][32];        /* "model", "snaive (12)" */
    i64 windows;
    i32 horizon, nband;
    struct forecast_sample sample[SCORE_SAMPLES];
    i32 nsample;
    struct window_set set;            /* what was scored; `at` is not kept */
    struct calendar calendar;         /* rows as in `row` */
    f32 *window;                      /* of one series: [origins of set] mean absolute error of each window, NaN = no target */
    struct arena arena;
};

/* Scores the windows of a set: the model beside base, naive, snaive and ridge. */
err forecast_score(const struct forecaster *f, const struct series *s, const struct window_set *set, const struct resources *use,
                   struct forecast_scores *out);
/* by_series.c: the scores of each series, or of each group of the columns `by` (--by); E102, E106, E214. step: -1 = all.  The
 * lines lie in the arena, apart from the names of the naive forecasts, which s owns. */
err forecast_lines(const struct forecast_scores *s, const struct series *x, const char *by, i32 step, bool original,
                   struct arena *a, struct score_lines **out);
err forecast_check_by(const struct options *o, const struct series *s); /* the same errors, before a training */

void forecast_scores_free(struct forecast_scores *s);
/* True if errors are compared squared: the forecast is a mean. */
bool forecast_squares(const struct forecast_spec *spec);
/* The error that skill is computed from, over all columns and either all steps (step -1) or one: MAE; RMSE (original units)
 * or MSE if forecast_squares. */
f64 forecast_error(const struct forecaster *f, const struct metrics *m, i32 step, bool original);
/* The best of naive, snaive and ridge; -1 = none has a score. */
i32 forecast_best_naive(const struct forecaster *f, const struct forecast_scores *s, i32 step, bool original);

/* --- inside this folder --- */
/* run.c: forecast_windows() with the bands of calibration, without adaptation. */
err forecast_rows_of(const struct forecaster *f, const struct series *s, const struct window_set *set,
                     const struct resources *use, forecast_row_fn *fn, void *self);
/* adapt.c: the bin of a target y outside (above 1) or inside (up to 1) a band around the forecast; -1 = nothing to score. */
i32 forecast_bin(f32 y, f32 mean, f32 low, f32 high);
/* First row after those that training has seen; 0 if all rows lie before them, nrow if no row lies after them. */
i64 forecast_first_unseen(const struct forecaster *f, const struct series *s);
/* A distance between origins near the given one, such that origins reach every phase of the season. */
i64 forecast_stride(i64 about, i64 season);
static inline bool base_is_ridge(const struct base *b) { return b && b->npart == 1 && b->part[0].kind == BASE_RIDGE; }
/* Lags of the ridge: the context; at most BASE_LAGS where the network reads far more than a ridge has use for. */
enum { BASE_LAGS = 336 };
static inline i32 forecast_lags(const struct forecast_spec *s) {
    return s->decoder->every_step || forecast_averages(s) ? imin(s->context, BASE_LAGS) : s->context;
}
/* predict.c: the network, the ridge or the trees have features of the calendar. */
bool forecast_reads_time(const struct forecaster *f);
/* Makes the net over whole windows, or over spec->cut.slices slices of them; both have the same parameter layout. */
err forecast_net(const struct forecast_spec *spec, const struct window_shape *shape, const struct series *s, struct net *out);
/* True if time slices are possible. States that --slice-rounds stores belong to tiles, so windows that overlap have none. */
bool forecast_can_slice(const struct forecast_spec *spec);
/* Makes the net of a head with every_step over shape->nseg rows at a time, with the same parameters; states are the inputs
 * "state.0", .. */
err forecast_stream_net(const struct forecast_spec *spec, const struct window_shape *shape, const struct series *s,
                        struct net *out);
/* Describes the columns from rows [0, rows), which precede the test split: training must not know what is missing later. */
err forecast_shape(const struct forecast_spec *spec, const struct series *s, i64 rows, struct window_shape *out);
err schema_of(const struct series *s, struct schema *out);
void schema_free(struct schema *c);
/* Words that first occur after the training rows become "missing", with a warning for each column: training has not seen
 * them. */
err schema_limit_words(struct series *s, i64 train, const struct events *to);
/* Checks that a scaled series has the columns and the scale of the schema: E903. */
err schema_fits(const struct schema *c, const struct series *s);
/* Checks that a series fits the schema (E903) and applies scale and vocabularies; warns of unknown words. */
err schema_apply(const struct schema *c, struct series *s, const struct events *to);

#endif
