/* batch.h - rows of windows laid out for the network, in storage that is made once.
 *
 *     (origin, column) of each row --batch_fill--> x, categories, column, future, y, base     two slots: one trains, one fills
 *
 * Where the net cuts windows into slices of time, row = slice * windows + window: x of its segments, and the targets in the rows
 * of the last slice.  With decoder.every_step a row of the batch is a run of rows of the series, one a step, with a forecast
 * behind each of them (steps.c). */
#ifndef STRETTO_LEARN_FORECAST_BATCH_H
#define STRETTO_LEARN_FORECAST_BATCH_H

#include "learn/forecast/forecast.h"
#include "learn/forecast/input.h"

/* Where row r of a batch of B stands among the slices of its window: T steps in P slices.  -1 = there is no such row. */
struct slice_place {
    i32 after;       /* the row that it continues */
    i32 before;      /* the row that it continues when the window is read backward */
    i32 first;       /* of a last slice: the row with the first steps of the window */
    i32 from, steps; /* its first step in the window, and its number of steps */
};
struct slice_place forecast_slice(i32 T, i32 P, i32 B, i32 r);
/* Is this an input that places slices (length, after, before, first_slice)? */
static inline bool slice_has_ids(const struct buf *buf) { return buf->role >= INPUT_LENGTH && buf->role <= INPUT_FIRST_SLICE; }
/* Writes row r of such an input; returns false for any other input. */
bool slice_ids(const struct buf *buf, struct slice_place place, i32 r, i32 *ids);

struct batch_slot {
    f32 *input[NET_BUFS];   /* storage of the input buffers of the net, NULL for others */
    i64 *origin;            /* [B]; decoder.every_step: first row that is read */
    i32 *col;               /* [B] */
    f32 *shift, *div;       /* [B] */
    i32 *seen;              /* [B] values in the context; none: not trained on.  decoder.every_step: rows read */
    f32 *base;              /* [windows][horizon] base forecasts, series units */
    i64 present;            /* target cells that are there */
    i64 batch;              /* number of the batch (tiles) */
    i32 rows;               /* windows in use; the remaining rows repeat window 0 without targets */
};

struct batcher {
    const struct series *s;
    const struct forecast_spec *spec;
    const struct window_shape *shape;
    const struct net *net;
    const struct base *base;      /* NULL = zero */
    bool shows_base;              /* the base is wanted beside a network that does not see it (forecast_averages) */
    const struct kern *kern;
    i32 B;
    i32 row0, row1;               /* rows that are filled (a rank's share); of the others only targets are counted */
    i32 slices;                   /* of each window of the net, as rows; 1 = its rows are whole windows */
    struct batch_slot slot[2];
    struct arena arena;
    err failed;                   /* failure of base_predict_rows on the filling thread */
    struct err_record why;
    /* training order */
    struct window_set set;
    i64 *first, *before;      /* of a panel whose series are drawn: [series] first origin, [series + 1] windows of the series
                               * before; NULL = all columns of each origin */
    i32 width;                /* rows of a window */
    struct window_set scored; /* decoder.every_step: origins that have a target (and a base) */
    u64 seed;
    i32 nwin;                     /* origins, or tiles, per batch */
    i32 spans;                    /* > 0: no shuffle; batch k goes through span k % spans of the rows in order (--shards time) */
    f32 *ready;                   /* [ncol][nready][horizon] the base from origins 0, 1, ...; NULL = made when needed */
    i64 nready;
};

/* net and shape: those of the forecaster, or of a stream. */
err batcher_new(const struct forecaster *f, const struct net *net, const struct window_shape *shape, const struct series *s,
                const struct kern *kern, i32 B, i32 nslot, struct batcher *out);
void batcher_free(struct batcher *b);
/* The failure of a fill, which may have run on the prefetch thread; 0 = none. */
err batcher_failed(const struct batcher *b);

static inline bool batch_ours(const struct batcher *b, i32 r) { return r >= b->row0 && r < b->row1; }
/* True if row r of input i is filled here: the rows of this rank. Targets, which are counted, and the inputs that link
 * slices are filled for all rows. */
bool batch_lays_out(const struct batcher *b, i32 i, i32 r);

/* Fills the rows of the windows whose origin[] and col[] are set in the slot. */
void batch_fill(struct batcher *b, i32 slot, i32 rows);

/* Sets the windows that training draws.  E301 where a panel has none. */
err batch_draw_from(struct batcher *b, struct window_set set);

/* The batch of step k in training order: a shuffle of the origins, all target columns of each; of a panel, a shuffle of the
 * windows of all series. */
void batch_fill_train(void *batcher, i64 k, i32 slot);

/* Item w of batch k out of n, with spans: each window of a batch has a piece of the batch's span, and goes through it step by
 * step.  *begins: it is at the first item of its piece. */
i64 batch_in_span(const struct batcher *b, i64 n, i64 k, i32 w, bool *begins);

/* Target cells of the batch of step k: the `present` that its slot will have. Fills nothing. For windows, and for tiles. */
i64 batch_cells(const struct batcher *b, i64 k);
i64 batch_cells_tiles(const struct batcher *b, i64 k);

/* Rows i0..i0+B of a set in order, or as many as remain; returns the rows filled. */
i32 batch_fill_set(struct batcher *b, i32 slot, const struct window_set *set, i64 i0);

/* --- decoder.every_step, and bases that are kept: steps.c --- */

/* The batch of step k in training order, and its target cells: of tiles with decoder.every_step, else of windows. */
void training_fill(struct batcher *b, i64 k, i32 slot);
i64 training_cells(const struct batcher *b, i64 k);

/* The batch of step k in training order: tiles of a context, all target columns of each, cut into slices.  A pure function of
 * k. */
void batch_fill_tiles(void *batcher, i64 k, i32 slot);

/* Computes the base forecasts of origins below n once, for all epochs, if they need little memory: for decoder.every_step, and
 * for trees, which take longer than a ridge. A second call is for a base that has changed. */
err batch_bases(struct batcher *b, i64 n);

/* Fills rows first, first + 1, .. of the series: one time step each, one batch row per target column. */
void batch_fill_walk(struct batcher *b, i32 slot, i64 first);

#endif
