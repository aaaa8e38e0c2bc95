/* cyclic.c - layer l on device l mod P, fastest devices first.  For equal layers and devices, P | L, P <= C and free transfers,
 * the forward pass over C chunks of time takes (L C / P + P - 1) tasks, which is optimal: the ramps cost P - 1 tasks. */
#include "place/inside.h"

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    (void)seed;
    *able = true;
    for (i32 u = 0; u < p->U; u++) trial_put_unit(p, t, u, p->by_speed[u % p->P]);
    sim_trial_columns(p, t);
    return 0;
}

extern const struct place_method place_cyclic;
const struct place_method place_cyclic = {
    .name = "cyclic",
    .help = "layer l on device l mod P",
    .starts = true,
    .run = run,
};
