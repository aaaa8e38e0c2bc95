/* bmuf.c - blockwise model-update filtering (Chen and Huo, ICASSP 2016): N local steps, the mean of all weights, then momentum
 * over the updates of the blocks:  v = eta v + d;  theta = theta - v, with Nesterov's look-ahead by eta v. */
#include "store/policy.h"

static void update(const struct store_update *u) {
    const f32 eta = u->hyper.momentum, lr = u->hyper.lr, scale = u->hyper.grad_scale;
    f32 *restrict theta = u->theta, *restrict v = u->state[0];
    const f32 *restrict d = u->delta;
    for (i64 i = 0; i < u->n; i++) {
        const f32 before = v[i];
        v[i] = eta * before + lr * scale * d[i];
        theta[i] -= (1 + eta) * v[i] - eta * before;
    }
}

extern const struct store_policy store_bmuf;
const struct store_policy store_bmuf = {
    .name = "bmuf",
    .help = "N local steps, their mean, block momentum (BMUF)",
    .least = 1,
    .most = 1000000,
    .usual = 32,
    .number = "steps",
    .local = STORE_BY_VALUE,
    .server = "sgd",
    .server_momentum = -1, /* 1 - 1 / workers */
    .server_lr = 1,
    .update = update,
};
