/* strategy.h - the descriptor of a way to share out a step: one file, one const struct, one line in strategies.def.
 *
 * A strategy says how the box is cut, which device gets which piece, and what is exchanged; the tasks and their edges follow. */
#ifndef STRETTO_PLAN_STRATEGY_H
#define STRETTO_PLAN_STRATEGY_H

#include "step/planner.h"

struct strategy {
    const char *name, *help;
    bool exact; /* the bits of `serial`; otherwise within tol of its gradients */
    f32 tol;
    bool counted;                                      /* takes a number of devices: "data_sync:4" */
    bool slices;                                       /* .. the number is of slices of time, and the devices are all that help */
    bool parts;                                        /* on several ranks the last weight gradient is made in parts */
    const char *(*applicable)(struct planner *p);      /* NULL, or a sentence why not (planner_why) */
    err (*cut)(struct planner *p, struct slice whole); /* fills p->piece[].box and p->npiece */
    err (*place)(struct planner *p);                   /* p->piece[].device */
    err (*exchange)(struct planner *p);                /* after backward: adds the tasks that bring the gradients together */
};

err strategy_whole(struct planner *p, struct slice whole); /* a cut: all in one piece */

const struct strategy *strategy_find(const char *name);
i32 strategy_count(void);
const struct strategy *strategy_at(i32 i);

#endif
