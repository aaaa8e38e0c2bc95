/* t_bf16.c - bf16 cells of every table of this machine against the f64 reference (cosine and relative L2 of every tensor), and
 * their guarantees: partitions of rows and time change no bit, padding stays zero, y may be absent, NaN and infinity propagate,
 * all tables agree closely. */
#include "t.h"

#include "base/mem.h"
#include "kern/layer_args.h"
#include "kern/twin64.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static i32 steps_[1024];
static char label_[160];

static void label(enum kern_arch a, enum cell_kind kind, const struct shape *s) {
    snprintf(label_, sizeof label_, "%s %s T%d B%d I%d H%d%s%s%s%s%s", kern_arch_name(a), kind_name[kind], s->T, s->B, s->I, s->H,
             s->ragged ? " ragged" : "", s->state ? " state" : "", s->dend ? " dend" : "", s->no_dy ? " no dy" : "",
             s->no_dx ? " no dx" : "");
}

static const struct cell_kern *kernel(enum kern_arch a, enum cell_kind kind) {
    return kern_get(a) ? cell_at(kern_get(a), kind, PREC_BF16) : NULL;
}

/* ------------------------------------------------------------------ the f64 side -------------------------------------------- */

static void widen(f64 *to, const f32 *from, i64 ld, i64 n, i64 rows) {
    for (i64 r = 0; r < rows && from; r++)
        for (i64 j = 0; j < n; j++) to[r * n + j] = (f64)from[r * ld + j];
}

static void twin_of(struct twin *w, const struct bench *e, const struct shape *s) {
    const struct cell_args *x = &e->box;
    const i64 G = (i64)cell_gates(e->kind) * x->H, TB = (i64)x->T * x->B, Hp = round_up(x->H, LANES);
    for (i32 b = 0; b < x->B; b++) steps_[b] = steps_of(s, b);
    twin_new(w, e->kind, x->T, x->B, x->I, x->H, steps_);
    struct cell_canon c = {floats(G * x->I), floats(G * x->H), floats(G), floats(G)};
    cell_unpack(e->kind, x->I, x->H, e->w, e->bias, &c);
    widen(w->w_ih, c.w_ih, G * x->I, G * x->I, 1), widen(w->w_hh, c.w_hh, G * x->H, G * x->H, 1);
    widen(w->b_ih, c.b_ih, G, G, 1), widen(w->b_hh, c.b_hh, G, G, 1);
    mem_free(c.w_ih), mem_free(c.w_hh), mem_free(c.b_ih), mem_free(c.b_hh);
    widen(w->x, x->x, x->x_ld, x->I, TB), widen(w->dy, x->dy, Hp, x->H, TB);
    widen(w->h0, x->h0, Hp, x->H, x->B), widen(w->c0, x->c0, Hp, x->H, x->B);
    widen(w->dhT, x->dhT, Hp, x->H, x->B), widen(w->dcT, x->dcT, Hp, x->H, x->B);
    twin_forward(w);
    twin_backward(w);
}

/* ------------------------------------------------------------------ running ------------------------------------------------- */

/* Runs rows in pieces that start at cuts[0..n) and time in slices; dW over all rows. With `slice` bwd and dw alternate as in a
 * layer. */
static void run(struct bench *e, const struct cell_kern *k, const i32 *cuts, i32 n, i32 slices) {
    const struct cell_args *x = &e->box;
    k->prep(x->I, x->H, e->w, e->wt);
    const i64 calls = mem_stats().calls;
    for (i32 p = 0; p < n; p++) {
        const i32 b0 = cuts[p], b1 = p + 1 < n ? cuts[p + 1] : x->B;
        for (i32 q = 0; q < slices; q++) k->fwd(x, b0, b1, (i32)((i64)x->T * q / slices), (i32)((i64)x->T * (q + 1) / slices));
    }
    for (i32 q = slices - 1; q >= 0; q--)
        for (i32 p = n - 1; p >= 0; p--)
            k->bwd(x, cuts[p], p + 1 < n ? cuts[p + 1] : x->B, (i32)((i64)x->T * q / slices),
                   (i32)((i64)x->T * (q + 1) / slices));
    k->dw(x, 0, x->B, 0, x->T, e->dw, e->dbias);
    assert_int_equal(mem_stats().calls, calls);
}

static const i32 whole_[] = {0};

/* ------------------------------------------------------------------ comparing ----------------------------------------------- */

struct close {
    f64 cosine, rel;
};

