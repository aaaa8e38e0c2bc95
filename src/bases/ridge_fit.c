/* ridge_fit.c - fits the ridge base: inputs and penalty by blocks of validation, the weights from sums over windows. */
#include "bases/linear.h"

const f64 penalty_grid[PENALTIES] = {1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1};

err base_ridge(const struct series *s, const struct base_spec *spec, struct base **out) {
    struct chain *c = NULL;
    struct base *b;
    f64 loss;
    TRY(chain_new(s, spec, &c));
    c->work = spec->work;
    if (c->work && c->work->all <= 0) c->work->all = chain_cost(c, 1); /* otherwise the caller has set the total */
    err e = chain_fold(c, spec->train, spec->penalty > 0 ? spec->train : spec->valid, &loss, NULL);
    if (e >= 0 && spec->refit) e = windows_take(&c->w, c->upto - spec->H + 1, spec->valid - spec->H + 1, &c->past, c->work);
    if (e >= 0 && c->past.n < WINDOWS_MIN)
        e = FAIL(E301, "ridge: %lld windows of %d + %d rows before row %lld, %d are needed", (long long)c->past.n, spec->L,
                 spec->H, (long long)spec->train, (int)WINDOWS_MIN);
    if (e >= 0) e = mem_new((void **)&b, 1, sizeof *b);
    if (e >= 0) {
        b->npart = 1;
        b->part[0] = (struct base_part){.kind = BASE_RIDGE, .weight = 1};
        e = chain_ridge(c, spec->penalty, &b->ridge);
        if (e < 0) base_free(b);
        else *out = b;
    }
    chain_free(c);
    return e;
}
