/* cell_one.h - backward of a batch of one row; a part of cell_bwd.h, which includes it.
 *
 * One row is limited by reading the weights, and a team by waiting for the other member's results. So dh is the sum of two
 * halves of the panels. In a team of two, each member multiplies the half of dz that it produced itself, for all units:
 *
 *     member 0     lo half of 1's dh -> buffer   lo half of its own dh     wait     + hi half from buffer   cell -> dz lo
 *     member 1     hi half of 0's dh -> buffer   hi half of its own dh     wait     + lo half from buffer   cell -> dz hi
 *
 * Half a step lies between signal and wait, and the buffer moves a quarter of what dz would. Two buffers alternate: a member
 * overwrites one only after the other's next signal, which the other sent after reading it. */
#ifndef STRETTO_KERN_CELL_ONE_H
#define STRETTO_KERN_CELL_ONE_H

enum { ONE_KU = VL == 16 ? 4 : 2, ONE_NV = 4, ONE_UNITS = 1024 };

/* out[NV vectors] = dz of panels pa..pb times columns u.. of wt, summed in ONE_KU independent chains. */
INLINE void one_tile(const int NV, const struct step *s, i32 u, i32 pa, i32 pb, f32 *out) {
    vf acc[ONE_KU][ONE_NV];
    UNROLL for (int k = 0; k < ONE_KU; k++)
        UNROLL for (int j = 0; j < NV; j++) acc[k][j] = v_zero();
    const i64 block = (i64)s->NP * WROW * BC;
    const f32 *w = s->wt + u / BC * block + (i64)pa * WROW * BC + u % BC;
    for (i32 p = pa; p < pb; p++, w += WROW * BC) {
        const f32 *dz = s->dz + p * s->panel;
        for (i32 i = 0; i < WROW; i += ONE_KU)
            UNROLL for (int k = 0; k < ONE_KU; k++) {
                const vf a = v_set1(dz[i + k]);
                UNROLL for (int j = 0; j < NV; j++)
                    acc[k][j] = v_fma(a, v_load(w + j / WIDE * block + (i + k) * BC + j % WIDE * VL), acc[k][j]);
            }
    }
    UNROLL for (int k = ONE_KU - 1; k > 0; k--)
        UNROLL for (int j = 0; j < NV; j++) acc[k - 1][j] += acc[k][j];
    UNROLL for (int j = 0; j < NV; j++) v_store(out + j * VL, acc[0][j]);
}

typedef void one_fn(const struct step *, i32 u, i32 pa, i32 pb, f32 *out);
#define ONE(nv)                                                                                                                  \
    static void one_##nv(const struct step *s, i32 u, i32 pa, i32 pb, f32 *out) { one_tile(nv, s, u, pa, pb, out); }
ONE(1) ONE(2) ONE(3) ONE(4)
static one_fn *const one_cols[ONE_NV + 1] = {NULL, one_1, one_2, one_3, one_4};

/* out[u0..u1) = the lower or upper half of the panels of dz times wt; zero if there is no dz. */
static void one_half(const struct step *s, bool hi, i32 u0, i32 u1, f32 *out) {
    const i32 mid = s->NP / 2, pa = !s->dz || !hi ? 0 : mid, pb = !s->dz ? 0 : hi ? s->NP : mid;
    for (i32 u = u0, nv; u < u1; u += nv * VL) {
        nv = imin(ONE_NV - u / VL % ONE_NV, (u1 - u) / VL);
        one_cols[nv](s, u, pa, pb, out + u - u0);
    }
}

/* dh of units u0..u1 = sum of its two halves plus dy and dh_add; then the cell, or a copy to out. */
static void one_cell(const struct step *s, i32 u0, i32 u1, const f32 *a, const f32 *b) {
    for (i32 u = u0; u < u1; u += VL) {
        const vf dh = v_load(a + u - u0) + v_load(b + u - u0) + (v_load_or_zero(s->dy, u) + v_load_or_zero(s->dh_add, u));
        if (s->out)
            v_store(s->out + u, dh);
        else
            cell_bwd_at(s, 0, u, dh);
    }
}

static bool one_shared(const struct cell_args *x) { return x->B == 1 && x->team && x->team->n == 2; }

/* Backward of the row at step t. done > 0: this call computed dz of step t + 1, so wait for the other members' part of it. */
static void one_bwd(const struct cell_args *x, const struct step *s, i32 t, i32 done) {
    f32 half[2][ONE_UNITS] __attribute__((aligned(64)));
    const bool shared = done > 0 && one_shared(x), hi = shared && x->team->me == 1;
    f32 *mail = shared_dh(x, t & 1);
    if (shared) {
        const i32 from = hi ? 0 : s->u1, to = hi ? s->u0 : s->Hp;
        team_prefetch(x->team, mail + from, to - from);
        one_half(s, hi, from, to, mail + from);
        team_signal(x->team, done);
    } else {
        team_wait(x->team, done);
    }
    for (i32 u = s->u0, end; u < s->u1; u = end) {
        end = imin(s->u1, u + ONE_UNITS);
        one_half(s, hi, u, end, half[0]);
        if (shared)
            team_wait(x->team, done);
        else
            one_half(s, !hi, u, end, half[1]);
        one_cell(s, u, end, half[0], shared ? mail + u : half[1]);
    }
}

#endif
