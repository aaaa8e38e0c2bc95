/* adagrad.c - Adagrad (Duchi et al., JMLR 2011) as torch.optim.Adagrad without rate decay. */
#include <math.h>

#include "model/optim/optim.h"

/* s = s + g^2;  theta -= lr g / (sqrt(s) + eps). eps > 0, since padding has g = s = 0. */
static void update(const struct optim_hyper *h, i64 n, f32 *restrict theta, const f32 *restrict grad, f32 *restrict s, f32 *s1) {
    (void)s1;
    f32 scale = h->grad_scale, decay = h->weight_decay, eps = h->eps, lr = h->lr;
    for (i64 i = 0; i < n; i++) {
        f32 g = grad[i] * scale + decay * theta[i];
        s[i] += g * g;
        theta[i] -= lr * g / (sqrtf(s[i]) + eps);
    }
}

extern const struct optim optim_adagrad;
const struct optim optim_adagrad = {
    .name = "adagrad",
    .help = "steps divided by the root of all squares so far",
    .rule = RULE_ADAGRAD,
    .nstate = 1,
    .state_name = {"sum"},
    .update = update,
};
