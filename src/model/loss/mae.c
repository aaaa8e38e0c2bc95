/* mae.c - absolute error: |base + pred - target|. */
#include <math.h>

#include "model/loss/loss.h"

static f64 row_value(const struct op *op, const struct loss_row *row) {
    (void)op;
    f64 sum = 0;
    for (i32 j = 0; j < row->w; j++) {
        f32 e = row->pred[j] + (row->base ? row->base[j] : 0) - row->target[j];
        bool there = !isnan(row->target[j]);
        if (there) sum += (f64)fabsf(e);
        if (row->d) row->d[j] = !there || e == 0 ? 0 : e > 0 ? row->scale : -row->scale;
    }
    return sum;
}

static void fwd(const struct op *op, const struct run *r, struct part p) { loss_fwd(op, r, p, row_value); }
static void bwd(const struct op *op, const struct run *r, struct part p) { loss_bwd(op, r, p, row_value); }

extern const struct layer layer_loss_mae;
const struct layer layer_loss_mae = {
    .name = "loss_mae",
    .help = "sum of absolute errors over the cells that are present",
    .nin = 3,
    .shape = loss_shape,
    .flops = loss_flops,
    .fwd = fwd,
    .bwd = bwd,
};
