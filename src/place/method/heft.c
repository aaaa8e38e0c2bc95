/* heft.c - by falling upward rank, each task where it ends first, gaps included (HEFT), within memory. */
#include "place/inside.h"

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    (void)seed;
    *able = list_able(p);
    return *able ? list_heft(p, 0, t) : 0;
}

extern const struct place_method place_heft;
const struct place_method place_heft = {
    .name = "heft",
    .help = "by upward rank, each task where it ends first, gaps included (HEFT)",
    .starts = true,
    .run = run,
};
