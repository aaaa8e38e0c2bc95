/* rows.h - where the rows of a batch lie in the memory of a device that cannot hold all of them.
 *
 *     plan      F[0,16) B[0,16)  F[16,32) B[16,32)  F[32,48) ..     forward and backward of some rows, then of others
 *     memory    |  16 places  |                                     row 20 lies at place 4, where row 4 was
 *
 * A run of rows is what tasks with overlapping ranges use.  Runs of one device whose tasks follow each other share a slot of
 * places; others have slots of their own.  Everything follows from the plan, so nobody has to say when rows are done with. */
#ifndef STRETTO_PLAN_ROWS_H
#define STRETTO_PLAN_ROWS_H

#include "plan/plan.h"

enum { ROWS_SHARED = 0xffffffffu };

struct row_run {
    i32 b0, b1;      /* rows of the batch */
    i32 row0;        /* row b lies at place b - row0 */
    u32 device;      /* that runs all tasks of these rows; ROWS_SHARED = several do */
    u32 first, last; /* its first and its last task in the plan */
};

struct row_map {
    i32 places;          /* of each buffer with by_row */
    i32 b0, b1;          /* rows that are used */
    bool again;          /* some rows take the places of others; false: all have the same row0 */
    i32 nrun, *of;       /* of [B]: the run of a row, -1 = no task uses it */
    struct row_run *run; /* [nrun] in the order of rows */
};

/* The rows that tasks with mine[task] use (NULL = all tasks).  still: rows keep their places, because messages carry them. */
err plan_rows(const struct plan *p, const bool *mine, bool still, struct arena *a, struct row_map *out);
/* The rows of buffers with by_row that a task uses; false = none. */
bool plan_rows_of(const struct plan *p, const struct task *t, i32 *b0, i32 *b1);

#endif
