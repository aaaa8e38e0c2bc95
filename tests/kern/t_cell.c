/* t_cell.c - recurrent kernels of every instruction set of this machine against the f64 reference: outputs, gradients, odd
 * sizes, ragged batches, given and absent states; partitions of rows and time and the execution mode change no bit. */
#include "t.h"

#include "base/mem.h"
#include "base/rng.h"
#include "kern/layer_args.h"
#include "kern/twin64.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the f64 side -------------------------------------------- */

static i32 steps_[1024];

static void lengths(const struct shape *s) {
    for (i32 b = 0; b < s->B; b++) steps_[b] = steps_of(s, b);
}

/* Values that f32 holds exactly, so that both sides start from the same numbers. */
static void draw(f64 *p, i64 n, f64 scale, u32 what) {
    for (i64 j = 0; j < n; j++) p[j] = (f64)(f32)(scale * (2 * (f64)rng_uniform(7, RNG_TEST, what, (u64)j) - 1));
}

static void twin_fill(struct twin *w, const struct shape *s) {
    const i64 G = cell_gates(w->kind), TB = (i64)w->T * w->B, BH = (i64)w->B * w->H;
    const f64 scale = 1.5 / sqrt((f64)w->H);
    draw(w->x, TB * w->I, 1, 1), draw(w->w_ih, G * w->H * w->I, scale, 2), draw(w->w_hh, G * w->H * w->H, scale, 3);
    draw(w->b_ih, G * w->H, 0.5, 4), draw(w->b_hh, G * w->H, 0.5, 5);
    if (s->state) draw(w->h0, BH, 1, 6), draw(w->c0, BH, 1, 7);
    if (s->dend) draw(w->dhT, BH, 1, 8), draw(w->dcT, BH, 1, 9);
    if (!s->no_dy) draw(w->dy, TB * w->H, 1, 10);
}

/* ------------------------------------------------------------------ the f32 side -------------------------------------------- */

/* rows of n values -> rows of ld floats, the rest zero */
static void to_rows(f32 *out, i64 ld, const f64 *in, i64 n, i64 rows) {
    for (i64 r = 0; r < rows; r++)
        for (i64 j = 0; j < n; j++) out[r * ld + j] = (f32)in[r * n + j];
}

static f32 *as_f32(const f64 *in, i64 n) {
    f32 *p = floats(n);
    to_rows(p, n, in, n, 1);
    return p;
}

static void bench_twin(struct bench *e, const struct cell_kern *k, const struct twin *w, const struct shape *s) {
    const i32 Hp = round_up(w->H, LANES), G = cell_gates(w->kind) * w->H;
    const i64 TB = (i64)w->T * w->B;
    bench_new(e, k, w->kind, s);
    struct cell_canon canon = {as_f32(w->w_ih, (i64)G * w->I), as_f32(w->w_hh, (i64)G * w->H), as_f32(w->b_ih, G),
                               as_f32(w->b_hh, G)};
    cell_pack(w->kind, w->I, w->H, &canon, e->w, e->bias);
    mem_free(canon.w_ih), mem_free(canon.w_hh), mem_free(canon.b_ih), mem_free(canon.b_hh);
    to_rows(e->x, e->box.x_ld, w->x, w->I, TB), to_rows(e->dy, Hp, w->dy, w->H, TB);
    to_rows(e->h0, Hp, w->h0, w->H, w->B), to_rows(e->c0, Hp, w->c0, w->H, w->B);
    to_rows(e->dhT, Hp, w->dhT, w->H, w->B), to_rows(e->dcT, Hp, w->dcT, w->H, w->B);
}

/* Runs all rows and steps in nb pieces of rows and nt of time. */
static void bench_run(struct bench *e, const struct cell_kern *k, i32 nb, i32 nt) {
    const struct cell_args *x = &e->box;
    k->prep(x->I, x->H, e->w, e->wt);
    const i64 calls = mem_stats().calls;
    for (i32 p = 0; p < nb; p++) {
        const i32 b0 = (i32)((i64)x->B * p / nb), b1 = (i32)((i64)x->B * (p + 1) / nb);
        for (i32 q = 0; q < nt; q++) k->fwd(x, b0, b1, (i32)((i64)x->T * q / nt), (i32)((i64)x->T * (q + 1) / nt));
        for (i32 q = nt - 1; q >= 0; q--) k->bwd(x, b0, b1, (i32)((i64)x->T * q / nt), (i32)((i64)x->T * (q + 1) / nt));
    }
    for (i32 q = 0; q < nt; q++) k->dw(x, 0, x->B, (i32)((i64)x->T * q / nt), (i32)((i64)x->T * (q + 1) / nt), e->dw, e->dbias);
    assert_int_equal(mem_stats().calls, calls);
}

