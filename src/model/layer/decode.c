/* decode.c - all output steps at once (SegRNN's parallel decoder): `steps` copies of the end state, each does ONE step of the
 * shared cell on its own input, the embedding of (position s, category of the row).
 *
 *     end [states][B][H] --h--> zh = h Wh, once per row ----------+
 *     pos [steps][dp]    -----> zp = pos Wx + bias, once a step --+--> z [steps][B] --cell--> y [steps][B][H]
 *     col [vocab][dc]    -----> zc = col Wx', once a category ----+
 *     known [steps][B][nk] ---> known Wk  (optional) -------------+
 *
 * in[0] end state of a layer with the shared cell's H, in[1] ids [1][B] or -1 (category 0), in[2] known inputs or -1.
 * spec.share is the cell's op; its I is dp + dc, dc = I / 2.  A category outside the vocabulary adds nothing.
 *
 * theta    pos [steps][dpp], col [vocab][dcp], wk [NP][nk][G][LANES]     (dpp, dcp: padded)
 * derived  zp [steps][W], zc [vocab][W], wt [W][dpp + dcp + Hp]          (W = NP * slots * LANES, a row of pre-activations)
 * saved    z [steps][B][W] gates, then dz;  s [steps][B][Hp]
 * scratch  per row: zrow [W], ds [Hp], dstate [Hp] when the end state wants no gradient, e and de [dcp]
 *
 * Parts hold all steps.  Gates and slots: the weights have G gates, z has `slots`; they differ for a cell whose last gate keeps
 * the products of x and h apart (gru), where the last gate of h goes to the slot after that of x. */
#include <math.h>

#include "kern/device.h"
#include "model/cell/cell.h"
#include "model/layer.h"

enum { ROWS = 32 };

struct dims {
    const struct cell *cell;
    i32 steps, vocab, G, slots, NP, H, Hp, I, dp, dc, dpp, dcp, nk;
    i64 W, row;     /* W: floats of a row of z; row: row length of wt */
    i64 theta_cell; /* block of the shared cell */
    i64 col, wk;    /* offsets in the op's block */
    i64 zc, wt;     /* offsets in the op's derived block */
    i64 panel;      /* floats per panel of the cell's weights */
};

static struct dims dims_of(const struct op *op, const struct net *n) {
    const struct op *shared = &n->op[op->spec.share];
    struct dims d = {.cell = cell_of(shared->spec.cell), .steps = op->spec.steps, .H = shared->F, .I = shared->I};
    d.vocab = imax(1, op->spec.vocab);
    d.G = d.cell->gates;
    d.slots = cell_slots(d.cell);
    d.Hp = round_up(d.H, LANES);
    d.NP = d.Hp / LANES;
    d.dc = d.I / 2;
    d.dp = d.I - d.dc;
    d.dpp = round_up(d.dp, LANES);
    d.dcp = round_up(d.dc, LANES);
    d.nk = op->spec.in[2] >= 0 ? n->buf[op->spec.in[2]].F : 0;
    d.W = (i64)d.NP * d.slots * LANES;
    d.row = d.dpp + d.dcp + d.Hp;
    d.theta_cell = shared->theta0;
    d.col = (i64)d.steps * d.dpp;
    d.wk = d.col + (i64)d.vocab * d.dcp;
    d.zc = d.steps * d.W;
    d.wt = d.zc + d.vocab * d.W;
    d.panel = (i64)(d.I + cell_state_rows(d.cell, d.H)) * d.G * LANES;
    return d;
}

static err check_known(const struct net *n, const struct op *op) {
    const struct buf *known;
    if (op->spec.in[2] < 0) return 0;
    TRY(layer_input(n, op, 2, &known));
    if (known->T != op->spec.steps || known->grad)
        return FAIL(E1, "op \"%s\": known inputs are [%d][B][%d], want [%d][B][n] without a gradient", op->spec.name, known->T,
                    known->F, op->spec.steps);
    return 0;
}

