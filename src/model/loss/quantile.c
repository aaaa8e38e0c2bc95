/* quantile.c - twice the pinball loss, mean over the quantiles, so that the median alone equals mae. */
#include <math.h>

#include "model/loss/loss.h"

static f64 row_value(const struct op *op, const struct loss_row *row) {
    i32 Q = op->spec.nquantile;
    f64 sum = 0;
    for (i32 i = 0; i < Q; i++) {
        f32 q = op->spec.quantile[i], below = 2 * (1 - q), above = 2 * q;
        const f32 *pred = row->pred + (i64)i * row->w;
        for (i32 j = 0; j < row->w; j++) {
            f32 e = pred[j] + (row->base ? row->base[j] : 0) - row->target[j];
            bool there = !isnan(row->target[j]);
            if (there) sum += (f64)(e > 0 ? below * e : -above * e);
            if (row->d) row->d[(i64)i * row->w + j] = !there || e == 0 ? 0 : (e > 0 ? below : -above) * row->scale / (f32)Q;
        }
    }
    return sum / Q;
}

static void fwd(const struct op *op, const struct run *r, struct part p) { loss_fwd(op, r, p, row_value); }
static void bwd(const struct op *op, const struct run *r, struct part p) { loss_bwd(op, r, p, row_value); }

static err shape(struct net *n, struct op *op) {
    TRY(layer_range(op, "number of quantiles", op->spec.nquantile, 1, 16));
    for (i32 i = 0; i < op->spec.nquantile; i++) TRY(layer_range(op, "quantile", (f64)op->spec.quantile[i], 1e-4, 0.9999));
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
};
