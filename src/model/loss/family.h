/* family.h - distributions as outputs: log-likelihood losses over the parameters that the net gives for each value, and what
 * forecasts need of the same distributions.
 *
 *     in[0] pred [T][B][w*P] (value j of parameter p at p*w + j)    in[1] target [T][B][w], NaN = missing    in[2] base or -1
 *
 * P numbers without bounds, raw[0..P), make a distribution together with the base of that value:
 *
 *     family              location or mean          other parameters                      units of target and base
 *     normal              base + raw[0]             deviation softplus(raw[1])            both of the window
 *     student_t           base + raw[0]             scale softplus(raw[1]),               both of the window
 *                                                   degrees of freedom 2 + softplus(raw[2])
 *     poisson             exp(base + raw[0])        -                                     counts, log of a mean
 *     negative_binomial   exp(base + raw[0])        variance m + d m^2, d = softplus(raw[1])   counts, log of a mean
 *
 * Raw outputs of zero give the base: a net whose head starts from zero starts from it.  The scale and d have small lower bounds.
 * A family computes in f64; losses are negative log-likelihoods in full, so they may be below zero. */
#ifndef STRETTO_MODEL_LOSS_FAMILY_H
#define STRETTO_MODEL_LOSS_FAMILY_H

#include <math.h>

#include "model/layer.h"

enum { FAMILY_PARAMS = 3 };
#define FAMILY_FAR 30.0 /* scores are limited to [-FAR, FAR]: 1e-197 of a normal distribution lies outside */
#define FAMILY_LOG_MEAN 30.0 /* of counts: limit of the logarithm of a mean, since an early step may be far too long */

struct family {
    i32 nparam;
    bool counts; /* of whole numbers from 0 on */
    bool mean;   /* its centre is a mean: forecasts are compared by squared errors, as with mse */
    /* Negative log-likelihood of y; d [nparam]: its derivatives by raw. */
    f64 (*nll)(const f64 *raw, f64 base, f64 y, f64 *d);
    /* The score of y: what a standard normal variable is where the distribution is y (z with the same share below).  v in (0,1)
     * places a count within its step of the distribution function, so that scores of true counts are normal. */
    f64 (*score)(const f64 *raw, f64 base, f64 y, f64 v);
    /* The value at a score: the quantile of level share-below(z); rises with z.  Limited to scores within FAMILY_FAR. */
    f64 (*value)(const f64 *raw, f64 base, f64 z);
};

/* The family of a loss by its name without "loss_"; NULL = the loss has none. */
const struct family *family_find(const char *loss);

/* The shape, fwd and bwd of the layer of a family; its spec.nquantile is the number of parameters. */
err family_shape(struct net *n, struct op *op, const struct family *f);
f64 family_flops(const struct op *op, const struct net *n, i32 B, bool backward);
void family_fwd(const struct op *op, const struct run *r, struct part p, const struct family *f);
void family_bwd(const struct op *op, const struct run *r, struct part p, const struct family *f);

static inline f64 family_softplus(f64 x) { return x > 30 ? x : log1p(exp(x)); }
static inline f64 family_sigmoid(f64 x) { return 1 / (1 + exp(-x)); }
static inline f64 family_near(f64 z) { return z > FAMILY_FAR ? FAMILY_FAR : z < -FAMILY_FAR ? -FAMILY_FAR : z; }

/* For families of counts: above(self, k) = share above k >= 0, upto(self, k) = share up to k.  The score and the value as in
 * struct family. */
struct family_steps {
    const f64 *of; /* numbers of the distribution, which the two functions know */
    f64 (*upto)(const f64 *of, f64 k);
    f64 (*above)(const f64 *of, f64 k);
};
f64 family_step_score(const struct family_steps *s, f64 y, f64 v);
f64 family_step_value(const struct family_steps *s, f64 mean, f64 z);

#endif
