/* cell_tile.h - the fused recurrent layer over register tiles: the part that is the same for every cell.
 *
 * tile_lstm.c, tile_gru.c and tile_rnn.c say what their cell is and include this file, which then defines the cell_kern:
 *
 *     KIND, NAME            CELL_LSTM, lstm
 *     GW, GA                gates in the weights; values a unit keeps per step (gates, then dz)
 *     slot_of[GA]           where value g lies in an act row.  gru keeps n_x, r, z, n_h, so that the x side (the first GW slots)
 *     XSLOT, HSLOT          and the h side (the last GW) are each one run
 *     FWD_PANELS, ONE_PANELS   vectors of units in a forward tile: normally, and when the batch is one row
 *     DW_NV, DW_MK          vectors and rows of a dW tile
 *     gates_fwd(z, s_prev, &s, &h), gates_bwd(z, s_prev, s, dh, &ds)      the element-wise cell on vectors
 *
 *     act:  gates [NP][T*B + pad][GA][LANES]      c [T][B][Hp] after them (lstm)
 *     wt:   h side, then x side: [ceil(cols / BC)][NP * GW * LANES, ordered as act rows][BC]; cols = Hp or I, BC = 4 vectors
 *
 * Forward, a step: rows x 1 vector of units x all gates in registers, K = I + H in one product, the cell straight from registers.
 * Backward, a step: dh = dy + dz[t+1] Wh' in registers, then the cell backward in place of the gates.  dh is never stored. */
#include "kern/fill.h"
#include "kern/tile.h"

enum {
    HAS_C = KIND == CELL_LSTM,
    AROW = GA * LANES,    /* floats of an act row */
    WROW = GW * LANES,    /* floats of a weight row */
    BC = WIDE * VL,       /* columns of a block of wt */
    ROW_BLOCK = 96,       /* rows that share a panel of weights while it is warm */
    FAR_FLOATS = 1 << 18, /* weights beyond this are not in the second cache when they are needed */
    PANEL_PAD = 5 * AROW, /* so that panels do not start at the same place of a cache set */
    DW_CHUNK = 256,       /* rows of dz whose part of dW is added before the next ones are read */
    DW_ROWS = 128         /* of them, rows of one panel that stay in the first cache */
};

/* One step as the tiles see it; every pointer is at row 0 of the batch. */
struct step {
    i32 I, H, Hp, NP;
    i64 panel; /* floats from one panel of act to the next */
    const f32 *w, *bias;
    f32 *act, *y;
    const f32 *s_prev; /* c before the step (gru, rnn: h); NULL = zero */
    const f32 *s;      /* c after the step, in backward */
    f32 *s_out;        /* the same, in forward; gru, rnn: NULL */
    /* forward */
    const f32 *x, *h;
    i64 x_ld;
    /* backward: dh = dy + dh_add + dz times (a block of) wt */
    const f32 *dz, *wt, *dy, *dh_add, *ds_in;
    f32 *ds;
    /* a plain product instead of the cell: out[row][cols] */
    f32 *out;
    i64 out_ld;
    i32 cols;
    const f32 *ahead; /* weights to fetch on the way; NULL = none */
};

static i64 panel_floats(i32 T, i32 B) { return (i64)T * B * AROW + PANEL_PAD; }

INLINE f32 *unit_at(const struct step *s, f32 *base, i64 row, i64 u) {
    return base + u / LANES * s->panel + row * AROW + u % LANES;
}

/* ------------------------------------------------------------------ forward ------------------------------------------------- */

/* Which value of a unit a weight gate adds to, on the x side and on the h side, for up to four panels side by side. */
#if GA > GW
static const int to_x[ACC] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14}, to_h[ACC] = {0, 1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15};
#else
static const int to_x[ACC] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#define to_h to_x
#endif

