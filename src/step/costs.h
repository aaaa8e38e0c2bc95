/* costs.h - measured seconds of kinds of work, from which the costs of a plan's tasks follow.
 *
 *     a plan's spans --costs_learn--> kind, shape, size -> seconds --costs_of--> cost of each task of any plan
 *
 * Work of a layer is known by the shape of its op (costs_shape), so that layers of one shape, and other nets that have it, share
 * a measurement.  Seconds are kept for each size that was measured, because rows fill kernel tiles and vectors fill caches;
 * between two sizes costs_get interpolates linearly, outside it goes on in proportion.
 *
 * `busy` costs were measured while every worker of the host had work: cores share memory bandwidth, the last cache and the power
 * limit that sets their clock. */
#ifndef STRETTO_STEP_COSTS_H
#define STRETTO_STEP_COSTS_H

#include "step/netplan.h"

enum { COSTS_MAX = 2048 };

/* Kinds besides the tasks, by number of workers (`members`).  AROUND: of a step before its first task and after its last one.
 * WAKE: from the first task of worker 0 to that of another worker.  SEEN: from the end of a task until another worker notices.
 * TASK: between two tasks of a worker.  Between ranks: LATENCY of a message, BYTE: per byte. */
enum { COST_AROUND = TASK_NKIND, COST_WAKE, COST_SEEN, COST_TASK, COST_LATENCY, COST_BYTE, COST_NKIND };
extern const char *const cost_names[COST_NKIND];

struct cost {
    u64 shape;   /* costs_shape; 0 = no layer's */
    u8 kind;     /* enum task_kind, or COST_AROUND .. */
    bool busy;
    u16 members; /* of a team, or workers; 0 = a task of one worker */
    i32 steps;   /* of a chunk, whose calls cost more than their share of the steps; negative: of the chunk that backward reaches
                  * last, where the weight gradient of all steps is computed; 0 = all steps */
    i64 size;    /* FWD, BWD: rows; ranges of theta: elements that are touched; else 1 */
    f64 seconds; /* FWD, BWD: of one step of all rows; else of the whole */
};
struct costs {
    i32 n;
    i32 ranks; /* that share the host of rank 0, and were busy too when busy costs were measured; 0 or 1 = it is alone */
    struct cost at[COSTS_MAX];
};

/* A hash of what decides how long the work of an op takes, but for rows: its layer, its sizes, its options, rows per
 * micro-batch. */
u64 costs_shape(const struct net *n, i32 op, i32 grain);

const struct cost *costs_find(const struct costs *c, const struct cost *like); /* the same kind of work and size; NULL = none */
/* The nearest known one with at most (at least) this size. */
const struct cost *costs_nearest(const struct costs *c, const struct cost *like, bool smaller);
/* Adds a cost; one of the same kind of work and size stays.  What does not fit into the table keeps the cost model. */
void costs_put(struct costs *c, struct cost what);
/* -1 = this kind of work was not measured.  A busy cost that was not measured follows from the one of a worker alone. */
f64 costs_get(const struct costs *c, const struct cost *like);

/* The kind of work of a task, without seconds; amount: how often its unit of seconds is taken. */
struct cost costs_key(const struct plan *p, const struct net *n, const struct task *t);
f64 costs_amount(const struct task *t);

/* Adds the costs of the tasks of a plan that rank 0 ran; not of chains, nor of a backward pass whose weight gradient is made in
 * parts.  seconds [ntask]: 0 = not measured.  Tasks that ran as one (exec.h, `blocks`) hold their seconds in the first. */
err costs_learn(struct costs *c, const struct plan *p, const struct net *n, const f64 *seconds, bool busy);

/* Share of the op's forward or backward pass over the task's rows that the task computes: 1, less for a chunk of the steps and
 * where the weight gradient is made in parts (netplan.parted). */
f64 plan_part_of_op(const struct plan *p, const struct net *n, const struct task *t);

/* Puts costs in place of those that were known of the same work. */
void costs_correct(struct costs *c, const struct costs *now);

/* Seconds of a task where `load` of the other workers of its host have work too (0 none, 1 all); -1 = not measured.  Merges of
 * gradients that come from other ranks: without the messages. */
f64 costs_of(const struct costs *c, const struct plan *p, const struct net *n, const struct task *t, f64 load);

#endif
