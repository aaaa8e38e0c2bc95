/* mse.c - squared error (no half): (base + pred - target)^2. */
#include <math.h>

#include "model/loss/loss.h"

static f64 row_value(const struct op *op, const struct loss_row *row) {
    (void)op;
    f64 sum = 0;
    for (i32 j = 0; j < row->w; j++) {
        f32 e = row->pred[j] + (row->base ? row->base[j] : 0) - row->target[j];
        bool there = !isnan(row->target[j]);
        if (there) sum += (f64)e * (f64)e;
        if (row->d) row->d[j] = there ? 2 * e * row->scale : 0;
    }
    return sum;
}

static void fwd(const struct op *op, const struct run *r, struct part p) { loss_fwd(op, r, p, row_value); }
static void bwd(const struct op *op, const struct run *r, struct part p) { loss_bwd(op, r, p, row_value); }

extern const struct layer layer_loss_mse;
const struct layer layer_loss_mse = {
    .name = "loss_mse",
    .help = "sum of squared errors over the cells that are present",
    .nin = 3,
    .shape = loss_shape,
    .flops = loss_flops,
    .fwd = fwd,
    .bwd = bwd,
};
