/* t_diag.c - diagonal cells: gradients against the f64 reference; Newton and scan against sequential execution: lengths around
 * a block, states and residuals, fallback, NaN, long calls split in two, teams. */
#include <pthread.h>
#include <stdio.h>

#include "model/cell/diag.h"
#include "cell_tensors.h"
#include "twin.h"

enum { CELLS = 3 };
static const char *const names[CELLS] = {"paragru", "paralstm", "minlstm"};

/* One layer with everything that its kernels read and write. */
struct lay {
    const struct cell *c;
    const struct cell_kern *k;
    struct cell_args box;
    struct arena arena;
    i64 nw, nb, ny, nx, ns; /* floats of w, bias, y, x, a state */
    f32 *w, *dw, *db, *x, *h0, *c0;
};

static f32 *floats(struct lay *l, i64 n) {
    f32 *p = arena_new(&l->arena, (size_t)lmax(1, n + LANES) * sizeof *p);
    assert_non_null(p);
    return (f32 *)(((uintptr_t)p + 63) / 64 * 64);
}

/* n rows of `used` random numbers, padded. */
static f32 *randoms(struct lay *l, u32 what, i64 n, i32 used, f32 scale) {
    const i32 ld = round_up(used, LANES);
    f32 *p = floats(l, n * ld);
    for (i64 r = 0; r < n; r++)
        for (i32 i = 0; i < used; i++) p[r * ld + i] = scale * rig_random(what, r * used + i);
    return p;
}

static void load_weights(struct lay *l, f32 state_scale) {
    static f32 canonical[1 << 16];
    for (i32 i = 0; i < cell_tensors(l->c); i++) {
        i32 rows, cols;
        cell_tensor(l->c, i, l->box.I, l->box.H, &rows, &cols);
        const i64 n = (i64)rows * imax(1, cols);
        assert_true(n <= (i64)COUNT(canonical));
        for (i64 j = 0; j < n; j++) canonical[j] = (i < 2 ? 0.8f : state_scale) * rig_random(500 + (u32)i, j);
        cell_load(l->c, i, l->box.I, l->box.H, canonical, l->w);
    }
}

struct shape {
    i32 T, B, I, H;
};

static void lay_new(struct lay *l, i32 cell, const struct kern *k, struct shape s, u32 how, f32 state_scale) {
    *l = (struct lay){.c = cell_find(names[cell])};
    l->k = cell_kernels(l->c, k, PREC_F32);
    struct cell_args *b = &l->box;
    *b = (struct cell_args){.T = s.T, .B = s.B, .I = s.I, .H = s.H, .how = how};
    const i32 Hp = round_up(s.H, LANES);
    const bool two = l->c->states > 1;
    l->nw = cell_packed_w(l->c, s.I, s.H), l->nb = cell_packed_bias(l->c, s.H);
    l->ny = (i64)s.T * s.B * Hp, l->nx = (i64)s.T * s.B * round_up(s.I, LANES), l->ns = (i64)s.B * Hp;
    l->w = floats(l, l->nw + l->nb);
    load_weights(l, state_scale);
    l->x = randoms(l, 1, (i64)s.T * s.B, s.I, 1);
    l->h0 = randoms(l, 2, s.B, s.H, 0.7f), l->c0 = randoms(l, 3, s.B, s.H, 0.7f);
    b->x = l->x, b->x_ld = b->dx_ld = round_up(s.I, LANES);
    b->h0 = l->h0, b->c0 = two ? l->c0 : NULL;
    b->w = l->w, b->bias = l->w + l->nw;
    f32 *wt = floats(l, l->k->wt_floats(s.I, s.H));
    l->k->prep(s.I, s.H, b->w, wt);
    b->wt = wt;
    b->y = floats(l, l->ny), b->act = floats(l, l->k->act_floats(s.T, s.B, s.I, s.H));
    b->hT = floats(l, l->ns), b->cT = two ? floats(l, l->ns) : NULL;
    b->dy = randoms(l, 4, (i64)s.T * s.B, s.H, 1);
    b->dhT = randoms(l, 5, s.B, s.H, 1), b->dcT = two ? randoms(l, 6, s.B, s.H, 1) : NULL;
    b->dx = floats(l, l->nx), b->dh0 = floats(l, l->ns), b->dc0 = two ? floats(l, l->ns) : NULL;
    b->carry = floats(l, 2 * l->ns);
    l->dw = floats(l, l->nw), l->db = floats(l, l->nb);
}

