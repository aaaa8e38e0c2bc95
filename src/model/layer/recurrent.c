/* recurrent.c - a recurrent layer: the cell spec.cell with spec.hidden hidden units, products in spec.precision.
 *
 * in[0]  x [T][B][I]            in[1]  initial state [states][B][H], or -1 = zero
 * in[2]  ids [1][B]: steps of each row, longest first (layer_live), or -1 = T
 * in[3]  ids [1][B]: the row that a row continues (rows are time slices, recurrent_chain.c), -1 in it = none; or -1
 * out    y [T][B][H]            end    state after the last step of each row [states][B][H]: h, then c if the cell has one
 *
 * theta    packed w, then packed bias (kern.h)          derived  the kernels' transposed copy
 * saved    act: gates stored for backward
 * scratch  carry [2][B][Hp] dh and dc between steps | flags of teams [2][TEAM_MAX] lines | live rows per step [TEAM_MAX][B][T] |
 *          rows that dW copies (cell_args.gather)
 *
 * With few micro-batches backward alternates on ranges of steps: bwd of a range, then its dw per micro-batch while dz is in
 * cache. With many it does not pay, since every range reads and writes the dW of each micro-batch again. Measured in bf16, 512
 * rows per range: 2 micro-batches 4-8 % faster, 4 micro-batches 3-6 %, 8 micro-batches 0-3 % slower; fp32 equal. */
#include <stdio.h>

#include "model/layer/recurrent.h"

err recurrent_buffers(struct net *n, struct op *op, i32 states) {
    char name[24];
    if (op->spec.in[2] >= 0) TRY(layer_is_lengths(n, op, 2));
    if (recurrent_sliced(op)) TRY(layer_is_lengths(n, op, RECURRENT_AFTER));
    TRY(net_out(n, op->spec.name, op->T, op->F, true, &op->out));
    snprintf(name, sizeof name, "%.19s.end", op->spec.name);
    return net_out(n, name, states, op->F, true, &op->end);
}

static err shape(struct net *n, struct op *op) {
    const struct buf *in, *start;
    TRY(layer_input(n, op, 0, &in));
    const struct cell *c = cell_of(op->spec.cell);
    if (!c) return FAIL(E1, "op \"%s\": there is no cell number %d", op->spec.name, (int)op->spec.cell);
    op->T = in->T;
    op->I = in->F;
    op->F = op->spec.hidden;
    if (op->spec.in[1] >= 0) {
        TRY(layer_input(n, op, 1, &start));
        if (start->T != c->states || start->F != op->F)
            return FAIL(E1, "op \"%s\": the initial state is [%d][B][%d], want [%d][B][%d]", op->spec.name, start->T, start->F,
                        c->states, op->F);
    }
    op->ntheta = cell_packed_w(c, op->I, op->F) + cell_packed_bias(c, op->F);
    op->nderived = cell_wt_max(c, op->spec.precision, op->I, op->F);
    return recurrent_buffers(n, op, c->states);
}

static i64 plain_floats(const struct op *op) { return round_up(op->F, LANES) * (i64)(cell_slots(cell_of(op->spec.cell)) + 1); }

static i64 plain_act(const struct op *op, enum precision p, i32 T, i32 B) {
    return cell_act_max(cell_of(op->spec.cell), p, T, B, op->I, op->F);
}

static i64 carry_floats(const struct op *op, i32 B) { return 2 * (i64)B * round_up(op->F, LANES); }

static i64 live_floats(const struct op *op, i32 B) {
    return op->spec.in[2] >= 0 ? round_up64((i64)TEAM_MAX * B * op->T, LANES) : 0;
}

static i64 plain_scratch(const struct op *op, i32 B) {
    const i64 copied = op->spec.precision == PREC_F32 ? (i64)B * cell_gather_rows(op->T, B) * cell_gather_row(op->I, op->F) : 0;
    return carry_floats(op, B) + live_floats(op, B) + copied;
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    const struct cell *c = cell_of(op->spec.cell);
    f64 side = 2.0 * op->T * B * c->gates * op->F, cellwise = 12.0 * op->T * B * c->gates * op->F;
    f64 products = side * (op->I + cell_state_rows(c, op->F));
    if (!backward) return products + cellwise;
    return 2 * products - (n->buf[op->spec.in[0]].grad ? 0 : side * op->I) + cellwise;
}

static void init(const struct op *op, u64 seed, f32 *theta) {
    layer_cell_init(op, cell_of(op->spec.cell), op->I, op->F, seed, theta);
}

static void prep(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived) {
    (void)n;
    cell_kernels(cell_of(op->spec.cell), k, op->spec.precision)->prep(op->I, op->F, theta + op->theta0, derived + op->derived0);
}

