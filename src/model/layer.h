/* layer.h - the descriptor of a kind of layer: one file, one const struct, one line in layers.def.
 *
 * fwd and bwd work on a part of the box and must give the same bits however the box was cut.  bwd covers whole grains: for each
 * grain in [b0,b1) it ADDS that grain's parameter gradient to run->grad + grain * ntheta + op->theta0, and WRITES the gradient of
 * its input buffer (when that has one).  No allocation, no errors in fwd and bwd: shape() has checked everything. */
#ifndef STRETTO_MODEL_LAYER_H
#define STRETTO_MODEL_LAYER_H

#include "model/net.h"

/* One canonical tensor of an op, as files name it: "<op>.weight" [rows, cols] row-major, or [rows] when cols = 0. */
struct tensor_info {
    char name[48];
    i32 rows, cols;
};

struct layer {
    const char *name;
    const char *help;                                      /* one line, shape included */
    /* Check spec and inputs, set T, I, F, ntheta, nderived, declare out (and end) with net_out(). */
    err (*shape)(struct net *n, struct op *op);
    i64 (*saved)(const struct op *op, const struct net *n, i32 B);    /* NULL = 0 */
    i64 (*scratch)(const struct op *op, const struct net *n, i32 B);  /* NULL = 0 */
    f64 (*flops)(const struct op *op, const struct net *n, i32 B, bool backward);
    void (*init)(const struct op *op, u64 seed, f32 *theta);          /* NULL = no parameters; theta points at the op's block */
    void (*prep)(const struct op *op, const struct kern *k, const f32 *theta, f32 *derived); /* NULL = none */
    void (*fwd)(const struct op *op, const struct run *r, struct part part);
    void (*bwd)(const struct op *op, const struct run *r, struct part part);
    i32 (*tensors)(const struct op *op, struct tensor_info out[8]);   /* NULL = none; returns the count */
    void (*store)(const struct op *op, i32 tensor, const f32 *theta, f32 *canonical);
    void (*load)(const struct op *op, i32 tensor, const f32 *canonical, f32 *theta);
};

const struct layer *layer_find(const char *name);
i32 layer_count(void);
const struct layer *layer_at(i32 i);

/* For shape(): declare an output buffer of the op. */
err net_out(struct net *n, const char *name, i32 T, i32 F, bool grad, i32 *out);

#endif
