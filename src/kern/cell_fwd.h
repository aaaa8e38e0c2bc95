/* cell_fwd.h - forward of a recurrent layer through time; a part of cell_tile.h, which includes it.
 *
 *     folded     one product per step: z = bias + x Wx + h Wh, then the cell directly from registers
 *     ahead      z = bias + x Wx of a chunk of steps into act; then per step  z += h Wh  and the cell
 *
 * Both modes add the same values in the same order. Ahead pays off for few rows: its first product has the rows of many steps
 * to share the weights. */
#ifndef STRETTO_KERN_CELL_FWD_H
#define STRETTO_KERN_CELL_FWD_H

enum { AHEAD_FLOATS = 1 << 16 }; /* floats of act per chunk: small enough to stay in L2 until its steps run */

enum { PANELS_MAX = 4 };

/* The cell of row b, units u..u+VL, on the sums z; partial: only stores the sums. */
INLINE void fwd_cell(const struct step *s, i64 b, i64 u, vf *z) {
    const i64 row = b * s->Hp + u;
    f32 *act = unit_at(s, s->act, b, u);
    if (!s->partial) {
        vf c, h;
        gates_fwd(z, v_load_or_zero(s->s_prev, row), &c, &h);
        if (HAS_C) v_store(s->s_out + row, c);
        v_store(s->y + row, h);
        if (s->shared_h) v_store(s->shared_h + row, h);
    }
    UNROLL for (int g = 0; g < GA; g++) v_store(act + slot_of[g] * LANES, z[g]);
}

/* MR rows from b, PANELS vectors of units from q (vector q = units q*VL..). */
INLINE void fwd_tile(const int MR, const int PANELS, const struct step *s, i32 b, i32 q) {
    vf acc[ROWS_MAX][ACC];
    i64 group[PANELS_MAX];
    const i32 K = s->I + s->H;
    const f32 *w = s->w + (i64)(q / SUB) * K * WROW + q % SUB * VL;
    UNROLL for (int p = 0; p < PANELS; p++)
        group[p] = (i64)((q + p) / SUB - q / SUB) * K * WROW + ((q + p) % SUB - q % SUB) * VL;
    if (s->summed) {
        UNROLL for (int r = 0; r < MR; r++)
            UNROLL for (int j = 0; j < GA * PANELS; j++)
                acc[r][j] = v_load(unit_at(s, s->act, b + r, (q + j / GA) * VL) + slot_of[j % GA] * LANES);
    } else {
        UNROLL for (int j = 0; j < GA * PANELS; j++) {
            const i32 v = q + j / GA;
            const vf bias = v_load(s->bias + (v / SUB * GA + j % GA) * LANES + v % SUB * VL);
            UNROLL for (int r = 0; r < MR; r++) acc[r][j] = bias;
        }
        UNROLL for (int r = 0; r < MR; r++)
            UNROLL for (int j = 0; j < GA * PANELS; j++)
                __builtin_prefetch(unit_at(s, s->act, b + r, (q + j / GA) * VL) + j % GA * LANES, 1, 2);
        mul_rows(MR, GW * PANELS, acc, TO_X, s->x + b * s->x_ld, s->x_ld, w, WROW, group, GW, LANES, s->I, NULL);
    }
    if (s->h)
        mul_rows(MR, GW * PANELS, acc, TO_H, s->h + (i64)b * s->Hp + s->k0, s->Hp, w + (i64)(s->I + s->k0) * WROW, WROW, group,
                 GW, LANES, s->k1 - s->k0, s->ahead);
    UNROLL for (int i = 0; i < MR * PANELS; i++) {
        vf z[GA];
        UNROLL for (int g = 0; g < GA; g++) z[g] = acc[i / PANELS][i % PANELS * GA + g];
        fwd_cell(s, b + i / PANELS, (i64)(q + i % PANELS) * VL, z);
    }
}

typedef void fwd_fn(const struct step *, i32 b, i32 q);
#define FWD(n, tag, panels)                                                                                                      \
    static void tag##n(const struct step *s, i32 b, i32 q) { fwd_tile(n, panels, s, b, q); }
#define FWD_ROWS(n, tag) FWD(n, tag, FWD_PANELS)
UP_TO(FEW_ROWS, FWD_ROWS, fwd_rows_)
static fwd_fn *const fwd_rows[FEW_ROWS + 1] = TILES(FEW_ROWS, fwd_rows_);
FWD(1, fwd_wide_, ONE_PANELS)
#if FWD_PANELS > 1
#define FWD_TAIL(n, tag) FWD(n, tag, 1)
UP_TO(FEW_ROWS, FWD_TAIL, fwd_tail_)
static fwd_fn *const fwd_tail[FEW_ROWS + 1] = TILES(FEW_ROWS, fwd_tail_);
#else
#define fwd_tail fwd_rows
#endif

#if HAS_GATE_PANELS
/* MR rows from b, the units of one panel from vector q: one gate after another, each over its own panel of weights, into a
 * scratch of MR rows; then the cell. The tile reads whole cache lines, 64 bytes an input, so L1 holds the weights of a gate. */
