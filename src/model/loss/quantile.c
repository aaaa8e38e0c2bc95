/* quantile.c - twice the pinball loss, averaged over the quantiles, so that the median alone equals mae. */
#include "model/loss/loss.h"

/* e > 0: the forecast is too high and costs 2 (1 - q) per unit; too low costs 2 q. */
static void value(const struct op *op, i32 quantile, i32 n, const f32 *restrict e, f32 *restrict v) {
    f32 q = op->spec.quantile[quantile], above = 2 * (1 - q), below = -2 * q;
    for (i32 i = 0; i < n; i++) v[i] = e[i] * (e[i] > 0 ? above : below);
}

static void slope(const struct op *op, i32 quantile, i32 n, const f32 *restrict e, f32 *restrict d) {
    f32 q = op->spec.quantile[quantile], above = 2 * (1 - q), below = -2 * q;
    for (i32 i = 0; i < n; i++) d[i] = (e[i] > 0 ? above : 0.0f) + (e[i] < 0 ? below : 0.0f);
}

static const struct loss_fn fn = {.kind = LOSS_QUANTILE, .value = value, .slope = slope};
static void fwd(const struct op *op, const struct run *r, struct part p) { loss_fwd(op, r, p, &fn); }
static void bwd(const struct op *op, const struct run *r, struct part p) { loss_bwd(op, r, p, &fn); }

static err shape(struct net *n, struct op *op) {
    TRY(layer_range(op, "number of quantiles", op->spec.nquantile, 1, 16));
    return loss_shape(n, op);
}

extern const struct layer layer_loss_quantile;
const struct layer layer_loss_quantile = {
    .name = "loss_quantile",
    .help = "sum of 2 * pinball over the cells that are present, mean over spec.quantile",
    .nin = 3,
    .shape = shape,
    .flops = loss_flops,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = layer_on_device,
};
