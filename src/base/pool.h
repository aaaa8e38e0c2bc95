/* pool.h - worker threads that run one function together, again and again.
 *
 * Worker 0 is the caller.  Workers spin briefly, then sleep, so that a step of a few microseconds needs no system call and an
 * idle pool costs nothing.  The pool knows functions, never models. */
#ifndef STRETTO_BASE_POOL_H
#define STRETTO_BASE_POOL_H

#include "base/err.h"

struct pool;

err pool_new(i32 threads, struct pool **out); /* threads >= 1; 1 makes no thread */
void pool_free(struct pool *p);
i32 pool_size(const struct pool *p);

/* Run fn(arg, worker) on every worker 0..n-1 and return when all are done.  Locks nothing, allocates nothing. */
void pool_run(struct pool *p, void (*fn)(void *arg, i32 worker), void *arg);

#endif
