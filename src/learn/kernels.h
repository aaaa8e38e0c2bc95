/* kernels.h - the kernels that --kernel asks for, and the rate that they reach on this host. */
#ifndef STRETTO_LEARN_KERNELS_H
#define STRETTO_LEARN_KERNELS_H

#include "opt/opt.h"
#include "kern/kern.h"
#include "topo/machine.h"

/* Finds the kernels that --kernel names and the execution mode after the colon (0 = the kernels choose): "amx",
 * "auto:fold". E103. */
err pick_kernel(const struct options *o, const struct kern **out, u32 *how);
/* Measures the multiply-add rate of the kernels on this host and stores it in the machine; takes 1 to 2 ms. */
void machine_measure(const struct kern *k, struct machine *m);

#endif
