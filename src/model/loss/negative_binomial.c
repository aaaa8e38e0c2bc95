/* negative_binomial.c - counts that spread more than Poisson's: mean m = exp(base + raw[0]), variance m + d m^2 with
 * d = softplus(raw[1]).  In the usual terms: 1/d successes. */
#include "base/special.h"
#include "model/loss/family.h"

static const f64 least = 1e-4; /* of d; nearer to Poisson's, differences of gamma functions lose their digits */

static f64 log_mean(const f64 *raw, f64 base) { return fmin(FAMILY_LOG_MEAN, fmax(-FAMILY_LOG_MEAN, base + raw[0])); }
static f64 dispersion(const f64 *raw) { return least + family_softplus(raw[1]); }

static f64 nll(const f64 *raw, f64 base, f64 y, f64 *d) {
    const f64 eta = log_mean(raw, base), mean = exp(eta), a = dispersion(raw), r = 1 / a, wide = log1p(a * mean);
    const f64 by_r = special_digamma(y + r) - special_digamma(r) - wide + (mean - y) / (r + mean);
    d[0] = (mean - y) / (1 + a * mean);
    d[1] = by_r * r * r * family_sigmoid(raw[1]);
    return special_lgamma(r) + special_lgamma(y + 1) - special_lgamma(y + r) + r * wide - y * (log(a) + eta - wide);
}

/* of: successes r, mean m; the share up to k is I_p(r, k + 1) with p = r / (r + m). */
static f64 upto(const f64 *of, f64 k) { return special_beta(of[0], k + 1, of[0] / (of[0] + of[1])); }
static f64 above(const f64 *of, f64 k) { return special_beta(k + 1, of[0], of[1] / (of[0] + of[1])); }

static f64 score(const f64 *raw, f64 base, f64 y, f64 v) {
    const f64 of[] = {1 / dispersion(raw), exp(log_mean(raw, base))};
    return family_step_score(&(struct family_steps){of, upto, above}, y, v);
}

static f64 value(const f64 *raw, f64 base, f64 z) {
    const f64 of[] = {1 / dispersion(raw), exp(log_mean(raw, base))};
    return family_step_value(&(struct family_steps){of, upto, above}, of[1], z);
}

extern const struct family family_negative_binomial;
const struct family family_negative_binomial = {
    .nparam = 2, .counts = true, .mean = true, .nll = nll, .score = score, .value = value};

static err shape(struct net *n, struct op *op) { return family_shape(n, op, &family_negative_binomial); }
static void fwd(const struct op *op, const struct run *r, struct part p) { family_fwd(op, r, p, &family_negative_binomial); }
static void bwd(const struct op *op, const struct run *r, struct part p) { family_bwd(op, r, p, &family_negative_binomial); }

extern const struct layer layer_loss_negative_binomial;
const struct layer layer_loss_negative_binomial = {
    .name = "loss_negative_binomial",
    .help = "negative log-likelihood of a negative binomial distribution: log of the mean and dispersion for each value",
    .nin = 3,
    .shape = shape,
    .flops = family_flops,
    .fwd = fwd,
    .bwd = bwd,
};
