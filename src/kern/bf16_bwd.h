/* bf16_bwd.h - backward of the bf16 cells: dh in tiles, the cell backward as it leaves them, dz in place of the factors.
 *
 *     dh = dy + dz_{t+1} Wh'       block: 2 tiles of rows x 2 panels, or 1 x 4, over all lines of dz; sums in the order of the
 * lines
 *
 * The cell of the block before runs between the steps of a product, a share after each.  What the block's own cell will read is
 * fetched meanwhile where it comes from afar.  dx and dh0 are the same product, copied out. */
#ifndef STRETTO_KERN_BF16_BWD_H
#define STRETTO_KERN_BF16_BWD_H

#include "kern/bf16_box.h"

struct bwd_block {
    i32 t, p, b, n, w; /* step, first panel, first row, rows (0 = no block), panels: 2 or 4 */
};

/* dz of a step times a matrix of wt: n rows from b, output panels p.. */
struct bwd_product {
    const u16 *a, *w;
    i64 group, pair; /* from a group to the next in a; from a pair of output panels to the next in w */
    i32 lines;
};

static struct bwd_product product_of(const struct lay *l, const u16 *w, i32 t, i32 p, i32 b) {
    const i32 lines = l->NG * DZ;
    const i64 pair = (i64)lines * 2 * TILE;
    return (struct bwd_product){g_at(l, t, 0, b), w + p / 2 * pair, (i64)l->B * LINES * LINE, pair, lines};
}

/* Tiles of z: [tile of rows][panel] for two tiles of rows, [panel] for one. */
static const f32 *bwd_z(const f32 *z, bool two, i32 panel, i32 r) {
    return z + (two ? r / 16 * 2 + panel : panel) * ZTILE + r % 16 * 16;
}

/* Two tiles of rows x two panels: line s of dz. */
INLINE void bwd_mul_two(struct tiles *tl, const struct bwd_product *q, i32 s) {
    const u16 *a = q->a + s / DZ * q->group + s % DZ * LINE, *w = q->w + (i64)s * 2 * TILE;
    tile_load_once(tl, 4, a, LINES * 64);
    tile_load_once(tl, 6, w, 64);
    tile_load_once(tl, 7, w + TILE, 64);
    tile_load_once(tl, 5, a + 16 * LINES * LINE, LINES * 64);
    tile_mul(tl, 0, 4, 6), tile_mul(tl, 1, 4, 7), tile_mul(tl, 2, 5, 6), tile_mul(tl, 3, 5, 7);
}

/* One tile of rows x two or four panels. */
INLINE void bwd_mul_one(struct tiles *tl, const struct bwd_product *q, i32 s, bool four) {
    const u16 *a = q->a + s / DZ * q->group + s % DZ * LINE, *w = q->w + (i64)s * 2 * TILE;
    tile_load(tl, 4, a, LINES * 64);
    tile_load(tl, 5, w, 64);
    tile_mul(tl, 0, 4, 5);
    tile_load(tl, 6, w + TILE, 64);
    tile_mul(tl, 1, 4, 6);
    if (!four) return;
    tile_load(tl, 7, w + q->pair, 64);
    tile_mul(tl, 2, 4, 7);
    tile_load(tl, 5, w + q->pair + TILE, 64);
    tile_mul(tl, 3, 4, 5);
}

/* ------------------------------------------------------------------ the cell ------------------------------------------------ */

/* Where the cell of a block reads and writes; goes through the rows of one group, then those of the next. */
struct bwd_rows {
    const f32 *z, *dy, *dh_add; /* z NULL: no step after this one */
    f32 *s;
    u16 *f;
    i64 s_panel, f_group, ld;
    i32 n, panels, panel, done; /* rows; panels that exist; first panel of the current group; rows done of it */
};

