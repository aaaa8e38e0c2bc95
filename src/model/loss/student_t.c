/* student_t.c - Student's t: location base + raw[0], scale softplus(raw[1]), 2 + softplus(raw[2]) degrees of freedom, so that the
 * variance is finite. */
#include "base/special.h"
#include "model/loss/family.h"

static const f64 least = 1e-3, log_pi = 1.14472988584940017414;

static f64 scale(const f64 *raw) { return least + family_softplus(raw[1]); }
static f64 freedom(const f64 *raw) { return 2 + least + family_softplus(raw[2]); }

static f64 nll(const f64 *raw, f64 base, f64 y, f64 *d) {
    const f64 s = scale(raw), nu = freedom(raw), e = (base + raw[0] - y) / s;
    const f64 pull = (nu + 1) * e / (nu + e * e), far = log1p(e * e / nu);
    const f64 by_nu = (special_digamma(nu / 2) - special_digamma((nu + 1) / 2) + 1 / nu + far - pull * e / nu) / 2;
    d[0] = pull / s;
    d[1] = (1 - pull * e) / s * family_sigmoid(raw[1]);
    d[2] = by_nu * family_sigmoid(raw[2]);
    return special_lgamma(nu / 2) - special_lgamma((nu + 1) / 2) + (log(nu) + log_pi) / 2 + log(s) + (nu + 1) / 2 * far;
}

static f64 score(const f64 *raw, f64 base, f64 y, f64 v) {
    const f64 t = (y - base - raw[0]) / scale(raw), least_tail = special_normal_tail(FAMILY_FAR);
    (void)v;
    const f64 z = -special_normal_quantile(fmax(least_tail, special_t_tail(freedom(raw), fabs(t))));
    return t < 0 ? -z : z;
}

static f64 value(const f64 *raw, f64 base, f64 z) {
    const f64 t = special_t_upper(freedom(raw), special_normal_tail(fabs(family_near(z))));
    return base + raw[0] + scale(raw) * (z < 0 ? -t : t);
}

extern const struct family family_student_t;
const struct family family_student_t = {.nparam = 3, .nll = nll, .score = score, .value = value};

static err shape(struct net *n, struct op *op) { return family_shape(n, op, &family_student_t); }
static void fwd(const struct op *op, const struct run *r, struct part p) { family_fwd(op, r, p, &family_student_t); }
static void bwd(const struct op *op, const struct run *r, struct part p) { family_bwd(op, r, p, &family_student_t); }

extern const struct layer layer_loss_student_t;
const struct layer layer_loss_student_t = {
    .name = "loss_student_t",
    .help = "negative log-likelihood of Student's t: location, scale and degrees of freedom for each value",
    .nin = 3,
    .shape = shape,
    .flops = family_flops,
    .fwd = fwd,
    .bwd = bwd,
};
