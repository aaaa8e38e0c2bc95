/* balance.h - divides micro-batches among devices of different speed; pure functions, so that all ranks decide alike.
 *
 *     seconds per micro-batch   1 1 2 2      micro-batches   4 4 4 4  ->  5 5 3 3      the last device ends after 6 instead of 8
 *
 * Only rows move.  Every device keeps a micro-batch, so the ranges of theta that each updates, and with them the state of the
 * optimiser, stay where they are (plan_same_updates). */
#ifndef STRETTO_STEP_BALANCE_H
#define STRETTO_STEP_BALANCE_H

#include "step/netplan.h"

/* Sets the number of micro-batches of each device; false if the plan does not divide its rows among devices of several
 * ranks. */
bool plan_grains(const struct plan *p, i32 *grains);
bool plan_same_updates(const struct plan *a, const struct plan *b);

/* Time at which the last of n devices ends, with seconds[i] per micro-batch of device i. */
f64 balance_end(i32 n, const i32 *grains, const f64 *seconds);
/* Moves micro-batches until no move makes the end earlier, at most `most` of them (more if fewer have no effect). Moves
 * none if all together save no more than the share `worth` of the time. Returns the number of moves. */
i32 balance_move(i32 n, i32 *grains, const f64 *seconds, i32 most, f64 worth);
/* Speed relative to an ideal division with arbitrarily small micro-batches: 0..1. */
f64 balance_reached(i32 n, const i32 *grains, const f64 *seconds);

#endif
