/* projected.c - an LSTM whose output is projected to fewer values before the recurrence; Sak, Senior, Beaufays 2014, PyTorch's
 * proj_size: H = spec.hidden, P = spec.projection.
 *
 *     z[t] = x[t] Wx + h[t-1] Wh + bias --cell--> c[t], m[t] = o tanh c --Whr--> h[t] = m[t] Whr, the output y
 *
 * in[0]  x [T][B][I]            in[2], in[3]  lengths of rows, and the row that each row continues: as in recurrent.c
 * out    y [T][B][P]            end    h after the last step of each row [1][B][P]
 *
 * theta    wx [I][W], wh [P][W], bias [W], whr [H][Pp]        W = 4 Hp: panels of i f g o, as in the cells' element-wise part
 * derived  wht [W][Pp], whrt [P][Hp], wxt [W][Ip] if x needs a gradient
 * args     as in kern.h, but y, h and their gradients have P values, c has H; carry [3][B][Hp]: dc, dm, zeros for a missing c0
 * act      z [T][B][W] gates, then dz; c, m [T][B][Hp]; dh [T][B][Pp] whole gradient of h
 * scratch  carry | PACK packed rows per batch row, the operands of dW side by side | live rows per step [B][T]
 *
 * Runs step by step through the products of kern.h; dW in blocks of steps. Parts hold all steps. */
#include <math.h>

#include "model/layer/recurrent.h"

enum { PACK = 16 };

struct dims {
    i32 I, Ip, H, Hp, P, Pp;
    i64 W;
    i64 wh, bias, whr; /* offsets in theta */
    i64 whrt, wxt;     /* in derived */
};

static struct dims dims_of(const struct op *op) {
    struct dims d = {.I = op->I, .H = op->spec.hidden, .P = op->F};
    d.Ip = round_up(d.I, LANES), d.Hp = round_up(d.H, LANES), d.Pp = round_up(d.P, LANES);
    d.W = 4 * (i64)d.Hp;
    d.wh = d.I * d.W;
    d.bias = d.wh + d.P * d.W;
    d.whr = d.bias + d.W;
    d.whrt = d.W * d.Pp;
    d.wxt = d.whrt + (i64)d.P * d.Hp;
    return d;
}

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    TRY(layer_range(op, "projection", op->spec.projection, 1, op->spec.hidden - 1));
    if (op->spec.cell != CELL_LSTM) return FAIL(E1, "op \"%s\": only an lstm has a projection", op->spec.name);
    if (op->spec.precision != PREC_F32) return FAIL(E1, "op \"%s\": a projection has fp32 products only", op->spec.name);
    op->T = in->T;
    op->I = in->F;
    op->F = op->spec.projection;
    const struct dims d = dims_of(op);
    op->ntheta = d.whr + (i64)d.H * d.Pp;
    op->nderived = d.wxt + (in->grad ? d.W * d.Ip : 0);
    return recurrent_buffers(n, op, 1);
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    const struct dims d = dims_of(op);
    f64 rows = 2.0 * op->T * B, x_side = rows * 4 * d.H * d.I, rest = rows * d.H * (4.0 * d.P + d.P + 24);
    return backward ? (n->buf[op->spec.in[0]].grad ? 2 : 1) * x_side + 2 * rest : x_side + rest;
}

/* Offset of gate g of unit u in a row of z. */
static i64 z_at(i32 g, i32 u) { return ((i64)(u / LANES) * 4 + g) * LANES + u % LANES; }

