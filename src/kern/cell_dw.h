/* cell_dw.h - weight gradients of a recurrent layer; a part of cell_tile.h, which includes it.
 *
 *     dW [I+H][gates]  +=  [x;h]' dz       summed over rows (t,b) in increasing order
 *
 * Loop nest: chunk of DW_CHUNK rows > panel > DW_ROWS rows, whose dz (32 KB) stays in L1 > tile of DW_MK rows of dW x DW_NV
 * vectors. A tile reads whole contiguous rows of dW, so it can prefetch the sums of the next tile and the dz of the next panel.
 *
 * Rows of a micro-batch lie far apart, often by a power of two, and so evict each other from L1. They are copied first: x and h
 * of a chunk to cell_args.gather, dz of DW_ROWS rows of a panel to the stack. Measured: 3 to 9 % of a whole step. */
#ifndef STRETTO_KERN_CELL_DW_H
#define STRETTO_KERN_CELL_DW_H

/* nt steps x nb rows of dz and of its two left operands, x and h. If possible nt = 1: all rows form one step. */
struct dw_side {
    const f32 *a;
    i64 row, step; /* floats to the next row, the next step */
    i32 n;         /* columns: I or H; 0 = skip this side */
};
struct dw_job {
    i32 nt, nb;
    const f32 *dz;
    i64 dz_row, dz_step;
    struct dw_side side[2];
    i32 units;                  /* valid units of this panel */
    const f32 *next;            /* the next panel's dz, to prefetch, laid out as it is in act; NULL = none */
    i32 next_nb;
    i64 next_row, next_step;
    i64 from[DW_NV], to[DW_NV]; /* offsets of the tile's vectors in an act row and in a weight row */
};

INLINE void dw_tile(const int MK, const struct dw_job *j, const struct dw_side *side, i32 k, f32 *w) {
    vf acc[COLS_MAX][WIDE];
    i64 from[DW_NV];
    UNROLL for (int v = 0; v < DW_NV; v++) from[v] = j->from[v];
    UNROLL for (int i = 0; i < MK; i++) /* prefetch the sums of the next tile */
        UNROLL for (int v = 0; v < DW_NV; v++) __builtin_prefetch(w + (MK + i) * WROW + j->to[v], 1, 3);
    UNROLL for (int i = 0; i < MK; i++)
        UNROLL for (int v = 0; v < DW_NV; v++) acc[i][v] = v_zero(); /* partial sums per call: one chain over all rows would
                                                                      * lose digits */
    for (i32 t = 0; t < j->nt; t++)
        mul_cols(MK, DW_NV, acc, side->a + t * side->step + k, side->row, j->dz + t * j->dz_step, j->dz_row, from, j->nb);
    UNROLL for (int i = 0; i < MK; i++)
        UNROLL for (int v = 0; v < DW_NV; v++) v_store(w + i * WROW + j->to[v], v_load(w + i * WROW + j->to[v]) + acc[i][v]);
}

typedef void dw_fn(const struct dw_job *, const struct dw_side *, i32 k, f32 *w);
#define DW(n, tag)                                                                                                               \
    static void tag##n(const struct dw_job *j, const struct dw_side *side, i32 k, f32 *w) { dw_tile(n, j, side, k, w); }
UP_TO(DW_MK, DW, dw_)
static dw_fn *const dw_cols[DW_MK + 1] = TILES(DW_MK, dw_);

INLINE void dbias_rows(const struct dw_job *j, f32 *dbias) {
    vf sum[GA * SUB];
    UNROLL for (int v = 0; v < GA * SUB; v++) sum[v] = v_load(dbias + v * VL);
    for (i32 t = 0; t < j->nt; t++) {
        const f32 *dz = j->dz + t * j->dz_step;
        for (i32 b = 0; b < j->nb; b++, dz += j->dz_row)
            UNROLL for (int v = 0; v < GA * SUB; v++) sum[v] += v_load(dz + slot_of[v / SUB] * LANES + v % SUB * VL);
    }
    UNROLL for (int v = 0; v < GA * SUB; v++) v_store(dbias + v * VL, sum[v]);
}

/* Prefetches rows r0..r1 of the next panel's dz. */
static void fetch_next(const struct dw_job *j, i32 r0, i32 r1) {
    for (i32 r = r0; r < r1 && j->next; r++) {
        const f32 *dz = j->next + r / j->next_nb * j->next_step + r % j->next_nb * j->next_row;
        UNROLL for (int g = 0; g < GA; g++) __builtin_prefetch(dz + g * LANES, 0, 2);
    }
}

