/* t_gpu_kern.c - vectors, products and cells of every device of this machine against the plain twins of the host: odd sizes,
 * partitions, absent states and gradients.  Two runs, and one lane or three, give the same bits. */
#include "gpu/cards.h"

#include "base/mem.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ vectors ------------------------------------------------- */

static const i64 lengths_[] = {1, 15, 16, 255, 1024, 1025, 5000};

static void unary(const char *name, void (*on_host)(i64, f32 *, const f32 *), void (*on_device)(i64, f32 *, const f32 *)) {
    for (size_t k = 0; k < COUNT(lengths_); k++) {
        const i64 n = lengths_[k];
        f32 *x = noise(n, 1), *y = noise(n, 2), *dx, *dy;
        for (i64 i = 0; i < n; i++) x[i] *= i % 7 ? 3 : 60;
        room_reset(), dx = up(x, n), dy = up(y, n);
        on_host(n, y, x), on_device(n, dy, dx);
        near_device(name, dy, y, n);
        mem_free(x), mem_free(y);
    }
}

EACH_CARD(functions_of_elements_equal_the_host) {
    const struct kern *h = host(), *d = gpu_kern();
    unary("add", h->add, d->add), unary("sigmoid", h->sigmoid, d->sigmoid), unary("tanh", h->tanh, d->tanh);
    unary("relu", h->relu, d->relu), unary("relu_slope", h->relu_slope, d->relu_slope);
    unary("tanh_slope", h->tanh_slope, d->tanh_slope);
}

static void one_copy(i64 rows, i64 n, i64 to_ld, i64 from_ld, bool zeros) {
    f32 *from = noise(rows * (n + 5), 3), *to = noise(rows * (n + 9), 4), *dfrom, *dto;
    room_reset(), dfrom = up(from, rows * (n + 5)), dto = up(to, rows * (n + 9));
    host()->copy(rows, n, to, to_ld, zeros ? NULL : from, from_ld);
    gpu_kern()->copy(rows, n, dto, to_ld, zeros ? NULL : dfrom, from_ld);
    near_device("copy", dto, to, rows * (n + 9));
    mem_free(from), mem_free(to);
}

static void one_sum_of_rows(i64 rows, i32 n) {
    f32 *x = noise(rows * (n + 3), 5), *y = noise(n, 6), *dx, *dy;
    room_reset(), dx = up(x, rows * (n + 3)), dy = up(y, n);
    host()->add_rows(1, 0, rows, n, y, x, n + 3), gpu_kern()->add_rows(1, 0, rows, n, dy, dx, n + 3);
    near_device("add_rows", dy, y, n);
    mem_free(x), mem_free(y);
}

static void one_transpose(i64 rows, i32 n) {
    f32 *x = noise(rows * (n + 3), 7), *y = noise(n * (rows + 2), 8), *dx, *dy;
    room_reset(), dx = up(x, rows * (n + 3)), dy = up(y, n * (rows + 2));
    host()->transpose(rows, n, x, n + 3, y, rows + 2), gpu_kern()->transpose(rows, n, dx, n + 3, dy, rows + 2);
    near_device("transpose", dy, y, n * (rows + 2));
    mem_free(x), mem_free(y);
}

EACH_CARD(rows_are_copied_summed_and_transposed) {
    const i32 size[] = {1, 3, 16, 33, 70, 300};
    for (size_t i = 0; i < COUNT(size); i++)
        for (size_t j = 0; j < COUNT(size); j++) {
            const i32 rows = size[i], n = size[j];
            if (!chosen((u32)(i * COUNT(size) + j))) continue;
            one_copy(rows, n, n, n, false), one_copy(rows, n, n, n, true), one_copy(rows, n, n, 0, false);
            one_copy(rows, n, n + 9, n + 5, false), one_copy(rows, n, n + 9, 0, true);
            one_sum_of_rows(rows, n), one_sum_of_rows(20 * rows, n), one_transpose(rows, n);
        }
}

