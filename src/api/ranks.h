/* ranks.h - the ranks of a training run: processes of a launcher (mpirun, srun), or threads of this process (--ranks). */
#ifndef STRETTO_API_RANKS_H
#define STRETTO_API_RANKS_H

#include "api/api.h"
#include "learn/learner.h"

/* Joins the MPI job of this process: sets *comm, or leaves it NULL if the process was started alone or has --ranks 1.
 * E803 if it cannot join, or if the flag --ranks differs from the size of the job. */
err ranks_join(const struct options *o, struct comm **comm);
err ranks_recover(const struct options *o, struct run_context *w); /* lets w->comm recover, with --heal */
/* Sets the number of threads per rank: --threads, else the cores available to the rank; the same on all ranks. */
err ranks_threads(const struct options *o, struct run_context *w, i32 *threads);
/* Sets w->ranks to the machine of all ranks, as rank 0 sees it. */
err ranks_machine(const struct options *o, struct run_context *w);
/* The same after the loss of devices: a rank for each that is left, with even shares. */
err ranks_machine_left(struct run_context *w);
/* Runs learner->fit on every rank; *out = the model of this process. */
err ranks_fit(struct stretto_trainer *t, const struct learner *learner, const struct learn_job *job, struct model **out);

/* The same for a job without trainer, checkpoints and recovery; job->use is that of w. */
err ranks_share_fit(const struct run_context *w, const struct learner *learner, const struct learn_job *job, struct model **out);

/* Final barrier of a run: ranks > 0 wait until rank 0 has written the results, which may take longer than the deadline: MPI ends
 * a job of which a process ends early. With --heal, if rank 0 dies, the next surviving rank becomes rank 0, returns and writes
 * them. Ranks > 0 call it after the fit, rank 0 as its last action. E801 if a rank died and no new group forms. */
err ranks_finish(struct stretto_trainer *t);

#endif
