/* kernels.h - the kernels that --kernel asks for, and the rate that they reach on this host. */
#ifndef STRETTO_LEARN_KERNELS_H
#define STRETTO_LEARN_KERNELS_H

#include "opt/opt.h"
#include "kern/kern.h"
#include "topo/machine.h"

/* The kernels that --kernel demands, and how they are to walk a layer (0 = as they like): "amx", "auto:fold".  E103. */
err pick_kernel(const struct options *o, const struct kern **out, u32 *how);
/* This host's rate as these kernels reach it, into the machine; a millisecond or two. */
void machine_measure(const struct kern *k, struct machine *m);

#endif