static void lay_free(struct lay *l) { arena_free(&l->arena); }

static void fwd(struct lay *l, i32 t0, i32 t1) { l->k->fwd(&l->box, 0, l->box.B, t0, t1); }
static void bwd(struct lay *l, i32 t0, i32 t1) { l->k->bwd(&l->box, 0, l->box.B, t0, t1); }
static void dw(struct lay *l, i32 t0, i32 t1) { l->k->dw(&l->box, 0, l->box.B, t0, t1, l->dw, l->db); }
static void all(struct lay *l) {
    fwd(l, 0, l->box.T);
    bwd(l, 0, l->box.T);
    dw(l, 0, l->box.T);
}

static void near_abs(const char *what, const f32 *a, const f32 *b, i64 n, f32 tolerance) {
    for (i64 i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= tolerance)) {
            print_error("%s: entry %lld is %g, want %g\n", what, (long long)i, (f64)a[i], (f64)b[i]);
            fail();
        }
}

static void same_values(const struct lay *a, const struct lay *b, f32 tolerance) {
    near_abs("y", a->box.y, b->box.y, a->ny, tolerance);
    near_abs("hT", a->box.hT, b->box.hT, a->ns, tolerance);
    if (a->box.cT) near_abs("cT", a->box.cT, b->box.cT, a->ns, tolerance);
}

static void same_gradients(const struct lay *a, const struct lay *b, f64 tolerance) {
    t_near("dx", a->box.dx, b->box.dx, a->nx, tolerance);
    t_near("dh0", a->box.dh0, b->box.dh0, a->ns, tolerance);
    if (a->box.dc0) t_near("dc0", a->box.dc0, b->box.dc0, a->ns, tolerance);
    t_near("dw", a->dw, b->dw, a->nw, tolerance);
    t_near("dbias", a->db, b->db, a->nb, tolerance);
}

/* ------------------------------------------------------------------ the f64 twin -------------------------------------------- */

/* Canonical tensors, x, h0, c0 in f64, and the loss <dy, y> + <dhT, hT> + <dcT, cT>. */
struct wide {
    const struct lay *l;
    f64 *w[4], *x, *h0, *c0;
};

static f64 wide_loss(const struct wide *d) {
    const struct cell_args *b = &d->l->box;
    const i32 Hp = round_up(b->H, LANES);
    f64 loss = 0, h[64], c[64];
    for (i32 r = 0; r < b->B; r++) {
        memcpy(h, d->h0 + (i64)r * Hp, (size_t)b->H * sizeof *h);
        memcpy(c, d->c0 + (i64)r * Hp, (size_t)b->H * sizeof *c);
        for (i32 t = 0; t < b->T; t++) {
            twin_step(d->l->c, b->I, b->H, d->w, d->x + ((i64)t * b->B + r) * b->x_ld, NULL, h, c);
            for (i32 u = 0; u < b->H; u++) loss += h[u] * (f64)b->dy[((i64)t * b->B + r) * Hp + u];
        }
        for (i32 u = 0; u < b->H; u++) {
            loss += h[u] * (f64)b->dhT[(i64)r * Hp + u];
            if (b->dcT) loss += c[u] * (f64)b->dcT[(i64)r * Hp + u];
        }
    }
    return loss;
}

static f64 *widen(struct lay *l, const f32 *from, i64 n) {
    f64 *p = arena_new(&l->arena, (size_t)(n + 1) * sizeof *p);
    for (i64 i = 0; i < n; i++) p[i] = (f64)from[i];
    return p;
}