static err shape(struct net *n, struct op *op) {
    const struct buf *end;
    TRY(layer_input(n, op, 0, &end));
    if (op->spec.share < 0 || strcmp(n->op[op->spec.share].layer->name, "recurrent") != 0)
        return FAIL(E1, "op \"%s\": share must name a recurrent op", op->spec.name);
    TRY(layer_range(op, "steps", op->spec.steps, 1, 1 << 16));
    TRY(layer_range(op, "vocab", op->spec.vocab, 0, 1 << 20));
    struct dims d = dims_of(op, n);
    if (end->T != d.cell->states || end->F != d.H)
        return FAIL(E1, "op \"%s\": the end state is [%d][B][%d], want [%d][B][%d]", op->spec.name, end->T, end->F,
                    d.cell->states, d.H);
    i32 ids = op->spec.in[1];
    if (ids >= 0 && (!n->buf[ids].ids || n->buf[ids].T != 1))
        return FAIL(E1, "op \"%s\": in[1] must be category numbers [1][B]", op->spec.name);
    TRY(check_known(n, op));
    op->T = op->spec.steps;
    op->I = d.I;
    op->F = d.H;
    op->spec.cell = d.cell->kind;
    op->ntheta = d.wk + (i64)d.NP * d.nk * d.G * LANES;
    op->nderived = d.wt + d.W * d.row;
    return net_out(n, op->spec.name, op->T, op->F, true, &op->out);
}

static i64 saved(const struct op *op, const struct net *n, struct rows B) {
    struct dims d = dims_of(op, n);
    return (i64)d.steps * B.n * (d.W + d.Hp);
}

static i64 scratch(const struct op *op, const struct net *n, struct rows B) {
    struct dims d = dims_of(op, n);
    return (i64)B.n * (d.W + 2 * d.Hp + 2 * d.dcp);
}

static f64 flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    struct dims d = dims_of(op, n);
    f64 per_row = 2.0 * d.G * d.H * (d.H + (backward ? 2 * d.dc : 0));
    f64 per_copy = 2.0 * d.G * d.H * d.nk + 14.0 * d.slots * d.H;
    return (backward ? 2 : 1) * B * (per_row + d.steps * per_copy);
}

static void init(const struct op *op, u64 seed, f32 *theta) {
    i32 dc = op->I / 2, dp = op->I - dc, dpp = round_up(dp, LANES), dcp = round_up(dc, LANES);
    i64 steps = op->spec.steps, vocab = imax(1, op->spec.vocab), tables = steps * dpp + vocab * dcp;
    for (i64 s = 0; s < steps; s++)
        for (i32 j = 0; j < dp; j++) theta[s * dpp + j] = layer_normal(op, seed, s * dp + j);
    for (i64 v = 0; v < vocab; v++)
        for (i32 j = 0; j < dc; j++) theta[steps * dpp + v * dcp + j] = layer_normal(op, seed, steps * dp + v * dc + j);
    i64 lanes = op->ntheta - tables; /* wk; padding beyond H stays zero */
    i32 NP = round_up(op->F, LANES) / LANES;
    for (i64 i = 0; i < lanes; i++) {
        i64 u = i / (lanes / NP) * LANES + i % LANES;
        if (u < op->F) theta[tables + i] = layer_uniform(op, seed, steps * dp + vocab * dc + i, 1 / sqrt(op->F));
    }
}

/* Rows of n values (W for dz), ld apart. */
struct mat {
    const f32 *p;
    i32 n;
    i64 ld;
};

/* C [M][W] += A [M][n] times n rows of x-side weights; w: the first row; panels are `panel` floats apart. */
static void x_side(const struct dims *d, const struct kern *k, i32 M, struct mat A, const f32 *w, i64 panel, f32 *C) {
    i32 N = d->G * LANES;
    for (i32 p = 0; p < d->NP; p++) k->gemm_nn(M, N, A.n, A.p, A.ld, w + p * panel, N, C + (i64)p * d->slots * LANES, d->W, true);
}

/* The same for the h side; a split last gate goes to its own slot. */
static void h_side(const struct dims *d, const struct kern *k, i32 M, const f32 *A, const f32 *w, f32 *C) {
    i32 ld = d->G * LANES, N = ld - (d->cell->split_last ? LANES : 0);
    for (i32 p = 0; p < d->NP; p++) {
        const f32 *B = w + p * d->panel + (i64)d->I * ld;
        f32 *to = C + (i64)p * d->slots * LANES;
        if (N > 0) k->gemm_nn(M, N, d->H, A, d->Hp, B, ld, to, d->W, true);
        if (d->cell->split_last) k->gemm_nn(M, LANES, d->H, A, d->Hp, B + N, ld, to + N + LANES, d->W, true);
    }
}

