/* fault.h - misfortune at a place that was named before, for tests and soak runs: how a run ends there is then no matter of luck.
 *
 *     STRETTO_FAULT=1:300:write              kill -9 of rank 1 in the middle of its first checkpoint at step 300 or later
 *     STRETTO_FAULT=*:0:manifest:2=enospc    whoever writes a manifest finds the disk full, the second time
 *     STRETTO_FAULT=0:0:recovery@FILE        once over all processes and restarts: whoever can create FILE
 *
 *     STRETTO_FAULT=1:20:slow(2)             from step 20 on rank 1 takes twice as long for all that it computes
 *
 *     rank:step:phase[:nth][=kind][@FILE]    rank and step may be *; kinds: kill9 (unless said otherwise), enospc, bitflip
 *     phases: write     a part of a checkpoint is half written        manifest  all parts are there, the manifest is not
 *             rename    it is written and synced, not yet renamed     recovery  one is about to be read (step 0)
 *             report    that of rank 0 is written, not yet renamed (step 0)
 *
 * Unset, a place costs one look at the environment; places are never inside a training step. */
#ifndef STRETTO_BASE_FAULT_H
#define STRETTO_BASE_FAULT_H

#include "base/err.h"

enum fault { FAULT_NONE, FAULT_ENOSPC, FAULT_BITFLIP };

/* What goes wrong here.  kill9 does not come back; the other two the caller brings about.  A demand that cannot be read fails
 * the run: a test that injects nothing would pass (E104). */
err fault_at(const char *phase, i32 rank, i64 step, enum fault *out);
/* How much slower this rank is to be (1 to 100) and from which step on; *factor = 0: as fast as it can. */
err fault_slow(i32 rank, i64 *from, f64 *factor);

#endif
