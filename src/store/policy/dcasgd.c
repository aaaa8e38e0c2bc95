/* dcasgd.c - asynchronous with delay compensation (Zheng et al., ICML 2017): a stale gradient g, made at weights w0, is corrected
 * to first order to the weights w of now, with lambda g*g in place of the Hessian:  g + lambda g*g*(w - w0). */
#include "store/policy.h"

static void update(const struct store_update *u) {
    const f32 lambda = (f32)u->value;
    for (i64 i = 0; i < u->n; i++) u->delta[i] += lambda * u->delta[i] * u->delta[i] * (u->theta[i] - u->base[i]);
    u->optim->update(&u->hyper, u->n, u->theta, u->delta, u->state[0], u->state[1]);
}

extern const struct store_policy store_dcasgd;
const struct store_policy store_dcasgd = {
    .name = "dcasgd",
    .help = "asynchronous, gradients corrected for their delay; N = lambda",
    .least = 0,
    .most = 100,
    .usual = 0.04,
    .number = "lambda",
    .staleness = STORE_UNBOUNDED,
    .local = 1,
    .keeps_base = true,
    .update = update,
};