/* dw += A [rows][n]^T dz [rows][W] for n rows of x-side weights; h_grad does the h side. */
static void x_grad(const struct dims *d, const struct kern *k, i32 rows, struct mat A, struct mat dz, f32 *dw, i64 panel) {
    i32 N = d->G * LANES;
    for (i32 p = 0; p < d->NP; p++)
        k->gemm_tn(A.n, N, rows, A.p, A.ld, dz.p + (i64)p * d->slots * LANES, dz.ld, dw + p * panel, N, true);
}

static void h_grad(const struct dims *d, const struct kern *k, i32 rows, const f32 *h, const f32 *dz, f32 *dw) {
    i32 ld = d->G * LANES, N = ld - (d->cell->split_last ? LANES : 0);
    for (i32 p = 0; p < d->NP; p++) {
        f32 *to = dw + p * d->panel + (i64)d->I * ld;
        const f32 *from = dz + (i64)p * d->slots * LANES;
        if (N > 0) k->gemm_tn(d->H, N, rows, h, d->Hp, from, d->W, to, ld, true);
        if (d->cell->split_last) k->gemm_tn(d->H, LANES, rows, h, d->Hp, from + N + LANES, d->W, to + N, ld, true);
    }
}

/* wt: row (panel, slot, unit) of z, columns pos | col | h.  Gates and slots agree but for a split last gate of h. */
static void transpose(const struct dims *d, const struct kern *k, const f32 *w, f32 *wt) {
    const i32 ld = d->G * LANES, own = ld - (d->cell->split_last ? LANES : 0), h = d->cell->diagonal ? 0 : d->H;
    for (i32 p = 0; p < d->NP; p++) {
        const f32 *x = w + p * d->panel, *hw = x + (i64)d->I * ld;
        f32 *to = wt + (i64)p * d->slots * LANES * d->row, *to_h = to + d->dpp + d->dcp;
        k->transpose(d->dp, ld, x, ld, to, d->row);
        k->transpose(d->dc, ld, x + (i64)d->dp * ld, ld, to + d->dpp, d->row);
        k->transpose(h, own, hw, ld, to_h, d->row);
        if (own < ld) k->transpose(h, LANES, hw + own, ld, to_h + (i64)(own + LANES) * d->row, d->row);
    }
}

static void prep(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived) {
    struct dims d = dims_of(op, n);
    const f32 *own = theta + op->theta0, *w = theta + d.theta_cell, *bias = w + cell_packed_w(d.cell, d.I, d.H);
    f32 *zp = derived + op->derived0, *zc = zp + d.zc;
    k->copy(d.steps, d.W, zp, d.W, bias, 0);
    x_side(&d, k, d.steps, (struct mat){own, d.dp, d.dpp}, w, d.panel, zp);
    k->copy(d.vocab, d.W, zc, d.W, NULL, 0);
    if (d.dc) x_side(&d, k, d.vocab, (struct mat){own + d.col, d.dc, d.dcp}, w + (i64)d.dp * d.G * LANES, d.panel, zc);
    transpose(&d, k, w, zp + d.wt);
}

/* Category of sample b, or -1. */
static i32 id_of(const struct op *op, const struct run *r, const struct dims *d, i32 b) {
    if (op->spec.in[1] < 0) return 0;
    i32 id = run_ids(op, r, 1)[b];
    return id >= 0 && id < d->vocab ? id : -1;
}

static struct device_embed on_device_rows(const struct op *op, const struct run *r, const struct dims *d, i32 rows, i64 n) {
    return (struct device_embed){.vocab = d->vocab, .Fp = (i32)n, .t1 = 1, .b1 = rows, .B = rows, .ids = run_ids(op, r, 1)};
}

/* to [rows][n] = rows of a table by the category of each row; zeros for an unknown one. */
static void take_rows(const struct op *op, const struct run *r, const struct dims *d, struct part q, const f32 *table, i64 n,
                      f32 *to) {
    const i32 rows = q.b1 - q.b0;
    if (op->spec.in[1] < 0) {
        r->kern->copy(rows, n, to, n, table, 0);
        return;
    }
    if (r->kern->device) {
        struct device_embed a = on_device_rows(op, r, d, rows, n);
        a.ids += q.b0;
        a.table = (f32 *)(uintptr_t)table;
        a.y = to;
        r->kern->device->embed_fwd(&a);
        return;
    }
    for (i32 b = 0; b < rows; b++) {
        const i32 id = id_of(op, r, d, q.b0 + b);
        copy_or_zero(to + b * n, id >= 0 ? table + id * n : NULL, n);
    }
}

