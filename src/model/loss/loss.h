/* loss.h - common part of the losses: a loss is a layer that compares prediction and target and has no output buffer.
 *
 *     in[0] pred [T][B][w*Q] (value j of quantile q at q*w + j)    in[1] target [T][B][w], NaN = missing
 *     in[2] base [T][B][w] or -1
 *
 * Forward writes the sum over the present values of each micro-batch to run->loss (mean over the quantiles, fixed order).
 * Backward writes the gradient of loss_scale times that sum. A loss file defines the value and derivative for an error e = base
 * + pred - target. Both must be 0 at e = 0, since missing values are passed as e = 0. */
#ifndef STRETTO_MODEL_LOSS_LOSS_H
#define STRETTO_MODEL_LOSS_LOSS_H

#include "kern/device.h"
#include "model/layer.h"

/* For n errors of quantile i; n is a multiple of LANES. */
struct loss_fn {
    enum loss_kind kind; /* the same on a device */
    void (*value)(const struct op *op, i32 i, i32 n, const f32 *e, f32 *value);
    void (*slope)(const struct op *op, i32 i, i32 n, const f32 *e, f32 *slope);
};

err loss_shape(struct net *n, struct op *op);
f64 loss_flops(const struct op *op, const struct net *n, i32 B, bool backward);
void loss_fwd(const struct op *op, const struct run *r, struct part p, const struct loss_fn *fn);
void loss_bwd(const struct op *op, const struct run *r, struct part p, const struct loss_fn *fn);

#endif