/* rows of n values, ld apart, against tight ones */
static struct close closeness(const f32 *got, i64 ld, const f64 *want, i64 n, i64 rows) {
    f64 dot = 0, gg = 0, ww = 0, dd = 0;
    for (i64 r = 0; r < rows; r++) {
        for (i64 j = 0; j < n; j++) {
            const f64 g = (f64)got[r * ld + j], v = want[r * n + j];
            dot += g * v, gg += g * g, ww += v * v, dd += (g - v) * (g - v);
        }
    }
    if (ww == 0) return (struct close){1, sqrt(gg)};
    return (struct close){dot / sqrt(gg * ww), sqrt(dd / ww)};
}

static void near_enough(const char *name, const f32 *got, i64 ld, const f64 *want, i64 n, i64 rows) {
    const struct close c = closeness(got, ld, want, n, rows);
    if (!(c.cosine >= 0.999 && c.rel <= 2e-2)) fail_msg("%s %s: cosine %.6f, relative L2 %.2g", label_, name, c.cosine, c.rel);
}

static void zero_padding(const char *name, const f32 *p, i32 H, i64 rows) {
    const i32 Hp = round_up(H, LANES);
    for (i64 r = 0; r < rows; r++)
        for (i32 u = H; u < Hp; u++)
            if (p[r * Hp + u] != 0)
                fail_msg("%s %s: padded lane %d of row %lld holds %g", label_, name, u, (long long)r, (f64)p[r * Hp + u]);
}

static void zero_padding_w(const char *name, const f32 *p, i32 H, i64 n, i64 per_panel) {
    for (i64 j = 0; j < n; j++)
        if (j / per_panel * LANES + j % LANES >= H && p[j] != 0)
            fail_msg("%s %s: padded lane at %lld holds %g", label_, name, (long long)j, (f64)p[j]);
}

static void compare_weights(const struct twin *w, const struct bench *e) {
    const i64 G = (i64)cell_gates(w->kind) * w->H, NP = round_up(w->H, LANES) / LANES;
    struct cell_canon got = {floats(G * w->I), floats(G * w->H), floats(G), floats(G)};
    cell_unpack(w->kind, w->I, w->H, e->dw, e->dbias, &got);
    near_enough("dw_ih", got.w_ih, 1, w->dw_ih, 1, G * w->I);
    near_enough("dw_hh", got.w_hh, 1, w->dw_hh, 1, G * w->H);
    near_enough("db_ih", got.b_ih, 1, w->db_ih, 1, G);
    if (w->kind == CELL_GRU) near_enough("db_hn", got.b_hh + 2 * w->H, 1, w->db_hh + 2 * w->H, 1, w->H);
    zero_padding_w("dw", e->dw, w->H, e->dw_n, e->dw_n / NP);
    zero_padding_w("dbias", e->dbias, w->H, e->db_n, e->db_n / NP);
    mem_free(got.w_ih), mem_free(got.w_hh), mem_free(got.b_ih), mem_free(got.b_hh);
}

static void compare(const struct twin *w, const struct bench *e, const struct shape *s) {
    const i64 Hp = round_up(w->H, LANES), TB = (i64)w->T * w->B;
    const struct {
        const char *name;
        const f32 *got;
        const f64 *want;
        i64 rows;
        bool lstm;
    } all[] = {{"y", e->y, w->y, TB, false},
               {"hT", e->hT, w->hT, w->B, false},
               {"cT", e->cT, w->cT, w->B, true},
               {"dh0", e->dh0, w->dh0, w->B, false},
               {"dc0", e->dc0, w->dc0, w->B, true}};
    for (size_t j = 0; j < COUNT(all); j++) {
        if (all[j].lstm && w->kind != CELL_LSTM) continue;
        near_enough(all[j].name, all[j].got, Hp, all[j].want, w->H, all[j].rows);
        zero_padding(all[j].name, all[j].got, w->H, all[j].rows);
    }
    if (!s->no_dx) near_enough("dx", e->dx, e->box.dx_ld, w->dx, w->I, TB);
    for (i64 r = 0; r < TB; r++)
        for (i64 j = s->no_dx ? 0 : w->I; j < e->box.dx_ld; j++)
            if (e->dx[r * e->box.dx_ld + j] != 7) fail_msg("%s dx: written beyond I", label_);
    compare_weights(w, e);
}

/* Every table against the reference; rows split at odd places and time in slices against one call.  With few cases, a sanitizer
 * sees large shapes in the fast kernels only: the scalar ones take 20 times as long. */
