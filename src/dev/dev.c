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


err dev_of_plan(const struct plan *p, const struct dev_type **out) {
    const char *kind = p->place[0].device.kind;
    *out = NULL;
    for (i32 d = 1; d < p->ndevice; d++)
        if (strcmp(p->place[d].device.kind, kind) != 0)
            return FAIL_AT(E401, "--machine", "--machine auto", "a step on %s and %s devices at once is not possible", kind,
                           p->place[d].device.kind);
    for (size_t i = 0; i < COUNT(list); i++)
        if (strcmp(list[i]->name, kind) == 0) *out = list[i];
    if (*out) return 0;
    return FAIL_AT(E401, "--machine", "--machine auto", "no device type \"%s\" is built in: plans for it can be made, not run",
                   kind);
}