static struct bwd_rows bwd_rows_of(const struct lay *l, const struct bwd_block *b, const f32 *z) {
    const struct cell_box *x = l->x;
    struct bwd_rows c = {.z = z, .n = b->n, .panels = imin(b->w, l->NP - b->p), .s = s_at(l, b->p, b->b), .ld = l->Hp};
    c.s_panel = (i64)l->B * LANES;
    c.f = g_at(l, b->t, b->p / GROUP_PANELS, b->b);
    c.f_group = (i64)l->B * LINES * LINE;
    if (x->dy) c.dy = x->dy + ((i64)b->t * l->B + b->b) * l->Hp + b->p * LANES;
    if (!z && x->dhT && KIND != CELL_GRU) c.dh_add = x->dhT + (i64)b->b * l->Hp + b->p * LANES; /* gru: it is in s */
    return c;
}

/* The cell of R rows of one group. */
INLINE void bwd_cell(const int R, struct bwd_rows *c) {
    const i32 r = c->done;
    vi line[2][DZ];
    UNROLL for (int i = 0; i < R; i++) {
        vf dh[GROUP_PANELS], dz[2 * DZ];
        UNROLL for (int q = 0; q < GROUP_PANELS; q++) {
            const i32 panel = c->panel + q;
            const i64 at = (r + i) * c->ld + panel * LANES;
            dh[q] = v_zero();
            if (q > 0 && panel >= c->panels) continue;
            if (c->z) dh[q] = v_load(bwd_z(c->z, c->n > 16, panel, r + i));
            if (c->dy) dh[q] += v_load(c->dy + at);
            if (c->dh_add) dh[q] += v_load(c->dh_add + at);
        }
        cell_bwd_row(c->f + (r + i) * LINES * LINE, dh, c->s + (r + i) * LANES, c->s_panel, dz);
        UNROLL for (int j = 0; j < DZ; j++) line[i][j] = to_bf16(dz[2 * j], dz[2 * j + 1]);
    }
    UNROLL for (int i = 0; i < R; i++) UNROLL for (int j = 0; j < DZ; j++)
        line_store(c->f + (r + i) * LINES * LINE + j * LINE, line[i][j]);
    c->done += R;
    if (c->done < c->n) return;
    c->done = 0; /* the next group */
    c->panel += GROUP_PANELS;
    c->f += c->f_group;
    c->s += GROUP_PANELS * c->s_panel;
}

/* The next `count` pairs of rows, if there are. */
INLINE void bwd_cells(struct bwd_rows *c, i32 count) {
    for (; count > 0 && c->panel < c->panels; count--) {
        if (c->done + 1 < c->n)
            bwd_cell(2, c);
        else
            bwd_cell(1, c);
    }
}

/* Lines that the cell of block b will read: rows r0..r1. */
INLINE void fetch_rows(const struct lay *l, const struct bwd_block *b, i32 r0, i32 r1) {
    const f32 *dy = l->x->dy ? l->x->dy + ((i64)b->t * l->B + b->b) * l->Hp + b->p * LANES : NULL;
    for (i32 r = r0; r < r1; r++) {
        UNROLL for (int q = 0; q < 2; q += GROUP_PANELS) {
            const u16 *f = g_at(l, b->t, b->p / GROUP_PANELS + q, b->b + r);
            UNROLL for (int j = 0; j < LINES; j++) _mm_prefetch((const char *)(f + j * LINE), _MM_HINT_T0);
        }
        if (dy)
            _mm_prefetch((const char *)(dy + (i64)r * l->Hp), _MM_HINT_T0),
                _mm_prefetch((const char *)(dy + (i64)r * l->Hp + LANES), _MM_HINT_T0);
    }
}

/* The product of block b into z (m tiles of rows, none = 0), and meanwhile the cell of the block before. */
INLINE void bwd_block_of(const int m, struct tiles *tl, const struct lay *l, const struct bwd_block *b,
                         const struct bwd_product *q, f32 *z, bool fetch, struct bwd_rows *c) {
    const i32 pairs = (c->n + 1) / 2 * ((c->panels + GROUP_PANELS - 1) / GROUP_PANELS);
    i32 done = 0;
    tiles_order();
    if (m == 0) {
        for (; done < pairs; done += 8) {
            tiles_awake(tl);
            bwd_cells(c, 8);
        }
        return;
    }
    tile_zero(tl, 0), tile_zero(tl, 1), tile_zero(tl, 2), tile_zero(tl, 3);
    for (i32 s = 0; s < q->lines; s++) {
        const i32 upto = pairs * (s + 1) / q->lines;
        if (fetch) fetch_rows(l, b, b->n * s / q->lines, b->n * (s + 1) / q->lines);
        if (m == 2)
            bwd_mul_two(tl, q, s);
        else
            bwd_mul_one(tl, q, s, b->w == 4);
        bwd_cells(c, upto - done);
        done = upto;
    }
    tile_store(tl, 0, z, 64), tile_store(tl, 1, z + ZTILE, 64);
    if (m == 2 || b->w == 4) {
        tile_store(tl, 2, z + 2 * ZTILE, 64), tile_store(tl, 3, z + 3 * ZTILE, 64);
    }
    tiles_order();
}

