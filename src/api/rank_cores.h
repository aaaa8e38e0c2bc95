/* rank_cores.h - ranks of one host on cores of their own, as long as they train: where two of them may run on the same cores, these
 * are shared out among them, neighbours together.  Not where that would put more threads than cores into a share, nor where a
 * launcher has bound ranks apart already, nor with STRETTO_PIN=off. */
#ifndef STRETTO_API_RANK_CORES_H
#define STRETTO_API_RANK_CORES_H

#include "base/pool.h"
#include "topo/machine.h"

struct comm;

struct rank_cores {
    struct cores before, share;
    bool has; /* a share: this rank stays there */
};

/* Ranks as processes, each of `threads`; all call it together. */
err rank_cores_of_process(struct comm *c, i32 threads, struct rank_cores *out);
/* Rank k of `size` that are threads of this process, of `threads` each. */
void rank_cores_of_thread(i32 k, i32 size, i32 threads, struct rank_cores *out);
/* The workers of a pool, of which this thread is one, go there, and back to where they were. */
void rank_cores_go(const struct rank_cores *c, struct pool *pool);
void rank_cores_leave(const struct rank_cores *c, struct pool *pool);

#endif
