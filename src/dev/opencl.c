/* opencl.c - a lane of a device: each queue is given to the device by a worker thread of the pool, which does not wait for it. */
#include "dev/dev.h"

extern const struct dev_type dev_opencl;
const struct dev_type dev_opencl = {
    .name = "opencl",
    .help = "a lane of an OpenCL device: a GPU, or the cores of this host by PoCL",
    .driver = "opencl",
    .workers = dev_workers,
    .run = dev_run,
};
