/* cpu.c - a core of this host: each queue runs on a worker thread of the pool, in real time. */
#include "dev/dev.h"

extern const struct dev_type dev_cpu;
const struct dev_type dev_cpu = {
    .name = "cpu",
    .help = "a core of this host, by a worker thread",
    .workers = dev_workers,
    .run = dev_run,
};
