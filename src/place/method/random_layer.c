/* random_layer.c - every unit on a device drawn at random, with all its groups.  It ignores limits of memory. */
#include "base/rng.h"
#include "place/inside.h"

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    *able = true;
    for (i32 u = 0; u < p->U; u++) {
        u32 word[4];
        rng_words(seed, RNG_PLACE, 0, (u64)u, word);
        trial_put_unit(p, t, u, place_below(word[0], p->P));
    }
    sim_trial(p, t);
    return 0;
}

extern const struct place_method place_random_layer;
const struct place_method place_random_layer = {
    .name = "random-layer",
    .help = "a random device for every layer",
    .number = true,
    .baseline = true,
    .run = run,
};