/* got [rows][ld] against differences of the loss by v [rows][ld], `used` columns of each row. */
static void differences(const char *what, struct lay *l, const struct wide *d, f64 *v, const f32 *got, i64 rows, i32 used,
                        i32 ld) {
    f64 *want = widen(l, got, rows * ld), step = 1e-5;
    for (i64 r = 0; r < rows; r++)
        for (i32 i = 0; i < used; i++) {
            f64 *at = &v[r * ld + i], keep = *at;
            *at = keep + step;
            f64 up = wide_loss(d);
            *at = keep - step;
            want[r * ld + i] = (up - wide_loss(d)) / (2 * step);
            *at = keep;
        }
    t_near64(what, got, want, rows * ld, 5e-6);
}

static void gradients_are_right(i32 cell, const struct kern *k, struct shape s, u32 how) {
    struct lay l;
    struct wide d = {.l = &l};
    lay_new(&l, cell, k, s, how, 0.8f);
    all(&l);
    for (i32 i = 0; i < cell_tensors(l.c); i++) {
        static f32 canonical[4096];
        i32 rows, cols;
        cell_tensor(l.c, i, s.I, s.H, &rows, &cols);
        assert_true((i64)rows * imax(1, cols) <= (i64)COUNT(canonical));
        cell_store(l.c, i, s.I, s.H, l.w, canonical);
        d.w[i] = widen(&l, canonical, (i64)rows * imax(1, cols));
    }
    d.x = widen(&l, l.x, l.nx), d.h0 = widen(&l, l.h0, l.ns), d.c0 = widen(&l, l.c0, l.ns);
    f32 *packed = floats(&l, l.nw + l.nb);
    memcpy(packed, l.dw, (size_t)l.nw * sizeof *packed);
    memcpy(packed + l.nw, l.db, (size_t)l.nb * sizeof *packed);
    for (i32 i = 0; i < cell_tensors(l.c); i++) {
        static f32 got[4096];
        i32 rows, cols;
        const char *what = cell_tensor(l.c, i, s.I, s.H, &rows, &cols);
        cell_store(l.c, i, s.I, s.H, packed, got);
        differences(what, &l, &d, d.w[i], got, rows, imax(1, cols), imax(1, cols));
    }
    const i32 Hp = round_up(s.H, LANES);
    differences("dx", &l, &d, d.x, l.box.dx, (i64)s.T * s.B, s.I, (i32)l.box.x_ld);
    differences("dh0", &l, &d, d.h0, l.box.dh0, s.B, s.H, Hp);
    if (l.box.dc0) differences("dc0", &l, &d, d.c0, l.box.dc0, s.B, s.H, Hp);
    lay_free(&l);
}

TEST(gradients_equal_the_twins_every_walk_and_instruction_set) {
    static const u32 hows[] = {0, CELL_NEWTON, CELL_SCAN};
    for (i32 a = 0; a < KERN_NARCH; a++)
        for (i32 cell = 0; cell < CELLS && kern_get((enum kern_arch)a); cell++)
            for (u32 h = 0; h < COUNT(hows); h++)
                gradients_are_right(cell, kern_get((enum kern_arch)a), (struct shape){t_few() ? 5 : 37, 2, 2, 3}, hows[h]);
}

TEST(gradients_equal_the_twins_more_than_a_panel_and_a_block) {
    for (i32 cell = 0; cell < CELLS; cell++) {
        gradients_are_right(cell, kern_best(), (struct shape){3, 3, 17, 33}, 0);
        gradients_are_right(cell, kern_best(), (struct shape){t_few() ? 66 : 130, 1, 1, 2}, CELL_NEWTON);
    }
}

/* ------------------------------------------------------------------ blocks at once ------------------------------------------ */

