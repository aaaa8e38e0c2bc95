/* table.c - gpu_kern: the slots of struct kern launch the kernels of text/ on the lane of the calling thread.
 *
 *     cell   act as in kern/cell_ref.c: z [T][B][NP][GB][LANES], then (lstm) c [T][B][Hp]
 *            fwd   z = bias + x Wx of all steps and rows of the call as one product, then a launch for each step
 *            bwd   a launch for each step, last step first, then dx of all of them as one product; carry: the second half alone
 *            H <= SEQUENCE_MOST: one launch for all steps in place of one for each (sequence.cl)
 *            dw    x^T dz and h^T dz of all steps, sums of columns for the bias
 *
 * Sums are divided by the shape of a call alone: the order of summation is that of every device and any number of lanes. */
#include "kern/device.h"

#include <math.h>

#include "base/rng.h"
#include "gpu/gpu.h"
#include "gpu/text/args.h"

enum { GROUP_ITEMS = GPU_GROUP, FLAT = 4 * GROUP_ITEMS, TILE = 64, ROWS = 16 };

static i64 at(const void *p) { return p ? gpu_offset(p) / (i64)sizeof(f32) : -1; }

static void launch(enum gpu_kernel k, i64 x, i64 y, i64 z, const void *args, size_t size) {
    const struct gpu_size local = {GROUP_ITEMS, 1, 1}, groups = {(i32)x, (i32)y, (i32)z};
    gpu_launch(k, groups, local, args, size);
}
#define LAUNCH(kernel, x, y, z, a) launch(GPU_##kernel, x, y, z, &(a), sizeof(a))

static i64 blocks(i64 n, i64 each) { return (n + each - 1) / each; }

/* ------------------------------------------------------------------ vectors ------------------------------------------------- */

static void elementwise_at(i64 n, i32 how, i64 at_y, i64 at_x) {
    const struct element_args a = {.at_y = at_y, .at_x = at_x, .n = n, .how = how};
    LAUNCH(elementwise, blocks(n, FLAT), 1, 1, a);
}
static void elementwise(i64 n, i32 how, f32 *y, const f32 *x) { elementwise_at(n, how, at(y), at(x)); }

static void add(i64 n, f32 *y, const f32 *x) { elementwise(n, ELEMENT_ADD, y, x); }
static void relu(i64 n, f32 *y, const f32 *x) { elementwise(n, ELEMENT_RELU, y, x); }
static void sigmoid(i64 n, f32 *y, const f32 *x) { elementwise(n, ELEMENT_SIGMOID, y, x); }
static void tanh_of(i64 n, f32 *y, const f32 *x) { elementwise(n, ELEMENT_TANH, y, x); }
static void tanh_slope(i64 n, f32 *dy, const f32 *y) { elementwise(n, ELEMENT_TANH_SLOPE, dy, y); }
static void relu_slope(i64 n, f32 *dy, const f32 *y) { elementwise(n, ELEMENT_RELU_SLOPE, dy, y); }

static void copy(i64 rows, i64 n, f32 *to, i64 to_ld, const f32 *from, i64 from_ld) {
    if (rows <= 0 || n <= 0) return;
    if (rows == 1 || (to_ld == n && (!from || from_ld == n))) {
        elementwise(rows * n, ELEMENT_COPY, to, from);
        return;
    }
    const struct rows_args a = {.at_to = at(to), .to_ld = to_ld, .at_from = at(from), .from_ld = from_ld, .rows = rows, .n = n,
                                .blocks = (i32)blocks(n, 64)};
    LAUNCH(copy_rows, blocks(rows, ROWS) * a.blocks, 1, 1, a);
}

static void transpose(i64 rows, i32 n, const f32 *from, i64 from_ld, f32 *to, i64 to_ld) {
    const struct rows_args a = {.at_to = at(to), .to_ld = to_ld, .at_from = at(from), .from_ld = from_ld, .rows = rows, .n = n,
                                .blocks = ceil_div(n, 32)};
    LAUNCH(transpose, blocks(rows, 32) * a.blocks, 1, 1, a);
}

static void sumsq_blocks(i64 n, i64 block, const f32 *x, f64 *sum) {
    const struct square_args a = {.at_x = at(x), .at_sum = gpu_offset(sum) / (i64)sizeof *sum, .n = n, .block = block};
    LAUNCH(sum_squares, blocks(n, block), 1, 1, a);
}