INLINE void gate_tile(const int MR, const struct step *s, i32 b, i32 q) {
    const i64 group[1] = {0}, p = q / SUB, K = s->I + s->H;
    f32 sums[GA][ROWS_MAX][LANES] __attribute__((aligned(64)));
    for (i32 v = 0; v < GA; v++) { /* value v: gate v of x and h, except gru: 2 = gate n of x, 3 = gate n of h */
        vf acc[ROWS_MAX][ACC];
        const f32 *w = s->wf + (p * GW + imin(v, GW - 1)) * K * LANES;
        f32 *act = unit_at(s, s->act, b, (i64)p * LANES) + slot_of[v] * LANES;
        if (s->summed) {
            UNROLL for (int r = 0; r < MR; r++)
                UNROLL for (int j = 0; j < SUB; j++) acc[r][j] = v_load(act + r * AROW + j * VL);
        } else {
            UNROLL for (int j = 0; j < SUB; j++) {
                const vf bias = v_load(s->bias + (p * GA + v) * LANES + j * VL);
                UNROLL for (int r = 0; r < MR; r++) acc[r][j] = bias;
            }
            UNROLL for (int r = 0; r < MR; r++) __builtin_prefetch(act + r * AROW, 1, 2);
            if (v < GW) mul_rows(MR, SUB, acc, TO_SAME, s->x + b * s->x_ld, s->x_ld, w, LANES, group, SUB, VL, s->I, NULL);
        }
        if (s->h && (GA == GW || v != 2))
            mul_rows(MR, SUB, acc, TO_SAME, s->h + (i64)b * s->Hp + s->k0, s->Hp, w + (i64)(s->I + s->k0) * LANES, LANES, group,
                     SUB, VL, s->k1 - s->k0, NULL);
        UNROLL for (int r = 0; r < MR; r++)
            UNROLL for (int j = 0; j < SUB; j++) v_store(&sums[v][r][j * VL], acc[r][j]);
    }
    for (int i = 0; i < MR * SUB; i++) {
        vf z[GA];
        UNROLL for (int g = 0; g < GA; g++) z[g] = v_load(sums[g][0] + i * VL);
        fwd_cell(s, b + i / SUB, p * LANES + i % SUB * VL, z);
    }
}

#define GATES(n, tag)                                                                                                            \
    static void tag##n(const struct step *s, i32 b, i32 q) { gate_tile(n, s, b, q); }
UP_TO(ROWS_MAX, GATES, gate_rows_)
static fwd_fn *const gate_rows[ROWS_MAX + 1] = TILES(ROWS_MAX, gate_rows_);
#endif

/* The tile functions of `rows` rows for the vectors from q on; *next: the first vector after them. */
INLINE fwd_fn *const *fwd_tiles(i32 rows, i32 q, i32 end, i32 *next) {
#if HAS_GATE_PANELS
    if (rows > FEW_ROWS) {
        *next = q + SUB;
        return gate_rows;
    }
#endif
    const bool full = q + FWD_PANELS <= end;
    (void)rows;
    *next = q + (full ? FWD_PANELS : 1);
    return full ? fwd_rows : fwd_tail;
}

/* Rows r0..r1 of the vectors at q, inputs k0..k1 of h; prefetches weights from .. to. */
static void rows_fwd(struct step *s, fwd_fn *const *tiles, i32 q, i32 r0, i32 r1, const f32 *from, const f32 *to) {
    const i64 fetched = (i64)(s->k1 - s->k0) * LANES;
    for (i32 b = r0; b < r1;) {
        const i32 n = tile_rows(r1 - b);
        s->ahead = from + fetched <= to ? from : NULL;
        from += fetched;
        tiles[n](s, b, q);
        b += n;
    }
}

static void step_fwd(struct step *s, bool one_row, i32 b0, i32 b1) {
    const i32 Q = (s->tail ? s->u1 - LANES : s->u1) / VL, K = s->I + s->H;
    const bool far = (i64)s->NP * K * WROW > FAR_FLOATS;
    i32 q = s->u0 / VL;
    s->ahead = NULL;
    if (one_row) {
        for (; q + ONE_PANELS <= Q; q += ONE_PANELS) fwd_wide_1(s, b0, q);
        for (; q < Q; q++) fwd_tail[1](s, b0, q);
        return;
    }
    for (i32 r0 = b0; r0 < b1; r0 += ROW_BLOCK) {
        const i32 r1 = imin(b1, r0 + ROW_BLOCK);
        i32 next;
        for (q = s->u0 / VL; q < Q; q = next) {
            fwd_fn *const *tiles = fwd_tiles(r1 - r0, q, Q, &next);
            const f32 *from = s->w + (i64)(next < Q ? next : s->u0 / VL) / SUB * K * WROW;
            rows_fwd(s, tiles, q, r0, r1, from, far ? from + (i64)K * WROW : from);
        }
        if (s->tail) step_tail(s, r0, r1);
    }
}