EACH_CARD(sums_of_squares_equal_the_host) {
    const i64 n = 5000, size[] = {1, 16, 100, 1024, 5000, 9999};
    f32 *x = noise(n, 9);
    for (size_t k = 0; k < COUNT(size); k++) {
        const i64 blocks = (n + size[k] - 1) / size[k];
        f64 *want = mem_alloc((size_t)blocks * sizeof *want), *got = mem_alloc((size_t)blocks * sizeof *got), *at;
        room_reset();
        f32 *dx = up(x, n);
        at = room(blocks * 8);
        host()->sumsq_blocks(n, size[k], x, want), gpu_kern()->sumsq_blocks(n, size[k], dx, at);
        gpu_get(got, blocks * 8, at, blocks * 8, blocks * 8, 1);
        for (i64 b = 0; b < blocks; b++) assert_true(fabs(got[b] - want[b]) <= 1e-13 * want[b]);
        mem_free(want), mem_free(got);
    }
    mem_free(x);
}

/* ------------------------------------------------------------------ products ------------------------------------------------ */

static void one_product(i32 M, i32 N, i32 K, bool add) {
    const i64 Np = round_up(N, LANES), lda = imax(M, K) + 3, ldc = Np + 16;
    f32 *A = noise(imax(M, K) * lda, 10), *B = noise(K * ldc, 11), *C = noise(M * ldc, 12), *D = copy_of(C, M * ldc);
    room_reset();
    f32 *dA = up(A, imax(M, K) * lda), *dB = up(B, K * ldc), *dC = up(C, M * ldc), *dD = up(D, M * ldc);
    host()->gemm_nn(M, N, K, A, lda, B, ldc, C, ldc, add), gpu_kern()->gemm_nn(M, N, K, dA, lda, dB, ldc, dC, ldc, add);
    near_device("gemm_nn", dC, C, M * ldc);
    host()->gemm_tn(M, N, K, A, lda, B, ldc, D, ldc, add), gpu_kern()->gemm_tn(M, N, K, dA, lda, dB, ldc, dD, ldc, add);
    near_device("gemm_tn", dD, D, M * ldc);
    mem_free(A), mem_free(B), mem_free(C), mem_free(D);
}

EACH_CARD(products_equal_the_host) {
    const i32 M[] = {1, 3, 37, 130}, N[] = {1, 17, 72, 150}, K[] = {1, 5, 16, 33, 1500};
    u32 n = 0;
    for (size_t i = 0; i < COUNT(M); i++)
        for (size_t j = 0; j < COUNT(N); j++)
            for (size_t k = 0; k < COUNT(K); k++)
                if (chosen(n++)) one_product(M[i], N[j], K[k], (i + j + k) % 2);
}

/* Sizes that get tiles of 128 x 128 (table.c: tiled, divide_wide), the last one with divided sums. */
EACH_CARD(large_products_equal_the_host) {
    if (emulated()) return;
    one_product(1530, 1400, 33, false), one_product(1530, 1400, 7, true);
    if (!t_few()) one_product(250, 1000, 1100, true);
}

static void one_product_of_runs(i32 M, i32 N, i32 K, i32 n) {
    const i64 Np = round_up(N, LANES), lda = M + 1, a = K * lda + 7, b = (K + 2) * Np;
    f32 *A = noise(n * a, 13), *B = noise(n * b, 14), *C = noise(M * Np, 15);
    room_reset();
    f32 *dA = up(A, n * a), *dB = up(B, n * b), *dC = up(C, M * Np);
    host()->gemm_tn_runs(M, N, K, n, A, lda, a, B, Np, b, C, Np);
    gpu_kern()->gemm_tn_runs(M, N, K, n, dA, lda, a, dB, Np, b, dC, Np);
    near_device("gemm_tn_runs", dC, C, M * Np);
    mem_free(A), mem_free(B), mem_free(C);
}

EACH_CARD(products_of_runs_equal_the_host) {
    const i32 M[] = {1, 20, 70}, N[] = {16, 40}, K[] = {1, 3, 17}, n[] = {1, 7, 90};
    u32 number = 0;
    for (size_t i = 0; i < COUNT(M); i++)
        for (size_t j = 0; j < COUNT(N); j++)
            for (size_t k = 0; k < COUNT(K); k++)
                for (size_t r = 0; r < COUNT(n); r++)
                    if (chosen(number++)) one_product_of_runs(M[i], N[j], K[k], n[r]);
}

/* ------------------------------------------------------------------ cells --------------------------------------------------- */

enum { PIECES = 20 };
/* The buffers of a layer and their places on the device. */
struct piece {
    f32 *host, *at;
    i64 n;
};
struct mirror {
    struct bench e;
    struct cell_args box;
    struct piece piece[PIECES];
    i32 npieces;
    i64 act_n;
};

