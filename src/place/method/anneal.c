/* anneal.c - simulated annealing from the HEFT placement: devices and order.  The number is the random seed. */
#include "place/inside.h"

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    struct place_bound bound;
    *able = p->n <= ANNEAL_NODES && list_able(p);
    if (!*able) return 0;
    TRY(problem_bound(p, &bound));
    TRY(list_heft(p, 0, t));
    return anneal_run(p, seed, t, bound.seconds);
}

extern const struct place_method place_anneal;
const struct place_method place_anneal = {
    .name = "anneal",
    .help = "simulated annealing of devices and order, from HEFT",
    .number = true,
    .run = run,
};
