/* store.c - the memory of a model: weights, derived copies, optimiser state. */
#include <string.h>

#include "base/mem.h"
#include "step/step.h"

static err fill(const struct net *n, const struct optim *optim, struct store *s) {
    NEW(s->theta, n->ntheta);
    NEW(s->derived, n->nderived);
    for (i32 i = 0; optim && i < optim->nstate; i++) NEW(s->state[i], n->ntheta);
    return 0;
}

err store_new(const struct net *n, const struct optim *optim, struct store *out) {
    memset(out, 0, sizeof *out);
    out->ntheta = n->ntheta;
    out->nderived = n->nderived;
    out->optim = optim;
    err e = fill(n, optim, out);
    if (e < 0) store_free(out);
    return e;
}

void store_free(struct store *s) {
    mem_free(s->theta);
    mem_free(s->derived);
    mem_free(s->state[0]);
    mem_free(s->state[1]);
    memset(s, 0, sizeof *s);
}
