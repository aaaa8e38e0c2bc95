/* layer_args.c - see layer_args.h. */
#include "kern/layer_args.h"

#include "t.h"

#include "base/mem.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

const char *const kind_name[] = {"lstm", "gru", "rnn"};

f32 *floats(i64 n) {
    f32 *p = mem_alloc((size_t)n * sizeof *p);
    assert_non_null(p);
    return p;
}

i32 steps_of(const struct shape *s, i32 b) { return s->ragged ? (i32)((i64)s->T * (s->B - 1 - b) / imax(1, s->B - 1)) : s->T; }

void bench_new(struct bench *e, const struct cell_kern *k, enum cell_kind kind, const struct shape *s) {
    const i32 Hp = round_up(s->H, LANES);
    const i64 TB = (i64)s->T * s->B, x_ld = s->I + 3;
    *e = (struct bench){.kind = kind, .dw_n = cell_w_floats(kind, s->I, s->H), .db_n = cell_bias_floats(kind, s->H)};
    e->w = floats(e->dw_n), e->dw = floats(e->dw_n), e->bias = floats(e->db_n), e->dbias = floats(e->db_n);
    e->wt = floats(k->wt_floats(s->I, s->H));
    f32 **rows[] = {&e->h0, &e->c0, &e->hT, &e->cT, &e->dhT, &e->dcT, &e->dh0, &e->dc0};
    for (size_t j = 0; j < COUNT(rows); j++) *rows[j] = floats((i64)s->B * Hp);
    e->x = floats(TB * x_ld), e->dx = floats(TB * x_ld), e->y = floats(TB * Hp), e->dy = floats(TB * Hp);
    e->act = floats(k->act_floats(s->T, s->B, s->I, s->H)), e->carry = floats(2 * (i64)s->B * Hp);
    for (i64 j = 0; j < TB * x_ld; j++) e->dx[j] = 7; /* overwritten, and nothing beyond I */
    for (i64 j = 0; j < TB * Hp; j++) e->y[j] = 7;
    e->live = mem_alloc((size_t)s->T * sizeof *e->live);
    assert_non_null(e->live);
    for (i32 t = 0; t < s->T; t++) {
        e->live[t] = 0;
        for (i32 b = 0; b < s->B; b++) e->live[t] += steps_of(s, b) > t;
    }
    e->box = (struct cell_args){.T = s->T,
                               .B = s->B,
                               .I = s->I,
                               .H = s->H,
                               .x = e->x,
                               .x_ld = x_ld,
                               .y = e->y,
                               .act = e->act,
                               .h0 = s->state ? e->h0 : NULL,
                               .c0 = s->state ? e->c0 : NULL,
                               .hT = e->hT,
                               .cT = e->cT,
                               .live = s->ragged ? e->live : NULL,
                               .w = e->w,
                               .bias = e->bias,
                               .wt = e->wt,
                               .dy = s->no_dy ? NULL : e->dy,
                               .dhT = s->dend ? e->dhT : NULL,
                               .dcT = s->dend ? e->dcT : NULL,
                               .dx = s->no_dx ? NULL : e->dx,
                               .dx_ld = x_ld,
                               .dh0 = e->dh0,
                               .dc0 = e->dc0,
                               .carry = e->carry};
}

/* rows of n values, ld apart */
static void draw(f32 *p, i64 rows, i64 n, i64 ld, f32 scale, u32 what) {
    for (i64 r = 0; r < rows; r++)
        for (i64 j = 0; j < n; j++) p[r * ld + j] = scale * (2 * rng_uniform(9, RNG_TEST, what, (u64)(r * n + j)) - 1);
}

void bench_fill(struct bench *e) {
    const struct cell_args *x = &e->box;
    const i32 Hp = round_up(x->H, LANES);
    const i64 G = (i64)cell_gates(e->kind) * x->H, TB = (i64)x->T * x->B;
    struct cell_canon c = {floats(G * x->I), floats(G * x->H), floats(G), floats(G)};
    const f32 scale = 1.5f / sqrtf((f32)x->H);
    draw(c.w_ih, 1, G * x->I, 0, scale, 1), draw(c.w_hh, 1, G * x->H, 0, scale, 2);
    draw(c.b_ih, 1, G, 0, 0.5f, 3), draw(c.b_hh, 1, G, 0, 0.5f, 4);
    cell_pack(e->kind, x->I, x->H, &c, e->w, e->bias);
    mem_free(c.w_ih), mem_free(c.w_hh), mem_free(c.b_ih), mem_free(c.b_hh);
    draw(e->x, TB, x->I, x->x_ld, 1, 5), draw(e->dy, TB, x->H, Hp, 1, 6);
    f32 *const rows[] = {e->h0, e->c0, e->dhT, e->dcT};
    for (u32 j = 0; j < COUNT(rows); j++) draw(rows[j], x->B, x->H, Hp, 1, 7 + j);
}

void bench_free(struct bench *e) {
    f32 *all[] = {e->w,  e->bias, e->wt, e->dw,  e->dbias, e->x,  e->y,   e->act, e->h0,   e->c0,
                  e->hT, e->cT,   e->dy, e->dhT, e->dcT,   e->dx, e->dh0, e->dc0, e->carry};
    for (size_t j = 0; j < COUNT(all); j++) mem_free(all[j]);
    mem_free(e->live);
}

static void same_bits(const char *what, const char *name, const f32 *a, const f32 *b, i64 n) {
    if (memcmp(a, b, (size_t)n * sizeof *a) == 0) return;
    for (i64 j = 0; j < n; j++)
        if (memcmp(a + j, b + j, sizeof *a) != 0)
            fail_msg("%s %s differs at %lld: %.9g and %.9g", what, name, (long long)j, (f64)a[j], (f64)b[j]);
}

void bench_same_bits(const char *what, const struct bench *a, const struct bench *b) {
    const struct cell_args *x = &a->box;
    const i64 Hp = round_up(x->H, LANES), TB = (i64)x->T * x->B, BH = x->B * Hp;
    same_bits(what, "y", a->y, b->y, TB * Hp), same_bits(what, "hT", a->hT, b->hT, BH), same_bits(what, "cT", a->cT, b->cT, BH);
    same_bits(what, "dx", a->dx, b->dx, TB * x->dx_ld), same_bits(what, "dh0", a->dh0, b->dh0, BH);
    same_bits(what, "dc0", a->dc0, b->dc0, BH);
}

void bench_same_dw(const char *what, const struct bench *a, const struct bench *b) {
    same_bits(what, "dw", a->dw, b->dw, a->dw_n), same_bits(what, "dbias", a->dbias, b->dbias, a->db_n);
}
