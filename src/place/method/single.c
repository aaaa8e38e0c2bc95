/* single.c - everything on one device: the fastest one that has the memory.  Slow links make it the best placement. */
#include <math.h>

#include "place/inside.h"

enum { KINDS_MOST = 16 }; /* kinds of devices that are tried: speed and memory */

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    (void)seed;
    struct trial one;
    TRY(trial_new(p, &one));
    *able = true;
    const struct place_device *last = NULL;
    for (i32 i = 0, kinds = 0; i < p->P && kinds < KINDS_MOST; i++) {
        const struct place_device *d = &p->m->device[p->by_speed[i]];
        if (last && last->speed == d->speed && last->memory == d->memory) continue;
        last = d;
        kinds++;
        for (i32 k = 0; k < p->G; k++) one.device[k] = p->by_speed[i];
        sim_trial(p, &one);
        if (kinds == 1 || trial_better(&one, t)) trial_copy(p, &one, t);
        if (t->over <= 0) break; /* slower ones are no better */
    }
    return 0;
}

extern const struct place_method place_single;
const struct place_method place_single = {
    .name = "single",
    .help = "everything on the fastest device that has the memory",
    .starts = true,
    .run = run,
};