static void bwd_block_two(struct tiles *tl, const struct lay *l, const struct bwd_block *b, const struct bwd_product *q, f32 *z,
                          bool fetch, struct bwd_rows *c) {
    bwd_block_of(2, tl, l, b, q, z, fetch, c);
}
static void bwd_block_one(struct tiles *tl, const struct lay *l, const struct bwd_block *b, const struct bwd_product *q, f32 *z,
                          bool fetch, struct bwd_rows *c) {
    bwd_block_of(1, tl, l, b, q, z, fetch, c);
}
static void bwd_block_none(struct tiles *tl, const struct lay *l, struct bwd_rows *c) {
    if (c->n > 0) bwd_block_of(0, tl, l, NULL, NULL, NULL, false, c);
}

/* ------------------------------------------------------------------ the walk back ------------------------------------------- */

/* Products and cells in turn; the cell of the last block may be outstanding. */
struct bwd_walk {
    struct tiles tl;
    const struct lay *l;
    struct bwd_block last; /* outstanding: n > 0 */
    i32 turn;
    f32 z[2][4 * ZTILE] __attribute__((aligned(64)));
};

static void bwd_finish(struct bwd_walk *w) {
    struct bwd_rows c = bwd_rows_of(w->l, &w->last, w->z[!w->turn]);
    bwd_block_none(&w->tl, w->l, &c);
    w->last.n = 0;
}

static void bwd_next(struct bwd_walk *w, const struct bwd_block *b) {
    const struct bwd_block *p = &w->last;
    if (p->t != b->t && p->b < b->b + b->n && b->b < p->b + p->n) bwd_finish(w); /* it makes the dz that b reads */
    struct bwd_rows c = bwd_rows_of(w->l, p, w->z[!w->turn]);
    const struct bwd_product q = product_of(w->l, w->l->wb, b->t + 1, b->p, b->b);
    (b->n > 16 ? bwd_block_two : bwd_block_one)(&w->tl, w->l, b, &q, w->z[w->turn], w->l->stream && b->p + 2 <= w->l->NP, &c);
    w->last = *b;
    w->turn = !w->turn;
}

/* Panels of a block of n rows from panel p of NP: two, or four where there is but one tile of rows (and p a multiple of 4). */
static i32 block_panels(i32 n, i32 p, i32 NP) { return n <= 16 && p + 2 < NP ? 4 : 2; }

/* Rows b0..b1 whose last step is t: no product. */
static void bwd_last_rows(struct bwd_walk *w, i32 t, i32 b0, i32 b1) {
    const struct lay *l = w->l;
    const f32 *ds = HAS_C ? l->x->dcT : KIND == CELL_GRU ? l->x->dhT : NULL;
    bwd_finish(w);
    for (i32 p = 0; p < l->NP; p++)
        for (i32 b = b0; b < b1; b++) v_store(s_at(l, p, b), v_load_or_zero(ds ? ds + (i64)b * l->Hp + p * LANES : NULL));
    for (i32 p = 0; p < l->NP; p += 2) {
        for (i32 b = b0; b < b1; b += ROWS) {
            const struct bwd_block last = {t, p, b, imin(ROWS, b1 - b), 2};
            struct bwd_rows c = bwd_rows_of(l, &last, NULL);
            bwd_block_none(&w->tl, l, &c);
        }
    }
}

