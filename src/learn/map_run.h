/* map_run.h - runs a learner of map, merge and update (plan/map.h) with the resources of its job: cores, ranks, memory.
 *
 *     map_run_open --> map_run_step, map_run_step, ..  until the learner is done or map_run_stopped --> map_run_close
 *
 * Learners whose step is not map, merge, update make a plan of their own (plan/build.h) and use plan_run_open. */
#ifndef STRETTO_LEARN_MAP_RUN_H
#define STRETTO_LEARN_MAP_RUN_H

#include "exec/exec.h"
#include "learn/learner.h"
#include "plan/map.h"

struct map_run {
    struct plan *plan;
    struct exec *exec;
    const struct resources *use; /* borrowed */
    u32 steps;                   /* done */
};

struct map_job {
    const struct resources *use;
    struct map_request request;   /* without the machine */
    const struct kernel *kernel;  /* [MAP_NKERNEL] */
    void *self;                   /* of the kernels */
    struct exec_result (*result)(void *self, void *const *mem);
    void *rows, *model, *state;   /* lent; may be NULL where the request says 0 bytes: kernels that need no address */
};
/* E401, E601.  All ranks call it with the same request. */
err map_run_open(const struct map_job *job, struct map_run *out);
/* The same for any plan and client; takes the plan, also after a failure.  lent [nbuf]: memory of the lent buffers. */
err plan_run_open(struct plan *plan, const struct client *client, const struct resources *use, void *const *lent,
                  struct map_run *out);
void map_run_close(struct map_run *r); /* allowed after a failure, and on {0} */

/* One step: all ranks then have the whole model.  out may be NULL. */
err map_run_step(struct map_run *r, struct exec_result *out);
/* What ranks see between two steps, all of it together on all of them; mine: flags that a caller adds.  Collective. */
enum { MAP_SEES_SIGNAL = 1, MAP_SEES_LATE = 2, MAP_SEES_OLD = 4 }; /* OLD: a checkpoint is due */
err map_run_look(const struct resources *use, f64 deadline, u32 mine, u32 *seen);
/* Did a signal arrive at any rank, or has `deadline` (of clock_now; 0 = none) passed there?  Collective. */
err map_run_stopped(const struct resources *use, f64 deadline, bool *signal, bool *late);

/* The machine to plan for: that of all ranks. */
const struct machine *map_run_machine(const struct resources *use);
/* Rows of a micro-batch for n rows: about `parts` micro-batches, a function of n alone so that bits depend on nothing else. */
i32 map_run_microbatch(i64 rows, i32 parts);

/* The spans of the last steps and the plan's text for the model; E601. */
err map_run_keep(const struct map_run *r, struct model *m);

#endif
