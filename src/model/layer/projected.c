/* projected.c - an LSTM whose output is projected to fewer values before it goes round (Sak, Senior, Beaufays 2014; PyTorch's
 * proj_size): units = H, steps of P = spec.projection values.
 *
 *     z[t] = x[t] Wx + h[t-1] Wh + bias --cell--> c[t], m[t] = o tanh c --Whr--> h[t] = m[t] Whr, the output
 *
 * in[0]  x [T][B][I]            in[2]  ids [1][B]: steps of each row, longest first, or -1 = T
 * out    y [T][B][P]            end    h after the last step of each row [1][B][P]
 *
 * theta    wx [I][W], wh [P][W], bias [W], whr [H][Pp]        W = 4 Hp: panels of i f g o, as the cells' element-wise part has
 * them derived  wht [W][Pp], whrt [P][Hp], wxt [W][Ip] where x wants a gradient saved    z [T][B][W] gates, then dz;  c, m
 * [T][B][Hp];  dh [T][B][Pp] whole gradient of h scratch  a row: dc, dm, a c of zeros [Hp];  STEPS rows of what dW is made of,
 * side by side (pack);  live rows [B][T]
 *
 * Step by step through the products of kern.h, dW in blocks of steps grain by grain.  Parts hold all steps. */
#include <math.h>
#include <stdio.h>

#include "model/cell/cell.h"
#include "model/layer.h"

enum { STEPS = 16 };

struct dims {
    i32 T, I, Ip, H, Hp, P, Pp;
    i64 W;
    i64 wh, bias, whr;  /* offsets in theta */
    i64 whrt, wxt;      /* in derived */
    i64 c, m, dh;       /* in saved, for B rows */
    i64 pack, live;     /* in scratch, for B rows */
    i64 row;            /* floats of a packed row: dz | x | h before | m | dh */
};

static struct dims dims_of(const struct op *op, i32 B) {
    struct dims d = {.T = op->T, .I = op->I, .H = op->spec.units, .P = op->F};
    d.Ip = round_up(d.I, LANES), d.Hp = round_up(d.H, LANES), d.Pp = round_up(d.P, LANES);
    d.W = 4 * (i64)d.Hp;
    d.wh = d.I * d.W;
    d.bias = d.wh + d.P * d.W;
    d.whr = d.bias + d.W;
    d.whrt = d.W * d.Pp;
    d.wxt = d.whrt + (i64)d.P * d.Hp;
    i64 rows = (i64)d.T * B;
    d.c = rows * d.W;
    d.m = d.c + rows * d.Hp;
    d.dh = d.m + rows * d.Hp;
    d.row = d.W + d.Ip + 2 * (i64)d.Pp + d.Hp;
    d.pack = 3 * (i64)B * d.Hp;
    d.live = d.pack + imin(STEPS, d.T) * (i64)B * d.row;
    return d;
}

static err shape(struct net *n, struct op *op) {
    const struct buf *in;
    TRY(layer_input(n, op, 0, &in));
    TRY(layer_range(op, "units", op->spec.units, 2, 1 << 16));
    TRY(layer_range(op, "projection", op->spec.projection, 1, op->spec.units - 1));
    if (op->spec.cell != CELL_LSTM) return FAIL(E1, "op \"%s\": only an lstm has a projection", op->spec.name);
    if (op->spec.precision != PREC_F32) return FAIL(E1, "op \"%s\": a projection has fp32 products only", op->spec.name);
    if (op->spec.in[2] >= 0) TRY(layer_is_lengths(n, op, 2));
    op->T = in->T;
    op->I = in->F;
    op->F = op->spec.projection;
    struct dims d = dims_of(op, 1);
    op->ntheta = d.whr + (i64)d.H * d.Pp;
    op->nderived = d.wxt + (in->grad ? d.W * d.Ip : 0);
    TRY(net_out(n, op->spec.name, op->T, op->F, true, &op->out));
    char name[24];
    snprintf(name, sizeof name, "%.19s.end", op->spec.name);
    return net_out(n, name, 1, op->F, true, &op->end);
}

