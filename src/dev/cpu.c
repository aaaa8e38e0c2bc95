/* cpu.c - a core of this host: each queue runs on a worker thread of the pool, in real time. */
#include "dev/dev.h"

static i32 workers(const struct pool *pool, i32 devices) { return imin(pool_size(pool), devices); }

static f64 run(const struct dev_work *w) {
    if (w->nqueue == 1)
        w->run_queue(w->arg, 0);
    else
        pool_run(w->pool, w->run_queue, w->arg);
    return 0;
}

extern const struct dev_type dev_cpu;
const struct dev_type dev_cpu = {
    .name = "cpu",
    .help = "a core of this host, by a worker thread",
    .workers = workers,
    .run = run,
};
