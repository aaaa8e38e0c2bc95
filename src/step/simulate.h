/* simulate.h - predicts the duration of a step of a plan on machines that are not at hand, from times measured on one worker.
 *
 *     task seconds on ONE worker --costs_learn--> seconds by kind, op, rows -> cost of each task --plan_schedule--> p->predicted
 *     struct walks: steps that each time slice ran in each round -----------'
 *
 * A forward or backward task costs the time of one step over its rows, times its steps.  That time is kept for each number of
 * rows that was measured, because rows fill kernel tiles; costs_get interpolates linearly between these numbers and extrapolates
 * in proportion.  Tasks over a range of theta (merge, norm, update) cost in proportion to its elements.  A chain of time slices
 * costs, in each round, the time of its slowest member plus two barriers: the slices of a member begin a round together, each
 * runs its recorded number of steps, and a step costs what it was measured to cost with the slices that still run.  Passes
 * without recorded steps (head runs before backward, sums recomputed at the end) are part of the measured seconds, so their
 * predicted time grows with the recorded steps.
 *
 * Not modelled: cores share memory bandwidth, the L3 cache and the power limit that sets their clock; other programs; ranges of
 * rows that are not contiguous; links between processes.  Tasks of worker groups, merges across processes and all work that was
 * not measured keep the costs of cost.c; *guessed counts these tasks. */
#ifndef STRETTO_STEP_SIMULATE_H
#define STRETTO_STEP_SIMULATE_H

#include "step/costs.h"

/* Rounds of a chain, as in struct chain_trace (slices/solver.h); rounds from `kept` on are assumed to equal the last kept one. */
struct walk {
    i32 nslice, rounds, kept;
    const i32 *ran; /* [kept][nslice] steps of each slice in each round; borrowed */
};
struct walks {
    struct walk op[NET_OPS][2]; /* forward, backward; rounds 0 = not known */
};

/* Adds the costs of a plan whose tasks one worker ran in sequence.  seconds [ntask]: 0 = not measured; the first task of a chain
 * holds the time of all its members, each run with its own rows (step_apart).  Call it for plans with few rows per member first:
 * a round contains steps over fewer rows than a member has, and their cost must be known. */
err costs_learn_walks(struct costs *c, const struct plan *p, const struct net *n, const struct walks *w, const f64 *seconds);

/* Sets the costs of the plan's tasks and p->predicted.  w: recorded with the same net and rows, on any devices.  *guessed: number
 * of tasks whose cost was not measured. */
err plan_simulate(struct plan *p, const struct net *n, const struct costs *c, const struct walks *w, u32 *guessed);

#endif
