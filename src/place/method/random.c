/* random.c - every group on a device drawn at random: the baseline of most papers.  It ignores limits of memory. */
#include "base/rng.h"
#include "place/inside.h"

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    *able = true;
    for (i32 k = 0; k < p->G; k++) {
        u32 word[4];
        rng_words(seed, RNG_PLACE, 0, (u64)k, word);
        t->device[k] = place_below(word[0], p->P);
    }
    sim_trial(p, t);
    return 0;
}

extern const struct place_method place_random;
const struct place_method place_random = {
    .name = "random",
    .help = "a random device for every task",
    .number = true,
    .baseline = true,
    .run = run,
};