static void check(enum cell_kind kind, const struct shape *s) {
    const bool fast_only = t_few() && (i64)s->T * s->B * s->H * (s->I + s->H) > 1000000;
    struct twin w;
    bool made = false;
    for (enum kern_arch a = fast_only ? KERN_REF + 1 : 0; a < KERN_NARCH; a++) {
        const struct cell_kern *k = kernel(a, kind);
        if (!k) continue;
        label(a, kind, s);
        struct bench one, cut;
        bench_new(&one, k, kind, s), bench_fill(&one);
        if (!made && !fast_only) twin_of(&w, &one, s), made = true;
        run(&one, k, whole_, 1, 1);
        if (made) compare(&w, &one, s);
        const i32 cuts[] = {0, s->B / 5, s->B / 2, s->B - s->B / 7};
        bench_new(&cut, k, kind, s), bench_fill(&cut);
        run(&cut, k, cuts, COUNT(cuts), imin(4, s->T));
        bench_same_bits(label_, &one, &cut);
        bench_same_dw(label_, &one, &cut);
        bench_free(&one), bench_free(&cut);
    }
    if (made) twin_free(&w);
}

/* ------------------------------------------------------------------ the tests ----------------------------------------------- */

TEST(bf16_matches_twin_at_every_tail) {
    const i32 B[] = {1, 2, 5, 6, 7, 16, 17, 32, 33, 97}, I[] = {1, 8, 13, 40}, H[] = {16, 17, 50, 64, 130};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (size_t b = 0; b < COUNT(B); b++)
            for (size_t h = 0; h < COUNT(H); h++) {
                const size_t i = (b + h) % COUNT(I);
                if (t_few() && (b + h + (size_t)kind) % 4) continue; /* each B, each H, not each pair */
                check(kind, &(struct shape){.T = 2 + (i32)(h + i) % 2,
                                            .B = B[b],
                                            .I = I[i],
                                            .H = H[h],
                                            .state = (b + h) % 2 == 0,
                                            .dend = (h + i) % 3 == 0});
            }
}

TEST(bf16_matches_twin_on_ragged_batches) {
    const i32 B[] = {2, 7, 33, 70}, H[] = {17, 64, 130};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (size_t b = 0; b < COUNT(B); b++)
            check(
                kind,
                &(struct shape){
                    .T = 9, .B = B[b], .I = 13, .H = H[(b + (size_t)kind) % 3], .ragged = true, .state = b != 1, .dend = b != 0});
}

TEST(bf16_matches_twin_without_dy_or_dx_and_at_one_step) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        check(kind, &(struct shape){.T = 1, .B = 7, .I = 8, .H = 50});
        check(kind, &(struct shape){.T = 1, .B = 1, .I = 1, .H = 130, .state = true, .no_dx = true});
        check(kind, &(struct shape){.T = 6, .B = 6, .I = 13, .H = 64, .no_dy = true, .dend = true, .state = true});
        check(kind, &(struct shape){.T = 6, .B = 33, .I = 64, .H = 48, .no_dy = true, .dend = true, .no_dx = true});
    }
}

TEST(bf16_matches_twin_over_long_time) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        check(kind, &(struct shape){.T = 100, .B = 7, .I = 8, .H = 50, .state = true});
        check(kind, &(struct shape){.T = 100, .B = 1, .I = 13, .H = 64, .dend = true});
        check(kind, &(struct shape){.T = 100, .B = 40, .I = 8, .H = 64, .ragged = true, .dend = true});
    }
    check(CELL_LSTM, &(struct shape){.T = 6, .B = 70, .I = 33, .H = 320}); /* long products: cells overlap with them */
    check(CELL_GRU, &(struct shape){.T = 6, .B = 70, .I = 33, .H = 320});
    /* weights beyond the second cache: all rows in one batch, whose last block is one tile of them */
    check(CELL_LSTM, &(struct shape){.T = 3, .B = 40, .I = 8, .H = 400, .state = true, .dend = true});
}

/* Tables differ only in the order of sums and the activations. */
TEST(bf16_tables_agree) {
    const struct shape s = {.T = 20, .B = 37, .I = 13, .H = 80, .state = true, .dend = true};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        struct bench ref, e;
        bench_new(&ref, kernel(KERN_REF, kind), kind, &s), bench_fill(&ref);
        run(&ref, kernel(KERN_REF, kind), whole_, 1, 1);
        for (enum kern_arch a = KERN_REF + 1; a < KERN_NARCH; a++) {
            const struct cell_kern *k = kernel(a, kind);
            if (!k) continue;
            label(a, kind, &s);
            bench_new(&e, k, kind, &s), bench_fill(&e);
            run(&e, k, whole_, 1, 1);
            const i64 Hp = round_up(s.H, LANES), TB = (i64)s.T * s.B;
            t_near("y against ref", e.y, ref.y, TB * Hp, 1e-2);
            t_near("dh0 against ref", e.dh0, ref.dh0, s.B * Hp, 1e-2);
            t_near("dw against ref", e.dw, ref.dw, e.dw_n, 1e-2);
            t_near("dbias against ref", e.dbias, ref.dbias, e.db_n, 1e-2);
            bench_free(&e);
        }
        bench_free(&ref);
    }
}

