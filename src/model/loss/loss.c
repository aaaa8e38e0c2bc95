/* loss.c - evaluates a loss over the target values, up to 64 at a time: of one row, or of several rows of a step if rows are
 * short. */
#include <math.h>

#include "model/loss/loss.h"

err loss_shape(struct net *n, struct op *op) {
    const struct buf *pred, *target, *base;
    TRY(layer_input(n, op, 0, &pred));
    TRY(layer_input(n, op, 1, &target));
    i32 Q = imax(1, op->spec.nquantile);
    if (pred->T != target->T || pred->F != target->F * Q)
        return FAIL(E1, "op \"%s\": prediction [%d][B][%d] and target [%d][B][%d] with %d quantiles do not fit", op->spec.name,
                    pred->T, pred->F, target->T, target->F, Q);
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

/* One row of w values for one quantile. */
struct row {
    const f32 *pred, *target, *base; /* base NULL = zero */
    i32 w;
};

static struct row row_at(const struct op *op, const struct run *r, i64 at, i32 quantile) {
    i64 Ip = round_up(op->I, LANES), Fp = round_up(op->F, LANES);
    struct row row = {.w = op->F, .target = run_in(op, r, 1) + at * Fp};
    row.pred = run_in(op, r, 0) + at * Ip + (i64)quantile * op->F;
    if (op->spec.in[2] >= 0) row.base = run_in(op, r, 2) + at * Fp;
    return row;
}

enum { CHUNK = 64 };

/* Errors of values j.. of a row; returns the count rounded up to LANES. Missing and padding values have error 0. */
static i32 errors(const struct row *row, i32 j, f32 e[CHUNK]) {
    i32 n = imin(CHUNK, row->w - j), up = round_up(n, LANES);
    const f32 *pred = row->pred + j, *target = row->target + j;
    for (i32 i = 0; i < n; i++) e[i] = pred[i];
    if (row->base)
        for (i32 i = 0; i < n; i++) e[i] += row->base[j + i];
    for (i32 i = 0; i < n; i++) e[i] -= target[i];
    for (i32 i = 0; i < n; i++) e[i] = isnan(target[i]) ? 0 : e[i]; /* separate loop: the select vectorizes */
    for (i32 i = n; i < up; i++) e[i] = 0;
    return up;
}

/* f32 partial sums within a row, f64 over these and over rows. */
static f64 row_sum(const struct op *op, i32 quantile, const struct row *row, const struct loss_fn *fn) {
    f32 e[CHUNK], value[CHUNK], lane[LANES] = {0};
    f64 sum = 0;
    for (i32 j = 0; j < row->w; j += CHUNK) {
        i32 n = errors(row, j, e);
        fn->value(op, quantile, n, e, value);
        for (i32 k = 0; k < n; k += LANES)
            for (i32 i = 0; i < LANES; i++) lane[i] += value[k + i];
    }
    for (i32 i = 0; i < LANES; i++) sum += (f64)lane[i];
    return sum;
}

static f64 rows_sum(const struct op *op, const struct run *r, i64 at, const struct loss_fn *fn) {
    i32 Q = imax(1, op->spec.nquantile);
    f64 sum = 0;
    for (i32 q = 0; q < Q; q++) {
        struct row row = row_at(op, r, at, q);
        sum += row_sum(op, q, &row, fn);
    }
    return sum / Q;
}

/* Short rows: processes rows b0..b1 of step t together to amortize the call. */
static bool rows_are_short(const struct op *op) { return op->F <= LANES / 2 && op->spec.nquantile <= 1; }

static i32 short_errors(const struct op *op, const struct run *r, i32 t, i32 b0, i32 b1, f32 e[CHUNK]) {
    i32 n = 0;
    for (i32 b = b0; b < b1; b++) {
        const struct row row = row_at(op, r, (i64)t * r->B + b, 0);
        for (i32 i = 0; i < row.w; i++, n++) {
            const f32 v = (row.base ? row.pred[i] + row.base[i] : row.pred[i]) - row.target[i];
            e[n] = isnan(row.target[i]) ? 0 : v;
        }
    }
    while (n % LANES) e[n++] = 0;
    return n;
}

static f64 short_rows_sum(const struct op *op, const struct run *r, i32 t, i32 b0, i32 b1, const struct loss_fn *fn) {
    f32 e[CHUNK], value[CHUNK], lane[LANES] = {0};
    f64 sum = 0;
    for (i32 b = b0, end; b < b1; b = end) {
        end = imin(b1, b + CHUNK / op->F);
        i32 n = short_errors(op, r, t, b, end, e);
        fn->value(op, 0, n, e, value);
        for (i32 k = 0; k < n; k += LANES)
            for (i32 i = 0; i < LANES; i++) lane[i] += value[k + i];
    }
    for (i32 i = 0, used = imin(LANES, (b1 - b0) * op->F); i < used; i++) sum += (f64)lane[i]; /* the rest is 0 */
    return sum;
}

static void short_rows_grad(const struct op *op, const struct run *r, i32 t, i32 b0, i32 b1, const struct loss_fn *fn, f32 *d) {
    f32 e[CHUNK], slope[CHUNK];
    i64 Ip = round_up(op->I, LANES);
    for (i32 b = b0, end; b < b1; b = end) {
        end = imin(b1, b + CHUNK / op->F);
        fn->slope(op, 0, short_errors(op, r, t, b, end, e), e, slope);
        for (i32 i = 0; i < end - b; i++) {
            f32 *to = d + ((i64)t * r->B + b + i) * Ip;
            for (i32 k = 0; k < LANES; k++) to[k] = k < op->F ? slope[i * op->F + k] * r->loss_scale : 0;
        }
    }
}

/* ------------------------------------------------------------------ on a device ------------------------------------------- */

static struct device_loss on_device(const struct op *op, const struct run *r, struct part p, enum loss_kind kind) {
    const i32 Q = imax(1, op->spec.nquantile);
    return (struct device_loss){.kind = kind,
                                .F = op->F,
                                .Q = Q,
                                .t0 = p.t0,
                                .t1 = p.t1,
                                .b0 = p.b0,
                                .b1 = p.b1,
                                .B = r->B,
                                .pred = run_in(op, r, 0),
                                .target = run_in(op, r, 1),
                                .base = op->spec.in[2] >= 0 ? run_in(op, r, 2) : NULL,
                                .quantile = op->spec.quantile,
                                .sum = r->loss,
                                .slope = run_din(op, r, 0),
                                .scale = r->loss_scale / (f32)Q,
                                .grain = r->grain,
                                .row0 = r->row0};
}

/* ------------------------------------------------------------------ the pass ----------------------------------------------- */

/* Parts cover whole micro-batches; the parts of one micro-batch come in order of t. */
void loss_fwd(const struct op *op, const struct run *r, struct part p, const struct loss_fn *fn) {
    if (r->kern->device) {
        const struct device_loss a = on_device(op, r, p, fn->kind);
        r->kern->device->loss_sum(&a);
        return;
    }
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++) {
        struct part q = part_grain(r, p, g);
        f64 total = p.t0 == 0 ? 0 : r->loss[g];
        for (i32 t = q.t0; t < q.t1; t++) {
            if (rows_are_short(op))
                total += short_rows_sum(op, r, t, q.b0, q.b1, fn);
            else
                for (i32 b = q.b0; b < q.b1; b++) total += rows_sum(op, r, (i64)t * r->B + b, fn);
        }
        r->loss[g] = total;
    }
}

