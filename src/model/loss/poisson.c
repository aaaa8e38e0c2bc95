/* poisson.c - Poisson distribution of counts: mean exp(base + raw[0]). */
#include "base/special.h"
#include "model/loss/family.h"

static f64 log_mean(const f64 *raw, f64 base) { return fmin(FAMILY_LOG_MEAN, fmax(-FAMILY_LOG_MEAN, base + raw[0])); }

static f64 nll(const f64 *raw, f64 base, f64 y, f64 *d) {
    const f64 eta = log_mean(raw, base), mean = exp(eta);
    d[0] = mean - y;
    return mean - y * eta + special_lgamma(y + 1);
}

static f64 upto(const f64 *mean, f64 k) { return special_gamma_upper(k + 1, *mean); }
static f64 above(const f64 *mean, f64 k) { return special_gamma_lower(k + 1, *mean); }

static f64 score(const f64 *raw, f64 base, f64 y, f64 v) {
    const f64 mean = exp(log_mean(raw, base));
    return family_step_score(&(struct family_steps){&mean, upto, above}, y, v);
}

static f64 value(const f64 *raw, f64 base, f64 z) {
    const f64 mean = exp(log_mean(raw, base));
    return family_step_value(&(struct family_steps){&mean, upto, above}, mean, z);
}

extern const struct family family_poisson;
const struct family family_poisson = {.nparam = 1, .counts = true, .mean = true, .nll = nll, .score = score, .value = value};

static err shape(struct net *n, struct op *op) { return family_shape(n, op, &family_poisson); }
static void fwd(const struct op *op, const struct run *r, struct part p) { family_fwd(op, r, p, &family_poisson); }
static void bwd(const struct op *op, const struct run *r, struct part p) { family_bwd(op, r, p, &family_poisson); }

extern const struct layer layer_loss_poisson;
const struct layer layer_loss_poisson = {
    .name = "loss_poisson",
    .help = "negative log-likelihood of a Poisson distribution: log of the mean count for each value",
    .nin = 3,
    .shape = shape,
    .flops = family_flops,
    .fwd = fwd,
    .bwd = bwd,
};
