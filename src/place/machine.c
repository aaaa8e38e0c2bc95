/* machine.c - the machine as placement sees it: equal devices, or those of a machine text (topo/machine.h). */
#include <math.h>

#include "base/mem.h"
#include "place/place.h"

#define INSIDE_SECONDS 1e-6 /* a task that waits for another worker of its process */

static err devices_new(i32 n, struct place_machine *out) {
    *out = (struct place_machine){.ndevice = n, .nrank = n, .inside = {0, INFINITY}};
    if (n < 1) return FAIL(E401, "a machine of %d devices runs nothing", n);
    out->device = arena_array(&out->arena, n, sizeof *out->device);
    return out->device ? 0 : -E601;
}

err place_machine_equal(i32 n, struct place_link between, struct place_machine *out) {
    TRY(devices_new(n, out));
    out->between = between;
    for (i32 d = 0; d < n; d++) out->device[d] = (struct place_device){.speed = 1, .rank = d};
    return 0;
}

err place_machine_of(const struct machine *m, f64 gflops, struct place_machine *out) {
    TRY(devices_new(m->ndevice, out));
    out->nrank = m->nrank;
    out->between = (struct place_link){1e-6 * m->link_us, 1e9 * m->link_gbytes};
    const f64 bandwidth = m->device[0].gbytes;
    out->inside = (struct place_link){INSIDE_SECONDS, bandwidth > 0 ? 1e9 * bandwidth : INFINITY};
    for (i32 d = 0; d < m->ndevice; d++) {
        const struct device *from = &m->device[d];
        out->device[d] = (struct place_device){from->gflops * from->share / gflops, from->memory, from->rank};
    }
    return 0;
}

void place_machine_free(struct place_machine *m) {
    struct arena a = m->arena;
    *m = (struct place_machine){0};
    arena_free(&a);
}
