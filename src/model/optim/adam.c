/* adam.c - Adam (Kingma and Ba, ICLR 2015) as torch.optim.Adam: weight decay is added to the gradient. */
#include <math.h>

#include "model/optim/optim.h"

/* m, v = running means of g and g^2, bias-corrected by 1 - beta^step; theta = theta - lr m / (sqrt(v) + eps). eps > 0, since
 * padding has m = v = 0. */
static void update(const struct optim_hyper *h, i64 n, f32 *restrict theta, const f32 *restrict grad, f32 *restrict m,
                   f32 *restrict v) {
    f32 scale = h->grad_scale, decay = h->weight_decay, beta1 = h->beta1, beta2 = h->beta2, eps = h->eps;
    f32 rate = (f32)((f64)h->lr / (1 - pow((f64)h->beta1, (f64)h->step)));
    f32 root = (f32)(1 / sqrt(1 - pow((f64)h->beta2, (f64)h->step)));
    for (i64 i = 0; i < n; i++) {
        f32 g = grad[i] * scale + decay * theta[i];
        m[i] = beta1 * m[i] + (1 - beta1) * g;
        v[i] = beta2 * v[i] + (1 - beta2) * g * g;
        f32 denominator = sqrtf(v[i]) * root + eps;
        theta[i] = theta[i] - rate * m[i] / denominator;
    }
}

extern const struct optim optim_adam;
const struct optim optim_adam = {
    .name = "adam",
    .help = "Adam",
    .rule = RULE_ADAM,
    .nstate = 2,
    .state_name = {"exp_avg", "exp_avg_sq"},
    .update = update,
};