/* ------------------------------------------------------------------ comparing ----------------------------------------------- */

static char label_[160];
static const char *what(const char *name) {
    static char text[200];
    snprintf(text, sizeof text, "%s %s", label_, name);
    return text;
}

static void same_rows(const char *name, const f32 *got, i64 ld, const f64 *want, i64 n, i64 rows) {
    f32 *tight = floats(rows * n);
    for (i64 r = 0; r < rows; r++) memcpy(tight + r * n, got + r * ld, (size_t)n * sizeof *tight);
    t_near64(what(name), tight, want, rows * n, 5e-6);
    mem_free(tight);
}

static void zero_padding(const char *name, const f32 *p, i32 H, i64 rows) {
    const i32 Hp = round_up(H, LANES);
    for (i64 r = 0; r < rows; r++)
        for (i32 u = H; u < Hp; u++)
            if (p[r * Hp + u] != 0)
                fail_msg("%s: padded lane %d of row %lld holds %g", what(name), u, (long long)r, (f64)p[r * Hp + u]);
}

static void zero_padding_w(const char *name, const f32 *p, i32 H, i64 n, i64 per_panel) {
    for (i64 j = 0; j < n; j++)
        if (j / per_panel * LANES + j % LANES >= H && p[j] != 0)
            fail_msg("%s: padded lane at %lld holds %g", what(name), (long long)j, (f64)p[j]);
}

static void compare_weights(const struct twin *w, const struct bench *e) {
    const i64 G = (i64)cell_gates(w->kind) * w->H;
    struct cell_canon got = {floats(G * w->I), floats(G * w->H), floats(G), floats(G)};
    cell_unpack(w->kind, w->I, w->H, e->dw, e->dbias, &got);
    t_near64(what("dw_ih"), got.w_ih, w->dw_ih, G * w->I, 5e-6);
    t_near64(what("dw_hh"), got.w_hh, w->dw_hh, G * w->H, 5e-6);
    t_near64(what("db_ih"), got.b_ih, w->db_ih, G, 5e-6);
    if (w->kind == CELL_GRU) t_near64(what("db_hn"), got.b_hh + 2 * w->H, w->db_hh + 2 * w->H, w->H, 5e-6);
    zero_padding_w("dw", e->dw, w->H, e->dw_n, e->dw_n / (round_up(w->H, LANES) / LANES));
    zero_padding_w("dbias", e->dbias, w->H, e->db_n, e->db_n / (round_up(w->H, LANES) / LANES));
    mem_free(got.w_ih), mem_free(got.w_hh), mem_free(got.b_ih), mem_free(got.b_hh);
}

static void compare(const struct twin *w, const struct bench *e, const struct shape *s) {
    const i32 Hp = round_up(w->H, LANES);
    const i64 TB = (i64)w->T * w->B;
    same_rows("y", e->y, Hp, w->y, w->H, TB), zero_padding("y", e->y, w->H, TB);
    same_rows("hT", e->hT, Hp, w->hT, w->H, w->B), zero_padding("hT", e->hT, w->H, w->B);
    same_rows("dh0", e->dh0, Hp, w->dh0, w->H, w->B), zero_padding("dh0", e->dh0, w->H, w->B);
    if (w->kind == CELL_LSTM) {
        same_rows("cT", e->cT, Hp, w->cT, w->H, w->B), zero_padding("cT", e->cT, w->H, w->B);
        same_rows("dc0", e->dc0, Hp, w->dc0, w->H, w->B), zero_padding("dc0", e->dc0, w->H, w->B);
    }
    if (!s->no_dx) same_rows("dx", e->dx, e->box.dx_ld, w->dx, w->I, TB);
    for (i64 r = 0; r < TB; r++)
        for (i64 j = s->no_dx ? 0 : w->I; j < e->box.dx_ld; j++)
            if (e->dx[r * e->box.dx_ld + j] != 7) fail_msg("%s: written beyond I", what("dx"));
    compare_weights(w, e);
}

