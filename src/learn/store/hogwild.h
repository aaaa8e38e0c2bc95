/* hogwild.h - a fit whose threads train without waiting for each other, on one vector of weights (store/shared.h).
 *
 *     thread 0   ticket 0: fill, forward, backward --update--> |        |   ticket 2 ..      ticket c = part c % W of batch c / W
 *                                                              | theta  |
 *     thread 1   ticket 1: fill, forward, backward ----update--------> |   ticket 3 ..      each thread has an engine of its own
 *
 * A leg ends at the next validation: then no thread runs, and the engine of the fit holds weights and optimiser state, as after
 * any other step.  So checkpoints know nothing of this file.  With one thread there is none of it: training is plain. */
#ifndef STRETTO_LEARN_STORE_HOGWILD_H
#define STRETTO_LEARN_STORE_HOGWILD_H

#include "learn/forecast/fit.h"

struct hogwild;

bool hogwild_used(const struct resources *use);
i32 hogwild_workers(const struct resources *use); /* threads; 1 = it is not used */
/* Before the engine of the fit is made: *use becomes that of one thread.  E401 for what cannot be combined. */
err hogwild_split(struct fit *t, struct resources *use);
/* After the engine and the batches of the fit are made, which are those of worker 0: the other workers. */
err hogwild_prepare(struct fit *t);
void hogwild_drop(struct fit *t);
i64 hogwild_bytes(const struct fit *t); /* of the other workers */

void hogwild_begin_run(struct fit *t, const struct train_job *j); /* borrowed until the next one */
err hogwild_leg(void *fit, struct train_state *s, i64 until);     /* train_job.leg */
void hogwild_report(const struct fit *t);                         /* after training */

#endif
