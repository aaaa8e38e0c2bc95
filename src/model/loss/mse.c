/* mse.c - squared error (no half): (base + pred - target)^2. */
#include "model/loss/loss.h"

static void value(const struct op *op, i32 quantile, i32 n, const f32 *restrict e, f32 *restrict v) {
    (void)op, (void)quantile;
    for (i32 i = 0; i < n; i++) v[i] = e[i] * e[i];
}

static void slope(const struct op *op, i32 quantile, i32 n, const f32 *restrict e, f32 *restrict d) {
    (void)op, (void)quantile;
    for (i32 i = 0; i < n; i++) d[i] = 2 * e[i];
}

static const struct loss_fn fn = {.kind = LOSS_MSE, .value = value, .slope = slope};
static void fwd(const struct op *op, const struct run *r, struct part p) { loss_fwd(op, r, p, &fn); }
static void bwd(const struct op *op, const struct run *r, struct part p) { loss_bwd(op, r, p, &fn); }

extern const struct layer layer_loss_mse;
const struct layer layer_loss_mse = {
    .name = "loss_mse",
    .help = "sum of squared errors over the cells that are present",
    .nin = 3,
    .shape = loss_shape,
    .flops = loss_flops,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = layer_on_device,
};