static void add_piece(struct mirror *m, f32 *p, i64 n) { m->piece[m->npieces++] = (struct piece){p, up(p, n), n}; }

/* The device's address of a buffer of the host. */
static f32 *there(const struct mirror *m, const f32 *p) {
    for (i32 i = 0; i < m->npieces; i++)
        if (m->piece[i].host == p) return m->piece[i].at;
    return NULL;
}

static void mirror_pieces(struct mirror *m) {
    const struct cell_args *x = &m->e.box;
    const i64 BH = (i64)x->B * round_up(x->H, LANES), TBH = x->T * BH, TBI = (i64)x->T * x->B * x->x_ld;
    f32 *const rows[] = {m->e.h0, m->e.c0, m->e.hT, m->e.cT, m->e.dhT, m->e.dcT, m->e.dh0, m->e.dc0};
    for (size_t i = 0; i < COUNT(rows); i++) add_piece(m, rows[i], BH);
    add_piece(m, m->e.w, m->e.dw_n), add_piece(m, m->e.dw, m->e.dw_n);
    add_piece(m, m->e.bias, m->e.db_n), add_piece(m, m->e.dbias, m->e.db_n);
    add_piece(m, m->e.x, TBI), add_piece(m, m->e.dx, TBI), add_piece(m, m->e.y, TBH), add_piece(m, m->e.dy, TBH);
    add_piece(m, m->e.act, m->act_n), add_piece(m, m->e.carry, 2 * BH);
}

static void mirror_new(struct mirror *m, enum cell_kind kind, const struct shape *s) {
    const struct cell_kern *k = &gpu_kern()->cell[kind];
    *m = (struct mirror){.act_n = k->act_floats(s->T, s->B, s->I, s->H)};
    room_reset();
    bench_new(&m->e, k, kind, s), bench_fill(&m->e);
    mirror_pieces(m);
    const struct cell_args *x = &m->e.box;
    m->box = *x;
    m->box.x = there(m, x->x), m->box.y = there(m, x->y), m->box.act = there(m, x->act), m->box.h0 = there(m, x->h0);
    m->box.c0 = there(m, x->c0), m->box.hT = there(m, x->hT), m->box.cT = there(m, x->cT), m->box.w = there(m, x->w);
    m->box.bias = there(m, x->bias), m->box.dy = there(m, x->dy), m->box.dhT = there(m, x->dhT);
    m->box.dcT = there(m, x->dcT), m->box.dx = there(m, x->dx), m->box.dh0 = there(m, x->dh0), m->box.dc0 = there(m, x->dc0);
    m->box.carry = there(m, x->carry), m->box.wt = NULL;
}

static void mirror_down(const struct mirror *m) {
    for (i32 i = 0; i < m->npieces; i++)
        gpu_get(m->piece[i].host, m->piece[i].n * 4, m->piece[i].at, m->piece[i].n * 4, m->piece[i].n * 4, 1);
}

/* Rows b0..b1 of all steps in nt pieces of time. */
static void run_rows(const struct cell_kern *k, const struct cell_args *x, i32 b0, i32 b1, i32 nt) {
    for (i32 q = 0; q < nt; q++) k->fwd(x, b0, b1, x->T * q / nt, x->T * (q + 1) / nt);
    for (i32 q = nt - 1; q >= 0; q--) k->bwd(x, b0, b1, x->T * q / nt, x->T * (q + 1) / nt);
}

static void run_pieces(const struct cell_kern *k, const struct cell_args *x, f32 *dw, f32 *dbias, i32 nb, i32 nt) {
    for (i32 p = 0; p < nb; p++) run_rows(k, x, x->B * p / nb, x->B * (p + 1) / nb, nt);
    for (i32 q = 0; q < nt; q++) k->dw(x, 0, x->B, x->T * q / nt, x->T * (q + 1) / nt, dw, dbias);
}

static void run_device(struct mirror *m, enum cell_kind kind, const struct shape *s, i32 nb, i32 nt) {
    mirror_new(m, kind, s);
    run_pieces(&gpu_kern()->cell[kind], &m->box, there(m, m->e.dw), there(m, m->e.dbias), nb, nt);
    mirror_down(m);
}

