/* device.h - kernels of devices with memory of their own, beyond the table that they share with the host (kern.h).
 *
 * On the host a layer has its own loops for these; a table of a device has `device` set, and the layer calls it.  All addresses
 * are the device's; nothing is returned, work goes to the lane of the calling thread (gpu/gpu.h). */
#ifndef STRETTO_KERN_DEVICE_H
#define STRETTO_KERN_DEVICE_H

#include "kern/kern.h"

enum loss_kind { LOSS_MSE, LOSS_MAE, LOSS_QUANTILE };
/* The order of model/optim/optims.def. */
enum optim_rule { RULE_SGD, RULE_ADAM, RULE_ADAMW, RULE_RMSPROP, RULE_ADAGRAD };

/* Steps [t0,t1) and rows [b0,b1) of buffers [T][B]: pred [..][Ip] has Q quantiles of F values, target and base [..][Fp].  A
 * target that is NaN counts nothing. */
struct device_loss {
    enum loss_kind kind;
    i32 F, Q, t0, t1, b0, b1, B;
    const f32 *pred, *target, *base; /* base NULL = zero */
    const f32 *quantile;             /* [Q], of the host; NULL unless kind is LOSS_QUANTILE */
    f64 *sum;                        /* of micro-batch g at sum + g, of the batch; += where t0 > 0 */
    f32 *slope;                      /* [..][Ip], padding becomes zero */
    f32 scale;
    i32 grain, row0; /* rows of a micro-batch; number of row 0 of the buffers in the batch, a multiple of grain */
};

/* y = x * scale where the mask has a bit, else 0; draw: the mask is drawn first (model/layer/dropout.c). */
struct device_dropout {
    i64 panels, place; /* of 16 floats in consecutive rows; place: counter of the first, as rng_words wants it */
    const f32 *x;
    f32 *y;
    u32 *mask; /* one for each panel */
    u64 seed;
    u32 step, drop;
    f32 scale;
    bool draw;
};

struct device_optim {
    enum optim_rule rule;
    i64 n;
    f32 *theta, *s0, *s1;
    const f32 *grad;
    f32 lr, grad_scale, weight_decay, momentum, beta1, beta2, eps;
    i64 step;
};

/* Rows of a table [vocab][Fp] by ids i32 [T][B]; outside the vocabulary: zeros, no gradient. */
struct device_embed {
    i32 vocab, Fp, t0, t1, b0, b1, B;
    const i32 *ids;
    f32 *table; /* bwd: its gradient, of one micro-batch */
    f32 *y;     /* bwd: the gradient of y */
    u8 *marks;  /* bwd: becomes 1 for each line of LANES floats of `table` that is added to; NULL = not recorded */
};

/* Layer norm of the rows of a part: x, y, dy, dx [T][B][Fp], stat [T][B][2]; weight and grad: [2][Fp], scale and shift. */
struct device_norm {
    i32 F, t0, t1, b0, b1, B;
    const f32 *x, *weight, *dy;
    f32 *y, *stat, *dx, *grad;
};

/* C[M][N] = bias + A[M][K] B[K][N] for `runs` runs of M rows: of A run_a floats apart, of C run_c.  bias NULL = zeros. */
struct device_product {
    i32 runs, M, N, K;
    const f32 *A, *B, *bias;
    f32 *C;
    i64 lda, run_a, ldb, ldc, run_c;
};

struct kern_device {
    void (*product)(const struct device_product *a);
    void (*loss_sum)(const struct device_loss *a); /* one sum for each micro-batch of the rows */
    void (*loss_slope)(const struct device_loss *a);
    void (*dropout)(const struct device_dropout *a);
    void (*optimise)(const struct device_optim *a);
    void (*norm_fwd)(const struct device_norm *a);
    void (*norm_bwd)(const struct device_norm *a);
    void (*norm_grad)(const struct device_norm *a); /* of the rows of one micro-batch */
    void (*embed_fwd)(const struct device_embed *a);
    void (*embed_bwd)(const struct device_embed *a); /* rows of the micro-batch in the order of t, then b */
};

#endif
