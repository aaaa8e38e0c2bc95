/* diloco.c - DiLoCo (Douillard et al., arXiv:2311.08105): N local steps, then the mean difference is the gradient of an outer
 * Nesterov momentum with learning rate 0.7 and momentum 0.9, which OpenDiLoCo confirms. */
#include "store/policy.h"

/* As torch.optim.SGD(nesterov=True):  v = mu v + d;  theta = theta - lr (d + mu v). */
static void update(const struct store_update *u) {
    const f32 mu = u->hyper.momentum, lr = u->hyper.lr, scale = u->hyper.grad_scale;
    f32 *restrict theta = u->theta, *restrict v = u->state[0];
    const f32 *restrict d = u->delta;
    for (i64 i = 0; i < u->n; i++) {
        const f32 g = scale * d[i];
        v[i] = mu * v[i] + g;
        theta[i] -= lr * (g + mu * v[i]);
    }
}

extern const struct store_policy store_diloco;
const struct store_policy store_diloco = {
    .name = "diloco",
    .help = "N local steps, outer Nesterov momentum (DiLoCo)",
    .least = 1,
    .most = 1000000,
    .usual = 64,
    .number = "steps",
    .local = STORE_BY_VALUE,
    .server = "sgd",
    .server_momentum = 0.9f,
    .server_lr = 0.7f,
    .update = update,
};