/* One shape, one kind, every instruction set; in one call and in pieces. */
static void check(enum cell_kind kind, const struct shape *s) {
    if (t_few() && (i64)s->T * s->B * s->H * (s->I + s->H) > 400000) return;
    struct twin w;
    lengths(s);
    twin_new(&w, kind, s->T, s->B, s->I, s->H, steps_);
    twin_fill(&w, s);
    twin_forward(&w);
    twin_backward(&w);
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
        if (!kern_get(a)) continue;
        snprintf(label_, sizeof label_, "%s %s T%d B%d I%d H%d%s%s%s%s", kern_arch_name(a), kind_name[kind], s->T, s->B, s->I,
                 s->H, s->ragged ? " ragged" : "", s->state ? " state" : "", s->dend ? " dend" : "", s->no_dy ? " no dy" : "");
        const struct cell_kern *k = &kern_get(a)->cell[kind];
        struct bench one;
        bench_twin(&one, k, &w, s);
        bench_run(&one, k, 1, 1);
        compare(&w, &one, s);
        for (u32 how = 0; how <= CELL_AHEAD; how++) {
            struct bench cut;
            bench_twin(&cut, k, &w, s);
            cut.box.how = how;
            bench_run(&cut, k, how < 2 ? imin(3, s->B) : 1, how != 1 ? imin(4, s->T) : 1);
            if (how == CELL_FOLD) /* whole: dW too */
                bench_same_dw(what("folded"), &one, &cut);
            else
                compare_weights(&w, &cut);
            bench_same_bits(what(how == CELL_AHEAD ? "ahead" : how ? "folded" : "cut"), &one, &cut);
            bench_free(&cut);
        }
        bench_free(&one);
    }
    twin_free(&w);
}

/* ------------------------------------------------------------------ the tests ----------------------------------------------- */

/* The f64 reference itself against central differences, once per cell kind. */
static void differences(struct twin *w, const char *name, f64 *value, const f64 *grad, i64 n) {
    for (i64 j = 0; j < n; j += 1 + n / 7) {
        const f64 keep = value[j], eps = 1e-5;
        value[j] = keep + eps;
        twin_forward(w);
        const f64 up = twin_loss(w);
        value[j] = keep - eps;
        twin_forward(w);
        const f64 slope = (up - twin_loss(w)) / (2 * eps);
        value[j] = keep;
        if (!(fabs(slope - grad[j]) < 1e-7 * (1 + fabs(slope))))
            fail_msg("%s %s[%lld]: difference %.10g, gradient %.10g", kind_name[w->kind], name, (long long)j, slope, grad[j]);
    }
}

TEST(twin_gradient_equals_finite_differences) {
    const struct shape s = {.T = 5, .B = 3, .I = 4, .H = 6, .ragged = true, .state = true, .dend = true};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        struct twin w;
        lengths(&s);
        twin_new(&w, kind, s.T, s.B, s.I, s.H, steps_);
        twin_fill(&w, &s);
        twin_forward(&w);
        twin_backward(&w);
        const i64 G = (i64)cell_gates(kind) * s.H;
        differences(&w, "w_ih", w.w_ih, w.dw_ih, G * s.I), differences(&w, "w_hh", w.w_hh, w.dw_hh, G * s.H);
        differences(&w, "b_ih", w.b_ih, w.db_ih, G), differences(&w, "b_hh", w.b_hh, w.db_hh, G);
        differences(&w, "x", w.x, w.dx, (i64)s.T * s.B * s.I), differences(&w, "h0", w.h0, w.dh0, (i64)s.B * s.H);
        if (kind == CELL_LSTM) differences(&w, "c0", w.c0, w.dc0, (i64)s.B * s.H);
        twin_free(&w);
    }
}

