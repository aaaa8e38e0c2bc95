/* load.h - what the rows of a step cost this process: seconds of the tasks that work row by row, waiting not counted.
 *
 *     queue   | wait | fwd | fwd | bwd | wait | merge | update |      rows: seconds of `rows` kernels of all queues / rows that
 * are ours
 *
 * A test or a measurement can make a process slow.  It then sleeps after each task, so that it takes no core from others.
 *
 *     STRETTO_FAULT=1:40:slow(2)       rank 1, from step 40 on, takes 2 times as long for all it computes */
#ifndef STRETTO_EXEC_LOAD_H
#define STRETTO_EXEC_LOAD_H

#include "base/err.h"

struct exec;
struct queue;
struct task;

/* Steps that are ignored; least steps for a result; number of last steps whose median is the result, since other programs
 * cause stalls. */
enum { LOAD_WARM = 2, LOAD_KNOWN = 10, LOAD_LAST = 15 };

struct load {
    i32 rows;           /* rows of a batch on this rank */
    u32 steps;          /* steps since the bind */
    f64 row[LOAD_LAST]; /* seconds a row */
    f64 factor;         /* slowdown by fault injection, 0 = none */
    i64 from;           /* first slow step */
    bool slow;          /* this step is slow */
};

err load_begin(struct exec *x);
void load_task(const struct exec *x, struct queue *q, const struct task *t, f64 t0); /* task that started at t0 and ended now */
void load_end(struct exec *x);

#endif
