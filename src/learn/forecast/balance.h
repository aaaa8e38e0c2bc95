/* balance.h - load balancing: moves micro-batches between ranks of different speed during a fit.
 *
 *     exec: seconds per row of each rank --loop: allgather--> step/balance.h: micro-batches --engine_recut--> new plan, batches
 *
 * Only rows move, so the bits do not change.  Checkpoints do not contain the division: a resumed run starts with equal shares. */
#ifndef STRETTO_LEARN_FORECAST_BALANCE_H
#define STRETTO_LEARN_FORECAST_BALANCE_H

#include "learn/forecast/fit.h"

/* Watches the fit where its plan shares rows out among ranks, and --balance and --plan leave that open. */
err balance_new(struct fit *t);
void balance_free(struct fit *t);
bool balance_moved(const struct fit *t); /* micro-batches have moved */
/* For struct train_job. */
bool balance_uneven(void *fit, const f64 *row_seconds);
err balance_recut(void *fit, struct step **exec);
void balance_end_note(const struct fit *t);

#endif