/* Adds rows [rows][n] to the rows of a table by category, in order. */
static void give_rows(const struct op *op, const struct run *r, const struct dims *d, struct part q, f32 *from, i64 n,
                      f32 *table) {
    const i32 rows = q.b1 - q.b0;
    if (op->spec.in[1] < 0) {
        r->kern->add_rows(1, 0, rows, (i32)n, table, from, n);
        return;
    }
    if (r->kern->device) {
        struct device_embed a = on_device_rows(op, r, d, rows, n);
        a.ids += q.b0;
        a.table = table;
        a.y = from;
        r->kern->device->embed_bwd(&a);
        return;
    }
    for (i32 b = 0; b < rows; b++) {
        const i32 id = id_of(op, r, d, q.b0 + b);
        if (id >= 0) r->kern->add(n, table + id * n, from + b * n);
    }
}

/* Known inputs from flat row s*B + b on. */
static struct mat known_rows(const struct op *op, const struct run *r, const struct dims *d, i64 at) {
    i32 ld = round_up(d->nk, LANES);
    return (struct mat){run_in(op, r, 2) + at * ld, d->nk, ld};
}

/* For diagonal cells: replaces h_side and point_fwd, and point_bwd and h_grad. */
static const struct cell_step *step_of(const struct dims *d, const struct run *r) { return &d->cell->set(r->kern->arch)->step; }

/* Arguments for copy s of the rows from b0 on. */
static struct cell_rows copy_rows(const struct op *op, const struct run *r, const struct dims *d, i32 b0, i32 rows, i32 s) {
    i64 at = (i64)s * r->B + b0, plane = (i64)r->B * d->Hp;
    struct cell_rows c = {.n = rows, .I = d->I, .H = d->H, .w = r->theta + d->theta_cell};
    c.z = r->saved[op->l] + at * d->W;
    c.h0 = run_in(op, r, 0) + (i64)b0 * d->Hp;
    c.c0 = d->cell->states > 1 ? c.h0 + plane : NULL;
    c.keep = r->saved[op->l] + (i64)d->steps * r->B * d->W + at * d->Hp;
    c.h = r->buf[op->out] + at * d->Hp;
    return c;
}

static f32 *scratch_ds(const struct op *op, const struct run *r, const struct dims *d) { return r->scratch[op->l] + r->B * d->W; }

static void rows_fwd(const struct op *op, const struct run *r, const struct dims *d, i32 b0, i32 rows) {
    const f32 *zp = r->derived + op->derived0, *end = run_in(op, r, 0), *wk = r->theta + op->theta0 + d->wk;
    const f32 *before = end + ((d->cell->states > 1 ? r->B : 0) + (i64)b0) * d->Hp;
    f32 *zrow = r->scratch[op->l] + b0 * d->W, *z = r->saved[op->l], *state = z + (i64)d->steps * r->B * d->W;
    take_rows(op, r, d, (struct part){.b0 = b0, .b1 = b0 + rows}, zp + d->zc, d->W, zrow);
    if (!d->cell->diagonal) h_side(d, r->kern, rows, end + (i64)b0 * d->Hp, r->theta + d->theta_cell, zrow);
    for (i32 s = 0; s < d->steps; s++) {
        i64 at = (i64)s * r->B + b0;
        r->kern->copy(rows, d->W, z + at * d->W, d->W, zp + s * d->W, 0);
        r->kern->add(rows * d->W, z + at * d->W, zrow);
        if (d->nk) x_side(d, r->kern, rows, known_rows(op, r, d, at), wk, (i64)d->nk * d->G * LANES, z + at * d->W);
        if (d->cell->diagonal) {
            struct cell_rows c = copy_rows(op, r, d, b0, rows, s);
            step_of(d, r)->fwd(&c);
            continue;
        }
        cell_kernels(d->cell, r->kern, PREC_F32)
            ->point_fwd(rows, d->H, z + at * d->W, before, state + at * d->Hp, r->buf[op->out] + at * d->Hp);
    }
}

/* Processes a few rows at a time, so that data stays in cache between the loops; a device wants all at once. */
static void fwd(const struct op *op, const struct run *r, struct part part) {
    struct dims d = dims_of(op, r->net);
    const i32 most = r->kern->device ? part.b1 - part.b0 : ROWS;
    for (i32 b = part.b0; b < part.b1; b += most) rows_fwd(op, r, &d, b, imin(most, part.b1 - b));
}