TEST(cell_matches_twin_at_every_batch_tail) {
    const i32 B[] = {1, 2, 5, 6, 7, 32, 97}, I[] = {1, 8, 13}, H[] = {16, 17, 50, 64, 130};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (size_t b = 0; b < COUNT(B); b++)
            for (size_t h = 0; h < COUNT(H); h++) {
                for (size_t i = 0; i < COUNT(I); i++) {
                    if (B[b] * H[h] > 5000 && i != b % COUNT(I)) continue;
                    const struct shape s = {.T = 2 + (i32)(h + i) % 2,
                                            .B = B[b],
                                            .I = I[i],
                                            .H = H[h],
                                            .state = (b + h + i) % 2 == 0,
                                            .dend = (h + i) % 3 == 0};
                    check(kind, &s);
                }
            }
}

TEST(cell_matches_twin_on_ragged_batches) {
    const i32 B[] = {2, 7, 32}, H[] = {17, 64, 130};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (size_t b = 0; b < COUNT(B); b++) {
            const struct shape s = {
                .T = 9, .B = B[b], .I = 13, .H = H[(b + (size_t)kind) % 3], .ragged = true, .state = b != 1, .dend = b != 0};
            check(kind, &s);
        }
}

TEST(cell_matches_twin_without_dy_or_dx_and_at_one_step) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        check(kind, &(struct shape){.T = 1, .B = 7, .I = 8, .H = 50});
        check(kind, &(struct shape){.T = 1, .B = 1, .I = 1, .H = 130, .state = true, .no_dx = true});
        check(kind, &(struct shape){.T = 6, .B = 6, .I = 13, .H = 64, .no_dy = true, .dend = true, .state = true});
        check(kind, &(struct shape){.T = 6, .B = 1, .I = 8, .H = 64, .no_dy = true, .dend = true, .no_dx = true});
    }
}

TEST(cell_matches_twin_over_long_time) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        check(kind, &(struct shape){.T = 100, .B = 7, .I = 8, .H = 50, .state = true});
        check(kind, &(struct shape){.T = 100, .B = 1, .I = 13, .H = 64, .dend = true});
        check(kind, &(struct shape){.T = 100, .B = 32, .I = 8, .H = 64, .ragged = true, .dend = true});
        check(kind, &(struct shape){.T = 300, .B = 2, .I = 1, .H = 17, .ragged = true});
    }
}

TEST(cell_matches_twin_at_a_wide_layer) {
    check(CELL_LSTM, &(struct shape){.T = 2, .B = 97, .I = 8, .H = 130, .state = true, .dend = true});
    check(CELL_LSTM, &(struct shape){.T = 3, .B = 13, .I = 70, .H = 320});
    check(CELL_GRU, &(struct shape){.T = 2, .B = 97, .I = 8, .H = 130, .state = true});
}

/* One step by hand-fed pre-activations is the same cell: z = bias + x W + h U computed by gemm-like loops here. */
TEST(point_cell_equals_the_recurrent_kernel) {
    const i32 B = 5, H = 50, Hp = 64;
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        const i32 GB = cell_bias_gates(kind);
        const i64 nz = (i64)B * Hp * GB;
        f32 *z0 = floats(nz), *out[KERN_NARCH][4];
        for (i64 j = 0; j < nz; j++)
            if (j / LANES / GB % (Hp / LANES) * LANES + j % LANES < H) z0[j] = 4 * rng_uniform(1, RNG_TEST, 1, (u64)j) - 2;
        for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
            if (!kern_get(a)) continue;
            const struct cell_kern *k = &kern_get(a)->cell[kind];
            f32 *z = floats(nz), *s_prev = floats(B * Hp), *s = floats(B * Hp), *h = floats(B * Hp), *dh = floats(B * Hp),
                *ds = floats(B * Hp);
            memcpy(z, z0, (size_t)nz * sizeof *z);
            for (i32 j = 0; j < B * Hp; j++)
                if (j % Hp < H)
                    s_prev[j] = rng_uniform(2, RNG_TEST, 1, (u64)j) - 0.5f, dh[j] = rng_uniform(3, RNG_TEST, 1, (u64)j) - 0.5f,
                    ds[j] = dh[j] / 2;
            k->point_fwd(B, H, z, s_prev, s, h);
            k->point_bwd(B, H, z, s_prev, s, dh, ds);
            snprintf(label_, sizeof label_, "%s %s point", kern_arch_name(a), kind_name[kind]);
            out[a][0] = z, out[a][1] = s, out[a][2] = h, out[a][3] = ds;
            t_near(what("dz"), z, out[0][0], nz, 2e-6), t_near(what("s"), s, out[0][1], B * Hp, 2e-6);
            t_near(what("h"), h, out[0][2], B * Hp, 2e-6), t_near(what("ds"), ds, out[0][3], B * Hp, 2e-6);
            zero_padding("h", h, H, B), zero_padding("ds", ds, H, B);
            mem_free(s_prev), mem_free(dh);
        }
        for (enum kern_arch a = 0; a < KERN_NARCH; a++)
            for (i32 j = 0; kern_get(a) && j < 4; j++) mem_free(out[a][j]);
        mem_free(z0);
    }
}