/* Rows of a sum in chunks that fill the device, of at least `least` rows; `floats`: of one partial sum. */
static void divide(i64 K, i64 groups, i64 least, i64 floats, i32 *splits, i32 *chunk) {
    const i64 fill = blocks(264, lmax(1, groups)), room = GPU_SCRATCH / (i64)sizeof(f32) / lmax(1, floats);
    const i64 n = lmax(1, lmin(lmin(fill, room), K / least));
    *chunk = (i32)(blocks(blocks(K, n), 16) * 16);
    *splits = (i32)blocks(K, *chunk);
}

/* y[n] += rows in runs. */
static void column_sum(struct rows_args a) {
    divide(a.rows, blocks(a.n, 32), 128, a.n, &a.splits, &a.chunk);
    if (a.splits > 1) a.at_part = at(gpu_scratch());
    LAUNCH(column_sum, blocks(a.n, 32), a.splits, 1, a);
    if (a.splits <= 1) return;
    const struct product_args sum = {.M = 1, .N = (i32)a.n, .W = (i32)a.n, .add = 1, .at_c = a.at_to, .at_part = a.at_part,
                                     .splits = a.splits};
    LAUNCH(product_tn_sum, blocks(a.n, GROUP_ITEMS), 1, 1, sum);
}

static void add_rows(i32 runs, i64 run, i64 rows, i32 n, f32 *y, const f32 *x, i64 ldx) {
    if (rows <= 0 || runs <= 0) return;
    column_sum((struct rows_args){
        .at_to = at(y), .at_from = at(x), .from_ld = ldx, .run = run, .rows = runs * rows, .n = n, .nb = (i32)rows});
}

/* ------------------------------------------------------------------ products ------------------------------------------------ */

/* Tiles of 128 x 128 need half the reads of a product, tiles of 64 x 64 fill a device sooner: each value of C is the same sum.
 * WIDE_GROUPS: as many groups as the multiprocessors of a large GPU. */
enum { WIDE = 2 * TILE, WIDE_GROUPS = 132 };

static i64 tiles_of(const struct product_args *a, i32 tile) { return (i64)ceil_div(a->M, tile) * ceil_div(a->N, tile); }

/* Wide tiles, four times as large, cover at most a quarter more than the others. */
static bool fits_wide(const struct product_args *a) {
    return !gpu_on_host() && tiles_of(a, WIDE) * 16 <= tiles_of(a, TILE) * 5;
}

static void tiled(enum gpu_kernel k, enum gpu_kernel wide, struct product_args a) {
    const bool is_wide = fits_wide(&a) && tiles_of(&a, WIDE) >= WIDE_GROUPS;
    const i32 tile = is_wide ? WIDE : TILE;
    launch(is_wide ? wide : k, ceil_div(a.M, tile), ceil_div(a.N, tile), 1, &a, sizeof a);
}
static void product(struct product_args a) { tiled(GPU_product, GPU_product_128, a); }
static void product_nt(struct product_args a) { tiled(GPU_product_nt, GPU_product_nt_128, a); }

/* Rows of the sum in chunks for wide tiles: one round of groups.  False: too few, narrow tiles fill the device better. */
static bool divide_wide(struct product_args *a) {
    const i64 tiles = lmax(1, tiles_of(a, WIDE)), room = GPU_SCRATCH / (i64)sizeof(f32) / lmax(1, (i64)a->M * a->N);
    const i64 n = lmax(1, lmin(lmin((WIDE_GROUPS + tiles / 4) / tiles, room), a->K / 128));
    a->chunk = (i32)(blocks(blocks(a->K, n), 16) * 16);
    a->splits = (i32)blocks(a->K, a->chunk);
    return fits_wide(a) && tiles * a->splits >= WIDE_GROUPS * 3 / 4;
}

