/* cell_tile.h - the fused recurrent layer on register tiles: the part that all cells share.
 *
 * tile_lstm.c, tile_gru.c and tile_rnn.c define their cell by these names and include this file, which then defines the
 * cell_kern:
 *
 *     KIND, NAME            CELL_LSTM, lstm
 *     GW, GA                gates in the weights; values that a unit stores per step (gates, then dz)
 *     slot_of[GA]           place of value g in an act row.  gru stores n_x, r, z, n_h, so that the x side (the first GW slots)
 *     XSLOT, HSLOT          and the h side (the last GW) are contiguous; XSLOT, HSLOT: their first slots
 *     FWD_PANELS, ONE_PANELS   vectors of units in a forward tile: in general, and for a batch of one row
 *     DW_NV, DW_MK          vectors and rows of a dW tile
 *     gates_fwd(z, s_prev, &s, &h), gates_bwd(z, s_prev, s, dh, &ds)      the element-wise cell on vectors
 *
 *     act:  gates [NP][T*B + pad][GA][LANES]      c [T][B][Hp] after them (lstm)      exchange buffers of teams
 *     wt:   h side, then x side: [ceil(cols / BC)][NP * GW * LANES, ordered as act rows][BC]; cols = Hp or I, BC = WIDE vectors
 *           then, if HAS_GATE_PANELS and GW > 1, the weights again with one panel per gate: [NP][GW][I+H][LANES]
 *
 * A forward tile holds rows x one vector of units x all gates in registers, sums K = I + H inputs in one product, and runs the
 * cell directly on the registers; if HAS_GATE_PANELS, rows x one panel, gate after gate into a scratch. Backward computes dh =
 * dy + dz[t+1] Wh' in registers and overwrites the gates with dz; it never stores dh. */
#include "kern/fill.h"
#include "kern/team.h"
#include "kern/tile.h"

enum {
    HAS_C = KIND == CELL_LSTM,
    AROW = GA * LANES,    /* floats of an act row */
    WROW = GW * LANES,    /* floats of a weight row */
    BC = WIDE * VL,       /* columns of a block of wt */
    ROW_BLOCK = 96,       /* rows processed with a panel of weights while it is in cache */
    FAR_FLOATS = 1 << 18, /* larger weights do not fit in L2: prefetch them */
    PANEL_PAD = 1024,     /* one page: keeps panels from mapping to the same L2 sets */
    DW_CHUNK = 256,       /* rows of dz per pass over dW */
    DW_ROWS = 128         /* rows of one panel of dz that stay in L1 */
};

/* One step; every pointer points to row 0 of the batch. */
struct step {
    i32 I, H, Hp, NP;
    i32 u0, u1; /* range of units (or of columns of a plain product) to compute */
    i64 panel; /* offset between panels of act, in floats */
    const f32 *w, *wf, *bias; /* wf: the weights with one panel per gate */
    f32 *act, *y;
    const f32 *s_prev; /* c before the step (gru, rnn: h); NULL = zero */
    const f32 *s;      /* c after the step, in backward */
    f32 *s_out;        /* the same, in forward; gru, rnn: NULL */
    f32 *shared_h;         /* second copy of h for the other team members; NULL = no team */
    /* forward */
    const f32 *x, *h;
    i64 x_ld;
    const f32 *tail;     /* weights of a last panel of few units (cell_tail.h); NULL = normal panel */
    i32 k0, k1;          /* range of inputs from h to add */
    bool summed, partial; /* summed: act holds bias + x Wx already; partial: store sums to act, do not run the cell */
    /* backward: dh = dy + dh_add + dz times (a block of) wt */
    const f32 *dz, *wt, *dy, *dh_add, *ds_in;
    f32 *ds;
    /* a plain product instead of the cell: out[row][u0..u1] */
    f32 *out;
    i64 out_ld;
    const f32 *ahead; /* weights to prefetch meanwhile; NULL = none */
};

static i64 panel_floats(i32 T, i32 B) { return (i64)T * B * AROW + PANEL_PAD; }

INLINE f32 *unit_at(const struct step *s, f32 *base, i64 row, i64 u) {
    return base + u / LANES * s->panel + row * AROW + u % LANES;
}

/* ------------------------------------------------------------------ the box ------------------------------------------------- */

static f32 *act_step(const struct cell_args *x, i32 t) { return x->act + (i64)t * x->B * AROW; }

static f32 *dz_at(const struct cell_args *x, i32 b, i32 t, i32 p) {
    return act_step(x, t) + p * panel_floats(x->T, x->B) + (i64)b * AROW;
}

static f32 *c_step(const struct cell_args *x, i32 t) {
    const i64 Hp = round_up(x->H, LANES);
    return x->act + Hp / LANES * panel_floats(x->T, x->B) + (i64)t * x->B * Hp;
}

static const f32 *h_before(const struct cell_args *x, i32 t) {
    return t > 0 ? x->y + (i64)(t - 1) * x->B * round_up(x->H, LANES) : x->h0;
}

