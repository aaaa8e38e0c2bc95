/* balance.h - grains for devices of unlike speed: numbers in, numbers out, so that ranks that see the same ones decide alike.
 *
 *     seconds a grain   1 1 2 2      grains   4 4 4 4  ->  5 5 3 3         the last one ends after 6 in place of 8
 *
 * Only the rows move.  Every device keeps a grain, so the ranges of theta that each updates, and with them the state of the
 * optimiser, stay where they are (plan_same_updates). */
#ifndef STRETTO_STEP_BALANCE_H
#define STRETTO_STEP_BALANCE_H

#include "step/netplan.h"

/* Grains of each device; false where the plan does not share its rows out among devices of several ranks. */
bool plan_grains(const struct plan *p, i32 *grains);
bool plan_same_updates(const struct plan *a, const struct plan *b);

/* When the last of n devices ends, seconds[i] for each grain of device i. */
f64 balance_end(i32 n, const i32 *grains, const f64 *seconds);
/* Moves grains until no move makes the end earlier, but not more than `most` where so many make it earlier at all; none where all
 * moves together would save `worth` of the time, or less.  Returns how many were moved. */
i32 balance_move(i32 n, i32 *grains, const f64 *seconds, i32 most, f64 worth);
/* What is reached of what these devices could do with grains as fine as one wishes: 0..1. */
f64 balance_reached(i32 n, const i32 *grains, const f64 *seconds);

#endif
