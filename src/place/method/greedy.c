/* greedy.c - of all ready tasks, the one that can start first, on the device where it ends first (ETF), within memory. */
#include "place/inside.h"

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    (void)seed;
    *able = list_able(p) && (i64)p->n * p->n * p->P <= ETF_MOST;
    return *able ? list_etf(p, t) : 0;
}

extern const struct place_method place_greedy;
const struct place_method place_greedy = {
    .name = "greedy",
    .help = "each task where it ends first, the earliest start first (ETF)",
    .starts = true,
    .run = run,
};