/* Rows b.. , vectors q.. of units (vector q = units q*VL..). */
INLINE void fwd_tile(const int MR, const int PANELS, const struct step *s, i32 b, i32 q) {
    vf acc[ROWS_MAX][ACC];
    i64 at[ACC];
    const i32 K = s->I + s->H;
    const f32 *w = s->w + (i64)(q / SUB) * K * WROW + q % SUB * VL;
    UNROLL for (int p = 0; p < PANELS; p++) {
        const i64 off = (i64)((q + p) / SUB - q / SUB) * K * WROW + ((q + p) % SUB - q % SUB) * VL;
        UNROLL for (int g = 0; g < GW; g++) at[p * GW + g] = off + g * LANES;
        UNROLL for (int g = 0; g < GA; g++) {
            const vf bias = v_load(s->bias + ((q + p) / SUB * GA + g) * LANES + (q + p) % SUB * VL);
            UNROLL for (int r = 0; r < MR; r++) acc[r][p * GA + g] = bias;
        }
    }
    UNROLL for (int r = 0; r < MR; r++) {
        UNROLL for (int p = 0; p < PANELS; p++) {
            const f32 *to = unit_at(s, s->act, b + r, (q + p) * VL);
            UNROLL for (int g = 0; g < GA; g++) __builtin_prefetch(to + g * LANES, 1, 2);
        }
    }
    mul_rows(MR, GW * PANELS, acc, to_x, s->x + b * s->x_ld, s->x_ld, w, WROW, at, s->I, NULL);
    if (s->h) mul_rows(MR, GW * PANELS, acc, to_h, s->h + (i64)b * s->Hp, s->Hp, w + (i64)s->I * WROW, WROW, at, s->H, s->ahead);
    UNROLL for (int r = 0; r < MR; r++) {
        UNROLL for (int p = 0; p < PANELS; p++) {
            const i64 u = (q + p) * VL, row = (i64)(b + r) * s->Hp + u;
            f32 *act = unit_at(s, s->act, b + r, u);
            vf z[GA], c, h;
            UNROLL for (int g = 0; g < GA; g++) z[g] = acc[r][p * GA + g];
            gates_fwd(z, v_load_or_zero(s->s_prev, row), &c, &h);
            UNROLL for (int g = 0; g < GA; g++) v_store(act + slot_of[g] * LANES, z[g]);
            if (HAS_C) v_store(s->s_out + row, c);
            v_store(s->y + row, h);
        }
    }
}

typedef void fwd_fn(const struct step *, i32 b, i32 q);
#define FWD(n, panels, tag)                                                                                                      \
    static void fwd_##tag##n(const struct step *s, i32 b, i32 q) { fwd_tile(n, panels, s, b, q); }
FWD(1, FWD_PANELS, rows_) FWD(2, FWD_PANELS, rows_) FWD(1, ONE_PANELS, wide_)
#if FWD_PANELS > 1
FWD(1, 1, tail_) FWD(2, 1, tail_)
#endif
#if !defined(ISA_base)
FWD(3, FWD_PANELS, rows_)
#if FWD_PANELS > 1
FWD(3, 1, tail_)
#endif
#endif
#if defined(ISA_avx512)
FWD(4, FWD_PANELS, rows_) FWD(5, FWD_PANELS, rows_) FWD(6, FWD_PANELS, rows_)
#if FWD_PANELS > 1
FWD(4, 1, tail_) FWD(5, 1, tail_) FWD(6, 1, tail_)
#endif
#endif
static fwd_fn *const fwd_rows[ROWS_MAX + 1] = BY_ROWS(fwd_rows_);
#if FWD_PANELS > 1
static fwd_fn *const fwd_tail[ROWS_MAX + 1] = BY_ROWS(fwd_tail_);
#else
#define fwd_tail fwd_rows
#endif

static void step_fwd(struct step *s, bool one_row, i32 b0, i32 b1) {
    const i32 Q = s->Hp / VL, K = s->I + s->H;
    const bool far = (i64)s->NP * K * WROW > FAR_FLOATS;
    i32 q = 0;
    s->ahead = NULL;
    if (one_row) {
        for (; q + ONE_PANELS <= Q; q += ONE_PANELS) fwd_wide_1(s, b0, q);
        for (; q < Q; q++) fwd_tail[1](s, b0, q);
        return;
    }
    for (i32 r0 = b0; r0 < b1; r0 += ROW_BLOCK) {
        const i32 r1 = imin(b1, r0 + ROW_BLOCK);
        for (q = 0; q < Q;) {
            fwd_fn *const *tiles = q + FWD_PANELS <= Q ? fwd_rows : fwd_tail;
            const i32 next = q + (tiles == fwd_tail ? 1 : FWD_PANELS);
            const f32 *from = s->w + (i64)(next < Q ? next / SUB : 0) * K * WROW, *to = far ? from + (i64)K * WROW : from;
            for (i32 b = r0; b < r1;) {
                const i32 n = tile_rows(r1 - b);
                s->ahead = from + (i64)s->H * LANES <= to ? from : NULL;
                from += (i64)s->H * LANES;
                tiles[n](s, b, q);
                b += n;
            }
            q = next;
        }
    }
}