static void product_tn(struct product_args a) {
    const bool is_wide = divide_wide(&a);
    const i32 tile = is_wide ? WIDE : TILE;
    if (!is_wide) divide(a.K, tiles_of(&a, TILE), 64, (i64)a.M * a.N, &a.splits, &a.chunk);
    if (a.splits > 1) a.at_part = at(gpu_scratch());
    launch(is_wide ? GPU_product_tn_128 : GPU_product_tn, ceil_div(a.M, tile), ceil_div(a.N, tile), a.splits, &a, sizeof a);
    if (a.splits > 1) LAUNCH(product_tn_sum, blocks((i64)a.M * a.N, GROUP_ITEMS), 1, 1, a);
}

static void gemm_nn(i32 M, i32 N, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add_to) {
    const i32 Np = round_up(N, LANES);
    product((struct product_args){.at_a = at(A), .lda = lda, .at_b = at(B), .ldb = ldb, .at_c = at(C), .ldc = ldc, .at_bias = -1,
                                  .M = M, .N = Np, .K = K, .W = Np, .nb = M, .add = add_to});
}

static void product_of(const struct device_product *p) {
    const i32 Np = round_up(p->N, LANES);
    product((struct product_args){.at_a = at(p->A), .lda = p->lda, .run_a = p->run_a, .at_b = at(p->B), .ldb = p->ldb,
                                  .at_c = at(p->C), .ldc = p->ldc, .run_c = p->run_c, .at_bias = at(p->bias),
                                  .M = p->M * p->runs, .N = Np, .K = p->K, .W = Np, .nb = p->M});
}

static void gemm_tn(i32 M, i32 N, i32 K, const f32 *A, i64 lda, const f32 *B, i64 ldb, f32 *C, i64 ldc, bool add_to) {
    const i32 Np = round_up(N, LANES);
    product_tn((struct product_args){.at_a = at(A), .lda = lda, .at_b = at(B), .ldb = ldb, .at_c = at(C), .ldc = ldc,
                                     .M = M, .N = Np, .K = K, .W = Np, .nb = K, .add = add_to, .gap_at = Np});
}

static void gemm_tn_runs(i32 M, i32 N, i32 K, i32 n, const f32 *A, i64 lda, i64 a, const f32 *B, i64 ldb, i64 b, f32 *C,
                         i64 ldc) {
    const i32 Np = round_up(N, LANES);
    product_tn((struct product_args){.at_a = at(A), .lda = lda, .run_a = a, .at_b = at(B), .ldb = ldb, .run_b = b, .at_c = at(C),
                                     .ldc = ldc, .M = M, .N = Np, .K = K * n, .W = Np, .nb = K, .add = 1, .gap_at = Np});
}

/* ------------------------------------------------------------------ cells --------------------------------------------------- */

/* Rows b0.. of a call, and the sizes of its layer. */
struct call {
    const struct cell_args *x;
    enum cell_kind kind;
    i32 b0, nb, G, GB;
    i64 Hp, step; /* floats of a row, of a step of [T][B][Hp] */
    i64 act, c, y, w, bias;
};

static struct call call_of(enum cell_kind kind, const struct cell_args *x, i32 b0, i32 b1) {
    struct call c = {.x = x, .kind = kind, .b0 = b0, .nb = b1 - b0, .G = cell_gates(kind), .GB = cell_bias_gates(kind)};
    c.Hp = round_up(x->H, LANES);
    c.step = x->B * c.Hp;
    c.act = at(x->act), c.y = at(x->y), c.w = at(x->w), c.bias = at(x->bias);
    c.c = c.act + x->T * c.step * 4;
    return c;
}

/* Offsets of row b0: of z and h of step t, of the state before step t (-1 = zero), of a buffer [B][Hp]. */
static i64 row_of(const struct call *c, const f32 *p) { return p ? at(p) + c->b0 * c->Hp : -1; }
static i64 in_step(const struct call *c, i64 from, i32 t) { return from + t * c->step + c->b0 * c->Hp; }
static i64 z_at(const struct call *c, i32 t) { return c->act + (t * c->step + c->b0 * c->Hp) * c->GB; }
static i64 h_before(const struct call *c, i32 t) { return t > 0 ? in_step(c, c->y, t - 1) : row_of(c, c->x->h0); }
static i64 s_before(const struct call *c, i32 t) {
    if (c->kind != CELL_LSTM) return h_before(c, t);
    return t > 0 ? in_step(c, c->c, t - 1) : row_of(c, c->x->c0);
}
static i64 w_panel(const struct call *c) { return (i64)(c->x->I + c->x->H) * c->G * LANES; }
static f32 *state_carry(const struct call *c) { return c->x->carry + c->step; }