#if HAS_TAIL
/* For a last panel of at most TAIL units: dz of all gates in one vector (cell_tail.h). */
INLINE void dw_tail_tile(const int MK, const struct dw_job *j, const struct dw_side *side, const f32 *dz, i32 k, f32 *w) {
    vf acc[COLS_MAX][WIDE];
    f32 sum[LANES];
    const i64 at[WIDE] = {0};
    UNROLL for (int i = 0; i < MK; i++) acc[i][0] = v_zero();
    for (i32 t = 0; t < j->nt; t++)
        mul_cols(MK, 1, acc, side->a + t * side->step + k, side->row, dz + (i64)t * j->nb * LANES, LANES, at, j->nb);
    UNROLL for (int i = 0; i < MK; i++) {
        tail_gather(sum, w + i * WROW, in_order, GW);
        v_store(sum, v_load(sum) + acc[i][0]);
        for (i32 g = 0; g < GW; g++) memcpy(w + i * WROW + g * LANES, sum + g * TAIL, TAIL * sizeof *w);
    }
}

static void dw_tail_8(const struct dw_job *j, const struct dw_side *s, const f32 *dz, i32 k, f32 *w) {
    dw_tail_tile(8, j, s, dz, k, w);
}
static void dw_tail_1(const struct dw_job *j, const struct dw_side *s, const f32 *dz, i32 k, f32 *w) {
    dw_tail_tile(1, j, s, dz, k, w);
}

static void dw_tail(const struct dw_job *j, f32 *dw) {
    f32 dz[DW_ROWS * LANES] __attribute__((aligned(64)));
    for (i32 h_side = 0; h_side < 2; h_side++) {
        const struct dw_side *side = &j->side[h_side];
        i32 slot[GW], k = 0;
        for (i32 g = 0; g < GW; g++) slot[g] = slot_of[h_side && g == 2 && GA > GW ? 3 : g];
        for (i32 t = 0; t < j->nt; t++)
            for (i32 b = 0; b < j->nb; b++)
                tail_gather(dz + ((i64)t * j->nb + b) * LANES, j->dz + t * j->dz_step + b * j->dz_row, slot, GW);
        for (; k + 8 <= side->n; k += 8) dw_tail_8(j, side, dz, k, dw + (i64)k * WROW);
        for (; k < side->n; k++) dw_tail_1(j, side, dz, k, dw + (i64)k * WROW);
        dw += (i64)side->n * WROW;
    }
}
#else
static void dw_tail(const struct dw_job *j, f32 *dw) { (void)j, (void)dw; }
#endif

/* dW and dbias of one panel over at most DW_ROWS rows: the bias, then x, then h. */
static void dw_panel(struct dw_job *j, f32 *dw, f32 *dbias) {
    const i32 values = (j->side[0].n + j->side[1].n) * (GW * SUB / DW_NV), rows = j->nt * j->nb;
    i32 done = 0;
    dbias_rows(j, dbias);
    if (j->units <= TAIL) {
        dw_tail(j, dw);
        return;
    }
    for (i32 h_side = 0; h_side < 2; h_side++) {
        const struct dw_side *side = &j->side[h_side];
        for (i32 v = 0; v < GW * SUB; v += DW_NV) {
            for (i32 i = 0; i < DW_NV; i++) { /* vector v + i: sub-vectors of a gate vary fastest, then gates */
                const i32 g = (v + i) / SUB, sub = (v + i) % SUB;
                j->from[i] = slot_of[h_side && g == 2 && GA > GW ? 3 : g] * LANES + sub * VL;
                j->to[i] = g * LANES + sub * VL;
            }
            for (i32 k = 0; k < side->n;) {
                const i32 m = tile_cols(side->n - k, DW_MK);
                fetch_next(j, (i32)((i64)rows * done / values), (i32)((i64)rows * (done + m) / values));
                done += m;
                dw_cols[m](j, side, k, dw + (i64)k * WROW);
                k += m;
            }
        }
        dw += (i64)side->n * WROW;
    }
}

/* Copies nt steps x nb rows of n floats; rows of `to` are ld floats apart. */
static void gather(i32 nt, i32 nb, const f32 *from, i64 row, i64 step, i32 n, f32 *to, i64 ld) {
    for (i32 t = 0; t < nt; t++)
        for (i32 b = 0; b < nb; b++, to += ld) memcpy(to, from + t * step + b * row, (size_t)n * sizeof *to);
}

