/* effort.h - what the rows of a step cost this process: seconds of the tasks that work row by row, waiting not counted.
 *
 *     lane   | wait | fwd | fwd | bwd | wait | merge | update |      rows: fwd + bwd + zero of all lanes / rows that are ours
 *
 * A process can be made slow on purpose, for tests and measurements: it then sleeps after each task, so that a core that others
 * use is not taken from them.
 *
 *     STRETTO_FAULT=1:40:slow(2)       rank 1, from step 40 on, takes 2 times as long for all it computes */
#ifndef STRETTO_EXEC_EFFORT_H
#define STRETTO_EXEC_EFFORT_H

#include "base/err.h"

struct exec;
struct lane;
struct task;

/* Steps that are not counted; steps before anything is said; the last ones, of which it is the median: a stall of one of them,
 * which other programs cause now and then, is no speed. */
enum { EFFORT_WARM = 2, EFFORT_KNOWN = 10, EFFORT_LAST = 15 };

struct effort {
    i32 rows;      /* of a batch that are ours */
    u32 steps;     /* since the plan was bound */
    f64 row[EFFORT_LAST]; /* seconds a row */
    f64 factor;    /* times as long as need be, 0 = nobody asked for that */
    i64 from;      /* step from which on */
    bool slow;     /* in this step */
};

err effort_begin(struct exec *x);
void effort_task(const struct exec *x, struct lane *l, const struct task *t, f64 t0); /* begun at t0, over now */
void effort_end(struct exec *x);

#endif