/* Kernels of a step come in three sizes of a group, with the same bits: the largest one that reaches more than half of the
 * multiprocessors of a large GPU.  Groups of half its size would need two rounds. */
enum { STEP_GROUPS = 67 };
struct step_group {
    i32 rows, units;
};
static const struct step_group fwd_group[] = {{64, 16}, {32, 16}, {16, 16}}, bwd_group[] = {{32, 32}, {32, 16}, {16, 16}};

/* of_lstm: GPU_lstm_fwd or GPU_lstm_bwd. */
static void launch_cell(enum gpu_kernel of_lstm, enum cell_kind kind, i32 nb, i32 H, const struct cell_step_args *a) {
    const struct step_group *g = of_lstm == GPU_lstm_fwd ? fwd_group : bwd_group;
    const i32 each = GPU_lstm_fwd_32 - GPU_lstm_fwd;
    i32 size = 2;
    while (size > 0 && (gpu_on_host() || ceil_div(nb, g->rows) * ceil_div(H, g->units) < STEP_GROUPS)) size--, g++;
    launch(of_lstm + (enum gpu_kernel)((i32)kind + size * each), ceil_div(H, g->units), ceil_div(nb, g->rows), 1, a, sizeof *a);
}

static void launch_step(const struct call *c, enum gpu_kernel of_lstm, const struct cell_step_args *a) {
    launch_cell(of_lstm, c->kind, c->nb, c->x->H, a);
}

static struct cell_step_args step_of(const struct call *c, i32 t) {
    return (struct cell_step_args){.at_z = z_at(c, t),
                                   .at_z_next = -1,
                                   .at_h_prev = h_before(c, t),
                                   .at_s_prev = s_before(c, t),
                                   .at_s = in_step(c, c->c, t),
                                   .at_h = in_step(c, c->y, t),
                                   .at_w = c->w + (i64)c->x->I * c->G * LANES,
                                   .w_panel = w_panel(c),
                                   .at_bias = c->bias,
                                   .at_dy = -1,
                                   .at_dh_in = -1,
                                   .at_ds_in = -1,
                                   .at_ds = -1,
                                   .at_dh = -1,
                                   .nb = c->nb,
                                   .H = c->x->H};
}

/* z = bias + x Wx of steps t0..t1. */
static void x_side(const struct call *c, i32 t0, i32 t1) {
    const struct cell_args *x = c->x;
    const i32 W = c->G * LANES, panels = (i32)c->Hp / LANES;
    product((struct product_args){.at_a = at(x->x) + ((i64)t0 * x->B + c->b0) * x->x_ld, .lda = x->x_ld, .run_a = x->B * x->x_ld,
                                  .at_b = c->w, .ldb = W, .b_panel = w_panel(c), .at_bias = c->bias,
                                  .at_c = z_at(c, t0), .ldc = c->Hp * c->GB, .run_c = c->step * c->GB, .c_panel = c->GB * LANES,
                                  .M = c->nb * (t1 - t0), .N = panels * W, .K = x->I, .W = W, .nb = c->nb});
}

static void copy_state(const struct call *c, f32 *to, i64 from) {
    if (to) elementwise_at(c->nb * c->Hp, ELEMENT_COPY, row_of(c, to), from);
}

/* sequence.cl is compiled for multiples of SEQUENCE_UNITS up to SEQUENCE_MOST.  The choice depends on H alone, as the bits do. */
enum { SEQUENCE_UNITS = 32, SEQUENCE_MOST = 128 };
static bool has_sequence(const struct call *c) { return c->Hp <= SEQUENCE_MOST && !gpu_on_host(); }

static void launch_sequence(const struct call *c, enum gpu_kernel of_lstm, const struct cell_sequence_args *a) {
    const i32 size = ceil_div((i32)c->Hp, SEQUENCE_UNITS), each = GPU_lstm_steps_fwd_64 - GPU_lstm_steps_fwd_32;
    const struct gpu_size local = {2 * size * SEQUENCE_UNITS, 1, 1}, groups = {c->nb, 1, 1};
    gpu_launch(of_lstm + (enum gpu_kernel)((i32)c->kind + (size - 1) * each), groups, local, a, sizeof *a);
}