static void init(const struct op *op, u64 seed, f32 *theta) {
    const struct dims d = dims_of(op);
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

static void prep(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived) {
    (void)n, (void)k;
    const struct dims d = dims_of(op);
    const f32 *w = theta + op->theta0;
    f32 *to = derived + op->derived0;
    k->transpose(d.P, (i32)d.W, w + d.wh, d.W, to, d.Pp);
    k->transpose(d.H, d.P, w + d.whr, d.Pp, to + d.whrt, d.Hp);
    if (op->nderived > d.wxt) k->transpose(d.I, (i32)d.W, w, d.W, to + d.wxt, d.Ip);
}

/* ------------------------------------------------------------------ through time -------------------------------------------- */

/* Kernel arguments, dimensions and buffers of the op. */
struct steps {
    struct dims d;
    const struct kern *k;
    const struct cell_kern *cell;
    const struct cell_args *x;
    f32 *z, *c, *m, *dh;
};

static struct steps steps_of(const struct op *op, const struct run *r, const struct cell_args *x) {
    struct steps w = {.d = dims_of(op), .k = r->kern, .cell = cell_kernels(cell_of(CELL_LSTM), r->kern, PREC_F32), .x = x};
    const i64 rows = (i64)x->T * x->B;
    w.z = x->act;
    w.c = w.z + rows * w.d.W;
    w.m = w.c + rows * w.d.Hp;
    w.dh = w.m + rows * w.d.Hp;
    return w;
}

static i64 projected_floats(const struct op *op) {
    const struct dims d = dims_of(op);
    return d.W + 2 * d.Hp + 2 * d.Pp;
}

static i64 projected_act(const struct op *op, enum precision p, i32 T, i32 B) {
    const struct dims d = dims_of(op);
    (void)p;
    return (i64)T * B * (d.W + 2 * d.Hp + d.Pp);
}

/* A packed row: dz | x | h before | m | dh. */
static i64 pack_row(const struct dims *d) { return d->W + d->Ip + 2 * (i64)d->Pp + d->Hp; }
static i64 pack_at(const struct dims *d, i32 B, i32 b) { return 3 * (i64)B * d->Hp + (i64)b * PACK * pack_row(d); }

static i64 projected_scratch(const struct op *op, i32 B) {
    const struct dims d = dims_of(op);
    return pack_at(&d, B, B) + (op->spec.in[2] >= 0 ? (i64)op->T * B : 0);
}

static struct cell_args projected_args(const struct op *op, const struct run *r, struct part p) {
    const struct dims d = dims_of(op);
    struct cell_args args = {.T = op->T, .B = r->B, .part = r->B < r->whole, .I = d.I, .H = d.H, .x_ld = d.Ip, .dx_ld = d.Ip};
    args.carry = r->scratch[op->l];
    args.x = run_in(op, r, 0);
    args.y = r->buf[op->out];
    args.act = r->saved[op->l];
    args.hT = r->buf[op->end];
    i32 *live = (i32 *)(void *)(args.carry + pack_at(&d, r->B, r->B)) + (i64)p.b0 * op->T;
    args.live = op->spec.in[2] < 0 ? NULL : layer_live(op->T, r->B, run_ids(op, r, 2), live);
    args.w = r->theta + op->theta0;
    args.bias = args.w + d.bias;
    args.wt = r->derived + op->derived0;
    args.dy = run_dout(r, op->out);
    args.dhT = run_dout(r, op->end);
    args.dx = run_din(op, r, 0);
    return args;
}

static i32 rows_at(const struct cell_args *x, struct part p, i32 t) { return imax(p.b0, imin(p.b1, cell_live(x, t))) - p.b0; }
static void zero(f32 *p, i64 n) { memset(p, 0, (size_t)n * sizeof *p); }

static const f32 *row_of(const f32 *p, i32 b, i32 ld) { return p ? p + (i64)b * ld : NULL; }

/* State of the rows from b before step t: h is NULL if zero, c never is. */
static const f32 *h_before(const struct steps *w, i32 t, i32 b) {
    return t > 0 ? w->x->y + ((i64)(t - 1) * w->x->B + b) * w->d.Pp : row_of(w->x->h0, b, w->d.Pp);
}

static const f32 *c_before(const struct steps *w, i32 t, i32 b) {
    if (t > 0) return w->c + ((i64)(t - 1) * w->x->B + b) * w->d.Hp;
    return w->x->c0 ? row_of(w->x->c0, b, w->d.Hp) : w->x->carry + (2 * (i64)w->x->B + b) * w->d.Hp;
}

static void step_fwd(const struct steps *w, struct part p, i32 t) {
    const struct dims *d = &w->d;
    const struct cell_args *x = w->x;
    const i32 n = rows_at(x, p, t);
    const i64 at = (i64)t * x->B + p.b0;
    const f32 *before = h_before(w, t, p.b0);
    f32 *z = w->z + at * d->W, *h = x->y + at * d->Pp, *m = w->m + at * d->Hp;
    for (i32 b = 0; b < n; b++) memcpy(z + b * d->W, x->bias, (size_t)d->W * sizeof *z);
    w->k->gemm_nn(n, (i32)d->W, d->I, x->x + at * x->x_ld, x->x_ld, x->w, d->W, z, d->W, true);
    if (before) w->k->gemm_nn(n, (i32)d->W, d->P, before, d->Pp, x->w + d->wh, d->W, z, d->W, true);
    w->cell->point_fwd(n, d->H, z, c_before(w, t, p.b0), w->c + at * d->Hp, m);
    w->k->gemm_nn(n, d->P, d->H, m, d->Hp, x->w + d->whr, d->Pp, h, d->Pp, false);
    zero(h + (i64)n * d->Pp, (i64)(p.b1 - p.b0 - n) * d->Pp);
}

static void projected_fwd(const struct op *op, const struct run *r, enum precision f32_only, const struct cell_args *x,
                     struct part p) {
    const struct steps w = steps_of(op, r, x);
    (void)f32_only;
    for (i32 t = p.t0; t < p.t1; t++) step_fwd(&w, p, t);
    for (i32 b = p.b0; b < p.b1 && (x->hT || x->cT); b++) {
        const i32 t = cell_end(x, b, 0, p.t1);
        if (x->hT) copy_or_zero(x->hT + (i64)b * w.d.Pp, h_before(&w, t, b), w.d.Pp);
        if (x->cT) copy_or_zero(x->cT + (i64)b * w.d.Hp, c_before(&w, t, b), w.d.Hp);
    }
}

/* dh of n rows at step t: from the output, from the final state for rows that end here, and from step t+1 for the first `on`
 * rows. */
static void gradient_of_h(const struct steps *w, struct part p, i32 t, i32 n, i32 on) {
    const struct dims *d = &w->d;
    const struct cell_args *x = w->x;
    const i64 at = (i64)t * x->B + p.b0;
    f32 *dh = w->dh + at * d->Pp;
    copy_or_zero(dh, x->dy ? x->dy + at * d->Pp : NULL, (i64)n * d->Pp);
    if (x->dhT) w->k->add((i64)(n - on) * d->Pp, dh + (i64)on * d->Pp, row_of(x->dhT, p.b0 + on, d->Pp));
    if (on > 0) w->k->gemm_nn(on, d->P, (i32)d->W, w->z + (at + x->B) * d->W, d->W, x->wt, d->Pp, dh, d->Pp, true);
}

static void step_bwd(const struct steps *w, struct part p, i32 t) {
    const struct dims *d = &w->d;
    const struct cell_args *x = w->x;
    const i32 all = p.b1 - p.b0, n = rows_at(x, p, t), on = imin(n, t + 1 < x->T ? rows_at(x, p, t + 1) : 0);
    const i64 at = (i64)t * x->B + p.b0;
    f32 *z = w->z + at * d->W, *c = w->c + at * d->Hp, *dh = w->dh + at * d->Pp;
    f32 *dc = x->carry + (i64)p.b0 * d->Hp, *dm = dc + (i64)x->B * d->Hp;
    copy_or_zero(dc + (i64)on * d->Hp, row_of(x->dcT, p.b0 + on, d->Hp), (i64)(n - on) * d->Hp);
    gradient_of_h(w, p, t, n, on);
    w->k->gemm_nn(n, d->H, d->P, dh, d->Pp, x->wt + d->whrt, d->Hp, dm, d->Hp, false);
    w->cell->point_bwd(n, d->H, z, c_before(w, t, p.b0), c, dm, dc);
    zero(z + n * d->W, (all - n) * d->W);
    zero(dh + (i64)n * d->Pp, (i64)(all - n) * d->Pp);
    zero(w->m + (at + n) * d->Hp, (i64)(all - n) * d->Hp);
    if (x->dx) w->k->gemm_nn(all, d->I, (i32)d->W, z, d->W, x->wt + d->wxt, d->Ip, x->dx + at * x->dx_ld, x->dx_ld, false);
}

static void projected_bwd(const struct op *op, const struct run *r, const struct cell_args *x, struct part p) {
    const struct steps w = steps_of(op, r, x);
    const struct dims *d = &w.d;
    for (i32 t = p.t1 - 1; t >= p.t0; t--) step_bwd(&w, p, t);
    const i32 n = rows_at(x, p, p.t0), b = p.b0 + n, all = p.b1 - p.b0;
    const f32 *dz = w.z + ((i64)p.t0 * x->B + p.b0) * d->W, *dc = x->carry + (i64)p.b0 * d->Hp;
    if (x->dh0) {
        f32 *dh0 = x->dh0 + (i64)p.b0 * d->Pp;
        w.k->gemm_nn(n, d->P, (i32)d->W, dz, d->W, x->wt, d->Pp, dh0, d->Pp, false);
        copy_or_zero(dh0 + (i64)n * d->Pp, row_of(x->dhT, b, d->Pp), (i64)(all - n) * d->Pp);
    }
    if (!x->dc0) return;
    copy_or_zero(x->dc0 + (i64)p.b0 * d->Hp, dc, (i64)n * d->Hp);
    copy_or_zero(x->dc0 + (i64)b * d->Hp, row_of(x->dcT, b, d->Hp), (i64)(all - n) * d->Hp);
}

/* Packs a block of steps of one micro-batch, row by row. */
static void pack(const struct steps *w, struct part q, f32 *to) {
    const struct dims *d = &w->d;
    const struct cell_args *x = w->x;
    for (i32 t = q.t0; t < q.t1; t++)
        for (i32 b = q.b0; b < q.b1; b++, to += pack_row(d)) {
            const i64 at = (i64)t * x->B + b;
            f32 *h = to + d->W + d->Ip;
            memcpy(to, w->z + at * d->W, (size_t)d->W * sizeof *to);
            memcpy(to + d->W, x->x + at * x->x_ld, (size_t)d->Ip * sizeof *to);
            copy_or_zero(h, h_before(w, t, b), d->Pp);
            memcpy(h + d->Pp, w->m + at * d->Hp, (size_t)d->Hp * sizeof *to);
            memcpy(h + d->Pp + d->Hp, w->dh + at * d->Pp, (size_t)d->Pp * sizeof *to);
        }
}

static void projected_dw(const struct op *op, const struct run *r, const struct cell_args *x, struct part q, f32 *dw) {
    const struct steps w = steps_of(op, r, x);
    const struct dims *d = &w.d;
    const i64 row = pack_row(d);
    f32 *rows = x->carry + pack_at(d, x->B, q.b0);
    const f32 *in = rows + d->W, *h = in + d->Ip, *m = h + d->Pp, *dh = m + d->Hp;
    for (i32 t1 = q.t1; q.t0 < t1; q.t0 = q.t1) {
        q.t1 = imin(t1, q.t0 + PACK);
        const i32 n = (q.t1 - q.t0) * (q.b1 - q.b0);
        pack(&w, q, rows);
        w.k->gemm_tn(d->I, (i32)d->W, n, in, row, rows, row, dw, d->W, true);
        w.k->gemm_tn(d->P, (i32)d->W, n, h, row, rows, row, dw + d->wh, d->W, true);
        w.k->gemm_tn(d->H, d->P, n, m, row, dh, row, dw + d->whr, d->Pp, true);
        for (i32 i = 0; i < n; i++) w.k->add(d->W, dw + d->bias, rows + i * row);
    }
}

/* dz overwrites the gates. */
static bool projected_bwd_again(const struct op *op, const struct run *r) {
    (void)op, (void)r;
    return false;
}

const struct recurrence recurrence_projected = {.floats = projected_floats,
                                                .act = projected_act,
                                                .scratch = projected_scratch,
                                                .args = projected_args,
                                                .bwd_again = projected_bwd_again,
                                                .fwd = projected_fwd,
                                                .bwd = projected_bwd,
                                                .dw = projected_dw};

/* ------------------------------------------------------------------ the layer ----------------------------------------------- */

static void fwd(const struct op *op, const struct run *r, struct part p) {
    const struct cell_args args = projected_args(op, r, p);
    projected_fwd(op, r, PREC_F32, &args, p);
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    const struct cell_args args = projected_args(op, r, p);
    if (!args.dy && !args.dhT) return;
    projected_bwd(op, r, &args, p);
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++)
        projected_dw(op, r, &args, part_grain(r, p, g), grain_grad(r, g, op->theta0));
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

static i64 place(const struct op *op, i32 tensor, i32 row, i32 col) {
    const struct dims d = dims_of(op);
    if (tensor == 4) return d.whr + (i64)col * d.Pp + row;
    const i64 at = z_at(row / d.H, row % d.H);
    return tensor == 0 ? at + col * d.W : tensor == 1 ? at + d.wh + col * d.W : tensor == 2 ? at + d.bias : ~(at + d.bias);
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
    .place = place,
};
