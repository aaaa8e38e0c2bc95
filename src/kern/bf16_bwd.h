/* bf16_bwd.h - backward of the bf16 cells: dh in tiles, then the cell at once; dz replaces the factors.
 *
 *     dh = dy + dz_{t+1} Wh'       tile block: 2 tiles of rows x 2 panels, or 1 x 4, summed over all lines of dz in order
 *
 * Software pipeline: the cell of the previous block runs between the steps of the current product (AMX: a share after each
 * step; dot products: after each unit), and prefetches what the current block's cell will read. dx and dh0 are the same
 * product, copied out. */
#ifndef STRETTO_KERN_BF16_BWD_H
#define STRETTO_KERN_BF16_BWD_H

#include "kern/bf16_layout.h"

#if defined(ISA_amx)
enum { SLICE_LINES = 16, PAIR = 2 * LANES };
#else
enum { SLICE_LINES = 32, PAIR = 2 * LANES };
#endif

/* Operands of the product of one step's dz with a matrix of wt. */
struct bwd_product {
    const u16 *a, *w;
    i64 group, pair; /* offsets: between groups of a; between pairs of output panels of w */
    i64 panel;       /* offset between the two panels of a pair in z */
    i32 lines;       /* of dz */
};

static struct bwd_product product_of(const struct layout *l, const u16 *w, i32 t, i32 pair, i32 b) {
    const i32 lines = l->NG * DZ;
    const i64 size = (i64)lines * 2 * TILE;
    return (struct bwd_product){
        .a = d_at(l, t, 0, b), .w = w + pair * size, .group = (i64)l->B * DZ * LINE, .pair = size, .lines = lines};
}

#if defined(ISA_amx)
/* Two tiles of rows x two panels: line s of dz. */
INLINE void bwd_mul_two(struct tiles *tl, const struct bwd_product *q, i32 s) {
    const u16 *a = q->a + s / DZ * q->group + s % DZ * LINE, *w = q->w + (i64)s * 2 * TILE;
    tile_load(tl, 4, a, DZ * 64);
    tile_load_once(tl, 6, w, 64);
    tile_load_once(tl, 7, w + TILE, 64);
    tile_load(tl, 5, a + 16 * DZ * LINE, DZ * 64);
    tile_mul(tl, 0, 4, 6), tile_mul(tl, 1, 4, 7), tile_mul(tl, 2, 5, 6), tile_mul(tl, 3, 5, 7);
}

