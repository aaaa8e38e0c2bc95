/* head.h - the descriptor of a head: how forecasts follow from the recurrent layers.  One file, one const struct, one line in
 * heads.def.
 *
 *     x, categories --front--> recurrent layers --decode--> features h [m][B][H] --output layer--> [m][B][w Q] --> loss
 *
 * m segments of w values with Q outputs each.  A head lays its targets out by `segments`; the batch follows the window shape. */
#ifndef STRETTO_LEARN_FORECAST_HEAD_HEAD_H
#define STRETTO_LEARN_FORECAST_HEAD_HEAD_H

#include "data/window.h"
#include "learn/forecast/input.h"

struct forecast_spec; /* learn/forecast/forecast.h includes this file */
struct forecast_row;

/* What a head may use; buffers and ops are -1 if the net has none. */
struct head_net {
    struct net *n;
    const struct forecast_spec *spec;
    const struct window_shape *shape;
    const struct series *s;
    i32 own, future; /* inputs: the head's own, known features of the horizon */
    i32 y, base;     /* inputs: targets, forecasts of the base */
    i32 top[2];      /* ops of the last recurrent layer: forward, backward */
    i32 first_slice; /* input: the row of the window's first slice */
};

struct head {
    const char *name;             /* --decoder NAME */
    const struct head *all_steps; /* the head that --loss-steps all turns it into; NULL = the two do not combine */
    const char *help;
    const char *report;  /* text that the report appends to the cell's name */
    bool segments;       /* the horizon is cut into segments of --segment values; else it is one segment */
    bool long_segment;   /* --segment auto is long for a short horizon, too */
    bool plain_state;    /* starts from the final state of one plain layer: no --bidirectional, no --projection */
    bool every_step;     /* a loss and a forecast at every step of the context: batches are tiles of the series (steps.c), and
                          * forecasts come from one pass that carries the state (stream.h) */
    bool own_output;     /* decode makes the outputs: no norm, dropout or output layer follows */
    enum input_role own; /* its own input, one step long, which the batch fills; INPUT_NONE = none */
    bool own_is_segment; /* that input has a segment of values; else one value */
    err (*front)(const struct head_net *b, i32 *x);  /* adds layers before the recurrent ones; NULL = none */
    err (*decode)(const struct head_net *b, i32 *h); /* adds the layers after them */
};

const struct head *head_find(const char *name); /* NULL = there is none */
const struct head *head_at(i32 i);              /* NULL = there are no more */

/* What a forecast value consists of: --head NAME. Quantiles come from the network, from the distribution whose parameters the
 * network gives (distribution.c), or from validation residuals. */
struct head_output {
    const char *name;
    bool quantiles;   /* one output per quantile; else one output, or the parameters of a distribution */
    const char *loss; /* the loss that --loss auto chooses */
    /* The point forecast whose residuals are measured. */
    const f32 *(*centre)(const struct forecast_row *row);
    /* Quantile q of step k.  a: guard weight; residual: quantile q of the residuals, or of the scores of a distribution, may be
     * NaN. */
    f32 (*band)(const struct forecast_spec *spec, const struct forecast_row *row, f32 a, f32 residual, i32 q, i32 k);
};
const struct head_output *head_output_find(const char *name); /* NULL = there is none */
/* That of the spec; without a network no distribution has parameters, and bands are those of a point forecast. */
const struct head_output *head_output_of(const struct forecast_spec *spec, bool network);
bool head_counts(const char *name); /* a distribution of counts */
/* True if the loss is that of one head alone. */
bool head_owns_loss(const struct head_output *output);

/* --- distribution.c --- */

/* Forecast of step k with share a of the correction. */
f32 head_forecast(const struct forecast_spec *spec, const struct forecast_row *row, f32 a, i32 k);
/* Quantile q of the distribution; z: its score as calibrated, NaN = that of the level. */
f32 head_quantile(const struct forecast_spec *spec, const struct forecast_row *row, f32 a, f32 z, i32 q, i32 k);
/* The score of target y (struct family); row->origin, row->col and k draw where a count lies within its step. */
f32 head_score(const struct forecast_spec *spec, const struct forecast_row *row, f32 a, f32 y, i32 k);
/* Of counts: the logarithm of the mean that a base forecast in original units stands for.  A base near 0 says little about the
 * mean: it is at least this share of the series' mean, and at least this count. */
#define HEAD_FLOOR_SHARE 0.1
#define HEAD_FLOOR_COUNT 1e-2
f64 head_log_mean(f64 base, f64 col_mean);
/* Of counts: the nearest value in units of the series that is a count. */
f32 head_count(const struct forecast_row *row, f32 v);
static inline f64 head_whole(f64 raw) { return raw > 0 ? floor(raw + 0.5) : 0; }

/* Adds an op that reads *buf (and op.in[1..]); its output becomes *buf. */
err head_chain(struct net *n, struct op_spec op, const char *name, i32 *buf);
/* Makes an op with the options of the net. */
struct op_spec head_op(const struct net *n, const char *layer);
/* Concatenates buffer `other` to *buf. */
err head_beside(struct net *n, const char *name, i32 other, i32 *buf);
/* Outputs per forecast value: one, one per quantile, or one per parameter. */
i32 head_outputs(const struct forecast_spec *spec);
/* The output that is the point forecast: the quantile nearest to the median, or the only output. */
i32 head_point(const struct forecast_spec *spec);
/* Copies the quantiles of the spec into an op, or the number of parameters, of which the first is the location. */
void head_quantiles(const struct forecast_spec *spec, struct op_spec *op);

#endif
