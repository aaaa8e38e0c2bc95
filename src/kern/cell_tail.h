/* cell_tail.h - the last panel of a layer if it holds only 1 to 4 units (H = 20, 50, 100, 500 ..); a part of cell_tile.h.
 *
 *     other panels   one vector per gate         i i .. i    f f .. f    g g .. g    o o .. o     16 units of a row
 *     this panel     one vector for all gates    i i i i  f f f f  g g g g  o o o o               4 units of a row
 *
 * Its products cost a quarter, and the cell processes 4 rows at once. The same values are added in the same order; padding
 * units get zero. */
#ifndef STRETTO_KERN_CELL_TAIL_H
#define STRETTO_KERN_CELL_TAIL_H

enum {
    TAIL = 4,         /* units of the panel = floats per gate */
    TAIL_INPUTS = 512 /* layers with more inputs use the normal tiles: there one panel is a small part of the work */
};

static const i32 in_order[GA] = {0, 1, 2, 3};

/* Gathers the units of gate g from slot[g] of a panel row to place g of a vector; gates from n on are zero. */
INLINE void tail_gather(f32 *to, const f32 *from, const i32 *slot, i32 n) {
    for (i32 g = 0; g < LANES / TAIL; g++) {
        if (g < n)
            memcpy(to + g * TAIL, from + slot[g] * LANES, TAIL * sizeof *to);
        else
            memset(to + g * TAIL, 0, TAIL * sizeof *to);
    }
}

/* ------------------------------------------------------------------ forward ------------------------------------------------- */

/* True if s ends with such a panel. Then `to` receives its weights, one vector per input in the order of a unit's values, zero
 * where a gate has no weight. */
static bool tail_weights(const struct cell_args *x, const struct step *s, f32 to[TAIL_INPUTS * LANES]) {
    const i32 K = x->I + x->H;
    const f32 *w = x->w + (i64)(s->NP - 1) * K * WROW;
    if (s->u1 < s->Hp || x->H - (s->NP - 1) * LANES > TAIL || K > TAIL_INPUTS) return false;
    memset(to, 0, (size_t)K * LANES * sizeof *to);
    for (i32 k = 0; k < K; k++)
        for (i32 g = 0; g < GW; g++)
            memcpy(to + k * LANES + to_value(k < x->I ? TO_X : TO_H, g) * TAIL, w + (i64)k * WROW + g * LANES, TAIL * sizeof *to);
    return true;
}

/* transposes a 4 x 4 matrix of 4-float groups: group j of v[i] <-> group i of v[j] */
INLINE void tail_transpose(vf *v) {
    const vf a = _mm512_shuffle_f32x4(v[0], v[1], 0x88), b = _mm512_shuffle_f32x4(v[0], v[1], 0xdd);
    const vf c = _mm512_shuffle_f32x4(v[2], v[3], 0x88), d = _mm512_shuffle_f32x4(v[2], v[3], 0xdd);
    v[0] = _mm512_shuffle_f32x4(a, c, 0x88), v[2] = _mm512_shuffle_f32x4(a, c, 0xdd);
    v[1] = _mm512_shuffle_f32x4(b, d, 0x88), v[3] = _mm512_shuffle_f32x4(b, d, 0xdd);
}

/* The units of row r of 4; all other elements zero. */
INLINE vf tail_row(vf v, int r) {
    const vi lane = _mm512_setr_epi32(0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_maskz_permutexvar_ps(0xf, _mm512_add_epi32(lane, _mm512_set1_epi32(TAIL * r)), v);
}

/* The cell of MR <= 4 rows from b on. */
INLINE void tail_cell(const int MR, const struct step *s, i64 b, vf *z) {
    const i64 u = (i64)(s->NP - 1) * LANES;
    vf prev[4], c, h;
    UNROLL for (int r = 0; r < 4; r++) prev[r] = v_load_or_zero(s->s_prev, (b + imin(r, MR - 1)) * s->Hp + u);
    tail_transpose(prev);
    tail_transpose(z);
    gates_fwd(z, prev[0], &c, &h);
    UNROLL for (int r = 0; r < MR; r++) {
        f32 *act = unit_at(s, s->act, b + r, u);
        UNROLL for (int g = 0; g < GA; g++) v_store(act + slot_of[g] * LANES, tail_row(z[g], r));
        if (HAS_C) v_store(s->s_out + (b + r) * s->Hp + u, tail_row(c, r));
        v_store(s->y + (b + r) * s->Hp + u, tail_row(h, r));
        if (s->shared_h) v_store(s->shared_h + (b + r) * s->Hp + u, tail_row(h, r));
    }
}

INLINE void tail_tile(const int MR, const struct step *s, i32 b) {
    const i64 group[1] = {0};
    vf acc[8][ACC];
    f32 bias[LANES];
    tail_gather(bias, s->bias + (i64)(s->NP - 1) * AROW, in_order, GA);
    UNROLL for (int r = 0; r < MR; r++) acc[r][0] = v_load(bias);
    mul_rows(MR, 1, acc, TO_SAME, s->x + b * s->x_ld, s->x_ld, s->tail, LANES, group, 1, LANES, s->I, NULL);
    if (GA > GW) /* 0 * infinity = NaN: restore n_h, to which x contributes nothing */
        UNROLL for (int r = 0; r < MR; r++) acc[r][0] = _mm512_mask_mov_ps(acc[r][0], 0xf000, v_load(bias));
    if (s->h) {
        const i64 K = s->I * (i64)LANES;
        vf x_side[8];
        UNROLL for (int r = 0; r < MR; r++) x_side[r] = acc[r][0];
        mul_rows(MR, 1, acc, TO_SAME, s->h + (i64)b * s->Hp, s->Hp, s->tail + K, LANES, group, 1, LANES, s->H, NULL);
        if (GA > GW) /* and n_x, to which h contributes nothing */
            UNROLL for (int r = 0; r < MR; r++) acc[r][0] = _mm512_mask_mov_ps(acc[r][0], 0x0f00, x_side[r]);
    }
    UNROLL for (int r = 0; r < MR; r += 4) {
        vf z[4];
        UNROLL for (int i = 0; i < 4; i++) z[i] = acc[r + i < MR ? r + i : r][0];
        tail_cell(MR - r < 4 ? MR - r : 4, s, b + r, z);
    }
}

static void tail_8(const struct step *s, i32 b) { tail_tile(8, s, b); }
static void tail_4(const struct step *s, i32 b) { tail_tile(4, s, b); }
static void tail_1(const struct step *s, i32 b) { tail_tile(1, s, b); }

/* Rows b0..b1 of the last panel. */
static void step_tail(const struct step *s, i32 b0, i32 b1) {
    for (; b0 + 8 <= b1; b0 += 8) tail_8(s, b0);
    for (; b0 + 4 <= b1; b0 += 4) tail_4(s, b0);
    for (; b0 < b1; b0++) tail_1(s, b0);
}

#endif