/* Two layers: folded, ahead and automatic mode give the same bits in both directions. */
TEST(stacked_layers_give_the_same_bits_folded_and_ahead) {
    const i32 B[] = {1, 4, 32};
    for (enum kern_arch a = 0; a < KERN_NARCH; a++)
        for (i32 q = 0; q < 3 * CELL_NKIND && kern_get(a); q++) {
            const enum cell_kind kind = (enum cell_kind)(q / 3);
            const struct cell_kern *k = &kern_get(a)->cell[kind];
            const struct shape low = {.T = 12, .B = B[q % 3], .I = 3, .H = 50}, high = {.T = 12, .B = B[q % 3], .I = 50, .H = 50};
            struct bench two[3][2];
            snprintf(label_, sizeof label_, "%s %s B%d stacked", kern_arch_name(a), kind_name[kind], low.B);
            for (u32 how = 0; how < 3; how++) {
                struct bench *e = two[how];
                bench_new(&e[0], k, kind, &low), bench_fill(&e[0]), bench_new(&e[1], k, kind, &high), bench_fill(&e[1]);
                e[0].box.how = e[1].box.how = how;
                e[1].box.x = e[0].y, e[1].box.x_ld = 64;
                e[1].box.dx = e[0].dy, e[1].box.dx_ld = 64;
                for (i32 l = 0; l < 2; l++) k->prep(e[l].box.I, e[l].box.H, e[l].w, e[l].wt), k->fwd(&e[l].box, 0, low.B, 0, 12);
                for (i32 l = 1; l >= 0; l--)
                    k->bwd(&e[l].box, 0, low.B, 0, 12), k->dw(&e[l].box, 0, low.B, 0, 12, e[l].dw, e[l].dbias);
                e[1].box.dx_ld = high.I + 3; /* back to its own dx, which nobody wrote */
                for (i32 l = 0; l < 2; l++) {
                    bench_same_bits(what(how == 1 ? "folded" : "ahead"), &two[0][l], &e[l]);
                    bench_same_dw(what(how == 1 ? "folded" : "ahead"), &two[0][l], &e[l]);
                }
            }
            for (u32 how = 0; how < 3; how++) bench_free(&two[how][0]), bench_free(&two[how][1]);
        }
}

/* ------------------------------------------------------------------ not numbers --------------------------------------------- */

enum bad { BAD_X, BAD_H0, BAD_C0, BAD_DY, BAD_W, NBAD };

static void spoil(struct bench *e, enum bad where, f32 value) {
    const i32 row = e->box.B / 2, Hp = round_up(e->box.H, LANES), t = 1;
    f32 *const at[NBAD] = {e->x + ((i64)t * e->box.B + row) * e->box.x_ld, e->h0 + (i64)row * Hp + 1, e->c0 + (i64)row * Hp + 1,
                           e->dy + ((i64)t * e->box.B + row) * Hp + 2, e->w + 3};
    *at[where] = value;
}

/* rows x n values, ld apart: NaN where `want` is, near where it is not; and rows other than the spoilt one as in `clean`. */
static void same_kind(const char *name, const f32 *got, const f32 *want, const f32 *clean, i64 rows, i32 B, i64 n, i64 ld) {
    for (i64 r = 0; r < rows; r++)
        for (i64 j = 0; j < n; j++) {
            const f32 a = got[r * ld + j], b = want[r * ld + j];
            if (isnan(a) != isnan(b) || fabsf(a - b) > 1e-4f)
                fail_msg("%s[%lld][%lld] is %g, plainly %g", what(name), (long long)r, (long long)j, (f64)a, (f64)b);
            if (clean && r % B != B / 2 && memcmp(&a, clean + r * ld + j, sizeof a) != 0)
                fail_msg("%s[%lld][%lld] is %g: another row changed it", what(name), (long long)r, (long long)j, (f64)a);
        }
}

