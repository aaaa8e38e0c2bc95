/* gpu.h - load of the GPUs of this host, from NVIDIA's NVML library, opened at run time.
 *
 *     gpus_open --> gpus_look, gpus_look .. --> gpus_close */
#ifndef STRETTO_TOPO_GPU_H
#define STRETTO_TOPO_GPU_H

#include "base/err.h"

enum { GPU_MOST = 64 };

/* Fractions, 0..1. */
struct gpu_load {
    f64 busy;   /* fraction of the last sample period in which a kernel ran; -1 = unknown (GPU partitioned by MIG) */
    f64 memory; /* fraction of memory in use */
};

struct gpus;

/* E820 if the library is missing, the driver does not answer, or there is no GPU. STRETTO_NVML names another library. */
err gpus_open(struct gpus **out);
i32 gpus_count(const struct gpus *g);
err gpus_look(const struct gpus *g, struct gpu_load load[GPU_MOST]);
void gpus_close(struct gpus *g); /* NULL is allowed */

#endif