/* Diagonal cell: gradient of the final h of rows b0..; dstate: that of the last state. */
static f32 *h_gradient(const struct op *op, const struct run *r, const struct dims *d, f32 *dstate, i32 b0) {
    f32 *dend = run_din(op, r, 0);
    if (d->cell->states == 1) return dstate;
    return (dend ? dend : scratch_ds(op, r, d)) + (i64)b0 * d->Hp;
}

/* Backward of copy s for the rows of one micro-batch: turns gates into dz, adds dz to zrow and the state gradient to dstate;
 * finally the first row of dz becomes the sum over the rows. */
static void copy_bwd(const struct op *op, const struct run *r, const struct dims *d, struct part q, i32 s, f32 *dstate,
                     f32 *dwk) {
    i32 rows = q.b1 - q.b0;
    i64 at = (i64)s * r->B + q.b0;
    f32 *zrow = r->scratch[op->l] + q.b0 * d->W, *ds = scratch_ds(op, r, d) + (i64)q.b0 * d->Hp;
    f32 *z = r->saved[op->l] + at * d->W, *state = r->saved[op->l] + (i64)d->steps * r->B * d->W + at * d->Hp;
    const f32 *before = run_in(op, r, 0) + ((d->cell->states > 1 ? r->B : 0) + (i64)q.b0) * d->Hp;
    const f32 *dh = r->dbuf[op->out] + at * d->Hp;
    if (d->cell->diagonal) {
        struct cell_rows c = copy_rows(op, r, d, q.b0, rows, s);
        c.dh = dh;
        c.dh0 = h_gradient(op, r, d, dstate, q.b0);
        c.dc0 = dstate;
        c.dw = grain_grad(r, grain_of(r, q.b0), d->theta_cell);
        step_of(d, r)->bwd(&c);
    } else {
        r->kern->copy(1, (i64)rows * d->Hp, ds, 0, NULL, 0);
        cell_kernels(d->cell, r->kern, PREC_F32)->point_bwd(rows, d->H, z, before, state, dh, ds);
        r->kern->add((i64)rows * d->Hp, dstate, ds);
    }
    r->kern->add(rows * d->W, zrow, z);
    if (d->nk)
        x_grad(d, r->kern, rows, known_rows(op, r, d, at), (struct mat){z, (i32)d->W, d->W}, dwk, (i64)d->nk * d->G * LANES);
    for (i32 n = rows, half; n > 1; n -= half) { /* pairwise: add the upper half to the lower half */
        half = n / 2;
        r->kern->add(half * d->W, z, z + (n - half) * d->W);
    }
}

/* Gradient of the category table for one micro-batch: gathered before and scattered after the products. */
static void col_grad(const struct op *op, const struct run *r, const struct dims *d, struct part q, f32 *dw, f32 *down) {
    i32 rows = q.b1 - q.b0;
    f32 *e = scratch_ds(op, r, d) + 2 * (i64)r->B * d->Hp + (i64)q.b0 * d->dcp, *de = e + (i64)r->B * d->dcp;
    const f32 *zrow = r->scratch[op->l] + q.b0 * d->W;
    take_rows(op, r, d, q, r->theta + op->theta0 + d->col, d->dcp, e);
    x_grad(d, r->kern, rows, (struct mat){e, d->dc, d->dcp}, (struct mat){zrow, (i32)d->W, d->W}, dw + (i64)d->dp * d->G * LANES,
           d->panel);
    const f32 *wt = r->derived + op->derived0 + d->wt + d->dpp;
    r->kern->gemm_nn(rows, d->dc, (i32)d->W, zrow, d->W, wt, d->row, de, d->dcp, false);
    give_rows(op, r, d, q, de, d->dcp, down + d->col);
}