static i64 saved(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    struct dims d = dims_of(op, B.n);
    return d.dh + (i64)d.T * B.n * d.Pp;
}

static i64 scratch(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    struct dims d = dims_of(op, B.n);
    return d.live + (op->spec.in[2] >= 0 ? (i64)d.T * B.n : 0);
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    struct dims d = dims_of(op, B);
    f64 rows = 2.0 * d.T * B, x_side = rows * 4 * d.H * d.I, rest = rows * d.H * (4.0 * d.P + d.P + 24);
    return backward ? (n->buf[op->spec.in[0]].grad ? 2 : 1) * x_side + 2 * rest : x_side + rest;
}

/* Place of gate g of unit u in a row of z. */
static i64 z_at(i32 g, i32 u) { return ((i64)(u / LANES) * 4 + g) * LANES + u % LANES; }

static void init(const struct op *op, u64 seed, f32 *theta) {
    struct dims d = dims_of(op, 1);
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

/* to [cols][ld] = from [rows][from_ld] turned over its corner. */
static void transpose(i64 rows, i32 cols, const f32 *from, i64 from_ld, f32 *to, i64 ld) {
    for (i64 i = 0; i < rows; i++)
        for (i32 j = 0; j < cols; j++) to[j * ld + i] = from[i * from_ld + j];
}

static void prep(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived) {
    (void)n, (void)k;
    struct dims d = dims_of(op, 1);
    const f32 *w = theta + op->theta0;
    f32 *to = derived + op->derived0;
    transpose(d.P, (i32)d.W, w + d.wh, d.W, to, d.Pp);
    transpose(d.H, d.P, w + d.whr, d.Pp, to + d.whrt, d.Hp);
    if (op->nderived > d.wxt) transpose(d.I, (i32)d.W, w, d.W, to + d.wxt, d.Ip);
}

/* Live rows of each step, NULL = all. */
static const i32 *live_rows(const struct op *op, const struct run *r, const struct dims *d, i32 b0) {
    if (op->spec.in[2] < 0) return NULL;
    i32 *live = (i32 *)(void *)(r->scratch[op->l] + d->live) + (i64)b0 * d->T;
    return layer_live(d->T, r->B, (const i32 *)(const void *)run_in(op, r, 2), live) ? live : NULL;
}

static i32 rows_at(const i32 *live, struct part p, i32 t) { return (live ? imax(p.b0, imin(p.b1, live[t])) : p.b1) - p.b0; }
static void zero(f32 *p, i64 n) { memset(p, 0, (size_t)n * sizeof *p); }

static void fwd(const struct op *op, const struct run *r, struct part p) {
    struct dims d = dims_of(op, r->B);
    const struct kern *k = r->kern;
    const i32 *live = live_rows(op, r, &d, p.b0);
    const f32 *x = run_in(op, r, 0), *w = r->theta + op->theta0;
    f32 *y = r->buf[op->out], *end = r->buf[op->end], *s = r->saved[op->l];
    const f32 *c_before = r->scratch[op->l] + (2 * (i64)r->B + p.b0) * d.Hp; /* zeros, never written */
    zero(end + (i64)p.b0 * d.Pp, (i64)(p.b1 - p.b0) * d.Pp);
    for (i32 t = 0; t < d.T; t++) {
        i32 n = rows_at(live, p, t);
        i64 at = (i64)t * r->B + p.b0;
        f32 *z = s + at * d.W, *h = y + at * d.Pp, *c = s + d.c + at * d.Hp, *m = s + d.m + at * d.Hp;
        for (i32 b = 0; b < n; b++) memcpy(z + b * d.W, w + d.bias, (size_t)d.W * sizeof *z);
        k->gemm_nn(n, (i32)d.W, d.I, x + at * d.Ip, d.Ip, w, d.W, z, d.W, true);
        if (t > 0) k->gemm_nn(n, (i32)d.W, d.P, h - (i64)r->B * d.Pp, d.Pp, w + d.wh, d.W, z, d.W, true);
        cell_kernels(cell_of(CELL_LSTM), k, PREC_F32)->point_fwd(n, d.H, z, c_before, c, m);
        k->gemm_nn(n, d.P, d.H, m, d.Hp, w + d.whr, d.Pp, h, d.Pp, false);
        zero(h + (i64)n * d.Pp, (i64)(p.b1 - p.b0 - n) * d.Pp);
        memcpy(end + (i64)p.b0 * d.Pp, h, (size_t)n * (size_t)d.Pp * sizeof *h); /* each row's last live step stays */
        c_before = c;
    }
}

/* dh of n rows of step t: of the output, of the end for rows that end here, and through step t+1 for the first `on` of them. */
static void gradient_of_h(const struct op *op, const struct run *r, const struct dims *d, i64 at, i32 n, i32 on) {
    const f32 *dy = run_dout(r, op->out), *dend = run_dout(r, op->end), *wht = r->derived + op->derived0;
    f32 *dh = r->saved[op->l] + d->dh + at * d->Pp;
    const f32 *dz_next = r->saved[op->l] + (at + r->B) * d->W;
    i64 first = at % r->B;
    if (dy)
        memcpy(dh, dy + at * d->Pp, (size_t)n * (size_t)d->Pp * sizeof *dh);
    else
        zero(dh, (i64)n * d->Pp);
    if (dend) r->kern->add((i64)(n - on) * d->Pp, dh + (i64)on * d->Pp, dend + (first + on) * d->Pp);
    if (on > 0) r->kern->gemm_nn(on, d->P, (i32)d->W, dz_next, d->W, wht, d->Pp, dh, d->Pp, true);
}

static void steps_bwd(const struct op *op, const struct run *r, const struct dims *d, struct part p) {
    const struct kern *k = r->kern;
    const i32 *live = live_rows(op, r, d, p.b0);
    f32 *s = r->saved[op->l], *dc = r->scratch[op->l] + (i64)p.b0 * d->Hp, *dm = dc + (i64)r->B * d->Hp, *dx = run_din(op, r, 0);
    const f32 *none = dm + (i64)r->B * d->Hp, *derived = r->derived + op->derived0;
    i32 all = p.b1 - p.b0;
    zero(dc, (i64)all * d->Hp);
    for (i32 t = d->T - 1; t >= 0; t--) {
        i32 n = rows_at(live, p, t), on = t + 1 < d->T ? rows_at(live, p, t + 1) : 0;
        i64 at = (i64)t * r->B + p.b0;
        f32 *z = s + at * d->W, *c = s + d->c + at * d->Hp, *dh = s + d->dh + at * d->Pp;
        gradient_of_h(op, r, d, at, n, on);
        k->gemm_nn(n, d->H, d->P, dh, d->Pp, derived + d->whrt, d->Hp, dm, d->Hp, false);
        cell_kernels(cell_of(CELL_LSTM), k, PREC_F32)->point_bwd(n, d->H, z, t > 0 ? c - (i64)r->B * d->Hp : none, c, dm, dc);
        zero(z + n * d->W, (all - n) * d->W);
        zero(dh + (i64)n * d->Pp, (i64)(all - n) * d->Pp);
        zero(s + d->m + (at + n) * d->Hp, (i64)(all - n) * d->Hp);
        if (dx) k->gemm_nn(all, d->I, (i32)d->W, z, d->W, derived + d->wxt, d->Ip, dx + at * d->Ip, d->Ip, false);
    }
}

/* A block of steps of a grain, row under row. */
static void pack(const struct op *op, const struct run *r, const struct dims *d, struct part q, f32 *to) {
    const f32 *x = run_in(op, r, 0), *y = r->buf[op->out], *s = r->saved[op->l];
    for (i32 t = q.t0; t < q.t1; t++)
        for (i32 b = q.b0; b < q.b1; b++, to += d->row) {
            i64 at = (i64)t * r->B + b;
            f32 *h = to + d->W + d->Ip;
            memcpy(to, s + at * d->W, (size_t)d->W * sizeof *to);
            memcpy(to + d->W, x + at * d->Ip, (size_t)d->Ip * sizeof *to);
            if (t > 0)
                memcpy(h, y + (at - r->B) * d->Pp, (size_t)d->Pp * sizeof *to);
            else
                zero(h, d->Pp);
            memcpy(h + d->Pp, s + d->m + at * d->Hp, (size_t)d->Hp * sizeof *to);
            memcpy(h + d->Pp + d->Hp, s + d->dh + at * d->Pp, (size_t)d->Pp * sizeof *to);
        }
}

static void grain_grads(const struct op *op, const struct run *r, const struct dims *d, struct part q, f32 *dw) {
    const struct kern *k = r->kern;
    f32 *rows = r->scratch[op->l] + d->pack + (i64)q.b0 * imin(STEPS, d->T) * d->row;
    const f32 *x = rows + d->W, *h = x + d->Ip, *m = h + d->Pp, *dh = m + d->Hp;
    for (q.t0 = 0; q.t0 < d->T; q.t0 = q.t1) {
        q.t1 = imin(d->T, q.t0 + STEPS);
        i32 n = (q.t1 - q.t0) * (q.b1 - q.b0);
        pack(op, r, d, q, rows);
        k->gemm_tn(d->I, (i32)d->W, n, x, d->row, rows, d->row, dw, d->W, true);
        k->gemm_tn(d->P, (i32)d->W, n, h, d->row, rows, d->row, dw + d->wh, d->W, true);
        k->gemm_tn(d->H, d->P, n, m, d->row, dh, d->row, dw + d->whr, d->Pp, true);
        for (i32 i = 0; i < n; i++) k->add(d->W, dw + d->bias, rows + i * d->row);
    }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    if (!run_dout(r, op->out) && !run_dout(r, op->end)) return;
    struct dims d = dims_of(op, r->B);
    steps_bwd(op, r, &d, p);
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++)
        grain_grads(op, r, &d, part_grain(r, p, g), grain_grad(r, g, op->theta0));
}

