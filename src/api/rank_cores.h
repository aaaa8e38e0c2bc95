/* rank_cores.h - binds the ranks of a host to disjoint cores while they train.
 *
 * Ranks that may run on the same cores divide these; a share consists of cores that are close together (shared caches).  No
 * binding if a share would have fewer cores than threads, if the launcher has bound the ranks, or with STRETTO_PIN=off. */
#ifndef STRETTO_API_RANK_CORES_H
#define STRETTO_API_RANK_CORES_H

#include "base/pool.h"
#include "topo/machine.h"

struct comm;

struct rank_cores {
    struct cores before, share;
    bool has; /* this rank is bound to `share` */
};

/* For ranks that are processes with `threads` threads each; collective. */
err rank_cores_of_process(struct comm *c, i32 threads, struct rank_cores *out);
/* For rank k of `size` ranks that are threads of this process, with `threads` threads each. */
void rank_cores_of_thread(i32 k, i32 size, i32 threads, struct rank_cores *out);
/* Bind the workers of a pool, including this thread, to the share, and restore their earlier cores. */
void rank_cores_go(const struct rank_cores *c, struct pool *pool);
void rank_cores_leave(const struct rank_cores *c, struct pool *pool);

#endif
