/* pool.h - thread pool: all workers run one function together, repeatedly (fork-join).
 *
 * Worker 0 is the caller. Workers spin briefly, then sleep: a step of a few microseconds needs no system call, and an idle pool
 * costs nothing. */
#ifndef STRETTO_BASE_POOL_H
#define STRETTO_BASE_POOL_H

#include "base/err.h"

struct pool;

err pool_new(i32 threads, struct pool **out); /* threads >= 1; with 1 no thread is created */
void pool_free(struct pool *p);
i32 pool_size(const struct pool *p);

/* Runs fn(arg, worker) on every worker 0..n-1 and returns when all are done. Takes no lock, allocates nothing. */
void pool_run(struct pool *p, void (*fn)(void *arg, i32 worker), void *arg);

#endif