/* NaN propagates as in the reference implementation, and to no other row. */
TEST(not_a_number_goes_where_the_plain_twin_says) {
    const i32 B[] = {1, 7}, H[] = {50, 33};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (i32 q = 0; q < 2 * NBAD; q++) {
            const enum bad where = q % NBAD;
            if (where == BAD_C0 && kind != CELL_LSTM) continue;
            const struct shape s = {.T = 4, .B = B[q / NBAD], .I = 5, .H = H[q % 2], .state = true, .dend = true};
            const i64 TB = (i64)s.T * s.B, Hp = round_up(s.H, LANES);
            struct bench plain;
            bench_new(&plain, &kern_get(KERN_REF)->cell[kind], kind, &s), bench_fill(&plain), spoil(&plain, where, NAN);
            bench_run(&plain, &kern_get(KERN_REF)->cell[kind], 1, 1);
            for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
                if (!kern_get(a)) continue;
                snprintf(label_, sizeof label_, "%s %s B%d H%d NaN at %d", kern_arch_name(a), kind_name[kind], s.B, s.H, where);
                const struct cell_kern *k = &kern_get(a)->cell[kind];
                struct bench e, clean;
                bench_new(&e, k, kind, &s), bench_fill(&e), spoil(&e, where, NAN), bench_run(&e, k, 1, 1);
                bench_new(&clean, k, kind, &s), bench_fill(&clean), bench_run(&clean, k, 1, 1);
                const bool own = where != BAD_W;
                same_kind("y", e.y, plain.y, own ? clean.y : NULL, TB, s.B, s.H, Hp);
                same_kind("dx", e.dx, plain.dx, own ? clean.dx : NULL, TB, s.B, s.I, s.I + 3);
                same_kind("dh0", e.dh0, plain.dh0, own ? clean.dh0 : NULL, s.B, s.B, s.H, Hp);
                bench_free(&e), bench_free(&clean);
            }
            bench_free(&plain);
        }
}

/* Infinite and huge inputs saturate the gates as in the reference implementation. */
TEST(huge_inputs_saturate) {
    const f32 big[] = {100, -100, 3e38f, INFINITY, -INFINITY};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (size_t q = 0; q < COUNT(big); q++) {
            const struct shape s = {.T = 3, .B = 7, .I = 1, .H = 50};
            struct bench plain;
            bench_new(&plain, &kern_get(KERN_REF)->cell[kind], kind, &s), bench_fill(&plain), spoil(&plain, BAD_X, big[q]);
            bench_run(&plain, &kern_get(KERN_REF)->cell[kind], 1, 1);
            for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
                if (!kern_get(a)) continue;
                snprintf(label_, sizeof label_, "%s %s x = %g", kern_arch_name(a), kind_name[kind], (f64)big[q]);
                const struct cell_kern *k = &kern_get(a)->cell[kind];
                struct bench e;
                bench_new(&e, k, kind, &s), bench_fill(&e), spoil(&e, BAD_X, big[q]), bench_run(&e, k, 1, 1);
                same_kind("y", e.y, plain.y, NULL, (i64)s.T * s.B, s.B, s.H, round_up(s.H, LANES));
                bench_free(&e);
            }
            bench_free(&plain);
        }
}

