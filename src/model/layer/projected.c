/* projected.c - an LSTM whose output is projected to fewer values before the recurrence; Sak, Senior, Beaufays 2014, PyTorch's
 * proj_size: units = H, P = spec.projection. projected_walk.c runs it.
 *
 * in[0]  x [T][B][I]            in[2], in[3]  lengths of rows, and the row that each row continues: as in recurrent.c
 * out    y [T][B][P]            end    h after the last step of each row [1][B][P]
 *
 * theta    wx [I][W], wh [P][W], bias [W], whr [H][Pp]        W = 4 Hp: panels of i f g o, as in the cells' element-wise part
 * derived  wht [W][Pp], whrt [P][Hp], wxt [W][Ip] if x needs a gradient
 *
 * Parts hold all steps. */
#include <math.h>
#include <stdio.h>

#include "model/layer/projected.h"

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    TRY(layer_range(op, "hidden", op->spec.hidden, 2, 1 << 16));
    TRY(layer_range(op, "projection", op->spec.projection, 1, op->spec.hidden - 1));
    if (op->spec.cell != CELL_LSTM) return FAIL(E1, "op \"%s\": only an lstm has a projection", op->spec.name);
    if (op->spec.precision != PREC_F32) return FAIL(E1, "op \"%s\": a projection has fp32 products only", op->spec.name);
    if (op->spec.in[2] >= 0) TRY(layer_is_lengths(n, op, 2));
    if (recurrent_sliced(op)) TRY(layer_is_lengths(n, op, RECURRENT_AFTER));
    op->T = in->T;
    op->I = in->F;
    op->F = op->spec.projection;
    const struct projected_dims d = projected_dims(op);
    op->ntheta = d.whr + (i64)d.H * d.Pp;
    op->nderived = d.wxt + (in->grad ? d.W * d.Ip : 0);
    TRY(net_out(n, op->spec.name, op->T, op->F, true, &op->out));
    char name[24];
    snprintf(name, sizeof name, "%.19s.end", op->spec.name);
    return net_out(n, name, 1, op->F, true, &op->end);
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    const struct projected_dims d = projected_dims(op);
    f64 rows = 2.0 * op->T * B, x_side = rows * 4 * d.H * d.I, rest = rows * d.H * (4.0 * d.P + d.P + 24);
    return backward ? (n->buf[op->spec.in[0]].grad ? 2 : 1) * x_side + 2 * rest : x_side + rest;
}

/* Offset of gate g of unit u in a row of z. */
static i64 z_at(i32 g, i32 u) { return ((i64)(u / LANES) * 4 + g) * LANES + u % LANES; }

static void init(const struct op *op, u64 seed, f32 *theta) {
    const struct projected_dims d = projected_dims(op);
    f64 a = 1 / sqrt(d.H);
    i64 at = 0;
    for (i32 g = 0; g < 4; g++)
        for (i32 u = 0; u < d.H; u++) {
            f32 *to = theta + z_at(g, u);
            for (i32 k = 0; k < d.I + d.P; k++) to[k * d.W] = layer_uniform(op, seed, at++, a);
            for (i32 k = 0; k < 2; k++) to[d.bias] += layer_uniform(op, seed, at++, a);
        }
    for (i32 u = 0; u < d.H; u++)
        for (i32 p = 0; p < d.P; p++) theta[d.whr + (i64)u * d.Pp + p] = layer_uniform(op, seed, at++, a);
}

/* to [cols][ld] = transpose of from [rows][from_ld]. */
static void transpose(i64 rows, i32 cols, const f32 *from, i64 from_ld, f32 *to, i64 ld) {
    for (i64 i = 0; i < rows; i++)
        for (i32 j = 0; j < cols; j++) to[j * ld + i] = from[i * from_ld + j];
}

static void prep(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived) {
    (void)n, (void)k;
    const struct projected_dims d = projected_dims(op);
    const f32 *w = theta + op->theta0;
    f32 *to = derived + op->derived0;
    transpose(d.P, (i32)d.W, w + d.wh, d.W, to, d.Pp);
    transpose(d.H, d.P, w + d.whr, d.Pp, to + d.whrt, d.Hp);
    if (op->nderived > d.wxt) transpose(d.I, (i32)d.W, w, d.W, to + d.wxt, d.Ip);
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    const struct cell_args box = recurrence_projected.box(op, r, p);
    recurrence_projected.fwd(op, r, PREC_F32, &box, p);
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    const struct cell_args box = recurrence_projected.box(op, r, p);
    if (!box.dy && !box.dhT) return;
    recurrence_projected.bwd(op, r, &box, p);
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++)
        recurrence_projected.dw(op, r, &box, part_grain(r, p, g), grain_grad(r, g, op->theta0));
}

static i32 tensors(const struct op *op, struct tensor_info out[8]) {
    i32 H = op->spec.hidden, P = op->F;
    layer_torch_tensor(&out[0], op, "weight_ih", 4 * H, op->I);
    layer_torch_tensor(&out[1], op, "weight_hh", 4 * H, P);
    layer_torch_tensor(&out[2], op, "bias_ih", 4 * H, 0);
    layer_torch_tensor(&out[3], op, "bias_hh", 4 * H, 0);
    layer_torch_tensor(&out[4], op, "weight_hr", P, H);
    return 5;
}

/* Offset of element (row, col) of a tensor. */
static i64 place(const struct projected_dims *d, i32 tensor, i32 row, i32 col) {
    if (tensor == 4) return d->whr + (i64)col * d->Pp + row;
    i64 at = z_at(row / d->H, row % d->H);
    return tensor == 0 ? at + col * d->W : tensor == 1 ? at + d->wh + col * d->W : at + d->bias;
}

static void store(const struct op *op, i32 tensor, const f32 *theta, f32 *canonical) {
    struct tensor_info info[8];
    const struct projected_dims d = projected_dims(op);
    tensors(op, info);
    for (i32 i = 0; i < info[tensor].rows; i++)
        for (i32 j = 0; j < imax(1, info[tensor].cols); j++) /* the two biases are stored as one sum, in bias_ih */
            *canonical++ = tensor == 3 ? 0 : theta[place(&d, tensor, i, j)];
}

static void load(const struct op *op, i32 tensor, const f32 *canonical, f32 *theta) {
    struct tensor_info info[8];
    const struct projected_dims d = projected_dims(op);
    tensors(op, info);
    for (i32 i = 0; i < info[tensor].rows; i++)
        for (i32 j = 0; j < imax(1, info[tensor].cols); j++) {
            f32 *to = &theta[place(&d, tensor, i, j)];
            *to = (tensor == 3 ? *to : 0) + *canonical++;
        }
}

extern const struct layer layer_projected;
const struct layer layer_projected = {
    .name = "projected",
    .help = "y [T][B][projection] and its last step [1][B][projection] of an lstm with a projection run over x [T][B][I]",
    .nin = 4,
    .after = RECURRENT_AFTER,
    .chain = recurrent_chain,
    .shape = shape,
    .saved = recurrent_saved,
    .scratch = recurrent_scratch,
    .flops = flops,
    .init = init,
    .prep = prep,
    .fwd = fwd,
    .bwd = bwd,
    .tensors = tensors,
    .store = store,
    .load = load,
};