/* ------------------------------------------------------------------ the x side ahead ---------------------------------------- */

/* Chooses the mode by shape. Measured: ahead pays off from about 16 inputs per row (1.3 to 6 times as fast with I = H and B <=
 * 2) and costs 2-7 % with many rows. */
static bool goes_ahead(const struct cell_args *x, i32 rows) {
    if (x->how) return x->how == CELL_AHEAD;
    return rows <= 16 && x->I >= 16 * rows;
}

/* Writes bias + x Wx of a chunk of steps from t on to act, one panel after another; returns the step after the chunk. */
static i32 x_ahead(const struct cell_args *x, i32 b0, i32 b1, i32 t, i32 t1) {
    struct step s = step_of(x, t);
    const i32 rows = imin(b1, cell_live(x, t)) - b0, units = imax(LANES, s.u1 - s.u0);
    const i64 chunk = AHEAD_FLOATS / ((i64)imax(1, rows) * units * GA);
    const i32 end = chunk < t1 - t ? t + imax(1, (i32)chunk) : t1;
    const bool whole = b0 == 0 && rows == x->B && cell_live(x, end - 1) == x->B;
    s.partial = true;
    s.h = NULL;
    for (i32 q = s.u0 / VL, next; q < s.u1 / VL; q = next) {
        fwd_fn *const *tiles = fwd_tiles(whole ? (end - t) * x->B : rows, q, s.u1 / VL, &next);
        for (i32 i = t; i < end; i = whole ? end : i + 1) {
            const i32 r0 = (i - t) * x->B + b0, r1 = whole ? (end - t) * x->B : (i - t) * x->B + imin(b1, cell_live(x, i));
            for (i32 b = r0; b < r1;) {
                const i32 n = tile_rows(r1 - b);
                tiles[n](&s, b, q);
                b += n;
            }
        }
    }
    return end;
}

/* ------------------------------------------------------------------ the loop over time steps -------------------------------- */

/* Writes hT, cT of rows b0..b1: the state after the steps before t1. */
static void end_states(const struct cell_args *x, i32 b0, i32 b1, i32 t1, i32 u0, i32 u1) {
    for (i32 b = b0; b < b1; b++) {
        const i32 t = cell_end(x, b, 0, t1);
        if (x->hT) copy_units(x, x->hT, h_before(x, t), b, u0, u1);
        if (HAS_C && x->cT) copy_units(x, x->cT, s_before(x, t), b, u0, u1);
    }
}

/* Team: h of step t goes to the exchange buffer as well, and h of step t-1 is read from there. */
static void publish_h(const struct cell_args *x, struct step *s, i32 t, i32 t0) {
    s->shared_h = shared_h(x, t & 1);
    if (t > t0) s->h = shared_h(x, (t - 1) & 1);
    if (x->B == 1) team_prefetch(x->team, s->shared_h + s->u0, s->u1 - s->u0);
}

/* Sums run over h in increasing order of units. Member 0 owns the first units, so it adds their part before it waits for the
 * others. */
static void own_first(struct step *s, bool one_row, i32 b0, i32 b1) {
    s->k1 = imin(s->H, s->u1);
    s->partial = true;
    step_fwd(s, one_row, b0, b1);
    s->k0 = s->k1;
    s->k1 = s->H;
    s->summed = true;
    s->partial = false;
}

/* Prefetches the other members' part of h at once, not when the product reaches it. */
static void fetch_h(const struct step *s) {
    for (i32 u = 0; u < s->Hp && s->h; u += LANES)
        if (u < s->u0 || u >= s->u1) __builtin_prefetch(s->h + u, 0, 3);
}

static void cell_fwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    const bool ahead = goes_ahead(x, b1 - b0);
    struct step s = step_of(x, t0);
    f32 weights[TAIL_INPUTS * LANES] __attribute__((aligned(64)));
    const f32 *tail = !ahead && !cell_is_one_row(x) && tail_weights(x, &s, weights) ? weights : NULL;
    for (i32 t = t0, summed = t0; t < t1; t++) {
        const i32 n = imin(b1, cell_live(x, t));
        if (ahead && t == summed) summed = x_ahead(x, b0, b1, t, t1);
        s = step_of(x, t);
        s.summed = ahead;
        if (x->team) publish_h(x, &s, t, t0);
        s.tail = tail;
        if (x->team && x->team->me == 0 && t > t0 && b0 < n) own_first(&s, cell_is_one_row(x), b0, n);
        team_wait(x->team, t - t0);
        if (x->team && x->B == 1) fetch_h(&s);
        if (b0 < n) step_fwd(&s, cell_is_one_row(x), b0, n);
        for (i32 b = imax(b0, n); b < b1; b++) copy_units(x, s.y, NULL, b, s.u0, s.u1);
        if (t + 1 < t1) team_signal(x->team, t + 1 - t0);
    }
    end_states(x, b0, b1, t1, s.u0, s.u1);
    team_signal(x->team, t1 - t0);
    team_wait(x->team, t1 - t0);
}

#endif
