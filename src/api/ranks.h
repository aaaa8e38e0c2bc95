/* ranks.h - the ranks of a training: those that a launcher started (mpirun, srun), or threads of this process (--ranks). */
#ifndef STRETTO_API_RANKS_H
#define STRETTO_API_RANKS_H

#include "api/api.h"
#include "learn/learner.h"

/* Joins the job that started us, into w->comm; nothing to do for a program that was started alone.  E803 where that cannot be, or
 * --ranks asks for another number. */
err ranks_join(const struct options *o, struct workshop *w);
/* Threads of each rank: as --threads says, else the cores that are left to it; the same number for all. */
err ranks_threads(const struct options *o, struct workshop *w, i32 *threads);
/* The machine of all ranks, as rank 0 sees it, into w->ranks. */
err ranks_machine(const struct options *o, struct workshop *w);
/* learner->fit on every rank; out: the model of this process. */
err ranks_fit(struct stretto_trainer *t, const struct learner *learner, const struct learn_job *job, struct model **out);

/* Where ranks may die (--heal) those behind the first wait until it has written all, and one of them does so where it dies:
 * called by the others after the fit, by the first at its very end.  E801 where they cannot. */
err ranks_part(struct stretto_trainer *t);

#endif
