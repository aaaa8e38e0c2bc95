/* shares.h - --combine average: how much of a forecast is the network's, for each piece of the horizon.
 *
 *     forecast(k) = base(k) + a * share(k) * (network(k) - base(k))        a: the guard's weight
 *
 * A network that learns the series by itself errs differently from its base, and a mean of both is better than either (Bates and
 * Granger 1969). The best share falls with the distance, as the network's errors grow faster. */
#ifndef STRETTO_LEARN_FORECAST_SHARES_H
#define STRETTO_LEARN_FORECAST_SHARES_H

#include "base/json.h"
#include "learn/forecast/fit.h"

/* Finds the shares of the mean of the first `members` networks on validation windows, into t->f->shares: of the candidates 0,
 * 0.05, .. 1 the one with the least loss on its piece of the horizon, where the mean over all pieces counts as one piece more.
 * One half where there is no target. */
err shares_find(struct fit *t, i32 members);

/* "0.80, 0.85" */
enum { SHARES_TEXT = SHARES_MOST * 8 };
const char *shares_text(const struct shares *s, char out[SHARES_TEXT]);

/* In a model file: an array of numbers. */
struct js *shares_json(const struct shares *s);
void shares_read(const struct js *list, struct shares *out);
bool shares_sound(const struct shares *s);

#endif