/* The act of the host has the same layout. */
static void near_cells(const char *label, const struct mirror *m, const struct bench *e) {
    const f32 *const want[] = {e->hT, e->cT, e->dh0, e->dc0, e->y, e->dx, e->dw, e->dbias, e->act};
    const f32 *const got[] = {m->e.hT, m->e.cT, m->e.dh0, m->e.dc0, m->e.y, m->e.dx, m->e.dw, m->e.dbias, m->e.act};
    const char *const name[] = {"hT", "cT", "dh0", "dc0", "y", "dx", "dw", "dbias", "act"};
    for (size_t i = 0; i < COUNT(want); i++) {
        char text[200];
        i64 n = 0;
        for (i32 p = 0; p < m->npieces; p++)
            if (m->piece[p].host == got[i]) n = m->piece[p].n;
        snprintf(text, sizeof text, "%s %s", label, name[i]);
        near(text, got[i], want[i], n);
    }
}

/* Padded units hold exactly zero. */
static void zero_padding(const char *label, const struct mirror *m) {
    const i32 H = m->e.box.H, Hp = round_up(H, LANES);
    const i64 TB = (i64)m->e.box.T * m->e.box.B;
    for (i64 r = 0; r < TB; r++)
        for (i32 u = H; u < Hp; u++)
            if (m->e.y[r * Hp + u] != 0 || m->e.dh0[r % m->e.box.B * Hp + u] != 0) fail_msg("%s: padding is not zero", label);
    for (i64 j = 0; j < m->e.dw_n; j++)
        if (j / (m->e.dw_n / Hp * LANES) * LANES + j % LANES >= H && m->e.dw[j] != 0) fail_msg("%s: dw of padding", label);
}

static void check(enum cell_kind kind, const struct shape *s, i32 nb, i32 nt) {
    char label[160];
    struct bench e;
    struct mirror m;
    const struct cell_kern *k = &host()->cell[kind];
    snprintf(label, sizeof label, "%s T %d B %d I %d H %d state %d dend %d dy %d dx %d in %d x %d", kind_name[kind], s->T, s->B,
             s->I, s->H, s->state, s->dend, !s->no_dy, !s->no_dx, nb, nt);
    bench_new(&e, k, kind, s), bench_fill(&e);
    run_pieces(k, &e.box, e.dw, e.dbias, nb, nt);
    run_device(&m, kind, s, nb, nt);
    near_cells(label, &m, &e), zero_padding(label, &m);
    bench_free(&e), bench_free(&m.e);
}

/* Case n of the matrix: states, gradients and partitions in an irregular order. */
static void check_case(enum cell_kind kind, u32 n, struct shape s) {
    const u32 mix = n * 2654435761u >> 20;
    s.state = mix & 1, s.dend = mix & 2, s.no_dy = mix & 4, s.no_dx = (mix & 24) == 24;
    if (chosen(n)) check(kind, &s, mix & 32 ? 1 : imin(3, s.B), mix & 64 ? 1 : imin(3, s.T));
}

EACH_CARD(cells_equal_the_host_at_odd_sizes) {
    const i32 T[] = {1, 2, 7}, B[] = {1, 3, 16, 37}, I[] = {1, 8, 33}, H[] = {1, 16, 17, 64, 72};
    u32 n = 0;
    for (size_t t = 0; t < COUNT(T); t++)
        for (size_t b = 0; b < COUNT(B); b++)
            for (size_t i = 0; i < COUNT(I); i++)
                for (size_t h = 0; h < COUNT(H); h++)
                    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
                        check_case(kind, n++, (struct shape){.T = T[t], .B = B[b], .I = I[i], .H = H[h]});
}

/* Small layers run all steps in one launch, compiled for multiples of 32 units up to 128. */
EACH_CARD(cells_equal_the_host_at_all_sizes_of_one_launch) {
    const i32 H[] = {31, 32, 33, 65, 96, 97, 128, 129};
    u32 n = 7;
    for (size_t h = 0; h < COUNT(H); h++)
        for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
            for (i32 B = 1; B <= 3; B += 2) check_case(kind, n++, (struct shape){.T = 2, .B = B, .I = 5, .H = H[h]});
    for (enum cell_kind kind = 0; kind < CELL_NKIND && !emulated(); kind++)
        check_case(kind, 37 * (u32)kind, (struct shape){.T = 37, .B = 3, .I = 3, .H = 126});
}