/* dW of micro-batches as in a layer: each row range separately, slices of time alternating with bwd; sums equal those of one
 * call. */
TEST(bf16_dw_of_grains_sums_up) {
    const struct shape s = {.T = 40, .B = 22, .I = 8, .H = 48};
    const i32 grain[] = {1, 2, 3, 8};
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
        for (size_t j = 0; j < COUNT(grain) && kernel(a, CELL_LSTM); j++) {
            const struct cell_kern *k = kernel(a, CELL_LSTM);
            struct bench one, e;
            bench_new(&one, k, CELL_LSTM, &s), bench_fill(&one);
            run(&one, k, whole_, 1, 1);
            bench_new(&e, k, CELL_LSTM, &s), bench_fill(&e);
            k->prep(s.I, s.H, e.w, e.wt);
            k->fwd(&e.box, 0, s.B, 0, s.T);
            for (i32 t = s.T; t > 0; t -= 8) {
                k->bwd(&e.box, 0, s.B, t - 8, t);
                for (i32 b = 0; b < s.B; b += grain[j]) k->dw(&e.box, b, imin(s.B, b + grain[j]), t - 8, t, e.dw, e.dbias);
            }
            label(a, CELL_LSTM, &s);
            t_near(label_, e.dw, one.dw, e.dw_n, 2e-5);
            t_near(label_, e.dbias, one.dbias, e.db_n, 2e-5);
            bench_free(&one), bench_free(&e);
        }
    }
}

/* bwd and dw alternate, with or without the promise x->slice: same bits for any partition of rows. */
static void run_in_turn(struct bench *e, const struct cell_kern *k, i32 steps, bool promise) {
    const struct cell_args *x = &e->box;
    e->box.slice = promise ? steps : 0;
    k->prep(x->I, x->H, e->w, e->wt);
    const i32 half = x->B / 2;
    for (i32 p = 0; p < 2; p++) k->fwd(x, p * half, p ? x->B : half, 0, x->T);
    for (i32 end = x->T; end > 0; end -= steps) {
        const i32 begin = imax(0, end - steps);
        for (i32 p = 0; p < 2; p++) k->bwd(x, p * half, p ? x->B : half, begin, end);
        k->dw(x, 0, x->B, begin, end, e->dw, e->dbias);
    }
}

TEST(bf16_promise_of_turns_changes_no_bit) {
    const struct shape all[] = {{.T = 23, .B = 37, .I = 8, .H = 80, .state = true, .dend = true},
                                {.T = 23, .B = 70, .I = 33, .H = 48, .ragged = true}};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
            for (size_t j = 0; j < COUNT(all) && kernel(a, kind); j++) {
                struct bench with, without;
                bench_new(&with, kernel(a, kind), kind, &all[j]), bench_fill(&with);
                bench_new(&without, kernel(a, kind), kind, &all[j]), bench_fill(&without);
                run_in_turn(&with, kernel(a, kind), 5, true);
                run_in_turn(&without, kernel(a, kind), 5, false);
                label(a, kind, &all[j]);
                bench_same_bits(label_, &with, &without), bench_same_dw(label_, &with, &without);
                bench_free(&with), bench_free(&without);
            }
        }
    }
}

/* Without y everything else has the same bits. */
TEST(bf16_needs_no_y) {
    const struct shape all[] = {{.T = 12, .B = 19, .I = 8, .H = 50, .state = true, .dend = true},
                                {.T = 12, .B = 40, .I = 8, .H = 50, .ragged = true, .state = true}};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++) {
        for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
            for (size_t j = 0; j < COUNT(all) && kernel(a, kind); j++) {
                struct bench with, without;
                bench_new(&with, kernel(a, kind), kind, &all[j]), bench_fill(&with);
                bench_new(&without, kernel(a, kind), kind, &all[j]), bench_fill(&without);
                without.box.y = NULL;
                run(&with, kernel(a, kind), whole_, 1, 1);
                const i32 cuts[] = {0, 3};
                run(&without, kernel(a, kind), cuts, 2, 3);
                memcpy(without.y, with.y, (size_t)(all[j].T * all[j].B * round_up(all[j].H, LANES)) * sizeof(f32));
                label(a, kind, &all[j]);
                bench_same_bits(label_, &with, &without);
                bench_same_dw(label_, &with, &without);
                bench_free(&with), bench_free(&without);
            }
        }
    }
}