/* x and h of all rows of a job whose first row of the batch is b0. */
static void gather_sides(const struct cell_args *x, i32 b0, struct dw_job *j) {
    const i64 ld = cell_gather_row(x->I, x->H);
    f32 *to = x->gather + (i64)b0 * x->gather_rows * ld;
    for (i32 i = 0; i < 2; to += j->side[i++].n) {
        struct dw_side *side = &j->side[i];
        if (side->n == 0) continue;
        gather(j->nt, j->nb, side->a, side->row, side->step, side->n, to, ld);
        *side = (struct dw_side){to, ld, j->nb * ld, side->n};
    }
}

/* dz of all rows of a job, which become the rows of one step. */
static void gather_dz(struct dw_job *j, f32 *to) {
    gather(j->nt, j->nb, j->dz, j->dz_row, j->dz_step, AROW, to, AROW);
    j->dz = to;
    j->dz_row = AROW;
    j->nb *= j->nt;
    j->nt = 1;
}

/* Steps t0..t1, with rows b0..b1 live in each. Step 0 is a block of its own, because its h is the initial state, unless h0 lies
 * directly before y. */
static void dw_block(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) {
    const i32 Hp = round_up(x->H, LANES), nb = b1 - b0;
    const f32 *h = h_before(x, t0);
    struct dw_job all = {.nt = t1 - t0, .nb = nb, .dz_row = AROW, .dz_step = (i64)x->B * AROW};
    all.dz = act_step(x, t0) + (i64)b0 * AROW;
    all.side[0] = (struct dw_side){x->x + ((i64)t0 * x->B + b0) * x->x_ld, x->x_ld, x->B * x->x_ld, x->I};
    all.side[1] = (struct dw_side){h ? h + (i64)b0 * Hp : NULL, Hp, (i64)x->B * Hp, h ? x->H : 0};
    if (nb == 1) { /* its steps are the rows */
        all.dz_row = all.dz_step;
        for (i32 i = 0; i < 2; i++) all.side[i].row = all.side[i].step;
    }
    if (nb == 1 || cell_is_whole_batch(x, nb)) all.nb *= all.nt, all.nt = 1;
    const i32 steps = imax(1, DW_ROWS / all.nb);
    const bool apart = x->gather && !x->team && nb < x->B && t1 - t0 <= x->gather_rows;
    f32 dz[DW_ROWS * AROW] __attribute__((aligned(64)));
    if (apart) gather_sides(x, b0, &all);
    i32 p0, p1;
    team_part(x->team, Hp / LANES, &p0, &p1);
    for (i32 p = p0; p < p1; p++) {
        for (i32 t = 0; t < all.nt; t += steps) {
            for (i32 b = 0; b < all.nb; b += DW_ROWS) {
                struct dw_job j = all;
                j.nt = imin(steps, all.nt - t);
                j.nb = imin(DW_ROWS, all.nb - b);
                j.dz += p * panel_floats(x->T, x->B) + t * all.dz_step + b * all.dz_row;
                j.units = x->H - p * LANES;
                j.next = p + 1 < p1 ? j.dz + panel_floats(x->T, x->B) : NULL;
                j.next_nb = j.nb;
                j.next_row = j.dz_row;
                j.next_step = j.dz_step;
                if (apart) gather_dz(&j, dz);
                for (i32 i = 0; i < 2; i++)
                    if (j.side[i].n) j.side[i].a += t * j.side[i].step + b * j.side[i].row;
                dw_panel(&j, dw + (i64)p * (x->I + x->H) * WROW, dbias + (i64)p * AROW);
            }
        }
    }
}

static void cell_dw(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) {
    for (i32 t = t0; t < t1;) {
        const i32 n = imin(b1, cell_live(x, t));
        if (n <= b0) return;
        const bool apart = t == 0 && x->h0 != x->y - (i64)x->B * round_up(x->H, LANES);
        const i32 most = apart ? 1 : imin(t1, t + imax(1, DW_CHUNK / (n - b0)));
        i32 end = t + 1;
        while (end < most && imin(b1, cell_live(x, end)) == n) end++;
        dw_block(x, b0, n, t, end, dw, dbias);
        t = end;
    }
}

#endif
