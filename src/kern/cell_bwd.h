/* cell_bwd.h - backward of a recurrent layer through time; a part of cell_tile.h, which includes it.
 *
 *     t = T-1 .. 0     dh = dy + dz[t+1] Wh' (+ the part that bypasses the product), then the cell turns gates into dz in place
 *     after the loop   dx = dz Wx' of all steps at once; dh0 = dz[0] Wh'
 *
 * A team member computes dh and dz of its own units; for that it needs dz[t+1] of all units. dx is split among members by
 * steps. cell_one.h has the version for a batch of one row. */
#ifndef STRETTO_KERN_CELL_BWD_H
#define STRETTO_KERN_CELL_BWD_H

/* Prefetches what the cell at the end of a tile reads, one row at a time, while the product runs. */
INLINE void prefetch_cell(const int NV, const struct step *s, i64 b, i32 u) {
    const i64 row = b * s->Hp + u;
    UNROLL for (int j = 0; j < NV; j++) {
        const f32 *act = unit_at(s, s->act, b, u + j * VL);
        UNROLL for (int g = 0; g < GA; g++) __builtin_prefetch(act + g * LANES, 0, 3);
        if (HAS_C) __builtin_prefetch(s->s + row + j * VL, 0, 3);
        if (s->s_prev) __builtin_prefetch(s->s_prev + row + j * VL, 0, 3);
        if (s->dy) __builtin_prefetch(s->dy + row + j * VL, 0, 3);
        if (HAS_C && s->h) __builtin_prefetch(s->h + row + j * VL, 0, 2); /* for the dW that follows: saves 12 % of its time at
                                                                           * H = 128 */
    }
}

INLINE void cell_bwd_at(const struct step *s, i64 b, i64 u, vf dh) {
    const i64 row = b * s->Hp + u;
    f32 *act = unit_at(s, s->act, b, u);
    vf z[GA], ds = v_load_or_zero(s->ds_in, row);
    UNROLL for (int g = 0; g < GA; g++) z[g] = v_load(act + slot_of[g] * LANES);
    gates_bwd(z, v_load_or_zero(s->s_prev, row), v_load_or_zero(HAS_C ? s->s : NULL, row), dh, &ds);
    UNROLL for (int g = 0; g < GA; g++) v_store(act + slot_of[g] * LANES, z[g]);
    v_store(s->ds + row, ds);
}

/* MR rows from b and NV vectors of columns from u, of dh or of a plain product, summed over panels pa..pb of dz. part: the
 * tile's partial sums between blocks of panels, rows BC apart. */
INLINE void bwd_tile(const int MR, const int NV, const struct step *s, i32 b, i32 u, i32 pa, i32 pb, f32 *part) {
    vf acc[ROWS_MAX][ACC];
    const i64 group[1] = {0};
    const bool last = pb == s->NP, cell = last && !s->out;
    UNROLL for (int r = 0; r < MR; r++)
        UNROLL for (int j = 0; j < NV; j++) acc[r][j] = pa > 0 ? v_load(part + r * BC + j * VL) : v_zero();
    if (s->dz) {
        const i64 K = (i64)s->NP * WROW;
        const f32 *w = s->wt + (u / BC * K + (i64)pa * WROW) * BC + u % BC;
        const i32 rows = ceil_div(MR, pb - pa);
        i32 row = 0;
        for (i32 p = pa; p < pb; p++, w += WROW * BC) {
            for (i32 end = imin(MR, row + rows); cell && row < end; row++) prefetch_cell(NV, s, b + row, u);
            const i32 units = imin(LANES, s->H - p * LANES), n = units < LANES ? units : WROW; /* padding units hold zero */
            for (i32 k = 0; k < WROW; k += units < LANES ? LANES : WROW)
                mul_rows(MR, NV, acc, TO_SAME, s->dz + p * s->panel + (i64)b * AROW + k, AROW, w + k * BC, BC, group,
                         WIDE, VL, n,
                         s->ahead ? s->ahead + ((i64)(p - pa) * WROW + k) * LANES : NULL);
        }
    }
    UNROLL for (int r = 0; r < MR; r++) {
        UNROLL for (int j = 0; j < NV; j++) {
            const i64 row = (i64)(b + r) * s->Hp + u + j * VL;
            if (last) acc[r][j] += v_load_or_zero(s->dy, row) + v_load_or_zero(s->dh_add, row);
            if (cell)
                cell_bwd_at(s, b + r, u + j * VL, acc[r][j]);
            else
                v_store(part + r * BC + j * VL, acc[r][j]);
        }
    }
}

typedef void bwd_fn(const struct step *, i32 b, i32 u, i32 pa, i32 pb, f32 *part);
#define BWD(n, nv)                                                                                                               \
    static void bwd_##nv##_##n(const struct step *s, i32 b, i32 u, i32 pa, i32 pb, f32 *part) {                                  \
        bwd_tile(n, nv, s, b, u, pa, pb, part);                                                                                  \
    }
UP_TO_WIDE(BWD)
static bwd_fn *const bwd_rows[WIDE + 1][ROWS_MAX + 1] = TILES_TO_WIDE(bwd);

