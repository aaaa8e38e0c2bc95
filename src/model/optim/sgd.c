/* sgd.c - stochastic gradient descent with momentum, as torch.optim.SGD (no dampening, weight decay added to the gradient). */
#include "model/optim/optim.h"

/* v = momentum v + g;  theta -= lr v */
static void update(const struct optim_hyper *h, i64 n, f32 *restrict theta, const f32 *restrict grad, f32 *restrict v, f32 *s1) {
    (void)s1;
    f32 scale = h->grad_scale, decay = h->weight_decay, momentum = h->momentum, lr = h->lr;
    for (i64 i = 0; i < n; i++) {
        f32 g = grad[i] * scale + decay * theta[i];
        v[i] = momentum * v[i] + g;
        theta[i] -= lr * v[i];
    }
}

extern const struct optim optim_sgd;
const struct optim optim_sgd = {
    .name = "sgd",
    .help = "gradient descent with momentum",
    .rule = RULE_SGD,
    .nstate = 1,
    .state_name = {"momentum_buffer"},
    .update = update,
};
