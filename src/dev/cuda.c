/* cuda.c - a lane of a device: each queue is given to the device by a worker thread of the pool, which does not wait for it. */
#include "dev/dev.h"

extern const struct dev_type dev_cuda;
const struct dev_type dev_cuda = {
    .name = "cuda",
    .help = "a lane of an NVIDIA GPU",
    .driver = "cuda",
    .workers = dev_workers,
    .run = dev_run,
};
