/* workshop.c - threads, kernels and machine of one run, from the options. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"

enum { CALIBRATION_ROUNDS = 100000 }; /* under a millisecond; the planner's costs are only as good as this */

static err pick_kernel(const struct options *o, const struct kern **out) {
    TRY(kern_init());
    *out = kern_best();
    if (strcmp(o->kernel, "auto") == 0) return 0;
    for (i32 a = 0; a < KERN_NARCH; a++)
        if (strcmp(o->kernel, kern_arch_name((enum kern_arch)a)) == 0 && kern_get((enum kern_arch)a)) {
            *out = kern_get((enum kern_arch)a);
            return 0;
        }
    return FAIL_AT(E103, "--kernel", "--kernel auto", "this machine cannot run the kernels \"%s\"", o->kernel);
}

static err fill(const struct options *o, struct workshop *w) {
    TRY(pick_kernel(o, &w->use.kern));
    NEW(w->machine, 1);
    i32 threads = opt_is_auto(o, OPT_threads) ? 0 : (i32)o->threads;
    TRY(machine_host(threads, w->machine));
    machine_set_rate(w->machine, "cpu", w->use.kern->fma_rate(CALIBRATION_ROUNDS), 0);
    w->use.machine = w->machine;
    w->use.parallel = o->parallel;
    w->use.deterministic = o->deterministic;
    return pool_new(w->machine->ndevice, &w->use.pool);
}

err workshop_open(const struct options *o, const struct events *events, const volatile int *stop, struct workshop *out) {
    *out = (struct workshop){.use = {.events = events, .stop = stop}};
    mem_set_limit(o->memory);
    err e = fill(o, out);
    if (e < 0) workshop_close(out);
    return e;
}

void workshop_close(struct workshop *w) {
    pool_free(w->use.pool);
    mem_free(w->machine);
    *w = (struct workshop){0};
}