static void row_grad(const struct op *op, i32 quantile, const struct row *row, const struct loss_fn *fn, f32 scale, f32 *to) {
    f32 e[CHUNK], slope[CHUNK];
    for (i32 j = 0; j < row->w; j += CHUNK) {
        i32 n = errors(row, j, e);
        fn->slope(op, quantile, n, e, slope);
        n = imin(CHUNK, row->w - j);
        for (i32 i = 0; i < n; i++) to[j + i] = slope[i] * scale;
    }
}

void loss_bwd(const struct op *op, const struct run *r, struct part p, const struct loss_fn *fn) {
    f32 *d = run_din(op, r, 0);
    i64 Ip = round_up(op->I, LANES);
    i32 Q = imax(1, op->spec.nquantile);
    if (!d) return;
    if (r->kern->device) {
        const struct device_loss a = on_device(op, r, p, fn->kind);
        r->kern->device->loss_slope(&a);
        return;
    }
    for (i32 t = p.t0; t < p.t1 && rows_are_short(op); t++) short_rows_grad(op, r, t, p.b0, p.b1, fn, d);
    for (i32 t = p.t0; t < p.t1 && !rows_are_short(op); t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            i64 at = (i64)t * r->B + b;
            f32 *to = d + at * Ip;
            for (i32 q = 0; q < Q; q++) {
                struct row row = row_at(op, r, at, q);
                row_grad(op, q, &row, fn, r->loss_scale / (f32)Q, to + (i64)q * op->F);
            }
            memset(to + op->I, 0, (size_t)(Ip - op->I) * sizeof *d);
        }
}