static struct cell_sequence_args sequence_of(const struct call *c, i32 t0, i32 t1) {
    return (struct cell_sequence_args){.at_z = z_at(c, t0),
                                       .at_h_prev = h_before(c, t0),
                                       .at_s_prev = s_before(c, t0),
                                       .at_s = in_step(c, c->c, t0),
                                       .at_h = in_step(c, c->y, t0),
                                       .at_w = c->w + (i64)c->x->I * c->G * LANES,
                                       .w_panel = w_panel(c),
                                       .at_bias = c->bias,
                                       .step = c->step,
                                       .z_step = c->step * c->GB,
                                       .H = c->x->H,
                                       .steps = t1 - t0};
}

static void sequence_fwd(const struct call *c, i32 t0, i32 t1) {
    struct cell_sequence_args a = sequence_of(c, t0, t1);
    a.at_hT = row_of(c, c->x->hT);
    a.at_sT = row_of(c, c->x->cT);
    launch_sequence(c, GPU_lstm_steps_fwd_32, &a);
}

static void cell_fwd(enum cell_kind kind, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct call c = call_of(kind, x, b0, b1);
    if (c.nb <= 0) return;
    if (t1 > t0) x_side(&c, t0, t1);
    if (t1 > t0 && has_sequence(&c)) {
        sequence_fwd(&c, t0, t1);
        return;
    }
    for (i32 t = t0; t < t1; t++) {
        const struct cell_step_args a = step_of(&c, t);
        launch_step(&c, GPU_lstm_fwd, &a);
    }
    copy_state(&c, x->hT, h_before(&c, t1));
    if (kind == CELL_LSTM) copy_state(&c, x->cT, s_before(&c, t1));
}

/* The gradients of h and s after step t: of the final state, or of step t + 1.  rnn passes nothing from s to s. */
static void from_later(const struct call *c, i32 t, struct cell_step_args *a) {
    const struct cell_args *x = c->x;
    a->at_ds = c->kind == CELL_RNN ? -1 : row_of(c, state_carry(c));
    if (t + 1 >= x->T) {
        a->at_dh_in = row_of(c, x->dhT);
        if (c->kind == CELL_LSTM) a->at_ds_in = row_of(c, x->dcT);
        return;
    }
    a->at_z_next = z_at(c, t + 1);
    a->at_ds_in = a->at_ds;
}

static void initial_gradients(const struct call *c, i32 t0) {
    const struct cell_args *x = c->x;
    struct cell_step_args a = step_of(c, t0);
    from_later(c, t0 - 1, &a);
    a.only_dh = 1;
    a.at_dh = row_of(c, x->dh0);
    if (x->dh0) launch_step(c, GPU_lstm_bwd, &a);
    if (c->kind == CELL_LSTM) copy_state(c, x->dc0, a.at_ds_in);
}

/* dx = dz Wx^T of steps t0..t1. */
static void x_gradient(const struct call *c, i32 t0, i32 t1) {
    const struct cell_args *x = c->x;
    const i32 W = c->G * LANES, panels = (i32)c->Hp / LANES;
    product_nt((struct product_args){.at_a = z_at(c, t0), .lda = c->Hp * c->GB, .run_a = c->step * c->GB,
                                     .a_panel = c->GB * LANES, .at_b = c->w, .ldb = W, .b_panel = w_panel(c),
                                     .at_c = at(x->dx) + ((i64)t0 * x->B + c->b0) * x->dx_ld, .ldc = x->dx_ld,
                                     .run_c = x->B * x->dx_ld,
                                     .M = c->nb * (t1 - t0), .N = x->I, .K = panels * W, .W = W, .nb = c->nb, .gap_at = W});
}

static void sequence_bwd(const struct call *c, i32 t0, i32 t1) {
    const struct cell_args *x = c->x;
    struct cell_sequence_args a = sequence_of(c, t0, t1);
    struct cell_step_args last = step_of(c, t1 - 1);
    from_later(c, t1 - 1, &last);
    a.at_z_next = last.at_z_next;
    a.at_dh_in = last.at_dh_in;
    a.at_ds_in = last.at_ds_in;
    a.at_ds = last.at_ds;
    a.at_dy = x->dy ? in_step(c, at(x->dy), t0) : -1;
    a.at_dh = row_of(c, x->dh0);
    a.at_dc0 = row_of(c, x->dc0);
    launch_sequence(c, GPU_lstm_steps_bwd_32, &a);
}

