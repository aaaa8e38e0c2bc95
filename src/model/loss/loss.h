/* loss.h - what the losses share: a loss is a layer that compares rows and has no output.
 *
 *     in[0] pred [T][B][w*Q] (value j of quantile q at q*w + j)    in[1] target [T][B][w], NaN = missing    in[2] base [T][B][w] or -1
 *
 * Forward writes the sum over the present cells of each grain (f64, fixed order) to run->loss; backward writes the gradient of
 * loss_scale times that sum.  A loss file gives the row function: the value of one row of w cells and, when d is not NULL, its
 * gradient times scale. */
#ifndef STRETTO_MODEL_LOSS_LOSS_H
#define STRETTO_MODEL_LOSS_LOSS_H

#include "model/layer.h"

struct loss_row {
    i32 w;
    const f32 *pred, *target, *base; /* base NULL = zero */
    f32 *d;                          /* NULL = value only */
    f32 scale;
};
typedef f64 loss_row_fn(const struct op *op, const struct loss_row *row);

err loss_shape(struct net *n, struct op *op);
f64 loss_flops(const struct op *op, const struct net *n, i32 B, bool backward);
void loss_fwd(const struct op *op, const struct run *r, struct part p, loss_row_fn *fn);
void loss_bwd(const struct op *op, const struct run *r, struct part p, loss_row_fn *fn);

#endif
