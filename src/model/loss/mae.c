/* mae.c - absolute error: |base + pred - target|. */
#include <math.h>

#include "model/loss/loss.h"

static void value(const struct op *op, i32 quantile, i32 n, const f32 *restrict e, f32 *restrict v) {
    (void)op, (void)quantile;
    for (i32 i = 0; i < n; i++) v[i] = fabsf(e[i]);
}

static void slope(const struct op *op, i32 quantile, i32 n, const f32 *restrict e, f32 *restrict d) {
    (void)op, (void)quantile;
    for (i32 i = 0; i < n; i++) d[i] = (e[i] > 0 ? 1.0f : 0.0f) - (e[i] < 0 ? 1.0f : 0.0f);
}

static const struct loss_fn fn = {.kind = LOSS_MAE, .value = value, .slope = slope};
static void fwd(const struct op *op, const struct run *r, struct part p) { loss_fwd(op, r, p, &fn); }
static void bwd(const struct op *op, const struct run *r, struct part p) { loss_bwd(op, r, p, &fn); }

extern const struct layer layer_loss_mae;
const struct layer layer_loss_mae = {
    .name = "loss_mae",
    .help = "sum of absolute errors over the cells that are present",
    .nin = 3,
    .shape = loss_shape,
    .flops = loss_flops,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = layer_on_device,
};
