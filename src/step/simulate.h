/* simulate.h - how long a plan takes, from measured times of its kinds of work: for machines that one does not have.
 *
 *     steps on ONE worker --costs_learn--> seconds by kind, op and rows ---> cost of each task --plan_schedule--> p->predicted
 *     what its chains did: steps of each slice in each round -----------'
 *
 * A task of rows and steps costs what one step of so many rows side by side took, times its steps: rows fill tiles, so times are
 * kept for each number of rows that was measured, on straight lines between them, in proportion outside.  Sums over theta cost
 * their elements.  A chain of slices costs, round by round, the seconds of its slowest member, and two barriers: a
 * member's slices begin a round together, each goes on for the steps that were counted, and a step costs what so many rows as are
 * still on the way took.  Walks that are not counted (heads before backward, sums made anew at the end) are part of the measured
 * seconds and so grow with the counted steps.
 *
 * Not in it: that cores share the memory's bandwidth, the third cache and the power for their clock; other programs; chunks of
 * rows that are no neighbours; links between processes.  Shares of a team by units and merges over more than one process keep
 * the costs of cost.c, and so does all work that was not measured: *guessed counts them. */
#ifndef STRETTO_PLAN_SIMULATE_H
#define STRETTO_PLAN_SIMULATE_H

#include "step/netplan.h"

/* Rounds of a chain, as in struct chain_trace (slices/solver.h); rounds beyond `kept` are assumed to equal the last one kept. */
struct walk {
    i32 nslice, rounds, kept;
    const i32 *ran; /* [kept][nslice] steps of each slice in each round; borrowed */
};
struct walks {
    struct walk op[NET_OPS][2]; /* forward, backward; rounds 0 = not known */
};

enum { COSTS_MAX = 256 };
struct costs {
    i32 n;
    struct cost {
        u8 kind;
        u16 op;
        i32 rows;    /* FWD, BWD: side by side; else 0 */
        f64 seconds; /* FWD, BWD: of a step of all of them; PREP: of the op; else of an element of theta */
    } at[COSTS_MAX];
};

/* What is known of a key already stays.  E1 when there is no more room. */
err costs_put(struct costs *c, struct cost what);
f64 costs_get(const struct costs *c, enum task_kind kind, i32 op, i32 rows); /* -1 = nothing of that kind and op is known */

/* One worker did all tasks of a plan, one after another, and they took so many seconds (0 = nothing was seen of it); a chain's
 * are those of all members, each with its own rows, at the first of them (step_apart).  Fewer rows first: rounds have steps of
 * fewer rows than a member has, which are taken from what is known. */
err costs_learn(struct costs *c, const struct plan *p, const struct net *n, const struct walks *w, const f64 *seconds);

/* Sets the costs of the plan's tasks, and p->predicted.  The walks are those of the same net and rows, on any devices. */
err plan_simulate(struct plan *p, const struct net *n, const struct costs *c, const struct walks *w, u32 *guessed);

#endif