/* ------------------------------------------------------------------ the box ------------------------------------------------- */

static i32 live_rows(const struct cell_box *x, i32 t) { return t >= x->T ? 0 : x->live ? x->live[t] : x->B; }
static f32 *act_step(const struct cell_box *x, i32 t) { return x->act + (i64)t * x->B * AROW; }

static f32 *c_step(const struct cell_box *x, i32 t) {
    const i64 Hp = round_up(x->H, LANES);
    return x->act + Hp / LANES * panel_floats(x->T, x->B) + (i64)t * x->B * Hp;
}

static const f32 *h_before(const struct cell_box *x, i32 t) {
    return t > 0 ? x->y + (i64)(t - 1) * x->B * round_up(x->H, LANES) : x->h0;
}

static const f32 *s_before(const struct cell_box *x, i32 t) {
    if (!HAS_C) return h_before(x, t);
    return t > 0 ? c_step(x, t - 1) : x->c0;
}

static struct step step_of(const struct cell_box *x, i32 t) {
    const i32 Hp = round_up(x->H, LANES);
    struct step s = {.I = x->I, .H = x->H, .Hp = Hp, .NP = Hp / LANES, .panel = panel_floats(x->T, x->B), .w = x->w,
                     .bias = x->bias, .act = act_step(x, t), .y = x->y + (i64)t * x->B * Hp, .s_prev = s_before(x, t)};
    if (HAS_C) s.s = s.s_out = c_step(x, t);
    return s;
}

static void copy_row(f32 *to, const f32 *from, i64 row, i32 n) {
    if (from)
        memcpy(to + row * n, from + row * n, (size_t)n * sizeof *to);
    else
        memset(to + row * n, 0, (size_t)n * sizeof *to);
}

static void end_states(const struct cell_box *x, i32 b0, i32 b1) {
    const i32 Hp = round_up(x->H, LANES);
    i32 t = x->T;
    for (i32 b = b0; b < b1; b++) {
        while (t > 0 && b >= live_rows(x, t - 1)) t--;
        if (x->hT) copy_row(x->hT, h_before(x, t), b, Hp);
        if (HAS_C && x->cT) copy_row(x->cT, s_before(x, t), b, Hp);
    }
}

static void cell_fwd(const struct cell_box *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const i32 Hp = round_up(x->H, LANES);
    for (i32 t = t0; t < t1; t++) {
        const i32 n = imin(b1, live_rows(x, t));
        struct step s = step_of(x, t);
        s.x = x->x + (i64)t * x->B * x->x_ld;
        s.x_ld = x->x_ld;
        s.h = h_before(x, t);
        if (b0 < n) step_fwd(&s, x->B == 1, b0, n);
        for (i32 b = imax(b0, n); b < b1; b++) memset(s.y + (i64)b * Hp, 0, (size_t)Hp * sizeof(f32));
    }
    if (t1 == x->T) end_states(x, b0, b1);
}

/* ------------------------------------------------------------------ backward ------------------------------------------------ */

