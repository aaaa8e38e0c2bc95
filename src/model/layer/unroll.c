/* unroll.c - an autoregressive decoder: a cell with its own weights that starts from the encoder's final state, with the output
 * head inside the loop.
 *
 *     u[t]   = base[t-1] + out[t-1], or with teacher forcing the true target[t-1];   u[0] = first
 *     x[t]   = u[t] | future[t]  --cell-->  y[t]  --head-->  out[t] [w*Q]
 *
 * in[0]  final state [states][B][H]         in[1]  first [1][B][w]: the values before the first step
 * in[2]  future [steps][B][n] or -1         in[3]  base [steps][B][w] or -1: out is added to it
 * in[4]  target [steps][B][w] or -1, NaN = missing: true values, for training only
 * out    [steps][B][w*Q]; with several quantiles the one nearest to the median is fed back
 *
 * spec.rate is the fraction of positions (step, row) at which training feeds the true value (teacher forcing). The choice is a
 * pure function of seed, training step and position. All other positions feed back the output.
 *
 * theta    the cell's packed w and bias, head [H][Np], its bias [Np]       N = w*Q
 * derived  the cell's transposed copy, the head's [N][Hp]
 * saved    act of the cell;  x, dx [steps][B][Ip];  y, dy [steps][B][Hp]
 * scratch  dh and dc between steps
 *
 * Parts hold all steps: forward step by step, backward through dx of every step, the cell's dW over all steps at the end. */
#include <math.h>

#include "base/rng.h"
#include "model/cell/cell.h"
#include "model/layer.h"

struct dims {
    const struct cell *cell;
    enum precision precision;
    i32 steps, w, Q, fed, N, Np, nf, I, Ip, H, Hp; /* fed: first column of out that is fed back */
    i64 bias, head, head_bias;                     /* offsets in theta */
    i64 head_t;                                    /* offset of the transposed head in derived */
    i64 x, dx, y, dy;                              /* offsets in saved, for B rows */
};

static struct dims dims_of(const struct op *op, const struct net *n, i32 B) {
    const struct op_spec *s = &op->spec;
    struct dims d = {.cell = cell_of(s->cell), .precision = s->precision, .steps = s->steps, .w = n->buf[s->in[1]].F};
    d.Q = imax(1, s->nquantile);
    for (i32 q = 1; q < s->nquantile; q++)
        if (fabsf(s->quantile[q] - 0.5f) < fabsf(s->quantile[d.fed] - 0.5f)) d.fed = q;
    d.fed *= d.w;
    d.N = d.w * d.Q, d.Np = round_up(d.N, LANES);
    d.nf = s->in[2] >= 0 ? n->buf[s->in[2]].F : 0;
    d.I = d.w + d.nf, d.Ip = round_up(d.I, LANES);
    d.H = s->hidden, d.Hp = round_up(d.H, LANES);
    d.bias = cell_packed_w(d.cell, d.I, d.H);
    d.head = d.bias + cell_packed_bias(d.cell, d.H);
    d.head_bias = d.head + (i64)d.H * d.Np;
    d.head_t = round_up64(cell_wt_max(d.cell, d.precision, d.I, d.H), LANES);
    i64 rows = (i64)d.steps * B;
    d.x = round_up64(cell_act_max(d.cell, d.precision, d.steps, B, d.I, d.H), LANES);
    d.dx = d.x + rows * d.Ip;
    d.y = d.dx + rows * d.Ip;
    d.dy = d.y + rows * d.Hp;
    return d;
}

/* Checks that input i, if given, is [steps][B][w] (w < 1: any) without a gradient. */
static err check_input(const struct net *n, const struct op *op, i32 i, i32 T, i32 w) {
    const struct buf *b;
    if (op->spec.in[i] < 0 && i > 1) return 0;
    TRY(layer_input(n, op, i, &b));
    if (b->T == T && (w < 1 || b->F == w) && !b->grad) return 0;
    return FAIL(E1, "op \"%s\": input %d is [%d][B][%d], want [%d][B][%d] without a gradient", op->spec.name, i, b->T, b->F, T,
                w < 1 ? b->F : w);
}

static err shape(struct net *n, struct op *op) {
    const struct buf *end;
    const struct cell *c = cell_of(op->spec.cell);
    if (!c) return FAIL(E1, "op \"%s\": there is no cell number %d", op->spec.name, (int)op->spec.cell);
    TRY(layer_range(op, "steps", op->spec.steps, 1, 1 << 16));
    TRY(layer_range(op, "number of quantiles", op->spec.nquantile, 0, COUNT(op->spec.quantile)));
    TRY(layer_input(n, op, 0, &end));
    if (end->T != c->states || end->F != op->spec.hidden)
        return FAIL(E1, "op \"%s\": the end state is [%d][B][%d], want [%d][B][%d]", op->spec.name, end->T, end->F, c->states,
                    op->spec.hidden);
    TRY(check_input(n, op, 1, 1, 0));
    i32 w = n->buf[op->spec.in[1]].F;
    TRY(check_input(n, op, 2, op->spec.steps, 0));
    for (i32 i = 3; i < 5; i++) TRY(check_input(n, op, i, op->spec.steps, w));
    struct dims d = dims_of(op, n, 1);
    op->T = d.steps;
    op->I = d.I;
    op->F = d.N;
    op->ntheta = d.head_bias + d.Np;
    op->nderived = d.head_t + (i64)d.N * d.Hp;
    return net_out(n, op->spec.name, op->T, op->F, true, &op->out);
}