/* out[row][cols] = dz of step t times a matrix of wt, for rows b0..b1 */
static void bwd_rows_out(struct bwd_walk *w, const u16 *matrix, i32 t, i32 b0, i32 b1, f32 *out, i64 ld, i32 cols) {
    const i32 NP = ceil_div(cols, LANES);
    struct bwd_rows none = {0};
    for (i32 b = b0; b < b1; b += ROWS) {
        const i32 n = imin(ROWS, b1 - b);
        for (i32 p = 0, width; p < NP; p += width) {
            const struct bwd_block block = {t, p, b, n, width = block_panels(n, p, NP)};
            const struct bwd_product q = product_of(w->l, matrix, t, p, b);
            (n > 16 ? bwd_block_two : bwd_block_one)(&w->tl, w->l, &block, &q, w->z[0], false, &none);
            for (i32 j = 0; j < imin(width, NP - p); j++) {
                const i32 left = imin(LANES, cols - (p + j) * LANES);
                for (i32 r = 0; r < n; r++)
                    memcpy(out + (b + r) * ld + (p + j) * LANES, bwd_z(w->z[0], n > 16, j, r), (size_t)left * sizeof(f32));
            }
        }
    }
}

/* The gradient of the initial state, once step 0 is done. */
static void bwd_start(struct bwd_walk *w, i32 b0, i32 b1) {
    const struct lay *l = w->l;
    const struct cell_box *x = l->x;
    const i32 n = imin(b1, live_rows(x, 0));
    if (x->dh0 && b0 < n) bwd_rows_out(w, l->wb, 0, b0, n, x->dh0, l->Hp, l->Hp);
    for (i32 b = b0; b < b1; b++) {
        if (x->dh0 && b >= n) copy_row(x->dh0, x->dhT, b, l->Hp);
        if (HAS_C && x->dc0 && b >= n) copy_row(x->dc0, x->dcT, b, l->Hp);
        f32 *out = HAS_C ? x->dc0 : KIND == CELL_GRU ? x->dh0 : NULL;
        for (i32 p = 0; out && b < n && p < l->NP; p++) {
            f32 *to = out + (i64)b * l->Hp + p * LANES;
            vf d = v_load(s_at(l, p, b));
            if (!HAS_C) d += v_load(to);
            v_store(to, d);
        }
    }
}

static void bwd_dx(struct bwd_walk *w, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct cell_box *x = w->l->x;
    for (i32 t = t1 - 1; t >= t0; t--) {
        const i32 n = imin(b1, live_rows(x, t));
        f32 *dx = x->dx + (i64)t * x->B * x->dx_ld;
        if (b0 < n) bwd_rows_out(w, w->l->wx, t, b0, n, dx, x->dx_ld, x->I);
        for (i32 b = imax(b0, n); b < b1; b++) memset(dx + b * x->dx_ld, 0, (size_t)x->I * sizeof(f32));
    }
}

static void bwd_steps(const struct lay *l, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct cell_box *x = l->x;
    struct bwd_walk w;
    w.l = l, w.last = (struct bwd_block){0}, w.turn = 0;
    tiles_begin(&w.tl);
    for (i32 t = t1 - 1; t >= t0; t--) {
        const i32 n = imin(b1, live_rows(x, t)), on = imax(b0, imin(n, live_rows(x, t + 1)));
        if (on < n) bwd_last_rows(&w, t, on, n);
        for (i32 p = 0; p < l->NP; p += 2) {
            for (i32 b = b0; b < on; b += ROWS) {
                const i32 n_b = imin(ROWS, on - b), width = block_panels(n_b, p, l->NP);
                if (n_b > 16 || p % 4 == 0) bwd_next(&w, &(struct bwd_block){t, p, b, n_b, width});
            }
        }
    }
    bwd_finish(&w);
    if (x->dx) bwd_dx(&w, b0, b1, t0, t1);
    if (t0 == 0) bwd_start(&w, b0, b1);
    tiles_end(&w.tl);
}

static void cell_bwd(const struct cell_box *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    if (team_first(x)) {
        const struct lay l = lay_of(x);
        bwd_steps(&l, b0, b1, t0, t1);
    }
    team_done(x, t1 - t0 + 1);
}

#endif
