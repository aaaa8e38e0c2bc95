/* loss.c - walks the rows of a loss. */
#include "model/loss/loss.h"

err loss_shape(struct net *n, struct op *op) {
    const struct buf *pred, *target, *base;
    TRY(layer_input(n, op, 0, &pred));
    TRY(layer_input(n, op, 1, &target));
    i32 Q = imax(1, op->spec.nquantile);
    if (pred->T != target->T || pred->F != target->F * Q)
        return FAIL(E1, "op \"%s\": prediction [%d][B][%d] and target [%d][B][%d] with %d quantiles do not fit", op->spec.name, pred->T,
                    pred->F, target->T, target->F, Q);
    if (target->grad) return FAIL(E1, "op \"%s\": no gradient can flow into the target", op->spec.name);
    op->T = target->T;
    op->I = pred->F;
    op->F = target->F;
    if (op->spec.in[2] < 0) return 0;
    TRY(layer_input(n, op, 2, &base));
    if (base->T != target->T || base->F != target->F || base->grad)
        return FAIL(E1, "op \"%s\": base is [%d][B][%d], want [%d][B][%d] without a gradient", op->spec.name, base->T, base->F,
                    target->T, target->F);
    return 0;
}

f64 loss_flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    (void)n, (void)backward;
    return 6.0 * op->T * B * op->I;
}

static struct loss_row row_at(const struct op *op, const struct run *r, i64 at) {
    i64 Ip = round_up(op->I, LANES), Fp = round_up(op->F, LANES);
    struct loss_row row = {.w = op->F, .pred = run_in(op, r, 0) + at * Ip, .target = run_in(op, r, 1) + at * Fp};
    if (op->spec.in[2] >= 0) row.base = run_in(op, r, 2) + at * Fp;
    return row;
}

/* Parts cover whole grains; the parts of a grain come in the order of t. */
void loss_fwd(const struct op *op, const struct run *r, struct part p, loss_row_fn *fn) {
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++) {
        struct part q = part_grain(r, p, g);
        f64 total = p.t0 == 0 ? 0 : r->loss[g];
        for (i32 t = q.t0; t < q.t1; t++)
            for (i32 b = q.b0; b < q.b1; b++) {
                struct loss_row row = row_at(op, r, (i64)t * r->B + b);
                total += fn(op, &row);
            }
        r->loss[g] = total;
    }
}

void loss_bwd(const struct op *op, const struct run *r, struct part p, loss_row_fn *fn) {
    f32 *d = run_din(op, r, 0);
    i64 Ip = round_up(op->I, LANES);
    if (!d) return;
    for (i32 t = p.t0; t < p.t1; t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            i64 at = (i64)t * r->B + b;
            struct loss_row row = row_at(op, r, at);
            row.d = d + at * Ip;
            row.scale = r->loss_scale;
            memset(row.d + op->I, 0, (size_t)(Ip - op->I) * sizeof *d);
            fn(op, &row);
        }
}