/* NaN or infinity in a row stays in that row and propagates to its results. */
static void row_check(const struct shape *s, f32 bad, i64 row, const f32 *y, const f32 *was) {
    const bool hit = row % s->B == 3 && row >= s->B;
    if (!hit) assert_memory_equal(y, was, sizeof(f32) * (size_t)s->H);
    for (i32 u = 0; u < s->H && hit; u++)
        if (isnan(bad) ? !isnan(y[u]) : !(fabsf(y[u]) <= 1))
            fail_msg("%s: y[%d][3][%d] = %g after %g", label_, (i32)(row / s->B), u, (f64)y[u], (f64)bad);
}

static void bad_number(enum kern_arch a, enum cell_kind kind, const struct shape *s, f32 bad) {
    struct bench e, good;
    bench_new(&good, kernel(a, kind), kind, s), bench_fill(&good);
    bench_new(&e, kernel(a, kind), kind, s), bench_fill(&e);
    e.x[(1 * s->B + 3) * e.box.x_ld] = bad; /* step 1, row 3 */
    run(&good, kernel(a, kind), whole_, 1, 1);
    run(&e, kernel(a, kind), whole_, 1, 1);
    label(a, kind, s);
    for (i64 row = 0; row < (i64)s->T * s->B; row++) row_check(s, bad, row, e.y + row * s->H, good.y + row * s->H);
    for (i64 q = 0; q < e.dw_n && isnan(bad); q++)
        if (!isnan(e.dw[q])) fail_msg("%s: dw[%lld] = %g after NaN", label_, (long long)q, (f64)e.dw[q]);
    bench_free(&e), bench_free(&good);
}

TEST(bf16_nan_and_infinity_come_through) {
    const struct shape s = {.T = 5, .B = 20, .I = 8, .H = 32};
    const f32 bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (enum kern_arch a = 0; a < KERN_NARCH; a++)
            for (size_t j = 0; j < COUNT(bad) && kernel(a, kind); j++) bad_number(a, kind, &s, bad[j]);
}

/* A saturated cell is saturated exactly, and its gradient is zero. */
TEST(bf16_saturates_exactly) {
    const struct shape s = {.T = 3, .B = 17, .I = 1, .H = 16};
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
        if (!kernel(a, CELL_RNN)) continue;
        struct bench e;
        bench_new(&e, kernel(a, CELL_RNN), CELL_RNN, &s), bench_fill(&e);
        for (i64 q = 0; q < e.dw_n; q++) e.w[q] = 0;
        for (i64 q = 0; q < e.db_n; q++) e.bias[q] = q % 2 ? 100.0f : -100.0f;
        run(&e, kernel(a, CELL_RNN), whole_, 1, 1);
        for (i64 q = 0; q < (i64)s.T * s.B * s.H; q++) assert_true(e.y[q] == (q % 2 ? 1.0f : -1.0f));
        for (i64 q = 0; q < e.db_n; q++) assert_true(e.dbias[q] == 0);
        bench_free(&e);
    }
}

TEST(bf16_is_where_it_should_be) {
    assert_non_null(kernel(KERN_REF, CELL_LSTM));
    assert_null(kernel(KERN_BASE, CELL_LSTM));
    assert_null(kernel(KERN_AVX512, CELL_LSTM));
    for (enum kern_arch a = KERN_AVX512_BF16; a <= KERN_AMX; a++)
        for (enum cell_kind kind = 0; kind < CELL_NKIND && kern_get(a); kind++) assert_non_null(kernel(a, kind));
}

T_MAIN(cmocka_unit_test(bf16_is_where_it_should_be), cmocka_unit_test(bf16_matches_twin_at_every_tail),
       cmocka_unit_test(bf16_matches_twin_on_ragged_batches),
       cmocka_unit_test(bf16_matches_twin_without_dy_or_dx_and_at_one_step), cmocka_unit_test(bf16_matches_twin_over_long_time),
       cmocka_unit_test(bf16_tables_agree), cmocka_unit_test(bf16_dw_of_grains_sums_up),
       cmocka_unit_test(bf16_promise_of_turns_changes_no_bit), cmocka_unit_test(bf16_needs_no_y),
       cmocka_unit_test(bf16_nan_and_infinity_come_through), cmocka_unit_test(bf16_saturates_exactly))
