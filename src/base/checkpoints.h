/* checkpoints.h - where the checkpoints of a run are: RUN/checkpoints, or the folder of HDFS that `join` names to the ranks of
 * hosts that share no folder. */
#ifndef STRETTO_BASE_CHECKPOINTS_H
#define STRETTO_BASE_CHECKPOINTS_H

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

#define CHECKPOINTS_VARIABLE "STRETTO_CHECKPOINTS" /* set for the processes of one job */

/* The folder in this process's environment; NULL = the checkpoints are in the run folder. */
static inline const char *checkpoints_apart(void) {
    const char *named = getenv(CHECKPOINTS_VARIABLE);
    return named && *named ? named : NULL;
}

/* The folder of a run's checkpoints.  E702 if its path is too long. */
static inline err checkpoints_of(const char *run_dir, char out[4096]) {
    const char *apart = checkpoints_apart();
    const int n = apart ? snprintf(out, 4096, "%s", apart) : snprintf(out, 4096, "%s/checkpoints", run_dir);
    return n < 4096 ? 0 : FAIL(E702, "the path of the run folder is too long");
}

#endif
