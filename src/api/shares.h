/* shares.h - free GPU capacity on the node of each rank, as smoothed by gpuload. */
#ifndef STRETTO_API_SHARES_H
#define STRETTO_API_SHARES_H

#include "api/api.h"
#include "launch/gpuload.h"

/* Gathers the gpuload state of every rank's node, in order of rank; collective, and fails on all ranks if it fails on one.
 * node NULL or "auto": this node, as Slurm or the host names it. */
err shares_gather(struct comm *comm, const char *pattern, const char *node, struct gpuload_state *all);

/* Reads --rank-shares: *even if all ranks get equal rows, otherwise share[ranks], equal on every rank, and a text that
 * names the source. E103 for a list of another length. */
err shares_of_ranks(const struct options *o, struct comm *comm, i32 ranks, f64 *share, bool *even, struct str *from);

#endif