/* bf16 kernels store h in their own format, so y is not needed if only the final state is read. Exception: time slices of
 * different length, where the final state of a short row is read from y. */
static bool y_is_read(const struct op *op, const struct run *r) {
    if (recurrent_sliced(op) && op->spec.in[2] >= 0) return true;
    return op->spec.precision == PREC_F32 || r->net->buf[op->out].consumer >= 0 || op->l == r->net->nop - 1;
}

static struct cell_args plain_args(const struct op *op, const struct run *r, struct part p) {
    const struct cell *c = cell_of(op->spec.cell);
    i64 plane = (i64)r->B * round_up(op->F, LANES);
    i32 *live = (i32 *)(void *)(r->scratch[op->l] + carry_floats(op, r->B));
    f32 *end = r->buf[op->end], *dend = run_dout(r, op->end);
    struct cell_args args = {.T = op->T, .B = r->B, .I = op->I, .H = op->F, .how = p.how ? p.how : op->spec.how};
    args.part = r->B < r->whole;
    args.carry = r->scratch[op->l];
    args.gather = op->spec.precision == PREC_F32 ? args.carry + carry_floats(op, r->B) + live_floats(op, r->B) : NULL;
    args.gather_rows = cell_gather_rows(op->T, r->B);
    args.x = run_in(op, r, 0);
    args.x_ld = args.dx_ld = round_up(op->I, LANES);
    args.y = y_is_read(op, r) ? r->buf[op->out] : NULL;
    args.act = r->saved[op->l];
    args.hT = end;
    args.cT = c->states > 1 ? end + plane : NULL;
    live += ((i64)p.b0 * TEAM_MAX + p.me) * op->T; /* of this part and team member */
    args.live = op->spec.in[2] < 0 ? NULL : layer_live(op->T, r->B, run_ids(op, r, 2), live);
    args.w = r->theta + op->theta0;
    args.bias = args.w + cell_packed_w(c, op->I, op->F);
    args.wt = r->derived + op->derived0;
    args.dy = run_dout(r, op->out);
    args.dhT = dend;
    args.dcT = dend && c->states > 1 ? dend + plane : NULL;
    args.dx = run_din(op, r, 0);
    if (op->spec.in[1] < 0) return args;
    f32 *dstart = run_din(op, r, 1);
    args.h0 = run_in(op, r, 1);
    args.c0 = c->states > 1 ? args.h0 + plane : NULL;
    args.dh0 = dstart;
    args.dc0 = dstart && c->states > 1 ? dstart + plane : NULL;
    return args;
}

/* One training step makes at most SLICES calls, each of which raises the flags by at most T+1 <= 2^20: bases 2^34 apart never
 * collide. */
enum { SERIAL_SHIFT = 34, SLICES = 4096, SLICE_ROWS = 512, FEW_GRAINS = 4 };

static struct cell_team team_of(const struct run *r, struct part p) {
    return (struct cell_team){.me = p.me, .n = p.n, .base = r->serial << SERIAL_SHIFT, .flag = p.flags};
}

static const struct cell_kern *kernels(const struct op *op, const struct run *r, enum precision p) {
    return cell_kernels(cell_of(op->spec.cell), r->kern, p);
}

static bool plain_bwd_again(const struct op *op, const struct run *r) { return kernels(op, r, op->spec.precision)->bwd_again; }

static void plain_fwd(const struct op *op, const struct run *r, enum precision p, const struct cell_args *x, struct part q) {
    kernels(op, r, p)->fwd(x, q.b0, q.b1, q.t0, q.t1);
}

static void plain_bwd(const struct op *op, const struct run *r, const struct cell_args *x, struct part q) {
    kernels(op, r, op->spec.precision)->bwd(x, q.b0, q.b1, q.t0, q.t1);
}

static void plain_dw(const struct op *op, const struct run *r, const struct cell_args *x, struct part q, f32 *dw) {
    f32 *dbias = dw + cell_packed_w(cell_of(op->spec.cell), op->I, op->F);
    kernels(op, r, op->spec.precision)->dw(x, q.b0, q.b1, q.t0, q.t1, dw, dbias);
}

const struct recurrence recurrence_plain = {.floats = plain_floats,
                                            .act = plain_act,
                                            .scratch = plain_scratch,
                                            .args = plain_args,
                                            .bwd_again = plain_bwd_again,
                                            .fwd = plain_fwd,
                                            .bwd = plain_bwd,
                                            .dw = plain_dw};

