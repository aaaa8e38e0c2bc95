/* costs.h (learn) - the measured costs of a net's work on this host, for the planner: from the wisdom file, or measured now.
 *
 *     serial, data:2, data:4 ..  run by one worker          --probe.h--> seconds of each number of rows, alone
 *     data, unit, wave, pipeline run by all workers         --probe.h--> the same while all are busy; waits of a step
 *     what the wisdom lacks is measured if the run is far longer than that, and saved */
#ifndef STRETTO_LEARN_COSTS_H
#define STRETTO_LEARN_COSTS_H

#include "learn/engine.h"
#include "step/costs.h"

/* Seconds that measuring may take: before a training, of which it is a small share; while a person waits; beside a
 * benchmark of the same steps. */
#define COSTS_TRAINING 60.0
#define COSTS_WAITING 3.0
#define COSTS_BENCH 10.0
/* Adds the costs of the net's training steps with B rows.  What is unknown is measured if that takes at most so many seconds, and
 * r->steps steps take far longer (0: read only).  The costs of rank 0 are those of all ranks, so that all plan alike; collective.
 * Empty where the wisdom is off, and for nets with time slices. */
err costs_open(const struct net *net, const struct resources *r, i32 B, const struct optim *optim, f64 most, struct costs *out);
/* Stores costs in the wisdom, in place of those of the same work. */
err costs_keep(const struct resources *r, const struct costs *c);

#endif
