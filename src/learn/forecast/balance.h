/* balance.h - ranks of unlike speed end their steps together: grains of the batch move while a fit goes on.
 *
 *     exec: seconds a row of each rank --loop: all are told--> plan/balance: grains --engine_recut--> plan and batches anew
 *
 * Only rows move, so the bits are those of any other cut.  Nothing of it is part of a checkpoint: a resumed run begins even. */
#ifndef STRETTO_LEARN_FORECAST_BALANCE_H
#define STRETTO_LEARN_FORECAST_BALANCE_H

#include "learn/forecast/fit.h"

/* Watches the fit where its plan shares rows out among ranks, and --balance and --plan leave that open. */
err balance_new(struct fit *t);
void balance_free(struct fit *t);
/* For struct train_job. */
bool balance_uneven(void *fit, const f64 *row_seconds);
err balance_recut(void *fit, struct step **exec);
void balance_end_note(const struct fit *t);

#endif