static void fwd(const struct op *op, const struct run *r, struct part p) {
    struct cell_args args = plain_args(op, r, p);
    struct cell_team team = team_of(r, p);
    if (p.n > 1) args.team = &team;
    plain_fwd(op, r, op->spec.precision, &args, p);
}

void recurrent_pad_dx(const struct run *r, const struct cell_args *args, struct part p) {
    const i64 tail = args->dx_ld - args->I;
    if (!args->dx || tail == 0 || p.me > 0) return;
    for (i32 t = p.t0; t < p.t1; t++)
        r->kern->copy(p.b1 - p.b0, tail, args->dx + ((i64)t * args->B + p.b0) * args->dx_ld + args->I, args->dx_ld, NULL, 0);
}

/* Steps of backward after which dW is added. Sums continue range by range, so the length must not depend on the number of
 * threads: it follows from B. */
static i32 dw_steps(const struct run *r, i32 T) {
    if (r->ngrain > FEW_GRAINS || r->kern->device) return T; /* a device has no cache that would keep dz for long */
    return imin(T, imax(imax(1, SLICE_ROWS / r->grain), ceil_div(T, SLICES)));
}

/* dW of the steps of the range that ends at t1, per micro-batch. */
static void slice_dw(const struct op *op, const struct run *r, const struct cell_args *args, struct part p) {
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++)
        plain_dw(op, r, args, part_grain(r, p, g), grain_grad(r, g, op->theta0));
}

static void bwd(const struct op *op, const struct run *r, struct part p) {
    struct cell_args args = plain_args(op, r, p);
    struct cell_team team = team_of(r, p);
    if (p.n > 1) args.team = &team;
    if (!args.dy && !args.dhT) return;
    i32 steps = p.apart ? op->T : dw_steps(r, op->T);
    f32 *const dh0 = args.dh0, *const dc0 = args.dc0;
    args.slice = steps < op->T ? steps : 0;
    for (i32 t1 = p.t1, t0; t1 > p.t0; t1 = t0, team.base += (u64)op->T + 2) {
        const i32 slice = (t1 - 1) / steps * steps; /* dw is added once the range is complete, maybe in a later call */
        t0 = imax(p.t0, slice);
        args.dh0 = t0 > 0 ? NULL : dh0; /* costs a product, so requested only if needed */
        args.dc0 = t0 > 0 ? NULL : dc0;
        plain_bwd(op, r, &args, (struct part){.b0 = p.b0, .b1 = p.b1, .t0 = t0, .t1 = t1});
        const struct part q = {.b0 = p.b0, .b1 = p.b1, .t0 = t0, .t1 = imin(op->T, slice + steps)};
        if (t0 == slice && !p.apart) slice_dw(op, r, &args, q);
    }
    recurrent_pad_dx(r, &args, p);
}

/* dw of the ranges in the order of bwd; this part's panels of each. */
static void dw(const struct op *op, const struct run *r, struct part p) {
    struct cell_args args = plain_args(op, r, p);
    const struct cell_team team = {.me = p.me, .n = p.n};
    const i32 steps = dw_steps(r, op->T);
    if (p.n > 1) args.team = &team;
    if (!args.dy && !args.dhT) return;
    for (i32 t1 = op->T, t0; t1 > 0; t1 = t0) {
        t0 = (t1 - 1) / steps * steps;
        slice_dw(op, r, &args, (struct part){.b0 = p.b0, .b1 = p.b1, .t0 = t0, .t1 = t1});
    }
}

/* Weights are stored by panel, followed by the biases. */
static i64 adds(const struct op *op, i32 k, i32 n) {
    const i32 panels = ceil_div(op->F, LANES);
    return cell_packed_w(cell_of(op->spec.cell), op->I, op->F) / panels * ((i64)panels * k / n);
}

static bool on_device(const struct op *op, const struct net *n) {
    (void)n;
    const bool whole = op->spec.in[2] < 0 && !recurrent_sliced(op);
    return whole && op->spec.precision == PREC_F32 && op->spec.cell < CELL_NKIND;
}

static i32 tensors(const struct op *op, struct tensor_info out[8]) {
    return layer_cell_tensors(op, op->F, out);
}

static i64 place(const struct op *op, i32 tensor, i32 row, i32 col) {
    return cell_place(cell_of(op->spec.cell), tensor, op->I, op->F, row, col);
}

extern const struct layer layer_recurrent;
const struct layer layer_recurrent = {
    .name = "recurrent",
    .help = "y [T][B][units] and the end state [states][B][units] of a cell run over x [T][B][I]",
    .team = true,
    .steps = true,
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
    .dw = dw,
    .adds = adds,
    .on_device = on_device,
    .split = &recurrent_split,
    .tensors = tensors,
    .place = place,
};