TEST(pack_then_unpack_is_the_identity) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        const i32 I = 5, H = 19;
        const i64 G = (i64)cell_gates(kind) * H;
        f32 *in[4], *out[4], *w = floats(cell_w_floats(kind, I, H)), *bias = floats(cell_bias_floats(kind, H));
        const i64 n[4] = {G * I, G * H, G, G};
        for (i32 j = 0; j < 4; j++) {
            in[j] = floats(n[j]), out[j] = floats(n[j]);
            for (i64 q = 0; q < n[j]; q++) in[j][q] = rng_uniform(1, RNG_TEST, (u32)j, (u64)q);
        }
        cell_pack(kind, I, H, &(struct cell_canon){in[0], in[1], in[2], in[3]}, w, bias);
        cell_unpack(kind, I, H, w, bias, &(struct cell_canon){out[0], out[1], out[2], out[3]});
        assert_memory_equal(in[0], out[0], (size_t)n[0] * sizeof(f32));
        assert_memory_equal(in[1], out[1], (size_t)n[1] * sizeof(f32));
        for (i64 q = 0; q < G; q++) {
            const bool apart = kind == CELL_GRU && q >= 2 * H;
            assert_true(out[2][q] == (apart ? in[2][q] : in[2][q] + in[3][q]));
            assert_true(out[3][q] == (apart ? in[3][q] : 0));
        }
        for (i32 j = 0; j < 4; j++) mem_free(in[j]), mem_free(out[j]);
        mem_free(w), mem_free(bias);
    }
}

/* dW of micro-batches of 1, 2 and more rows, in ranges of steps. */
static void dw_of_parts(struct bench *e, const struct cell_kern *k) {
    const struct cell_args *x = &e->box;
    const i32 row[] = {0, 1, 3, x->B}, step[] = {0, x->T / 3, x->T};
    memset(e->dw, 0, (size_t)e->dw_n * sizeof *e->dw), memset(e->dbias, 0, (size_t)e->db_n * sizeof *e->dbias);
    for (i32 b = 0; b < 3; b++)
        for (i32 t = 0; t < 2; t++) k->dw(x, row[b], row[b + 1], step[t], step[t + 1], e->dw, e->dbias);
}

/* dW reads the copies instead of x and h: where it wrote them, and only there, they are no longer zero. */
static void copied_rows_change_no_bits(void **state) {
    (void)state;
    static const struct shape shapes[] = {
        {90, 11, 5, 19, .state = true}, {300, 7, 18, 32, .state = false}, {70, 9, 4, 35, .ragged = true}};
    for (i32 i = 0; i < 3 * CELL_NKIND; i++) {
        const struct shape *s = &shapes[i % 3];
        const enum cell_kind kind = (enum cell_kind)(i / 3);
        for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
            if (!kern_get(a)) continue;
            const struct cell_kern *k = &kern_get(a)->cell[kind];
            const i64 row = cell_gather_row(s->I, s->H), n = (i64)s->B * cell_gather_rows(s->T, s->B) * row;
            struct bench plain, copied;
            snprintf(label_, sizeof label_, "%s %s T%d B%d", kern_arch_name(a), kind_name[kind], s->T, s->B);
            bench_new(&plain, k, kind, s), bench_fill(&plain), bench_run(&plain, k, 1, 1), dw_of_parts(&plain, k);
            bench_new(&copied, k, kind, s), bench_fill(&copied), bench_run(&copied, k, 1, 1);
            copied.box.gather = floats(n);
            copied.box.gather_rows = cell_gather_rows(s->T, s->B);
            dw_of_parts(&copied, k);
            bench_same_dw(what("dw of copies"), &plain, &copied);
            i64 used = 0;
            for (i64 j = 0; j < n; j++) used += copied.box.gather[j] != 0;
            assert_int_equal(used > 0, a != KERN_REF);
            mem_free(copied.box.gather);
            bench_free(&plain), bench_free(&copied);
        }
    }
}

T_MAIN(cmocka_unit_test(twin_gradient_equals_finite_differences), cmocka_unit_test(cell_matches_twin_at_every_batch_tail),
       cmocka_unit_test(cell_matches_twin_on_ragged_batches),
       cmocka_unit_test(cell_matches_twin_without_dy_or_dx_and_at_one_step), cmocka_unit_test(cell_matches_twin_over_long_time),
       cmocka_unit_test(cell_matches_twin_at_a_wide_layer), cmocka_unit_test(point_cell_equals_the_recurrent_kernel),
       cmocka_unit_test(stacked_layers_give_the_same_bits_folded_and_ahead),
       cmocka_unit_test(not_a_number_goes_where_the_plain_twin_says), cmocka_unit_test(huge_inputs_saturate),
       cmocka_unit_test(copied_rows_change_no_bits),
       cmocka_unit_test(pack_then_unpack_is_the_identity))