/* The largest |F(s[t-1]) - s[t]|, by the plain twin, one step at a time. */
static f32 residual(const struct lay *l) {
    struct lay one;
    f32 worst = 0;
    const struct cell_args *b = &l->box;
    const i64 plane = l->ns;
    lay_new(&one, l->c == cell_find("paragru") ? 0 : l->c == cell_find("paralstm") ? 1 : 2, kern_get(KERN_REF),
            (struct shape){1, b->B, b->I, b->H}, 0, 1);
    memcpy(one.w, l->w, (size_t)(l->nw + l->nb) * sizeof *one.w);
    const f32 *keep = l->box.act + (i64)b->T * plane * l->c->gates; /* c of every step */
    for (i32 t = 0; t < b->T; t++) {
        one.box.x = b->x + (i64)t * b->B * b->x_ld;
        one.box.h0 = t > 0 ? b->y + (t - 1) * plane : b->h0;
        if (b->c0) one.box.c0 = t > 0 ? keep + (t - 1) * plane : b->c0;
        fwd(&one, 0, 1);
        for (i64 i = 0; i < plane; i++) {
            worst = fmaxf(worst, fabsf(one.box.y[i] - b->y[t * plane + i]));
            if (b->c0) worst = fmaxf(worst, fabsf(one.box.cT[i] - keep[t * plane + i]));
        }
    }
    lay_free(&one);
    return worst;
}

static void blocks_equal_steps(i32 cell, const struct kern *k, struct shape s) {
    struct lay steps, blocks;
    lay_new(&steps, cell, k, s, 0, 0.9f);
    lay_new(&blocks, cell, k, s, cell == 2 ? CELL_SCAN : CELL_NEWTON, 0.9f);
    all(&steps);
    fwd(&blocks, 0, s.T);
    same_values(&blocks, &steps, 1e-5f);
    assert_true(residual(&blocks) <= 4e-6f);
    struct diag_count n = diag_total(blocks.c, &blocks.box, 0, s.B);
    if (k->arch != KERN_REF && cell < 2) {
        assert_int_equal(n.fallbacks, 0);
        assert_in_range(n.most, 1, DIAG_CAP);
        assert_in_range(n.iterations, n.blocks, n.blocks * 8);
        assert_true(n.blocks >= s.B * (round_up(s.H, LANES) / LANES) * ceil_div(s.T, DIAG_BLOCK));
    } else {
        assert_int_equal(n.blocks, 0);
    }
    bwd(&blocks, 0, s.T);
    dw(&blocks, 0, s.T);
    same_gradients(&blocks, &steps, 1e-5);
    lay_free(&steps);
    lay_free(&blocks);
}

TEST(blocks_equal_steps_every_length_cell_and_instruction_set) {
    static const i32 lengths[] = {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 4097};
    for (i32 a = 0; a < KERN_NARCH; a++)
        for (i32 cell = 0; cell < CELLS && kern_get((enum kern_arch)a); cell++)
            for (u32 i = 0; i < COUNT(lengths) - (t_few() ? 4 : 0); i++)
                blocks_equal_steps(cell, kern_get((enum kern_arch)a), (struct shape){lengths[i], 2, 3, i % 2 ? 17 : 5});
}

TEST(blocks_equal_steps_over_65536) {
    const struct shape s = {t_few() ? 4096 : 65536, 1, 2, 16};
    for (i32 cell = 0; cell < CELLS; cell++) blocks_equal_steps(cell, kern_best(), s);
}

/* Bistable units: Newton diverges, and the fallback must be correct. */
TEST(newton_that_fails_falls_back_to_steps) {
    for (i32 cell = 0; cell < 2; cell++)
        for (i32 a = KERN_BASE; a < KERN_NARCH; a++) {
            const struct kern *k = kern_get((enum kern_arch)a);
            struct lay steps, blocks;
            struct shape s = {500, 3, 3, 20};
            if (!k) continue;
            lay_new(&steps, cell, k, s, 0, 300);
            lay_new(&blocks, cell, k, s, CELL_NEWTON, 300);
            fwd(&steps, 0, s.T);
            fwd(&blocks, 0, s.T);
            struct diag_count n = diag_total(blocks.c, &blocks.box, 0, s.B);
            assert_true(n.fallbacks > 0 && n.most <= DIAG_CAP);
            same_values(&blocks, &steps, 1e-5f);
            lay_free(&steps);
            lay_free(&blocks);
        }
}