/* What the end of a tile reads is fetched while its product runs, a few lines at a time: elements i0..i1 of rows x NV. */
INLINE void prefetch_cell(const int NV, const struct step *s, i32 b, i32 u, i32 i0, i32 i1) {
    for (i32 i = i0; i < i1; i++) {
        const i64 at = u + i % NV * VL, row = (i64)(b + i / NV) * s->Hp + at;
        const f32 *act = unit_at(s, s->act, b + i / NV, at);
        UNROLL for (int g = 0; g < GA; g++) __builtin_prefetch(act + g * LANES, 0, 3);
        if (HAS_C) __builtin_prefetch(s->s + row, 0, 3);
        if (s->s_prev) __builtin_prefetch(s->s_prev + row, 0, 3);
        if (s->dy) __builtin_prefetch(s->dy + row, 0, 3);
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

/* Rows b.., columns u.. (NV vectors) of dh or of a plain product, over panels pa..pb of dz.  part: the tile's rows between
 * blocks of panels, BC apart.  KU chains of sums per element instead of one, for a batch of one row. */
INLINE void bwd_tile(const int MR, const int NV, const int KU, const struct step *s, i32 b, i32 u, i32 pa, i32 pb, f32 *part) {
    vf acc[ROWS_MAX > 4 ? ROWS_MAX : 4][ACC];
    const int to[ACC] = {0, 1, 2, 3, 4, 5, 6, 7};
    const i64 at[ACC] = {0, VL, 2 * VL, 3 * VL, BC, BC + VL, BC + 2 * VL, BC + 3 * VL};
    const bool last = pb == s->NP, cell = last && !s->out;
    UNROLL for (int r = 0; r < MR; r++)
        UNROLL for (int j = 0; j < NV; j++) acc[r][j] = pa > 0 ? v_load(part + r * BC + j * VL) : v_zero();
    if (s->dz) {
        const i64 K = (i64)s->NP * WROW;
        const f32 *w = s->wt + (u / BC * K + (i64)pa * WROW) * BC + u % BC;
        if (KU > 1) {
            UNROLL for (int k = 1; k < KU; k++)
                UNROLL for (int j = 0; j < NV; j++) acc[k][j] = v_zero();
            for (i32 p = pa; p < pb; p++, w += WROW * BC) {
                const f32 *dz = s->dz + p * s->panel + (i64)b * AROW;
                for (i32 i = 0; i < WROW; i += KU)
                    UNROLL for (int k = 0; k < KU; k++) {
                        const vf a = v_set1(dz[i + k]);
                        UNROLL for (int j = 0; j < NV; j++) acc[k][j] = v_fma(a, v_load(w + (i + k) * BC + at[j]), acc[k][j]);
                    }
            }
            UNROLL for (int k = KU - 1; k > 0; k--)
                UNROLL for (int j = 0; j < NV; j++) acc[k - 1][j] += acc[k][j];
        } else {
            for (i32 p = pa; p < pb; p++, w += WROW * BC) {
                if (cell) prefetch_cell(NV, s, b, u, (p - pa) * (MR * NV) / (pb - pa), (p - pa + 1) * (MR * NV) / (pb - pa));
                mul_rows(MR, NV, acc, to, s->dz + p * s->panel + (i64)b * AROW, AROW, w, BC, at, WROW,
                         s->ahead + (i64)(p - pa) * WROW * LANES);
            }
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
        bwd_tile(n, nv, 1, s, b, u, pa, pb, part);                                                                               \
    }
#define BWD_ROWS(n) BWD(n, 1) BWD(n, 2) BWD(n, 3) BWD(n, 4)
BWD_ROWS(1) BWD_ROWS(2)
#if !defined(ISA_base)
BWD_ROWS(3)
#endif
#if defined(ISA_avx512)
BWD_ROWS(4) BWD_ROWS(5) BWD_ROWS(6)
#endif
static bwd_fn *const bwd_rows[WIDE + 1][ROWS_MAX + 1] = {
    {NULL}, BY_ROWS(bwd_1_), BY_ROWS(bwd_2_), BY_ROWS(bwd_3_), BY_ROWS(bwd_4_)};

enum { ONE_KU = VL == 16 ? 4 : 2 };
static void bwd_one_row(const struct step *s, i32 b, i32 u, i32 pa, i32 pb, f32 *part) {
    bwd_tile(1, WIDE, ONE_KU, s, b, u, pa, pb, part);
}

/* dh and the cell, or a plain product, for rows r0..r1. */
static void step_bwd(struct step *s, bool one_row, i32 r0, i32 r1) {
    f32 part[ROW_BLOCK * BC] __attribute__((aligned(64)));
    const i32 cols = s->out ? s->cols : s->Hp;
    const bool far = s->dz && (i64)s->NP * WROW * cols > FAR_FLOATS;
    for (i32 b0 = r0; b0 < r1; b0 += ROW_BLOCK) {
        const i32 b1 = imin(r1, b0 + ROW_BLOCK);
        for (i32 u = 0; u < cols; u += BC) {
            const i32 nv = imin(WIDE, (cols - u + VL - 1) / VL);
            for (i32 pa = 0; pa < s->NP; pa += K_PANELS) {
                const i32 first = s->dz ? pa : 0, pb = s->dz ? imin(s->NP, pa + K_PANELS) : s->NP;
                bwd_fn *const *tiles = bwd_rows[nv];
                const i64 block = (i64)(pb - first) * WROW * BC, done = (i64)(pb - first) * WROW * LANES;
                const f32 *from = s->wt + ((i64)u / BC * s->NP + pb) * WROW * BC, *to = far ? from + block : from;
                for (i32 b = b0; b < b1;) {
                    const i32 n = tile_rows(b1 - b);
                    s->ahead = from + done <= to ? from : NULL;
                    from += done;
                    (one_row && nv == WIDE ? bwd_one_row : tiles[n])(s, b, u, first, pb, part + (i64)(b - b0) * BC);
                    b += n;
                }
                if (pb == s->NP) break;
            }
            for (i32 b = b0; b < b1 && s->out; b++)
                memcpy(s->out + b * s->out_ld + u, part + (i64)(b - b0) * BC, (size_t)imin(BC, cols - u) * sizeof(f32));
        }
    }
}

static i64 wt_side(i32 cols, i32 Hp) { return (i64)round_up(cols, BC) * Hp * GW; }

/* dx of rows b0..b1 of steps t0..t1; rows that are not live get zero. */
static void rows_dx(const struct cell_box *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const bool whole = b0 == 0 && b1 == x->B && !x->live;
    for (i32 t = t0; t < t1; t++) {
        struct step s = step_of(x, t);
        s.dz = s.act + XSLOT * LANES;
        s.wt = x->wt + wt_side(s.Hp, s.Hp);
        s.out = x->dx + (i64)t * x->B * x->dx_ld;
        s.out_ld = x->dx_ld;
        s.cols = x->I;
        if (whole) {
            step_bwd(&s, false, 0, (t1 - t0) * x->B);
            return;
        }
        const i32 n = imin(b1, live_rows(x, t));
        if (b0 < n) step_bwd(&s, false, b0, n);
        for (i32 b = imax(b0, n); b < b1; b++) memset(s.out + b * s.out_ld, 0, (size_t)x->I * sizeof(f32));
    }
}

/* The gradient of the initial state, once step 0 is done. */
static void begin_states(const struct cell_box *x, i32 b0, i32 b1) {
    const i32 Hp = round_up(x->H, LANES), n = imin(b1, live_rows(x, 0));
    const f32 *ds = x->carry + (i64)x->B * Hp;
    struct step s = step_of(x, 0);
    s.dz = s.act + HSLOT * LANES;
    s.wt = x->wt;
    s.dh_add = HAS_C ? NULL : ds;
    s.out = x->dh0;
    s.out_ld = s.cols = Hp;
    if (x->dh0 && b0 < n) step_bwd(&s, x->B == 1, b0, n);
    for (i32 b = b0; b < b1; b++) {
        if (x->dh0 && b >= n) copy_row(x->dh0, x->dhT, b, Hp);
        if (HAS_C && x->dc0) copy_row(x->dc0, b < n ? ds : x->dcT, b, Hp);
    }
}

static void cell_bwd(const struct cell_box *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const i32 Hp = round_up(x->H, LANES);
    f32 *ds = x->carry + (i64)x->B * Hp;
    for (i32 t = t1 - 1; t >= t0; t--) {
        const i32 n = imin(b1, live_rows(x, t)), on = imax(b0, imin(n, live_rows(x, t + 1)));
        struct step s = step_of(x, t);
        s.dy = x->dy ? x->dy + (i64)t * x->B * Hp : NULL;
        s.ds = ds;
        if (on < n) { /* rows that end here */
            s.dh_add = x->dhT;
            s.ds_in = HAS_C ? x->dcT : NULL;
            step_bwd(&s, x->B == 1, on, n);
        }
        if (b0 < on) { /* rows that went on */
            s.dz = act_step(x, t + 1) + HSLOT * LANES;
            s.wt = x->wt;
            s.dh_add = HAS_C ? NULL : ds;
            s.ds_in = ds;
            step_bwd(&s, x->B == 1, b0, on);
        }
    }
    if (x->dx) rows_dx(x, b0, b1, t0, t1);
    if (t0 == 0) begin_states(x, b0, b1);
}

/* ------------------------------------------------------------------ weights ------------------------------------------------- */

/* One side: wt[block][act order of (p, gate, lane)][column] = w[p][k0 + column][gate][lane]. */
static void transpose_side(i32 I, i32 H, const f32 *w, i32 k0, i32 cols, i32 first_slot, f32 *wt) {
    const i32 NP = round_up(H, LANES) / LANES, K = I + H;
    for (i32 c0 = 0; c0 < cols; c0 += BC) {
        for (i32 p = 0; p < NP; p++) {
            for (i32 g = 0; g < GW; g++) {
                const i32 slot = slot_of[k0 > 0 && g == 2 && GA > GW ? 3 : g] - first_slot;
                const f32 *from = w + ((i64)p * K + k0 + c0) * WROW + g * LANES;
                f32 *to = wt + ((i64)c0 / BC * NP * WROW + p * WROW + slot * LANES) * BC;
                transpose_lanes(from, WROW, imin(BC, cols - c0), to, BC);
            }
        }
    }
}

static void cell_prep(i32 I, i32 H, const f32 *w, f32 *wt) {
    const i32 Hp = round_up(H, LANES);
    transpose_side(I, H, w, I, H, HSLOT, wt);
    transpose_side(I, H, w, 0, I, XSLOT, wt + wt_side(Hp, Hp));
}

/* dW is a chapter of its own. */
#include "kern/cell_dw.h"

/* ------------------------------------------------------------------ one step, and the table --------------------------------- */

static void point_fwd(i32 n, i32 H, f32 *z, const f32 *s_prev, f32 *s, f32 *h) {
    const i64 vectors = (i64)n * round_up(H, LANES) / VL;
    for (i64 v = 0; v < vectors; v++) {
        f32 *at = z + v / SUB * AROW + v % SUB * VL;
        vf g[GA], c, out;
        UNROLL for (int j = 0; j < GA; j++) g[j] = v_load(at + j * LANES);
        gates_fwd(g, v_load(s_prev + v * VL), &c, &out);
        UNROLL for (int j = 0; j < GA; j++) v_store(at + j * LANES, g[j]);
        v_store(s + v * VL, HAS_C ? c : out);
        v_store(h + v * VL, out);
    }
}

static void point_bwd(i32 n, i32 H, f32 *z, const f32 *s_prev, const f32 *s, const f32 *dh, f32 *ds) {
    const i64 vectors = (i64)n * round_up(H, LANES) / VL;
    for (i64 v = 0; v < vectors; v++) {
        f32 *at = z + v / SUB * AROW + v % SUB * VL;
        vf g[GA], d = v_load(ds + v * VL);
        UNROLL for (int j = 0; j < GA; j++) g[j] = v_load(at + j * LANES);
        gates_bwd(g, v_load(s_prev + v * VL), v_load(s + v * VL), v_load(dh + v * VL), &d);
        UNROLL for (int j = 0; j < GA; j++) v_store(at + j * LANES, g[j]);
        v_store(ds + v * VL, d);
    }
}

static i64 act_floats(i32 T, i32 B, i32 H) {
    const i64 Hp = round_up(H, LANES);
    return Hp / LANES * panel_floats(T, B) + (HAS_C ? (i64)T * B * Hp : 0);
}

static i64 wt_floats(i32 I, i32 H) {
    const i32 Hp = round_up(H, LANES);
    return wt_side(Hp, Hp) + wt_side(I, Hp);
}

void ISA_NAME(FILL)(struct kern *k) {
    k->cell[KIND] = (struct cell_kern){act_floats, wt_floats, cell_prep, cell_fwd, cell_bwd, cell_dw, point_fwd, point_bwd};
}
