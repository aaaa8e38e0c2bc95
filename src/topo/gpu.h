/* gpu.h - how busy the GPUs of this host are, as NVIDIA's driver says: its library NVML, opened at run time.
 *
 *     gpus_open --> gpus_look, gpus_look .. --> gpus_close */
#ifndef STRETTO_TOPO_GPU_H
#define STRETTO_TOPO_GPU_H

#include "base/err.h"

enum { GPU_MOST = 64 };

/* Shares, 0..1. */
struct gpu_load {
    f64 busy;   /* of the last moments in which a kernel ran; -1 = not said (a GPU cut into instances by MIG) */
    f64 memory; /* of its memory that is taken */
};

struct gpus;

/* E820 where the library is not there, the driver does not answer, or there is no GPU.  STRETTO_NVML names another library. */
err gpus_open(struct gpus **out);
i32 gpus_count(const struct gpus *g);
err gpus_look(const struct gpus *g, struct gpu_load load[GPU_MOST]);
void gpus_close(struct gpus *g); /* NULL is fine */

#endif
