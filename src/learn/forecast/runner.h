/* runner.h - a forecaster bound for forecasts: one engine, one batch; for run.c and, one per device, for spread.c. */
#ifndef STRETTO_LEARN_FORECAST_RUNNER_H
#define STRETTO_LEARN_FORECAST_RUNNER_H

#include "learn/forecast/out.h"

enum { RUNNER_ROWS = 448 };

struct runner {
    const struct forecaster *f;
    const struct net *net; /* the forecaster's net, or the same net in fp32 */
    struct engine engine;
    f32 *own; /* weights of the engine, while it uses those of a member */
    struct batcher batch;
    f32 *corr; /* [B][nq][horizon] mean correction over members, in units of div */
    struct row_out out;
    i32 nq;
    struct arena arena;
};

/* For batches of B rows; on a device that refuses their memory, of B / 2, B / 4, ..; E601 where one row is too much. */
err runner_new(const struct forecaster *f, const struct series *s, const struct resources *use, i32 B, struct runner *r);
void runner_free(struct runner *r);
/* Corrections of the windows from number `at` of the set on, as many as a batch holds: r->corr, for r->batch.slot[0]. */
err runner_rows(struct runner *r, const struct window_set *set, i64 at, i32 *rows);
/* A row of the batch: all but what the correction decides. */
struct forecast_row runner_row(const struct runner *r, i32 b);

/* Forecasts every window on all devices of use->forward, which take batches as they finish others; fn is called in order.  E601
 * or E831 where no device is left. */
err spread_windows(const struct forecaster *f, const struct series *s, const struct window_set *set, const struct resources *use,
                   forecast_row_fn *fn, void *self);

#endif