EACH_CARD(cells_equal_the_host_without_states_and_gradients) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (i32 mix = 0; mix < 16; mix++)
            for (i32 nt = 1; nt <= 4; nt += 3) {
                const struct shape s = {.T = 4, .B = 5, .I = 9, .H = 40, .state = mix & 1, .dend = mix & 2, .no_dy = mix & 4,
                                        .no_dx = mix & 8};
                if (chosen((u32)(mix + nt - 1))) check(kind, &s, nt, nt);
            }
}

EACH_CARD(cells_equal_the_host_over_many_rows) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        const struct shape s = {.T = 50, .B = 70, .I = 20, .H = 130, .state = true, .dend = true};
        if (!t_few()) check(kind, &s, 1, 1);
    }
}

static void same_act(const struct mirror *a, const struct mirror *b) {
    assert_memory_equal(a->e.act, b->e.act, (size_t)a->act_n * sizeof(f32));
}

/* point_fwd and point_bwd of n rows; gru, rnn: also with s = h. */
static void one_point(enum cell_kind kind, i32 n, i32 H, bool same) {
    const i64 m = (i64)n * round_up(H, LANES), zn = m * cell_bias_gates(kind);
    const struct cell_kern *k = &host()->cell[kind], *d = &gpu_kern()->cell[kind];
    f32 *z = noise(zn, 60), *s_prev = noise(m, 61), *s = noise(m, 62), *h = noise(m, 63), *dh = noise(m, 64), *ds = noise(m, 65);
    room_reset();
    f32 *dz = up(z, zn), *ds_prev = up(s_prev, m), *d_s = up(s, m), *d_h = up(h, m), *d_dh = up(dh, m), *d_ds = up(ds, m);
    k->point_fwd(n, H, z, s_prev, same ? h : s, h), d->point_fwd(n, H, dz, ds_prev, same ? d_h : d_s, d_h);
    near_device("gates", dz, z, zn), near_device("s", d_s, s, m), near_device("h", d_h, h, m);
    k->point_bwd(n, H, z, s_prev, same ? h : s, dh, ds), d->point_bwd(n, H, dz, ds_prev, same ? d_h : d_s, d_dh, d_ds);
    near_device("dz", dz, z, zn), near_device("ds", d_ds, ds, m);
    mem_free(z), mem_free(s_prev), mem_free(s), mem_free(h), mem_free(dh), mem_free(ds);
}

EACH_CARD(element_wise_parts_of_cells_equal_the_host) {
    const i32 n[] = {1, 3, 40}, H[] = {16, 32, 80}; /* noise in padding is no case */
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (size_t i = 0; i < COUNT(n); i++)
            for (size_t j = 0; j < COUNT(H); j++) {
                one_point(kind, n[i], H[j], false);
                if (kind != CELL_LSTM) one_point(kind, n[i], H[j], true);
            }
}

static struct shape usual(void) {
    if (t_few()) return (struct shape){.T = 3, .B = 20, .I = 5, .H = 24, .state = true, .dend = true};
    return (struct shape){.T = 9, .B = 45, .I = 11, .H = 70, .state = true, .dend = true};
}

EACH_CARD(cells_give_the_same_bits_on_every_run) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        const struct shape s = usual();
        struct mirror a, b;
        run_device(&a, kind, &s, 1, 1), run_device(&b, kind, &s, 1, 1);
        bench_same_bits("second run", &a.e, &b.e), bench_same_dw("second run", &a.e, &b.e), same_act(&a, &b);
        bench_free(&a.e), bench_free(&b.e);
    }
}

EACH_CARD(cells_give_the_same_bits_in_any_partition) {
    const i32 H[] = {24, 64, 126, 130};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (size_t h = 0; h < COUNT(H); h++) {
            const struct shape s = {.T = 5, .B = 4, .I = 3, .H = H[h], .state = true, .dend = true};
            struct mirror a, b;
            if (t_few() && h > 0) continue;
            run_device(&a, kind, &s, 1, 1), run_device(&b, kind, &s, 3, 4);
            bench_same_bits("pieces", &a.e, &b.e), same_act(&a, &b);
            bench_free(&a.e), bench_free(&b.e);
        }
}