static i64 saved(const struct op *op, const struct net *n, struct rows B) {
    struct dims d = dims_of(op, n, B.n);
    return d.dy + (i64)d.steps * B.n * d.Hp;
}

static i64 scratch(const struct op *op, const struct net *n, struct rows B) {
    (void)n;
    return 2 * (i64)B.n * round_up(op->spec.hidden, LANES);
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    struct dims d = dims_of(op, n, B);
    f64 row = 2.0 * d.H * (d.cell->gates * (d.I + d.H + 6.0) + d.N);
    return (backward ? 2 : 1) * row * d.steps * B;
}

static void init(const struct op *op, u64 seed, f32 *theta) {
    i32 H = op->spec.hidden, N = op->F, Np = round_up(N, LANES);
    const struct cell *c = cell_of(op->spec.cell);
    f32 *head = theta + cell_packed_w(c, op->I, H) + cell_packed_bias(c, H);
    i64 at = layer_cell_init(op, c, op->I, H, seed, theta);
    for (i32 k = 0; k <= H && !op->spec.zero_head; k++)
        for (i32 j = 0; j < N; j++) head[(i64)k * Np + j] = layer_uniform(op, seed, at++, 1 / sqrt(H));
}

static void prep(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived) {
    struct dims d = dims_of(op, n, 1);
    const f32 *head = theta + op->theta0 + d.head;
    f32 *to = derived + op->derived0;
    cell_kernels(d.cell, k, d.precision)->prep(d.I, d.H, theta + op->theta0, to);
    k->transpose(d.H, d.N, head, d.Np, to + d.head_t, d.Hp);
}

static struct cell_args args_of(const struct op *op, const struct run *r, const struct dims *d) {
    bool two = d->cell->states > 1;
    i64 plane = (i64)r->B * d->Hp;
    f32 *s = r->saved[op->l], *dend = run_din(op, r, 0);
    struct cell_args args = {.T = d->steps, .B = r->B, .part = r->B < r->whole, .I = d->I, .H = d->H};
    args.x_ld = args.dx_ld = d->Ip;
    args.x = s + d->x;
    args.dx = s + d->dx;
    args.y = s + d->y;
    args.dy = s + d->dy;
    args.act = s;
    args.h0 = run_in(op, r, 0);
    args.c0 = two ? args.h0 + plane : NULL;
    args.dh0 = dend;
    args.dc0 = dend && two ? dend + plane : NULL;
    args.w = r->theta + op->theta0;
    args.bias = args.w + d->bias;
    args.wt = r->derived + op->derived0;
    args.carry = r->scratch[op->l];
    return args;
}

/* True if value j of step t is fed from the truth rather than from the output. */
static bool forced(const struct op *op, const struct run *r, const struct dims *d, i32 t, i32 b, i32 j) {
    if (!r->train || op->spec.in[4] < 0 || op->spec.teacher_forcing <= 0) return false;
    i64 at = (i64)t * r->B + b;
    const u64 place = (u64)op->l << 48 | (u64)run_place(r, at);
    const f32 share = op->spec.teacher_forcing;
    if (share < 1 && rng_uniform(r->seed, RNG_TEACHER, r->step, place) >= share) return false;
    return !isnan(run_in(op, r, 4)[at * round_up(d->w, LANES) + j]);
}

/* Fills row b of x[t] from the output of step t-1. */
static void feed(const struct op *op, const struct run *r, const struct dims *d, i32 t, i32 b) {
    i32 wp = round_up(d->w, LANES), nfp = round_up(d->nf, LANES);
    i64 at = (i64)t * r->B + b, before = at - r->B;
    f32 *x = r->saved[op->l] + d->x + at * d->Ip;
    if (t == 0)
        memcpy(x, run_in(op, r, 1) + (i64)b * wp, (size_t)d->w * sizeof *x);
    else
        for (i32 j = 0; j < d->w; j++) {
            f32 own = r->buf[op->out][before * d->Np + d->fed + j];
            if (op->spec.in[3] >= 0) own += run_in(op, r, 3)[before * wp + j];
            x[j] = forced(op, r, d, t - 1, b, j) ? run_in(op, r, 4)[before * wp + j] : own;
        }
    if (d->nf) memcpy(x + d->w, run_in(op, r, 2) + at * nfp, (size_t)d->nf * sizeof *x);
    memset(x + d->I, 0, (size_t)(d->Ip - d->I) * sizeof *x);
}