static void cell_bwd(enum cell_kind kind, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct call c = call_of(kind, x, b0, b1);
    if (c.nb <= 0) return;
    if (t1 > t0 && has_sequence(&c)) {
        sequence_bwd(&c, t0, t1);
        if (x->dx) x_gradient(&c, t0, t1);
        return;
    }
    for (i32 t = t1 - 1; t >= t0; t--) {
        struct cell_step_args a = step_of(&c, t);
        from_later(&c, t, &a);
        a.at_dy = x->dy ? in_step(&c, at(x->dy), t) : -1;
        launch_step(&c, GPU_lstm_bwd, &a);
    }
    if (x->dx && t1 > t0) x_gradient(&c, t0, t1);
    initial_gradients(&c, t0);
}

/* dw += v^T dz for the n steps from t on.  v: M values of x or h; dw: its first row in panel 0. */
static void add_dw(const struct call *c, bool h_side, i64 v, i32 t, i32 n, i64 dw) {
    const i32 W = c->G * LANES, panels = (i32)c->Hp / LANES;
    const bool gap = h_side && c->kind == CELL_GRU; /* n of the h side is slot 3 of dz */
    const i64 ld = h_side ? c->Hp : c->x->x_ld;
    product_tn((struct product_args){.at_a = v, .lda = ld, .run_a = c->x->B * ld,
                                     .at_b = z_at(c, t), .ldb = c->Hp * c->GB, .run_b = c->step * c->GB, .b_panel = c->GB * LANES,
                                     .at_c = dw + (h_side ? (i64)c->x->I * W : 0), .ldc = W, .c_panel = w_panel(c),
                                     .M = h_side ? c->x->H : c->x->I, .N = panels * W, .K = c->nb * n, .W = W, .nb = c->nb,
                                     .gap_at = gap ? 2 * LANES : W, .gap = LANES, .add = 1});
}

static void cell_dw(enum cell_kind kind, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) {
    const struct call c = call_of(kind, x, b0, b1);
    const i32 n = t1 - t0, first = imax(1, t0);
    if (c.nb <= 0 || n <= 0) return;
    add_dw(&c, false, at(x->x) + ((i64)t0 * x->B + b0) * x->x_ld, t0, n, at(dw));
    if (t0 == 0 && x->h0) add_dw(&c, true, row_of(&c, x->h0), 0, 1, at(dw));
    if (first < t1) add_dw(&c, true, h_before(&c, first), first, t1 - first, at(dw));
    column_sum((struct rows_args){.at_to = at(dbias), .at_from = z_at(&c, t0), .from_ld = c.Hp * c.GB, .run = c.step * c.GB,
                                  .rows = (i64)c.nb * n, .n = c.Hp * c.GB, .nb = c.nb});
}

/* The element-wise part alone: a step without products. */
static struct cell_step_args point_of(i32 n, i32 H, f32 *z, const f32 *s_prev, const f32 *s) {
    return (struct cell_step_args){.at_z = at(z), .at_z_next = -1, .at_h_prev = -1, .at_s_prev = at(s_prev), .at_s = at(s),
                                   .at_h = -1, .at_bias = -1, .at_dy = -1, .at_dh_in = -1, .at_ds_in = -1, .at_ds = -1,
                                   .at_dh = -1, .nb = n, .H = H};
}

static void point_fwd(enum cell_kind kind, i32 n, i32 H, f32 *z, const f32 *s_prev, f32 *s, f32 *h) {
    struct cell_step_args a = point_of(n, H, z, s_prev, s);
    a.at_h = at(h);
    launch_cell(GPU_lstm_fwd, kind, n, H, &a);
    if (kind != CELL_LSTM && s != h) copy(1, (i64)n * round_up(H, LANES), s, 0, h, 0);
}

