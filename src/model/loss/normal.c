/* normal.c - normal distribution: location base + raw[0], deviation softplus(raw[1]). */
#include "model/loss/family.h"

/* A deviation of a thousandth of the window's: a constant stretch of a series must not make the likelihood infinite. */
static const f64 least = 1e-3, half_log_2pi = 0.91893853320467274178;

static f64 deviation(const f64 *raw) { return least + family_softplus(raw[1]); }

static f64 nll(const f64 *raw, f64 base, f64 y, f64 *d) {
    const f64 s = deviation(raw), e = (base + raw[0] - y) / s;
    d[0] = e / s;
    d[1] = (1 - e * e) / s * family_sigmoid(raw[1]);
    return half_log_2pi + log(s) + e * e / 2;
}

static f64 score(const f64 *raw, f64 base, f64 y, f64 v) {
    (void)v;
    return family_near((y - base - raw[0]) / deviation(raw));
}

static f64 value(const f64 *raw, f64 base, f64 z) { return base + raw[0] + deviation(raw) * family_near(z); }

extern const struct family family_normal;
const struct family family_normal = {.nparam = 2, .mean = true, .nll = nll, .score = score, .value = value};

static err shape(struct net *n, struct op *op) { return family_shape(n, op, &family_normal); }
static void fwd(const struct op *op, const struct run *r, struct part p) { family_fwd(op, r, p, &family_normal); }
static void bwd(const struct op *op, const struct run *r, struct part p) { family_bwd(op, r, p, &family_normal); }

extern const struct layer layer_loss_normal;
const struct layer layer_loss_normal = {
    .name = "loss_normal",
    .help = "negative log-likelihood of a normal distribution: location and deviation for each value",
    .nin = 3,
    .shape = shape,
    .flops = family_flops,
    .fwd = fwd,
    .bwd = bwd,
};
