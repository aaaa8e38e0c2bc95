/* affinity.c - HEFT that adds b times the cost of a copy of the weights where a device has none; b = 1/4 to 8, the best of them.
 */
#include "place/inside.h"

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    (void)seed;
    *able = list_able(p);
    if (!*able) return 0;
    struct trial one;
    TRY(trial_new(p, &one));
    for (f64 b = 0.25; b <= 8; b *= 2) {
        TRY(list_heft(p, b, &one));
        str_print(one.name, sizeof one.name, "affinity b=%g", b);
        if (trial_better(&one, t)) trial_copy(p, &one, t);
    }
    return 0;
}

extern const struct place_method place_affinity;
const struct place_method place_affinity = {
    .name = "affinity",
    .help = "HEFT that avoids copies of weights",
    .starts = true,
    .run = run,
};