EACH_CARD(cells_equal_the_host_with_large_products) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        const struct shape wide_x = {.T = 20, .B = 500, .I = 250, .H = 16}, wide_h = {.T = 40, .B = 70, .I = 5, .H = 250};
        if (t_few()) continue;
        check(kind, &wide_x, 1, 1), check(kind, &wide_h, 1, 1);
    }
}

/* A step has three sizes of a group (table.c: launch_cell): 512 rows, 256 and 171 use one each. */
EACH_CARD(cells_give_the_same_bits_in_groups_of_any_size) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        const struct shape s = {.T = 2, .B = 512, .I = 3, .H = 130, .state = true, .dend = true};
        struct mirror a, b;
        if (emulated() || (t_few() && kind != CELL_LSTM)) continue;
        check(kind, &s, 1, 1);
        run_device(&a, kind, &s, 1, 1);
        for (i32 pieces = 2; pieces <= 3; pieces++) {
            run_device(&b, kind, &s, pieces, 1);
            bench_same_bits("groups of another size", &a.e, &b.e), same_act(&a, &b);
            bench_free(&b.e);
        }
        bench_free(&a.e);
    }
}

/* A thread with a lane and rows of its own. */
struct rows_of_lane {
    pthread_t thread;
    const struct cell_kern *k;
    const struct cell_args *box;
    i32 lane, b0, b1;
    err failed;
};

static void *on_lane(void *arg) {
    struct rows_of_lane *r = arg;
    gpu_enter(card(), r->lane);
    run_rows(r->k, r->box, r->b0, r->b1, 1);
    r->failed = gpu_sync();
    gpu_enter(NULL, 0);
    return NULL;
}

static void run_lanes(struct mirror *m, enum cell_kind kind, const struct shape *s) {
    struct rows_of_lane lane[CARD_LANES];
    mirror_new(m, kind, s);
    T_OK(gpu_sync()); /* lanes begin without waiting for what lane 0 was given */
    for (i32 i = 0; i < CARD_LANES; i++) {
        lane[i] = (struct rows_of_lane){.k = &gpu_kern()->cell[kind], .box = &m->box, .lane = i, .b0 = s->B * i / CARD_LANES,
                                        .b1 = s->B * (i + 1) / CARD_LANES};
        assert_int_equal(pthread_create(&lane[i].thread, NULL, on_lane, &lane[i]), 0);
    }
    for (i32 i = 0; i < CARD_LANES; i++) {
        assert_int_equal(pthread_join(lane[i].thread, NULL), 0);
        T_OK(lane[i].failed);
    }
    gpu_kern()->cell[kind].dw(&m->box, 0, s->B, 0, s->T, there(m, m->e.dw), there(m, m->e.dbias));
    mirror_down(m);
}

EACH_CARD(cells_give_the_same_bits_on_one_lane_and_three) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        const struct shape s = usual();
        struct mirror a, b;
        run_device(&a, kind, &s, 1, 1), run_lanes(&b, kind, &s);
        bench_same_bits("three lanes", &a.e, &b.e), bench_same_dw("three lanes", &a.e, &b.e), same_act(&a, &b);
        bench_free(&a.e), bench_free(&b.e);
    }
}

TEST(devices_are_closed) { close_cards(); }

T_MAIN(cmocka_unit_test(functions_of_elements_equal_the_host), cmocka_unit_test(rows_are_copied_summed_and_transposed),
       cmocka_unit_test(sums_of_squares_equal_the_host), cmocka_unit_test(products_equal_the_host),
       cmocka_unit_test(large_products_equal_the_host), cmocka_unit_test(cells_equal_the_host_with_large_products),
       cmocka_unit_test(products_of_runs_equal_the_host), cmocka_unit_test(cells_equal_the_host_at_odd_sizes),
       cmocka_unit_test(cells_equal_the_host_at_all_sizes_of_one_launch),
       cmocka_unit_test(cells_equal_the_host_without_states_and_gradients), cmocka_unit_test(cells_equal_the_host_over_many_rows),
       cmocka_unit_test(element_wise_parts_of_cells_equal_the_host), cmocka_unit_test(cells_give_the_same_bits_on_every_run),
       cmocka_unit_test(cells_give_the_same_bits_in_any_partition),
       cmocka_unit_test(cells_give_the_same_bits_in_groups_of_any_size),
       cmocka_unit_test(cells_give_the_same_bits_on_one_lane_and_three), cmocka_unit_test(devices_are_closed))