/* Backward of all copies for one micro-batch, and its parameter gradients. */
static void grain_bwd(const struct op *op, const struct run *r, const struct dims *d, i32 g, struct part q, f32 *dstate) {
    f32 *dw = grain_grad(r, g, d->theta_cell), *down = grain_grad(r, g, op->theta0);
    f32 *db = dw + cell_packed_w(d->cell, d->I, d->H), *zrow = r->scratch[op->l] + q.b0 * d->W;
    f32 *z = r->saved[op->l] + q.b0 * d->W; /* row s: sum over the rows of copy s */
    i32 rows = q.b1 - q.b0;
    i64 ldz = r->B * d->W;
    r->kern->copy(1, (i64)rows * d->Hp, dstate, 0, NULL, 0);
    r->kern->copy(1, rows * d->W, zrow, 0, NULL, 0);
    if (d->cell->diagonal) memset(h_gradient(op, r, d, dstate, q.b0), 0, (size_t)rows * (size_t)d->Hp * sizeof *dstate);
    for (i32 s = 0; s < d->steps; s++) {
        copy_bwd(op, r, d, q, s, dstate, down + d->wk);
        r->kern->add(d->W, db, z + s * ldz);
    }
    if (!d->cell->diagonal) h_grad(d, r->kern, rows, run_in(op, r, 0) + (i64)q.b0 * d->Hp, zrow, dw);
    if (d->dc) col_grad(op, r, d, q, dw, down);
    x_grad(d, r->kern, d->steps, (struct mat){r->theta + op->theta0, d->dp, d->dpp}, (struct mat){z, (i32)d->W, ldz}, dw,
           d->panel);
    r->kern->gemm_nn(d->steps, d->dp, (i32)d->W, z, ldz, r->derived + op->derived0 + d->wt, d->row, down, d->dpp, true);
}

static void bwd(const struct op *op, const struct run *r, struct part part) {
    if (!run_dout(r, op->out)) return;
    struct dims d = dims_of(op, r->net);
    i64 first = (i64)part.b0 * d.Hp, plane = (i64)r->B * d.Hp;
    f32 *dend = run_din(op, r, 0);
    bool two = d.cell->states > 1;
    f32 *dstate = dend ? dend + (two ? plane : 0) : scratch_ds(op, r, &d) + plane;
    for (i32 g = grain_first(r, part); g < grain_end(r, part); g++) {
        struct part q = part_grain(r, part, g);
        grain_bwd(op, r, &d, g, q, dstate + (i64)q.b0 * d.Hp);
    }
    if (dend && !d.cell->diagonal)
        r->kern->gemm_nn(part.b1 - part.b0, d.H, (i32)d.W, r->scratch[op->l] + part.b0 * d.W, d.W,
                         r->derived + op->derived0 + d.wt + d.dpp + d.dcp, d.row, dend + first, d.Hp, !two);
}

static bool on_device(const struct op *op, const struct net *n) {
    const struct op *shared = &n->op[op->spec.share];
    return !cell_of(shared->spec.cell)->diagonal;
}

static i32 known_of(const struct op *op) {
    i32 dc = op->I / 2, dp = op->I - dc;
    i64 tables = (i64)op->spec.steps * round_up(dp, LANES) + (i64)imax(1, op->spec.vocab) * round_up(dc, LANES);
    return (i32)((op->ntheta - tables) / ((i64)round_up(op->F, LANES) * cell_of(op->spec.cell)->gates));
}

static i32 tensors(const struct op *op, struct tensor_info out[8]) {
    i32 dc = op->I / 2, n = 0;
    layer_tensor(&out[n++], op, "pos", op->spec.steps, op->I - dc);
    if (dc) layer_tensor(&out[n++], op, "col", imax(1, op->spec.vocab), dc);
    if (known_of(op)) layer_tensor(&out[n++], op, "weight_k", cell_of(op->spec.cell)->gates * op->F, known_of(op));
    return n;
}

static i64 place(const struct op *op, i32 tensor, i32 row, i32 col) {
    const i32 dc = op->I / 2, dpp = round_up(op->I - dc, LANES), dcp = round_up(dc, LANES), F = op->F;
    const i64 tables = (i64)op->spec.steps * dpp;
    if (tensor == 0) return (i64)row * dpp + col;
    if (tensor == 1 && dc) return tables + (i64)row * dcp + col;
    const i64 wk = tables + (i64)imax(1, op->spec.vocab) * dcp, k = (i64)(row % F / LANES) * known_of(op) + col;
    return wk + (k * cell_of(op->spec.cell)->gates + row / F) * LANES + row % F % LANES;
}

extern const struct layer layer_decode;
const struct layer layer_decode = {
    .name = "decode",
    .help = "y [steps][B][H]: one step of the shared cell from the end state per (position, category) embedding",
    .nin = 3,
    .shape = shape,
    .saved = saved,
    .scratch = scratch,
    .flops = flops,
    .init = init,
    .prep = prep,
    .fwd = fwd,
    .bwd = bwd,
    .on_device = on_device,
    .tensors = tensors,
    .place = place,
};