TEST(nan_ends_and_stays_in_its_row) {
    for (i32 cell = 0; cell < CELLS; cell++)
        for (u32 how = 0; how <= CELL_SCAN; how++) {
            struct lay good, bad;
            struct shape s = {200, 2, 3, 5};
            const i32 at = 77, Hp = round_up(s.H, LANES);
            lay_new(&good, cell, kern_best(), s, how, 0.9f);
            lay_new(&bad, cell, kern_best(), s, how, 0.9f);
            bad.x[((i64)at * s.B + 1) * bad.box.x_ld + 2] = NAN;
            all(&good);
            all(&bad);
            for (i32 t = 0; t < s.T; t++)
                for (i32 b = 0; b < s.B; b++)
                    for (i32 u = 0; u < s.H; u++) {
                        const i64 i = ((i64)t * s.B + b) * Hp + u;
                        if (b == 1 && t >= at)
                            assert_true(isnan(bad.box.y[i]));
                        else
                            near_abs("y", &bad.box.y[i], &good.box.y[i], 1, 1e-5f);
                    }
            lay_free(&good);
            lay_free(&bad);
        }
}

/* ------------------------------------------------------------------ calls cut in two ---------------------------------------- */

/* [0,cut) and [cut,T) of the same arguments, and both halves as separate calls, the final state of one the initial state of the
 * other. */
static void two_calls(i32 cell, u32 how, i32 cut) {
    struct shape s = {150, 2, 3, 18}, left = s, right = s;
    struct lay one, two, l, r;
    left.T = cut, right.T = s.T - cut;
    lay_new(&one, cell, kern_best(), s, how, 0.9f);
    lay_new(&two, cell, kern_best(), s, how, 0.9f);
    all(&one);
    fwd(&two, 0, cut);
    fwd(&two, cut, s.T);
    bwd(&two, cut, s.T);
    dw(&two, cut, s.T);
    bwd(&two, 0, cut);
    dw(&two, 0, cut);
    same_values(&two, &one, how ? 1e-5f : 0);
    same_gradients(&two, &one, 1e-5);
    lay_new(&l, cell, kern_best(), left, how, 0.9f);
    lay_new(&r, cell, kern_best(), right, how, 0.9f);
    r.box.x = l.x = one.x, l.box.x = one.x;
    r.box.x += (i64)cut * s.B * r.box.x_ld;
    l.box.dy = one.box.dy, r.box.dy = one.box.dy + (i64)cut * l.ns;
    fwd(&l, 0, cut);
    r.box.h0 = l.box.hT, r.box.c0 = l.box.cT;
    fwd(&r, 0, right.T);
    bwd(&r, 0, right.T);
    dw(&r, 0, right.T);
    l.box.dhT = r.box.dh0, l.box.dcT = r.box.dc0;
    bwd(&l, 0, cut);
    dw(&l, 0, cut);
    near_abs("hT", r.box.hT, one.box.hT, one.ns, how ? 1e-5f : 0);
    t_near("dh0", l.box.dh0, one.box.dh0, one.ns, 1e-5);
    if (l.box.dc0) t_near("dc0", l.box.dc0, one.box.dc0, one.ns, 1e-5);
    t_near("dx", l.box.dx, one.box.dx, l.nx, 1e-5);
    for (i64 i = 0; i < one.nw; i++) l.dw[i] += r.dw[i];
    t_near("dw", l.dw, one.dw, one.nw, 1e-5);
    lay_free(&one), lay_free(&two), lay_free(&l), lay_free(&r);
}

TEST(two_chained_calls_equal_one_long_call) {
    for (i32 cell = 0; cell < CELLS; cell++)
        for (u32 how = 0; how <= CELL_SCAN; how += CELL_NEWTON)
            for (i32 cut = 1; cut < 150; cut += 37) two_calls(cell, how, cut);
}

