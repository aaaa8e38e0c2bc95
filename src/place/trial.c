/* trial.c - a proposal of a method: allocated, copied, compared. */
#include <math.h>
#include <string.h>

#include "place/inside.h"

err trial_new(struct problem *p, struct trial *t) {
    *t = (struct trial){0};
    ARENA_NEW(&p->arena, t->device, p->G);
    ARENA_NEW(&p->arena, t->priority, p->n);
    trial_reset(p, t);
    return 0;
}

void trial_reset(const struct problem *p, struct trial *t) {
    t->makespan = INFINITY;
    t->over = INT64_MAX;
    memcpy(t->priority, p->rank, (size_t)p->n * sizeof *t->priority);
}

void trial_copy(const struct problem *p, const struct trial *from, struct trial *to) {
    struct trial t = *from;
    t.device = to->device;
    t.priority = to->priority;
    if (!t.name[0]) memcpy(t.name, to->name, sizeof t.name); /* a method without variants keeps the name of its caller */
    memcpy(t.device, from->device, (size_t)p->G * sizeof *t.device);
    memcpy(t.priority, from->priority, (size_t)p->n * sizeof *t.priority);
    *to = t;
}

bool trial_better(const struct trial *a, const struct trial *b) {
    const i64 over_a = lmax(a->over, 0), over_b = lmax(b->over, 0);
    return over_a != over_b ? over_a < over_b : a->makespan < b->makespan;
}

void trial_put_unit(const struct problem *p, struct trial *t, i32 unit, i32 device) {
    for (i32 i = p->unit0[unit]; i < p->unit0[unit + 1]; i++) t->device[p->unit_group[i]] = device;
}