/* nv vectors of columns from u for rows b0..b1, at most ROW_BLOCK rows. */
static void bwd_columns(struct step *s, i32 b0, i32 b1, i32 u, i32 nv) {
    f32 part[ROW_BLOCK * BC] __attribute__((aligned(64)));
    bwd_fn *const *tiles = bwd_rows[nv];
    const bool far = s->dz && (i64)s->NP * WROW * (s->u1 - s->u0) > FAR_FLOATS;
    for (i32 pa = 0; pa < s->NP; pa += K_PANELS) {
        const i32 first = s->dz ? pa : 0, pb = s->dz ? imin(s->NP, pa + K_PANELS) : s->NP;
        const i64 block = (i64)(pb - first) * WROW * BC, done = (i64)(pb - first) * WROW * LANES;
        const f32 *from = s->wt + ((i64)u / BC * s->NP + pb) * WROW * BC, *to = far ? from + block : from;
        for (i32 b = b0; b < b1;) {
            const i32 n = tile_rows(b1 - b);
            s->ahead = from + done <= to ? from : NULL;
            from += done;
            tiles[n](s, b, u, first, pb, part + (i64)(b - b0) * BC);
            b += n;
        }
        if (pb == s->NP) break;
    }
    for (i32 b = b0; b < b1 && s->out; b++)
        memcpy(s->out + b * s->out_ld + u, part + (i64)(b - b0) * BC, (size_t)imin(nv * VL, s->u1 - u) * sizeof(f32));
}

INLINE i32 bwd_width(const struct step *s, i32 u) { /* vectors of a tile at u; a tile stays within one block of wt */
    return imin(WIDE - u % BC / VL, ceil_div(s->u1 - u, VL));
}

/* dh and the cell, or a plain product, for rows r0..r1 and columns u0..u1. */
static void rows_bwd(struct step *s, i32 r0, i32 r1) {
    for (i32 b0 = r0; b0 < r1; b0 += ROW_BLOCK)
        for (i32 u = s->u0, nv; u < s->u1; u += nv * VL) {
            nv = bwd_width(s, u);
            bwd_columns(s, b0, imin(r1, b0 + ROW_BLOCK), u, nv);
        }
}

#include "kern/cell_one.h"

/* Backward of step t; done: the number of steps that the other members must have finished. */
static void step_bwd(const struct cell_args *x, struct step *s, i32 b0, i32 b1, i32 t, i32 done) {
    if (cell_is_one_row(x)) {
        one_bwd(x, s, t, done);
        return;
    }
    team_wait(x->team, done);
    rows_bwd(s, b0, b1);
}

/* dx of rows b0..b1, steps t0..t1. Consecutive steps with the whole batch live become one product; dx of rows without the step
 * is zero. */
static void rows_dx(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    for (i32 t = t0; t < t1;) {
        const i32 n = imin(b1, cell_live(x, t));
        i32 end = t + 1;
        while (b0 == 0 && n == x->B && end < t1 && cell_live(x, end) == n) end++;
        struct step s = step_of(x, t);
        s.dz = s.act + XSLOT * LANES;
        s.wt = x->wt + wt_side(s.Hp, s.Hp);
        s.out = x->dx + (i64)t * x->B * x->dx_ld;
        s.out_ld = x->dx_ld;
        s.u0 = 0;
        s.u1 = x->I;
        if (b0 < n) rows_bwd(&s, b0, n + (end - t - 1) * x->B);
        for (i32 b = imax(b0, n); b < b1; b++) memset(s.out + b * s.out_ld, 0, (size_t)x->I * sizeof(f32));
        t = end;
    }
}

/* The gradient of the state before step t0, once that step is done. */
static void begin_states(const struct cell_args *x, i32 b0, i32 b1, i32 t0) {
    const i32 Hp = round_up(x->H, LANES), n = imin(b1, cell_live(x, t0));
    const f32 *ds = x->carry + (i64)x->B * Hp;
    struct step s = step_of(x, t0);
    s.dz = s.act + HSLOT * LANES;
    s.wt = x->wt;
    s.dh_add = HAS_C ? NULL : ds;
    s.out = x->dh0;
    s.out_ld = Hp;
    if (x->dh0 && b0 < n) step_bwd(x, &s, b0, n, t0 - 1, 0);
    for (i32 b = b0; b < b1; b++) {
        if (x->dh0 && b >= n) copy_units(x, x->dh0, x->dhT, b, s.u0, s.u1);
        if (HAS_C && x->dc0) copy_units(x, x->dc0, b < n ? ds : x->dcT, b, s.u0, s.u1);
    }
}

static void cell_bwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const i32 Hp = round_up(x->H, LANES);
    f32 *ds = x->carry + (i64)x->B * Hp;
    for (i32 t = t1 - 1; t >= t0; t--) {
        const i32 n = imin(b1, cell_live(x, t)), on = imax(b0, imin(n, cell_live(x, t + 1))), done = t1 - 1 - t;
        struct step s = step_of(x, t);
        s.dy = x->dy ? x->dy + (i64)t * x->B * Hp : NULL;
        s.ds = ds;
        if (on < n) { /* rows whose last step is t */
            s.dh_add = x->dhT;
            s.ds_in = HAS_C ? x->dcT : NULL;
            step_bwd(x, &s, on, n, t, 0);
        }
        if (b0 < on) { /* rows that have a step t + 1 */
            s.dz = act_step(x, t + 1) + HSLOT * LANES;
            s.wt = x->wt;
            s.dh_add = HAS_C ? NULL : ds;
            s.ds_in = ds;
            step_bwd(x, &s, b0, on, t, done);
        }
        if (t == t0 || !one_shared(x)) team_signal(x->team, done + 1);
    }
    team_wait(x->team, t1 - t0);
    i32 a, b;
    team_part(x->team, t1 - t0, &a, &b);
    if (x->dx) rows_dx(x, b0, b1, t0 + a, t0 + b);
    begin_states(x, b0, b1, t0);
    team_signal(x->team, t1 - t0 + 1);
    team_wait(x->team, t1 - t0 + 1);
}

#endif
