/* rmsprop.c - RMSprop (Hinton's lecture 6e) as torch.optim.RMSprop without momentum; beta2 is its alpha. */
#include <math.h>

#include "model/optim/optim.h"

/* v = alpha v + (1 - alpha) g^2;  theta -= lr g / (sqrt(v) + eps). eps > 0, since padding has g = v = 0. */
static void update(const struct optim_hyper *h, i64 n, f32 *restrict theta, const f32 *restrict grad, f32 *restrict v, f32 *s1) {
    (void)s1;
    f32 scale = h->grad_scale, decay = h->weight_decay, alpha = h->beta2, eps = h->eps, lr = h->lr;
    for (i64 i = 0; i < n; i++) {
        f32 g = grad[i] * scale + decay * theta[i];
        v[i] = alpha * v[i] + (1 - alpha) * g * g;
        theta[i] -= lr * g / (sqrtf(v[i]) + eps);
    }
}

extern const struct optim optim_rmsprop;
const struct optim optim_rmsprop = {
    .name = "rmsprop",
    .help = "steps divided by a running deviation",
    .rule = RULE_RMSPROP,
    .nstate = 1,
    .state_name = {"square_avg"},
    .update = update,
};