/* rnn passes no gradient on beside the products. */
static void point_bwd(enum cell_kind kind, i32 n, i32 H, f32 *z, const f32 *s_prev, const f32 *s, const f32 *dh, f32 *ds) {
    struct cell_step_args a = point_of(n, H, z, s_prev, s);
    a.at_dh_in = at(dh);
    a.at_ds = at(ds);
    if (kind == CELL_LSTM) a.at_ds_in = a.at_ds;
    if (kind == CELL_RNN) copy(1, (i64)n * round_up(H, LANES), ds, 0, NULL, 0);
    launch_cell(GPU_lstm_bwd, kind, n, H, &a);
}

static i64 no_wt(i32 I, i32 H) {
    (void)I, (void)H;
    return 0;
}

static void no_prep(i32 I, i32 H, const f32 *w, f32 *wt) { (void)I, (void)H, (void)w, (void)wt; }

#define CELL(name, KIND)                                                                                    \
    static i64 name##_act_floats(i32 T, i32 B, i32 I, i32 H) {                                              \
        (void)I;                                                                                            \
        return (i64)T * B * round_up(H, LANES) * (cell_bias_gates(KIND) + (KIND == CELL_LSTM));             \
    }                                                                                                       \
    static void name##_fwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {                     \
        cell_fwd(KIND, x, b0, b1, t0, t1);                                                                  \
    }                                                                                                       \
    static void name##_bwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {                     \
        cell_bwd(KIND, x, b0, b1, t0, t1);                                                                  \
    }                                                                                                       \
    static void name##_dw(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) { \
        cell_dw(KIND, x, b0, b1, t0, t1, dw, dbias);                                                        \
    }                                                                                                       \
    static void name##_point_fwd(i32 n, i32 H, f32 *z, const f32 *s_prev, f32 *s, f32 *h) {                  \
        point_fwd(KIND, n, H, z, s_prev, s, h);                                                             \
    }                                                                                                       \
    static void name##_point_bwd(i32 n, i32 H, f32 *z, const f32 *s_prev, const f32 *s, const f32 *dh, f32 *ds) { \
        point_bwd(KIND, n, H, z, s_prev, s, dh, ds);                                                        \
    }
CELL(lstm, CELL_LSTM)
CELL(gru, CELL_GRU)
CELL(rnn, CELL_RNN)

/* ------------------------------------------------------------------ losses, dropout, optimisers, tables --------------------- */

static struct loss_args loss_of(const struct device_loss *l) {
    struct loss_args a = {.at_pred = at(l->pred), .at_target = at(l->target), .at_base = at(l->base), .at_d = at(l->slope),
                          .at_sum = l->sum ? gpu_offset(l->sum) / (i64)sizeof *l->sum : -1, .Ip = round_up(l->F * l->Q, LANES),
                          .Fp = round_up(l->F, LANES), .F = l->F, .Q = l->Q, .t0 = l->t0, .t1 = l->t1, .b0 = l->b0, .b1 = l->b1,
                          .B = l->B, .grain = l->grain, .row0 = l->row0, .kind = (i32)l->kind, .scale = l->scale};
    for (i32 q = 0; q < l->Q && l->kind == LOSS_QUANTILE; q++) a.quantile[q] = l->quantile[q];
    return a;
}

static void loss_sum(const struct device_loss *l) {
    struct loss_args a = loss_of(l);
    if (l->b1 <= l->b0) return;
    a.g0 = (l->b0 + l->row0) / l->grain;
    LAUNCH(loss_sum, ceil_div(l->b1 + l->row0, l->grain) - a.g0, 1, 1, a);
}

static void loss_slope(const struct device_loss *l) {
    const struct loss_args a = loss_of(l);
    if (l->slope) LAUNCH(loss_slope, blocks((i64)(l->t1 - l->t0) * (l->b1 - l->b0), ROWS), 1, 1, a);
}

static void dropout(const struct device_dropout *d) {
    const struct dropout_args a = {.at_x = at(d->x), .at_y = at(d->y), .at_mask = at(d->mask), .panels = d->panels,
                                   .place = (u64)d->place, .seed = d->seed, .step = d->step, .drop = d->drop,
                                   .stream = RNG_DROPOUT, .draw = d->draw, .scale = d->scale};
    LAUNCH(dropout, blocks(d->panels, 128), 1, 1, a);
}

