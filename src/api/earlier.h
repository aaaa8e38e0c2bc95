/* earlier.h - keeps what an earlier run left in the run folder until a new run there has something of its own. */
#ifndef STRETTO_API_EARLIER_H
#define STRETTO_API_EARLIER_H

#include "base/err.h"

/* A new run begins, on the rank that writes: moves what an earlier one left out of its way. E702. */
err earlier_set_aside(const char *run_dir);
/* That run has ended; trained: it has a model. Deletes the files of the earlier run if it has a model or a checkpoint; else, if
 * it was not resumed, puts them back and returns true. */
bool earlier_settle(const char *run_dir, bool trained, bool resumed);
/* For `resume`: puts them back if the new run was killed before it wrote its run.json. The caller holds the lock of the run
 * folder. */
void earlier_recover(const char *run_dir);

#endif
