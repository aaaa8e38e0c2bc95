/* lost.h - devices that fail during a run of this process: the others, or the cores of the host, go on.
 *
 *     fit on opencl:0,opencl:1 --E831--> machine, ranks, threads without opencl:1 --> fit on opencl:0, from the newest checkpoint
 *
 * A device counts as lost once it has worked and then failed, or where it refuses memory (gpu_is_lost).  Each is left at most
 * once, so a run ends.  Under a launcher nothing is done here: other processes have the other devices (--heal). */
#ifndef STRETTO_API_LOST_H
#define STRETTO_API_LOST_H

#include "api/api.h"

/* ranks_fit; after the loss of devices again, without them.  E831 or E601 of the device where the run cannot go on without it. */
err lost_fit(struct stretto_trainer *t, struct model **out);
/* After the failure e: true if devices of the run are lost, and the run is now without them; a warning says so.  then: how it
 * goes on, "from the newest checkpoint".  False: the error stays. */
bool lost_left(struct stretto_trainer *t, err e, const char *then);

#endif