static void fwd(const struct op *op, const struct run *r, struct part p) {
    struct dims d = dims_of(op, r->net, r->B);
    struct cell_args args = args_of(op, r, &d);
    const struct cell_kern *k = cell_kernels(d.cell, r->kern, d.precision);
    const f32 *head = args.w + d.head, *head_bias = args.w + d.head_bias;
    for (i32 t = 0; t < d.steps; t++) {
        i64 at = (i64)t * r->B + p.b0;
        f32 *out = r->buf[op->out] + at * d.Np;
        for (i32 b = p.b0; b < p.b1; b++) feed(op, r, &d, t, b);
        k->fwd(&args, p.b0, p.b1, t, t + 1);
        for (i32 b = 0; b < p.b1 - p.b0; b++) memcpy(out + (i64)b * d.Np, head_bias, (size_t)d.Np * sizeof *out);
        r->kern->gemm_nn(p.b1 - p.b0, d.N, d.H, args.y + at * d.Hp, d.Hp, head, d.Np, out, d.Np, true);
    }
}

/* Adds the gradient from step t+1 to the output of step t. */
static void fed_back(const struct op *op, const struct run *r, const struct dims *d, i32 t, i32 b) {
    i64 at = (i64)t * r->B + b;
    const f32 *dx = r->saved[op->l] + d->dx + (at + r->B) * d->Ip;
    f32 *dout = r->dbuf[op->out] + at * d->Np + d->fed;
    for (i32 j = 0; j < d->w; j++)
        if (!forced(op, r, d, t, b, j)) dout[j] += dx[j];
}

static void head_grad(const struct op *op, const struct run *r, const struct dims *d, struct part q, f32 *dw) {
    for (i32 t = 0; t < d->steps; t++) {
        i64 at = (i64)t * r->B + q.b0;
        const f32 *dout = r->dbuf[op->out] + at * d->Np;
        r->kern->gemm_tn(d->H, d->N, q.b1 - q.b0, r->saved[op->l] + d->y + at * d->Hp, d->Hp, dout, d->Np, dw + d->head, d->Np,
                         true);
        for (i32 b = 0; b < q.b1 - q.b0; b++) r->kern->add(d->Np, dw + d->head_bias, dout + (i64)b * d->Np);
    }
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    if (!run_dout(r, op->out)) return;
    struct dims d = dims_of(op, r->net, r->B);
    struct cell_args args = args_of(op, r, &d);
    const struct cell_kern *k = cell_kernels(d.cell, r->kern, d.precision);
    const f32 *head_t = args.wt + d.head_t;
    f32 *dy = r->saved[op->l] + d.dy, *dh0 = args.dh0, *dc0 = args.dc0;
    for (i32 t = d.steps - 1; t >= 0; t--) {
        i64 at = (i64)t * r->B + p.b0;
        for (i32 b = p.b0; b < p.b1 && t + 1 < d.steps; b++) fed_back(op, r, &d, t, b);
        r->kern->gemm_nn(p.b1 - p.b0, d.H, d.N, r->dbuf[op->out] + at * d.Np, d.Np, head_t, d.Hp, dy + at * d.Hp, d.Hp, false);
        args.dh0 = t > 0 ? NULL : dh0;
        args.dc0 = t > 0 ? NULL : dc0;
        k->bwd(&args, p.b0, p.b1, t, t + 1);
    }
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++) {
        struct part q = part_grain(r, p, g);
        f32 *dw = grain_grad(r, g, op->theta0);
        k->dw(&args, q.b0, q.b1, 0, d.steps, dw, dw + d.bias);
        head_grad(op, r, &d, q, dw);
    }
}

static i32 tensors(const struct op *op, struct tensor_info out[8]) {
    const i32 H = op->spec.hidden, n = layer_cell_tensors(op, H, out);
    layer_tensor(&out[n], op, "head.weight", op->F, H);
    layer_tensor(&out[n + 1], op, "head.bias", op->F, 0);
    return n + 2;
}

static i64 place(const struct op *op, i32 tensor, i32 row, i32 col) {
    const struct cell *c = cell_of(op->spec.cell);
    const i32 H = op->spec.hidden, n = cell_tensors(c);
    if (tensor < n) return cell_place(c, tensor, op->I, H, row, col);
    const i64 head = cell_packed_w(c, op->I, H) + cell_packed_bias(c, H);
    return head + (i64)(tensor == n ? col : H) * round_up(op->F, LANES) + row;
}

extern const struct layer layer_unroll;
const struct layer layer_unroll = {
    .name = "unroll",
    .help =
        "y [steps][B][w*Q]: a cell from the end state on, fed with its own output (or, in training, the truth) and what is known",
    .nin = 5,
    .shape = shape,
    .saved = saved,
    .scratch = scratch,
    .flops = flops,
    .init = init,
    .prep = prep,
    .fwd = fwd,
    .bwd = bwd,
    .tensors = tensors,
    .place = place,
};