/* One tile of rows x two or four panels. */
INLINE void bwd_mul_one(struct tiles *tl, const struct bwd_product *q, i32 s, bool four) {
    const u16 *a = q->a + s / DZ * q->group + s % DZ * LINE, *w = q->w + (i64)s * 2 * TILE;
    tile_load(tl, 4, a, DZ * 64);
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
#endif

/* ------------------------------------------------------------------ the cell ------------------------------------------------ */

/* A work batch: rows b..e of step t x pairs of panels. Its units are (block of rows, pair), rows outermost. z holds the tiles
 * of each unit, [panel][tile of rows]. */
struct bwd_batch {
    i32 t, b, e, pair, pairs;
    f32 *z; /* NULL: no step after this one */
};

static i64 unit_floats(i32 rows) { return (rows > 16 ? 4 : 2) * ZTILE; }
static f32 *unit_z(const struct bwd_batch *a, i32 b, i32 pair) {
    return a->z + ((b / ROWS - a->b / ROWS) * a->pairs + pair) * unit_floats(a->e - a->b);
}

/* Operands of the cell for one block of rows and one group; strides per row. */
struct bwd_rows {
    const f32 *z, *dy;
    f32 *s;
    const u16 *f, *ahead; /* ahead: the next factors, to prefetch */
    u16 *d;
    i64 z_row, z_panel, dy_row, s_panel;
    i32 n, r; /* rows; rows done */
    bool second;
};

/* The pipeline of products and cells. The cells of `batch` run in the order in which its units are completed. */
struct bwd_pipeline {
    struct tiles tl;
    const struct layout *l;
    struct bwd_batch batch;
    struct bwd_rows rows;
    i32 b, panel; /* first row and panel of `rows` */
    i32 left;     /* pairs of rows whose cell is ready to run */
    i32 turn;
    f32 *z; /* buffers of two batches, alternating */
};

static void bwd_begin_group(struct bwd_pipeline *w, i32 b, i32 p) {
    static const f32 zeros[2 * LANES] __attribute__((aligned(64)));
    const struct layout *l = w->l;
    const struct bwd_batch *a = &w->batch;
    const struct cell_args *x = l->x;
    const i32 g = p / GROUP_PANELS;
    struct bwd_rows *c = &w->rows;
    w->b = b, w->panel = p;
    *c = (struct bwd_rows){.z = zeros, .dy = zeros, .s = s_at(l, p, b), .s_panel = (i64)l->B * LANES, .second = p + 1 < l->NP};
    c->n = block_end(b, a->e) - b;
    c->f = g_at(l, a->t, g, b);
    c->ahead = c->f + g_group(l, b);
    c->d = d_at(l, a->t, g, b);
    c->z_panel = LANES;
    if (a->z) {
        c->z_panel = unit_floats(a->e - a->b) / 2;
        c->z = unit_z(a, b, p / 2 - a->pair) + p % 2 * c->z_panel;
        c->z_row = LANES;
    } else if (x->dhT && KIND != CELL_GRU) { /* gru: s holds it */
        c->z = x->dhT + (i64)b * l->Hp + p * LANES;
        c->z_row = l->Hp;
    }
    if (x->dy) {
        c->dy = x->dy + ((i64)a->t * l->B + b) * l->Hp + p * LANES;
        c->dy_row = l->Hp;
    }
}

static void bwd_begin_cells(struct bwd_pipeline *w, const struct bwd_batch *a) {
    w->batch = *a;
    bwd_begin_group(w, a->b, 2 * a->pair);
}

/* The group after the current one, or the first of the next rows. */
static __attribute__((noinline)) void bwd_next_group(struct bwd_pipeline *w) {
    const struct bwd_batch *a = &w->batch;
    const i32 p = w->panel + GROUP_PANELS, end = block_end(w->b, a->e);
    if (p < imin(w->l->NP, 2 * (a->pair + a->pairs)))
        bwd_begin_group(w, w->b, p);
    else if (end < a->e)
        bwd_begin_group(w, end, 2 * a->pair);
}

/* The cell backward of R rows from r of a group. */
INLINE void bwd_cell(const int R, bool fetch, const struct bwd_rows *c, i32 r) {
    const u16 *f = c->f + r * (LINES * LINE), *ahead = c->ahead + r * (LINES * LINE);
    const f32 *z = c->z + r * c->z_row, *dy = c->dy + r * c->dy_row;
    f32 *s = c->s + r * LANES;
    u16 *d = c->d + r * (DZ * LINE);
    UNROLL for (int i = 0; i < R; i++) {
        vf dh[GROUP_PANELS], dz[2 * DZ];
        if (fetch) {
            UNROLL for (int j = 0; j < LINES; j++) _mm_prefetch((const char *)(ahead + (i * LINES + j) * LINE), _MM_HINT_T0);
            _mm_prefetch((const char *)(dy + GROUP_PANELS * LANES), _MM_HINT_T0);
        }
        dh[0] = v_load(z) + v_load(dy);
        if (GROUP_PANELS == 2) dh[GROUP_PANELS - 1] = v_zero();
        if (GROUP_PANELS == 2 && c->second) dh[GROUP_PANELS - 1] = v_load(z + c->z_panel) + v_load(dy + LANES);
        unit_bwd(f + i * LINES * LINE, dh, s + i * LANES, c->s_panel, dz);
        UNROLL for (int j = 0; j < DZ; j++) line_store(d + (i * DZ + j) * LINE, to_bf16(dz[2 * j], dz[2 * j + 1]));
        z += c->z_row, dy += c->dy_row;
    }
}

INLINE void bwd_pair(struct bwd_pipeline *w) {
    const i32 r = w->rows.r;
    if (r + 1 < w->rows.n)
        bwd_cell(2, w->l->fetch, &w->rows, r);
    else
        bwd_cell(1, w->l->fetch, &w->rows, r);
    w->rows.r = r + 2;
    if (r + 2 >= w->rows.n) bwd_next_group(w);
}

/* ------------------------------------------------------------------ products and cells in turn ------------------------------ */

/* Pairs of rows x groups of one unit. */
static i32 unit_pairs(const struct layout *l, const struct bwd_batch *a, i32 b, i32 pair) {
    const i32 panels_of = imin(2, l->NP - 2 * (a->pair + pair));
    return ceil_div(block_end(b, a->e) - b, 2) * ceil_div(panels_of, GROUP_PANELS);
}

static void bwd_finish(struct bwd_pipeline *w) {
    for (; w->left > 0; w->left--) {
        if (w->left % 8 == 0) tiles_awake(&w->tl);
        bwd_pair(w);
    }
}

#if defined(ISA_amx)
/* Lines s0..s1 of the product of a unit (m tiles of rows; four panels or two), stored to or added to the tiles at z and z2.
 * Meanwhile runs the cell of `cells` pairs of rows, evenly spread. */
INLINE void bwd_unit(const int m, const bool four, struct bwd_pipeline *w, const struct bwd_product *q, i32 s0, i32 s1, f32 *z,
                     f32 *z2, i32 cells) {
    struct tiles *tl = &w->tl;
    f32 *const at[4] = {z, z + q->panel, m == 2 ? z + ZTILE : z2, (m == 2 ? z + ZTILE : z2) + q->panel};
    i32 credit = 0;
    tiles_order();
    if (s0 == 0) {
        tile_zero(tl, 0), tile_zero(tl, 1), tile_zero(tl, 2), tile_zero(tl, 3);
    } else {
        tile_load(tl, 0, at[0], 64), tile_load(tl, 1, at[1], 64), tile_load(tl, 2, at[2], 64), tile_load(tl, 3, at[3], 64);
    }
    w->left -= cells;
    for (i32 s = s0; s < s1; s++) {
        if (m == 2)
            bwd_mul_two(tl, q, s);
        else
            bwd_mul_one(tl, q, s, four);
        for (credit += cells; credit >= s1 - s0; credit -= s1 - s0) bwd_pair(w);
    }
    tile_store(tl, 0, at[0], 64), tile_store(tl, 1, at[1], 64);
    if (m == 2 || four) {
        tile_store(tl, 2, at[2], 64), tile_store(tl, 3, at[3], 64);
    }
    tiles_order();
}

static void bwd_unit_two(struct bwd_pipeline *w, const struct bwd_product *q, i32 s0, i32 s1, f32 *z, i32 cells) {
    bwd_unit(2, false, w, q, s0, s1, z, NULL, cells);
}
static void bwd_unit_one(struct bwd_pipeline *w, const struct bwd_product *q, f32 *z, i32 cells) {
    bwd_unit(1, false, w, q, 0, q->lines, z, z, cells);
}
static void bwd_unit_four(struct bwd_pipeline *w, const struct bwd_product *q, f32 *z, f32 *z2, i32 cells) {
    bwd_unit(1, true, w, q, 0, q->lines, z, z2, cells);
}

/* Lines s0..s1 of one unit; returns the number of finished pairs. A unit with one tile of rows processes two pairs at a time if
 * possible, and all lines in its last call. */
static i32 bwd_do_unit(struct bwd_pipeline *w, const struct bwd_batch *a, const u16 *matrix, i32 t, i32 b, i32 pair, i32 s0,
                       i32 s1, i32 cells) {
    struct bwd_product q = product_of(w->l, matrix, t, a->pair + pair, b);
    f32 *z = unit_z(a, b, pair);
    const bool last = s1 == q.lines;
    q.panel = unit_floats(a->e - a->b) / 2;
    if (block_end(b, a->e) - b > 16) {
        bwd_unit_two(w, &q, s0, s1, z, cells);
        return last;
    }
    if (!last || pair % 2) return 0;
    if (pair + 1 == a->pairs) {
        bwd_unit_one(w, &q, z, cells);
        return 1;
    }
    bwd_unit_four(w, &q, z, unit_z(a, b, pair + 1), cells);
    return 2;
}
#else
/* Lines s0..s1 of one unit (two units if few rows are left), then the given number of cells; returns the number of finished
 * pairs. */
static i32 bwd_do_unit(struct bwd_pipeline *w, const struct bwd_batch *a, const u16 *matrix, i32 t, i32 b, i32 pair, i32 s0,
                       i32 s1, i32 cells) {
    static const f32 zeros[LANES] __attribute__((aligned(64)));
    const struct bwd_product p = product_of(w->l, matrix, t, a->pair + pair, b);
    const i32 n = block_end(b, a->e) - b, units = n >= 8 ? 1 : pair % 2 ? 0 : imin(2, a->pairs - pair);
    struct run q = {.w_line = 2 * TILE, .part = {{-1, 0}, {-1, 0}}, .odd = {0, RUN_PAIRS}};
    s0 -= s0 % DZ, s1 -= s1 % DZ;
    q.a = p.a + s0 / DZ * p.group, q.a_two = 2 / DZ * p.group, q.a_one = DZ == 1 ? p.group : LINE;
    q.w = p.w + (i64)s0 * 2 * TILE, q.lines = s1 - s0;
    if (SPLIT == 1) q.odd[matrix == w->l->wx] = RUN_PAIRS / 2; /* skip the columns without weights: n_x on the h side, n_h on
                                                                * the x side */
    q.w_two = p.pair, q.in_row = s0 ? LANES : 0, q.out_row = LANES;
    for (i32 i = 0; i < 2 * units; i++) {
        q.out[i] = unit_z(a, b, pair + i / 2) + i % 2 * (unit_floats(a->e - a->b) / 2);
        q.in[i] = s0 ? q.out[i] : zeros;
    }
    if (units == 2)
        run_four(DZ * LINE, &q, n);
    else if (units == 1)
        run_two(DZ * LINE, &q, n);
    for (w->left -= cells; cells > 0; cells--) bwd_pair(w);
    return s1 == p.lines ? units : 0;
}
#endif

/* Computes dh of a batch and runs the pending cells: those of the previous batch, spread over the product; its own, unit by
 * unit, if none were pending. */
static void bwd_do_batch(struct bwd_pipeline *w, const struct bwd_batch *a) {
    const i32 lines = w->l->NG * DZ, slices = ceil_div(lines, SLICE_LINES),
              units = ((a->e - 1) / ROWS - a->b / ROWS + 1) * a->pairs;
    i32 todo = units * slices, ready = 0;
    /* they produce the dz that this batch reads */
    if (w->batch.t != a->t && w->batch.b < a->e && a->b < w->batch.e) bwd_finish(w);
    bool own = w->left == 0;
    if (own) bwd_begin_cells(w, a);
    for (i32 s = 0; s < slices; s++) {
        for (i32 b = a->b; b < a->e; b = block_end(b, a->e)) {
            for (i32 pair = 0; pair < a->pairs; pair++, todo--) {
                const i32 s0 = lines * s / slices, s1 = lines * (s + 1) / slices;
                const i32 made = bwd_do_unit(w, a, w->l->wb, a->t + 1, b, pair, s0, s1, own ? w->left : ceil_div(w->left, todo));
                for (i32 i = 0; i < made; i++) ready += unit_pairs(w->l, a, b, pair + i);
                if (!own && w->left == 0) bwd_begin_cells(w, a), own = true;
                if (own) w->left += ready, ready = 0;
            }
        }
    }
    if (own) return;
    bwd_finish(w);
    bwd_begin_cells(w, a);
    w->left = ready;
}

/* ------------------------------------------------------------------ the loop over time steps, backward ---------------------- */

/* Rows b0..b1 whose last step is t: no product, dh comes from dhT. */
static void bwd_last_rows(struct bwd_pipeline *w, i32 t, i32 b0, i32 b1) {
    const struct layout *l = w->l;
    const struct bwd_batch a = {t, b0, b1, 0, ceil_div(l->NP, 2), NULL};
    const f32 *ds = HAS_C ? l->x->dcT : KIND == CELL_GRU ? l->x->dhT : NULL;
    bwd_finish(w);
    for (i32 p = 0; p < l->NP; p++)
        for (i32 b = b0; b < b1; b++) v_store(s_at(l, p, b), v_load_or_zero(ds, (i64)b * l->Hp + p * LANES));
    bwd_begin_cells(w, &a);
    for (i32 b = b0; b < b1; b = block_end(b, b1))
        for (i32 pair = 0; pair < a.pairs; pair++) w->left += unit_pairs(l, &a, b, pair);
    bwd_finish(w);
}

/* Rows b0..b1 of step t that have a later step. If all weights fit in L2, a batch is one block of rows; otherwise all rows, so
 * that the weights are loaded once per step. */
static void bwd_step(struct bwd_pipeline *w, i32 t, i32 b0, i32 b1) {
    const i32 pairs = ceil_div(w->l->NP, 2), blocks = (b1 - 1) / ROWS - b0 / ROWS + 1;
    const bool near = pairs * w->l->NG * DZ * 2 <= RESIDENT_TILES;
    const i32 most = near ? 1 : blocks;
    const i64 turn = most * pairs * unit_floats(b1 - b0);
    for (i32 b = b0, end; b < b1; b = end) {
        end = block_end(b, b1);
        for (i32 i = 1; i < most; i++) end = block_end(end, b1);
        w->turn = blocks > most && !w->turn; /* a single batch finishes its cells before the next step */
        bwd_do_batch(w, &(struct bwd_batch){t, b, end, 0, pairs, w->z + w->turn * turn});
    }
}

/* out[row][cols] = dz of step t times a matrix of wt, for rows b0..b1 */
static void bwd_rows_out(struct bwd_pipeline *w, const u16 *matrix, i32 t, i32 b0, i32 b1, f32 *out, i64 ld, i32 cols) {
    const i32 pairs = ceil_div(cols, PAIR), lines = w->l->NG * DZ;
    for (i32 b = b0; b < b1; b = block_end(b, b1)) {
        for (i32 pair = 0; pair < pairs; pair += 2) {
            const struct bwd_batch a = {t, b, block_end(b, b1), pair, imin(2, pairs - pair), w->z};
            for (i32 i = 0; i < a.pairs; i++) bwd_do_unit(w, &a, matrix, t, b, i, 0, lines, 0);
            for (i32 p = 0; p < 2 * a.pairs; p++) {
                const i32 at = pair * PAIR + p * LANES, left = imin(LANES, cols - at);
                const f32 *z = unit_z(&a, b, p / 2) + p % 2 * (unit_floats(a.e - b) / 2);
                for (i32 r = 0; r < a.e - b && left > 0; r++)
                    memcpy(out + (b + r) * ld + at, z + r * LANES, (size_t)left * sizeof(f32));
            }
        }
    }
}

/* The gradient of the state before step t0, once that step is done. */
static void bwd_start(struct bwd_pipeline *w, i32 b0, i32 b1, i32 t0) {
    const struct layout *l = w->l;
    const struct cell_args *x = l->x;
    const i32 n = imin(b1, cell_live(x, t0));
    if (x->dh0 && b0 < n) bwd_rows_out(w, l->wb, t0, b0, n, x->dh0, l->Hp, l->Hp);
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

static void bwd_dx(struct bwd_pipeline *w, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct cell_args *x = w->l->x;
    for (i32 t = t1 - 1; t >= t0; t--) {
        const i32 n = imin(b1, cell_live(x, t));
        f32 *dx = x->dx + (i64)t * x->B * x->dx_ld;
        if (b0 < n) bwd_rows_out(w, w->l->wx, t, b0, n, dx, x->dx_ld, x->I);
        for (i32 b = imax(b0, n); b < b1; b++) memset(dx + b * x->dx_ld, 0, (size_t)x->I * sizeof(f32));
    }
}

static void bwd_steps(const struct layout *l, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct cell_args *x = l->x;
    struct bwd_pipeline w = {.l = l, .z = (f32 *)(l->xt + b0 * xt_rows(l->x->T) * l->K * LINE)};
    tiles_begin(&w.tl);
    for (i32 t = t1 - 1; t >= t0; t--) {
        const i32 n = imin(b1, cell_live(x, t)), on = imax(b0, imin(n, cell_live(x, t + 1)));
        if (on < n) bwd_last_rows(&w, t, on, n);
        if (b0 < on) bwd_step(&w, t, b0, on);
    }
    bwd_finish(&w);
    if (x->dx) bwd_dx(&w, b0, b1, t0, t1);
    bwd_start(&w, b0, b1, t0);
    tiles_end(&w.tl);
}

static void cell_bwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    if (team_is_leader(x)) {
        const struct layout l = layout_of(x);
        bwd_steps(&l, b0, b1, t0, t1);
    }
    team_end(x, t1 - t0 + 1);
}

#endif
