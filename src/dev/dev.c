/* dev.c - the types of topo/devices.def. */
#include "dev/dev.h"

#include <string.h>

#define PLANNED(name, gflops, gbytes, memory)
#define DEVICE(name, gflops, gbytes, memory) extern const struct dev_type dev_##name;
#include "topo/devices.def"
#undef DEVICE

static const struct dev_type *const list[] = {
#define DEVICE(name, gflops, gbytes, memory) &dev_##name,
#include "topo/devices.def"
#undef DEVICE
#undef PLANNED
};

const struct dev_type *dev_find(const char *kind) {
    for (size_t i = 0; i < COUNT(list); i++)
        if (strcmp(list[i]->name, kind) == 0) return list[i];
    return NULL;
}

err dev_of_rank(const struct plan *p, i32 rank, const struct dev_type **out) {
    const struct device *first = NULL;
    *out = NULL;
    for (i32 d = 0; d < p->ndevice; d++) {
        const struct device *at = &p->place[d].device;
        if (p->place[d].rank != rank) continue;
        if (!first) first = at;
        if (strcmp(at->kind, first->kind) != 0 || at->card != first->card)
            return FAIL_AT(E401, "--machine", "--machine auto", "a step on %s and %s devices of one rank is not possible",
                           first->kind, at->kind);
    }
    if (!first) first = &p->place[0].device; /* a rank without devices has nothing to run */
    *out = dev_find(first->kind);
    if (*out) return 0;
    return FAIL_AT(E401, "--machine", "--machine auto", "no device type \"%s\" is built in: plans for it can be made, not run",
                   first->kind);
}

i32 dev_workers(const struct pool *pool, i32 devices) { return imin(pool_size(pool), devices); }

f64 dev_run(const struct dev_work *w) {
    if (w->nqueue == 1)
        w->run_queue(w->arg, 0);
    else
        pool_run(w->pool, w->run_queue, w->arg);
    return 0;
}
