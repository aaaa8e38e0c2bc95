/* fault.h - fault injection at named places, for tests and soak runs, so that failures are reproducible.
 *
 *     STRETTO_FAULT=1:300:write              kill -9 of rank 1 in the middle of its first checkpoint at step 300 or later
 *     STRETTO_FAULT=*:0:manifest:2=enospc    any rank that writes a manifest for the second time finds the disk full
 *     STRETTO_FAULT=0:0:recovery@FILE        once over all processes and restarts: by the process that creates FILE
 *
 *     STRETTO_FAULT=1:20:slow(2)             from step 20 on rank 1 takes twice as long for its computations
 *
 *     rank:step:phase[:nth][=kind][@FILE]    rank and step may be *; kinds: kill9 (default), enospc, bitflip
 *     phases: write     a part of a checkpoint is half written        manifest  all parts are written, the manifest is not
 *             rename    it is written and synced, not yet renamed     recovery  a checkpoint is about to be read (step 0)
 *             report    rank 0's report is written, not yet renamed (step 0)
 *             spill     an array beyond --memory asks for room on the disk (step 0)
 *
 * Unset, a place costs one getenv. No place is inside a training step. */
#ifndef STRETTO_BASE_FAULT_H
#define STRETTO_BASE_FAULT_H

#include "base/err.h"

enum fault { FAULT_NONE, FAULT_ENOSPC, FAULT_BITFLIP };

/* The fault to inject here. kill9 does not return; the caller performs the other two. A malformed STRETTO_FAULT fails the run
 * (E104), since a test without its fault would pass. */
err fault_at(const char *phase, i32 rank, i64 step, enum fault *out);
/* Slowdown of this rank (1 to 100) and its first step; *factor = 0: none. */
err fault_slow(i32 rank, i64 *from, f64 *factor);

#endif