static i32 tensors(const struct op *op, struct tensor_info out[8]) {
    i32 H = op->spec.units, P = op->F;
    layer_torch_tensor(&out[0], op, "weight_ih", 4 * H, op->I);
    layer_torch_tensor(&out[1], op, "weight_hh", 4 * H, P);
    layer_torch_tensor(&out[2], op, "bias_ih", 4 * H, 0);
    layer_torch_tensor(&out[3], op, "bias_hh", 4 * H, 0);
    layer_torch_tensor(&out[4], op, "weight_hr", P, H);
    return 5;
}

/* Where element (row, col) of a tensor is. */
static i64 place(const struct dims *d, i32 tensor, i32 row, i32 col) {
    if (tensor == 4) return d->whr + (i64)col * d->Pp + row;
    i64 at = z_at(row / d->H, row % d->H);
    return tensor == 0 ? at + col * d->W : tensor == 1 ? at + d->wh + col * d->W : at + d->bias;
}

static void store(const struct op *op, i32 tensor, const f32 *theta, f32 *canonical) {
    struct tensor_info info[8];
    struct dims d = dims_of(op, 1);
    tensors(op, info);
    for (i32 i = 0; i < info[tensor].rows; i++)
        for (i32 j = 0; j < imax(1, info[tensor].cols); j++) /* the two biases are one: bias_ih has the sum */
            *canonical++ = tensor == 3 ? 0 : theta[place(&d, tensor, i, j)];
}

static void load(const struct op *op, i32 tensor, const f32 *canonical, f32 *theta) {
    struct tensor_info info[8];
    struct dims d = dims_of(op, 1);
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
    .nin = 3,
    .shape = shape,
    .saved = saved,
    .scratch = scratch,
    .flops = flops,
    .init = init,
    .prep = prep,
    .fwd = fwd,
    .bwd = bwd,
    .tensors = tensors,
    .store = store,
    .load = load,
};