static const f32 *s_before(const struct cell_args *x, i32 t) {
    if (!HAS_C) return h_before(x, t);
    return t > 0 ? c_step(x, t - 1) : x->c0;
}

/* Exchange buffers of a team: h [2][B][Hp] and, for one row, dh [2][Hp]; two slots alternate. They are separate from y, because
 * a reader would fetch a cache line before its writer has completed it. */
static f32 *shared_h(const struct cell_args *x, i32 slot) {
    return c_step(x, HAS_C ? x->T : 0) + (i64)slot * x->B * round_up(x->H, LANES);
}
static f32 *shared_dh(const struct cell_args *x, i32 slot) { return shared_h(x, 2) + (i64)slot * round_up(x->H, LANES); }

static i64 wt_side(i32 cols, i32 Hp) { return (i64)round_up(cols, BC) * Hp * GW; }

/* Step t, with the range of units of this team member. */
static struct step step_of(const struct cell_args *x, i32 t) {
    const i32 Hp = round_up(x->H, LANES);
    struct step s = {.I = x->I, .H = x->H, .Hp = Hp, .NP = Hp / LANES, .panel = panel_floats(x->T, x->B), .w = x->w,
                     .bias = x->bias, .act = act_step(x, t), .y = x->y + (i64)t * x->B * Hp, .s_prev = s_before(x, t),
                     .x = x->x + (i64)t * x->B * x->x_ld, .x_ld = x->x_ld, .h = h_before(x, t), .k1 = x->H};
    s.wf = GW > 1 && x->wt ? x->wt + wt_side(s.Hp, s.Hp) + wt_side(s.I, s.Hp) : x->w;
    if (HAS_C) s.s = s.s_out = c_step(x, t);
    team_part(x->team, s.NP, &s.u0, &s.u1);
    s.u0 *= LANES, s.u1 *= LANES;
    return s;
}

/* Units u0..u1 of one row of a state; from NULL = zero. */
static void copy_units(const struct cell_args *x, f32 *to, const f32 *from, i64 row, i32 u0, i32 u1) {
    const i64 at = row * round_up(x->H, LANES) + u0;
    copy_or_zero(to + at, from ? from + at : NULL, u1 - u0);
}

/* The value of a unit to which a gate of the weights adds, on the x side and on the h side. */
#define TO_X (GA > GW ? TO_R_Z_NX : TO_SAME)
#define TO_H (GA > GW ? TO_R_Z_NH : TO_SAME)

/* Where a vector is smaller than a cache line, forward uses a copy of the weights with one panel per gate (rnn: w itself). */
#if defined(HAS_AVX512)
#define HAS_GATE_PANELS 0
#else
#define HAS_GATE_PANELS 1
#endif

/* With panels of one vector, a last panel of few units would waste most of it. */
#if defined(ISA_avx512) && GW > 1
#define HAS_TAIL 1
#include "kern/cell_tail.h"
#else
#define HAS_TAIL 0
enum { TAIL = 0, TAIL_INPUTS = 1 };
static bool tail_weights(const struct cell_args *x, const struct step *s, f32 *to) { return (void)x, (void)s, (void)to, false; }
static void step_tail(const struct step *s, i32 b0, i32 b1) { (void)s, (void)b0, (void)b1; }
#endif

#include "kern/cell_fwd.h"

#include "kern/cell_bwd.h"

#include "kern/cell_dw.h"

enum { has_copy = HAS_GATE_PANELS && GW > 1 };

/* ------------------------------------------------------------------ weights ------------------------------------------------- */

/* One side: wt[block][act order of (p, gate, unit)][column] = w[p][k0 + column][gate][unit]. */
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
    wt += wt_side(Hp, Hp) + wt_side(I, Hp);
    const i64 K = I + H;
    for (i64 row = 0; row < Hp / LANES * K && has_copy; row++)
        for (i32 g = 0; g < GW; g++)
            memcpy(wt + ((row / K * GW + g) * K + row % K) * LANES, w + row * WROW + g * LANES, LANES * sizeof *w);
}

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

static i64 act_floats(i32 T, i32 B, i32 I, i32 H) {
    (void)I;
    const i64 Hp = round_up(H, LANES), mail = 2 * (B + 1) * Hp;
    return Hp / LANES * panel_floats(T, B) + (HAS_C ? (i64)T * B * Hp : 0) + mail;
}

static i64 wt_floats(i32 I, i32 H) {
    const i32 Hp = round_up(H, LANES);
    return wt_side(Hp, Hp) + wt_side(I, Hp) + (has_copy ? (i64)Hp * (I + H) * GW : 0);
}

void ISA_NAME(FILL)(struct kern *k) {
    k->cell[KIND] = (struct cell_kern){false,   act_floats, wt_floats, cell_prep, cell_fwd, cell_bwd,
                                       cell_dw, point_fwd,  point_bwd, dz_at,     rows_dx};
}
