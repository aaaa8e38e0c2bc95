/* shares.h - what is free on the node of each rank, as gpuload smoothed it there. */
#ifndef STRETTO_API_SHARES_H
#define STRETTO_API_SHARES_H

#include "api/api.h"
#include "launch/gpuload.h"

/* The state of gpuload on every rank's node, in order of rank; all ranks call it together, and all fail where one does.  node
 * NULL or "auto": this one, as Slurm or the host names it. */
err shares_gather(struct comm *comm, const char *pattern, const char *node, struct gpuload_state *all);

/* --rank-shares for so many ranks: *even where all get the same rows; else share[ranks], on every rank the same, and a text
 * that names their source.  E103 for a list of another length. */
err shares_of_ranks(const struct options *o, struct comm *comm, i32 ranks, f64 *share, bool *even, struct str *from);

#endif