/* Corrections of bias in double precision, as in model/optim/adam.c. */
static void optimise(const struct device_optim *o) {
    const f64 beta1 = (f64)o->beta1, beta2 = (f64)o->beta2, step = (f64)o->step;
    const struct optim_args a = {.at_theta = at(o->theta), .at_grad = at(o->grad), .at_s0 = at(o->s0), .at_s1 = at(o->s1),
                                 .n = o->n, .rule = (i32)o->rule, .lr = o->lr, .grad_scale = o->grad_scale,
                                 .weight_decay = o->weight_decay, .momentum = o->momentum, .beta1 = o->beta1,
                                 .beta2 = o->beta2, .eps = o->eps,
                                 .rate = (f32)((f64)o->lr / (1 - pow(beta1, step))),
                                 .root = (f32)(1 / sqrt(1 - pow(beta2, step))), .decay = o->lr * o->weight_decay};
    LAUNCH(optimise, blocks(o->n, FLAT), 1, 1, a);
}

static struct norm_args norm_of(const struct device_norm *n) {
    return (struct norm_args){.at_x = at(n->x), .at_y = at(n->y), .at_weight = at(n->weight), .at_stat = at(n->stat),
                              .at_dy = at(n->dy), .at_dx = at(n->dx), .at_grad = at(n->grad),
                              .rows = (i64)(n->t1 - n->t0) * (n->b1 - n->b0), .F = n->F, .Fp = round_up(n->F, LANES), .B = n->B,
                              .t0 = n->t0, .b0 = n->b0, .b1 = n->b1};
}

static void norm_fwd(const struct device_norm *n) {
    const struct norm_args a = norm_of(n);
    LAUNCH(norm_fwd, a.rows, 1, 1, a);
}

static void norm_bwd(const struct device_norm *n) {
    const struct norm_args a = norm_of(n);
    LAUNCH(norm_bwd, a.rows, 1, 1, a);
}

static void norm_grad(const struct device_norm *n) {
    const struct norm_args a = norm_of(n);
    LAUNCH(norm_grad, ceil_div(a.F, 32), 1, 1, a);
}

static struct embed_args embed_of(const struct device_embed *e) {
    return (struct embed_args){.at_ids = at(e->ids), .at_table = at(e->table), .at_y = at(e->y), .at_marks = gpu_offset(e->marks),
                               .vocab = e->vocab, .Fp = e->Fp, .B = e->B, .t0 = e->t0, .t1 = e->t1, .b0 = e->b0, .b1 = e->b1};
}

static i64 samples(const struct device_embed *e) { return (i64)(e->t1 - e->t0) * (e->b1 - e->b0); }

static void embed_fwd(const struct device_embed *e) {
    const struct embed_args a = embed_of(e);
    LAUNCH(embed_fwd, blocks(samples(e), ROWS), 1, 1, a);
}

static void embed_bwd(const struct device_embed *e) {
    const struct embed_args a = embed_of(e);
    LAUNCH(embed_bwd, samples(e), 1, 1, a);
}

/* ------------------------------------------------------------------ the table ----------------------------------------------- */

static const struct kern_device device = {product_of, loss_sum, loss_slope, dropout,   optimise,
                                          norm_fwd,   norm_bwd, norm_grad,  embed_fwd, embed_bwd};

#define SLOTS(name) \
    {.act_floats = name##_act_floats, .wt_floats = no_wt,           .prep = no_prep, \
     .fwd = name##_fwd,               .bwd = name##_bwd,             .dw = name##_dw, \
     .point_fwd = name##_point_fwd,   .point_bwd = name##_point_bwd}

static const struct kern table = {
    .arch = KERN_REF,
    .name = "device",
    .cell = {SLOTS(lstm), SLOTS(gru), SLOTS(rnn)},
    .gemm_nn = gemm_nn,
    .gemm_tn = gemm_tn,
    .gemm_tn_runs = gemm_tn_runs,
    .add = add,
    .copy = copy,
    .add_rows = add_rows,
    .transpose = transpose,
    .relu = relu,
    .tanh_slope = tanh_slope,
    .relu_slope = relu_slope,
    .sigmoid = sigmoid,
    .tanh = tanh_of,
    .sumsq_blocks = sumsq_blocks,
    .device = &device,
};

const struct kern *gpu_kern(void) { return &table; }
