/* best.c - the portfolio: all starts judged by the simulator, the best three annealed with three seeds each.
 *
 * No single heuristic is good everywhere: each has instances on which it is far worse than another (PISA, 2024).  The portfolio
 * contains them, so it is never worse than any of them in the simulator.  Graphs of more than ANNEAL_NODES nodes are not
 * annealed. */
#include <string.h>

#include "place/inside.h"

extern const struct place_method place_anneal;

enum { KEPT = 3, SEEDS = 3 };

/* A placement like one that is kept already is no second start. */
static bool known(const struct problem *p, const struct trial *kept, i32 n, const struct trial *t) {
    for (i32 i = 0; i < n; i++)
        if (memcmp(kept[i].device, t->device, (size_t)p->G * sizeof *t->device) == 0 && kept[i].makespan <= t->makespan)
            return true;
    return false;
}

static void keep(const struct problem *p, struct trial *kept, i32 *n, const struct trial *t) {
    if (known(p, kept, *n, t)) return;
    if (*n == KEPT && !trial_better(t, &kept[KEPT - 1])) return;
    if (*n < KEPT) (*n)++;
    i32 at = *n - 1;
    for (; at > 0 && trial_better(t, &kept[at - 1]); at--) trial_copy(p, &kept[at - 1], &kept[at]);
    trial_copy(p, t, &kept[at]);
}

static err starts(struct problem *p, struct trial *kept, i32 *n) {
    const struct place_method *m;
    struct trial one;
    TRY(trial_new(p, &one));
    for (i32 i = 0; (m = place_method_at(i)); i++) {
        bool able;
        if (!m->starts) continue;
        trial_reset(p, &one);
        str_print(one.name, sizeof one.name, "%s", m->name);
        TRY(m->run(p, 0, &one, &able));
        if (able) keep(p, kept, n, &one);
    }
    return 0;
}

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    struct trial kept[KEPT], one;
    struct place_bound bound;
    i32 n = 0;
    *able = true;
    for (i32 i = 0; i < KEPT; i++) TRY(trial_new(p, &kept[i]));
    TRY(trial_new(p, &one));
    TRY(problem_bound(p, &bound));
    TRY(starts(p, kept, &n));
    trial_copy(p, &kept[0], t);
    char from[TRIAL_NAME];
    memcpy(from, kept[0].name, sizeof from);
    const bool anneals = p->n <= ANNEAL_NODES && p->o.iterations >= 0;
    str_print(t->name, sizeof t->name, "best: %.24s%s", from, anneals ? "" : ", not annealed");
    for (i32 k = 0; k <= n * SEEDS && anneals; k++) {
        if (t->over <= 0 && t->makespan <= bound.seconds * (1 + 1e-9)) break;
        const bool last = k == n * SEEDS; /* the method `anneal`, so that it is not better either */
        if (last) {
            TRY(place_anneal.run(p, seed, &one, able));
        } else {
            trial_copy(p, &kept[k / SEEDS], &one);
            TRY(anneal_run(p, 3 * seed + (u64)(k % SEEDS), &one, bound.seconds));
        }
        if (!trial_better(&one, t)) continue;
        trial_copy(p, &one, t);
        str_print(t->name, sizeof t->name, "best: %.24s, annealed", last ? "heft" : kept[k / SEEDS].name);
    }
    *able = true;
    return 0;
}

extern const struct place_method place_best;
const struct place_method place_best = {
    .name = "best",
    .help = "the portfolio: all heuristics, the best three annealed",
    .number = true,
    .run = run,
};