/* Repeats the steps of a row from another state, as time slicing does: fwd, then fwd and bwd again. */
TEST(running_again_leaves_nothing_of_before) {
    for (i32 cell = 0; cell < CELLS; cell++) {
        struct lay once, twice;
        struct shape s = {90, 3, 2, 17};
        lay_new(&once, cell, kern_best(), s, 0, 0.9f);
        lay_new(&twice, cell, kern_best(), s, 0, 0.9f);
        twice.box.h0 = NULL, twice.box.c0 = NULL;
        fwd(&twice, 0, s.T);
        bwd(&twice, 0, s.T);
        twice.box.h0 = twice.h0, twice.box.c0 = twice.box.cT ? twice.c0 : NULL;
        all(&once);
        all(&twice);
        same_values(&twice, &once, 0);
        same_gradients(&twice, &once, 0);
        lay_free(&once);
        lay_free(&twice);
    }
}

/* dx with rows as close as they can be. */
TEST(narrow_dx_equals_padded_dx) {
    for (i32 cell = 0; cell < CELLS; cell++) {
        struct lay l;
        struct shape s = {9, 3, 5, 17};
        lay_new(&l, cell, kern_best(), s, 0, 0.9f);
        all(&l);
        f32 *padded = l.box.dx, *narrow = floats(&l, (i64)s.T * s.B * s.I);
        l.box.dx = narrow, l.box.dx_ld = s.I;
        all(&l);
        for (i32 r = 0; r < s.T * s.B; r++) near_abs("dx", narrow + (i64)r * s.I, padded + r * l.box.x_ld, s.I, 1e-5f);
        lay_free(&l);
    }
}

/* ------------------------------------------------------------------ teams --------------------------------------------------- */

struct member {
    struct lay *l;
    struct cell_team team;
    pthread_t thread;
};

static void *member_run(void *arg) {
    struct member *m = arg;
    struct cell_args box = m->l->box;
    box.team = &m->team;
    m->l->k->fwd(&box, 0, box.B, 0, box.T);
    m->team.base += 1000;
    m->l->k->bwd(&box, 0, box.B, 0, box.T);
    m->l->k->dw(&box, 0, box.B, 0, box.T, m->l->dw, m->l->db);
    return NULL;
}

TEST(team_gives_the_bits_of_one) {
    static _Alignas(64) char flags[TEAM_MAX * TEAM_LINE];
    for (i32 cell = 0; cell < CELLS; cell++)
        for (u32 how = 0; how <= CELL_SCAN; how += CELL_NEWTON)
            for (i32 n = 2; n <= 4; n++) {
                struct lay one, team;
                struct member m[4];
                struct shape s = {70, 2, 3, 41};
                lay_new(&one, cell, kern_best(), s, how, 0.9f);
                lay_new(&team, cell, kern_best(), s, how, 0.9f);
                memset(flags, 0, sizeof flags);
                all(&one);
                for (i32 i = 0; i < n; i++) {
                    m[i] = (struct member){&team, {.me = i, .n = n, .base = 1, .flag = flags}, 0};
                    assert_int_equal(pthread_create(&m[i].thread, NULL, member_run, &m[i]), 0);
                }
                for (i32 i = 0; i < n; i++) pthread_join(m[i].thread, NULL);
                same_values(&team, &one, 0);
                same_gradients(&team, &one, 0);
                lay_free(&one);
                lay_free(&team);
            }
}

T_MAIN(cmocka_unit_test(gradients_equal_the_twins_every_walk_and_instruction_set),
       cmocka_unit_test(gradients_equal_the_twins_more_than_a_panel_and_a_block),
       cmocka_unit_test(blocks_equal_steps_every_length_cell_and_instruction_set),
       cmocka_unit_test(blocks_equal_steps_over_65536), cmocka_unit_test(newton_that_fails_falls_back_to_steps),
       cmocka_unit_test(nan_ends_and_stays_in_its_row), cmocka_unit_test(two_chained_calls_equal_one_long_call),
       cmocka_unit_test(running_again_leaves_nothing_of_before), cmocka_unit_test(narrow_dx_equals_padded_dx),
       cmocka_unit_test(team_gives_the_bits_of_one))
