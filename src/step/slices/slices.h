/* slices.h - time slicing in a step: the ops whose rows are time slices, and the solvers that run their recurrences.
 *
 *     fwd lstm.0 chain 0/2   rows 0..8 of device 0   --\
 *     fwd lstm.0 chain 1/2   rows 8..16 of device 1  --- slices_solve: rounds until the slices meet (solver.h)
 *
 * A step holds a pointer to this and nothing else of it. */
#ifndef STRETTO_STEP_SLICES_SLICES_H
#define STRETTO_STEP_SLICES_SLICES_H

#include "exec/exec.h"
#include "step/netplan.h"
#include "step/slices/solver.h"

struct step_slices;

/* Solvers for every op whose rows are slices, in the arena.  x: the exec that runs the step. */
err slices_bind(const struct plan *p, const struct run *r, struct exec *x, struct arena *a, struct step_slices **out);
/* Runs the op's chain over the rows of its task; if alone, the first member runs those of all members of this process. */
void slices_solve(struct step_slices *s, const struct task *t, bool alone);
f64 slices_waited(const struct step_slices *s, const struct task *t); /* seconds that the last task waited for other ranks */

#endif
