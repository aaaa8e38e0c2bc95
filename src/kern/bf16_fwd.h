/* bf16_fwd.h - forward of the bf16 cells: rows x one group of units x all its gates in tiles, then the cell.
 *
 *     z = bias + [x_t ; h_{t-1}] W        block of 32 rows: 2 x 2 tiles, one line of z after the other
 *                                         block of 16 rows: 1 x 4 tiles, all columns at once
 *
 * A finished block of z stays in a buffer of 8 KB. Its cell runs right after the product or, for long products on AMX, in
 * shares after the steps of the next block's product, so that tile unit and vector unit work at the same time. Dot products and
 * cells use the same unit and alternate; there a block is 8 rows x 2 columns at a time (bf16_tile_dp.h). */
#ifndef STRETTO_KERN_BF16_FWD_H
#define STRETTO_KERN_BF16_FWD_H

#include "kern/bf16_layout.h"

enum { Z_BLOCK = 2 * 4 * ZTILE, OVERLAP_LINES = 8, FACTORS_AHEAD = 8 };

struct fwd_block {
    i32 t, g, b, n; /* step, group, first row, number of rows up to ROWS; 0 = no block */
};

/* Operands of the cell for one block; strides per row. */
struct fwd_rows {
    const f32 *z; /* [column][rows] */
    f32 *s, *y;   /* y NULL = not needed */
    u16 *h, *f;
    i64 z_column, s_panel, y_row;
    i32 n, done;
    bool second, stream, stream_y; /* second: the group has a second panel; stream: non-temporal stores of f, of y */
};

static struct fwd_rows fwd_rows_of(const struct layout *l, const struct fwd_block *b, const f32 *z) {
    const struct cell_args *x = l->x;
    const i32 p = b->g * GROUP_PANELS;
    struct fwd_rows c = {.z = z, .n = b->n, .s = s_at(l, p, b->b), .s_panel = (i64)l->B * LANES, .y_row = l->Hp};
    c.z_column = (b->n > 16 ? 2 : 1) * ZTILE;
    c.h = a_at(l, b->t + 1, b->b, l->XK + p / 2) + p % 2 * LANES;
    c.f = g_at(l, b->t, b->g, b->b);
    c.y = x->y ? x->y + ((i64)b->t * l->B + b->b) * l->Hp : x->hT ? x->hT + (i64)b->b * l->Hp : NULL;
    if (c.y) c.y += p * LANES;
    c.second = p + 1 < l->NP;
    c.stream = l->stream;
    c.stream_y = l->stream && x->y && (uintptr_t)c.y % 64 == 0;
    return c;
}

INLINE void y_store(f32 *y, vf h, bool stream) {
    if (stream)
        _mm512_stream_ps(y, h);
    else
        v_store(y, h);
}

/* Prefetches for writing: y of the next panel and the factors of the following rows, unless stores are non-temporal. */
INLINE void fetch_to_write(const int R, const struct fwd_rows *c, const u16 *f, const f32 *y) {
    if (c->stream) return;
    UNROLL for (int j = 0; j < R * LINES; j++) __builtin_prefetch(f + (FACTORS_AHEAD * LINES + j) * LINE, 1, 3);
    UNROLL for (int i = 0; i < R && y; i++) __builtin_prefetch(y + i * c->y_row + GROUP_PANELS * LANES, 1, 3);
}

INLINE void f_store(u16 *f, vi line, bool stream) {
    if (stream)
        _mm512_stream_si512((void *)f, line);
    else
        line_store(f, line);
}

/* The cell for WIDE rows of one panel, or WIDE panels of one row. Cell i reads z at offset i * z_at and the state at offset i *
 * s_at. Returns h in f32. */
INLINE struct state fwd_gates(const struct cell_curves *k, const struct fwd_rows *c, const f32 *z, i64 z_at, f32 *s, i64 s_at,
                              vg *f) {
    enum { Z = 2 * DZ / GROUP_PANELS };
    vg gate[Z];
    struct state state, from;
    UNROLL for (int j = 0; j < Z; j++) {
        UNROLL for (int i = 0; i < WIDE; i++) from.of[i] = v_load(z + i * z_at + j * c->z_column);
        gate[j] = g_narrow(from);
    }
    if (HAS_S) UNROLL for (int i = 0; i < WIDE; i++) state.of[i] = v_load(s + i * s_at);
    const struct state h = g_widen(unit_fwd(k, gate, &state, f));
    if (HAS_S) UNROLL for (int i = 0; i < WIDE; i++) v_store(s + i * s_at, state.of[i]);
    return KIND == CELL_GRU ? state : h;
}

/* The cell of R rows from r: stores h, y and the factors. */
INLINE void fwd_cell(const int R, const struct cell_curves *k, const struct fwd_rows *c, i32 r) {
    const f32 *z = c->z + r * LANES;
    f32 *s = c->s + r * LANES, *y = c->y + r * c->y_row;
    u16 *f = c->f + r * (LINES * LINE), *to = c->h + r * LINE;
    vf h[2][GROUP_PANELS];
    vg v[2][2 * LINES];
    fetch_to_write(R, c, f, c->y ? y : NULL);
    if (GROUP_PANELS == 1) {
        UNROLL for (int i = 0; i < R; i += WIDE) {
            const struct state got = fwd_gates(k, c, z + i * LANES, (R - 1) * LANES, s + i * LANES, (R - 1) * LANES, v[i]);
            UNROLL for (int e = 0; e < WIDE; e++) h[i + e][0] = got.of[e];
        }
        UNROLL for (int i = 0; i < R; i++) UNROLL for (int j = 0; j < LINES; j++) f_store(
            f + (i * LINES + j) * LINE, g_line(v[i / WIDE * WIDE][2 * j], v[i / WIDE * WIDE][2 * j + 1], i % WIDE), c->stream);
        const vi both = to_bf16(h[0][0], h[R - 1][0]);
        _mm256_storeu_si256((void *)to, _mm512_castsi512_si256(both));
        if (R == 2) _mm256_storeu_si256((void *)(to + LINE), _mm512_extracti64x4_epi64(both, 1));
    } else {
        UNROLL for (int i = 0; i < R; i++) {
            UNROLL for (int q = 0; q < GROUP_PANELS; q += WIDE) {
                const struct state got = fwd_gates(k, c, z + i * LANES + q * c->z_column, c->z_column, NULL, 0, &v[i][q]);
                UNROLL for (int e = 0; e < WIDE; e++) h[i][(q + e) % GROUP_PANELS] = got.of[e];
            }
            f_store(f + i * LINE, g_both(v[i]), c->stream);
            line_store(to + i * LINE, to_bf16(h[i][0], h[i][GROUP_PANELS - 1]));
        }
    }
    if (!c->y) return;
    UNROLL for (int i = 0; i < R; i++) {
        y_store(y + i * c->y_row, h[i][0], c->stream_y);
        if (GROUP_PANELS == 2 && c->second) y_store(y + i * c->y_row + LANES, h[i][GROUP_PANELS - 1], c->stream_y);
    }
}

INLINE void fwd_cells(const struct cell_curves *k, struct fwd_rows *c, i32 upto) {
    for (; c->done < upto; c->done += 2) {
        if (c->done + 1 < c->n)
            fwd_cell(2, k, c, c->done);
        else
            fwd_cell(1, k, c, c->done);
    }
}

static const f32 *bias_at(const struct layout *l, i32 g, i32 column) {
    const i32 p = g * GROUP_PANELS + column_of[column].panel;
    return p < l->NP ? l->x->bias + ((i64)p * GB + (GROUP_PANELS == 1 ? column : 0)) * LANES : no_bias;
}

#if defined(ISA_amx)
/* Product step: two tiles of rows, line j of z, one line of k. */
INLINE void fwd_mul_two(struct tiles *tl, const struct layout *l, const int j, i32 k, const u16 *a, const u16 *w) {
    tile_load(tl, 4, a, 64);
    tile_load_once(tl, 6, w, 64);
    if (j != SPLIT) {
        tile_load_once(tl, 7, w + TILE, 64);
        tile_load(tl, 5, a + TILE, 64);
        tile_mul(tl, 0, 4, 6), tile_mul(tl, 1, 4, 7), tile_mul(tl, 2, 5, 6), tile_mul(tl, 3, 5, 7);
        return;
    }
    tile_load(tl, 5, a + TILE, 64);
    if (k < l->XK) {
        tile_mul(tl, 0, 4, 6), tile_mul(tl, 2, 5, 6);
    } else {
        tile_mul(tl, 1, 4, 6), tile_mul(tl, 3, 5, 6);
    }
}

/* Product step: one tile of rows, all columns, one line of k. */
INLINE void fwd_mul_one(struct tiles *tl, const struct layout *l, i32 k, const u16 *a, const u16 *v, const u16 *v2) {
    tile_load(tl, 4, a, 64);
    tile_load(tl, 5, v, 64);
    tile_mul(tl, 0, 4, 5);
    tile_load(tl, 6, v + TILE, 64);
    tile_mul(tl, 1, 4, 6);
    if (DZ == 1) return;
    tile_load(tl, 7, v2, 64);
    if (SPLIT != 1 || k < l->XK) tile_mul(tl, 2, 4, 7);
    if (SPLIT == 1) {
        if (k >= l->XK) tile_mul(tl, 3, 4, 7);
        return;
    }
    tile_load(tl, 5, v2 + TILE, 64);
    tile_mul(tl, 3, 4, 5);
}

/* Initializes the accumulators with the bias: a stride of 0 loads one row 16 times. */
INLINE void fwd_bias(const int m, struct tiles *tl, const struct layout *l, i32 g, i32 j) {
    const f32 *b0 = bias_at(l, g, 2 * j), *b1 = bias_at(l, g, 2 * j + 1);
    const f32 *b2 = m == 2 ? b0 : bias_at(l, g, 2 * DZ - 2), *b3 = m == 2 ? b1 : bias_at(l, g, 2 * DZ - 1);
    tile_load(tl, 0, b0, 0), tile_load(tl, 1, b1, 0), tile_load(tl, 2, b2, 0), tile_load(tl, 3, b3, 0);
}

/* The product of block b into z (m tiles of rows), while the cell of the previous block runs. */
INLINE void fwd_block_of(const int m, struct tiles *tl, const struct layout *l, const struct fwd_block *b, f32 *z,
                         struct fwd_rows *c) {
    const struct cell_curves curves = cell_curves();
    const i64 line = a_line(l, b->b);
    const u16 *w = l->wf + TILE * b->g * wf_tiles(l->K), *w2 = w + (i64)l->K * 2 * TILE;
    const i32 passes = m == 2 ? DZ : 1, steps = passes * l->K, pairs = ceil_div(c->n, 2);
    i32 credit = 0, upto = 0;
    tiles_order();
    for (i32 j = 0; j < passes; j++) {
        const u16 *a = a_at(l, b->t, b->b, 0);
        fwd_bias(m, tl, l, b->g, j);
        for (i32 k = 0; k < l->K; k++, a += line) {
            if (m == 1) {
                fwd_mul_one(tl, l, k, a, w, w2);
                w += 2 * TILE, w2 += (SPLIT == 1 ? 1 : 2) * TILE;
            } else if (j == 0) {
                fwd_mul_two(tl, l, 0, k, a, w);
                w += 2 * TILE;
            } else {
                fwd_mul_two(tl, l, 1, k, a, w);
                w += (SPLIT == 1 ? 1 : 2) * TILE;
            }
            for (credit += pairs; credit >= steps; credit -= steps) upto += 2;
            fwd_cells(&curves, c, upto);
        }
        f32 *to =
            z + (m == 2 ? 4 * j : 0) * ZTILE; /* stored after the cell's share: a store that waits for a product would stall the
                                               * following instructions */
        tile_store(tl, 0, to, 64), tile_store(tl, 1, to + m * ZTILE, 64);
        if (m == 2) {
            tile_store(tl, 2, to + ZTILE, 64), tile_store(tl, 3, to + 3 * ZTILE, 64);
        }
        if (m == 1 && DZ == 2) {
            tile_store(tl, 2, to + 2 * ZTILE, 64), tile_store(tl, 3, to + 3 * ZTILE, 64);
        }
    }
    tiles_order();
}

static void fwd_block_two(struct tiles *tl, const struct layout *l, const struct fwd_block *b, f32 *z, struct fwd_rows *c) {
    fwd_block_of(2, tl, l, b, z, c);
}
static void fwd_block_one(struct tiles *tl, const struct layout *l, const struct fwd_block *b, f32 *z, struct fwd_rows *c) {
    fwd_block_of(1, tl, l, b, z, c);
}
#else
/* The product of block b for line j of z, or for both lines. */
INLINE void fwd_lines(const int j, const bool both, const struct layout *l, const struct fwd_block *b, f32 *z) {
    const i64 line = a_line(l, b->b), column = (b->n > 16 ? 2 : 1) * ZTILE;
    struct run q = {.a = a_at(l, b->t, b->b, 0), .a_two = 2 * line, .a_one = line, .lines = l->K, .odd = {0, RUN_PAIRS},
                    .out_row = LANES};
    q.w = l->wf + TILE * (b->g * wf_tiles(l->K) + j * 2 * l->K), q.w_line = (j == SPLIT ? 1 : 2) * TILE;
    q.w_two = 2 * l->K * TILE;
    q.part[0][0] = l->XK - 1, q.part[0][1] = ceil_div(l->x->I - 32 * (l->XK - 1), 2);
    q.part[1][0] = l->K - 1, q.part[1][1] = ceil_div(l->x->H - 32 * (l->K - l->XK - 1), 2);
    for (i32 i = 0; i < (both ? 4 : 2); i++) q.in[i] = bias_at(l, b->g, 2 * j + i), q.out[i] = z + (2 * j + i) * column;
    if (both) {
        run_four(LINE, &q, b->n);
    } else if (j != SPLIT) {
        run_two(LINE, &q, b->n);
    } else { /* split line: one column from x alone, then one from h alone */
        q.lines = l->XK;
        run_one(LINE, &q, b->n);
        q.a += l->XK * line, q.w += l->XK * q.w_line, q.lines = l->K - l->XK;
        q.in[0] = q.in[1], q.out[0] = q.out[1];
        q.part[0][0] = -1, q.part[1][0] = q.lines - 1;
        run_one(LINE, &q, b->n);
    }
}

static void fwd_product(const struct layout *l, const struct fwd_block *b, f32 *z) {
    if (DZ == 1) {
        fwd_lines(0, false, l, b, z);
    } else if (SPLIT < 0) {
        fwd_lines(0, true, l, b, z);
    } else {
        fwd_lines(0, false, l, b, z);
        fwd_lines(1, false, l, b, z);
    }
}
#endif

static void fwd_block_none(struct tiles *tl, struct fwd_rows *c) {
    const struct cell_curves curves = cell_curves();
    while (c->done < c->n) {
        tiles_awake(tl);
        fwd_cells(&curves, c, imin(c->n, c->done + 16));
    }
}

/* ------------------------------------------------------------------ the loop over time steps -------------------------------- */

/* The pipeline of products and cells; the cell of the last block may be pending. */
struct fwd_pipeline {
    struct tiles tl;
    const struct layout *l;
    bool overlap, rows_first;
    struct fwd_block last; /* pending if n > 0 */
    i32 turn;
    f32 z[2][Z_BLOCK] __attribute__((aligned(64)));
};

static void fwd_finish(struct fwd_pipeline *w) {
    struct fwd_rows c = fwd_rows_of(w->l, &w->last, w->z[!w->turn]);
    fwd_block_none(&w->tl, &c);
    w->last.n = 0;
}

static void fwd_next(struct fwd_pipeline *w, const struct fwd_block *b) {
    const struct fwd_block *p = &w->last;
#if defined(ISA_amx)
    if (!w->overlap || (p->t != b->t && p->b < b->b + b->n && b->b < p->b + p->n))
        fwd_finish(w); /* it produces the h that b reads */
    struct fwd_rows c = fwd_rows_of(w->l, p, w->z[!w->turn]);
    (b->n > 16 ? fwd_block_two : fwd_block_one)(&w->tl, w->l, b, w->z[w->turn], &c);
#else
    if (p->n) fwd_finish(w);
    fwd_product(w->l, b, w->z[w->turn]);
#endif
    w->last = *b;
    w->turn = !w->turn;
}

/* Converts x of step t to bf16 rows of A; zeroes a half line that no panel writes. */
static void pack_x(const struct layout *l, i32 t, i32 b0, i32 b1) {
    const struct cell_args *x = l->x;
    for (i32 b = b0; b < b1; b++) {
        const f32 *from = x->x + ((i64)t * l->B + b) * x->x_ld;
        u16 *to = a_at(l, t, b, 0);
        for (i32 k = 0; k < l->XK; k++, to += a_line(l, b)) {
            const f32 *v = from + 32 * k;
            line_store(to, to_bf16(v_load_n(v, x->I - 32 * k), v_load_n(v + 16, x->I - 32 * k - 16)));
        }
        if (l->NP % 2) memset(a_at(l, t, b, l->K - 1) + LANES, 0, LANES * sizeof *to);
    }
}

/* Stores the initial state of rows b0..b1. */
static void fwd_start(const struct layout *l, i32 b0, i32 b1) {
    const struct cell_args *x = l->x;
    const f32 *s0 = HAS_C ? x->c0 : x->h0;
    for (i32 b = b0; b < b1; b++) {
        for (i32 p = 0; p < l->NP; p++) {
            const i64 at = (i64)b * l->Hp + p * LANES;
            const vi v = to_bf16(v_load_or_zero(x->h0, at), v_zero());
            u16 *h = a_at(l, 0, b, l->XK + p / 2) + p % 2 * LANES;
            _mm256_storeu_si256((void *)h, _mm512_castsi512_si256(v));
            v_store(s_at(l, p, b), v_load_or_zero(s0, at));
        }
    }
}

/* Writes hT, cT of rows b0..b1: the state after the steps before t1. */
static void fwd_end(const struct layout *l, i32 b0, i32 b1, i32 t1) {
    const struct cell_args *x = l->x;
    for (i32 b = b0; b < b1; b++) {
        const i32 t = cell_end(x, b, 0, t1);
        if (x->hT && t == 0) copy_row(x->hT, x->h0, b, l->Hp);
        /* without y the cell wrote hT */
        if (x->hT && t > 0 && x->y) copy_row(x->hT, x->y + (i64)(t - 1) * l->B * l->Hp, b, l->Hp);
        for (i32 p = 0; HAS_C && x->cT && p < l->NP; p++) v_store(x->cT + (i64)b * l->Hp + p * LANES, v_load(s_at(l, p, b)));
    }
}

/* All blocks of a step. If all weights fit in L2, loop over groups innermost, so that the rows stay in L1; otherwise over rows
 * innermost, so that each group of weights is loaded once. */
static void fwd_step(struct fwd_pipeline *w, i32 t, i32 b0, i32 b1) {
    const i32 NG = w->l->NG;
    if (w->rows_first) {
        for (i32 b = b0, end; b < b1; b = end) {
            end = block_end(b, b1);
            for (i32 g = 0; g < NG; g++) fwd_next(w, &(struct fwd_block){t, g, b, end - b});
        }
    } else {
        for (i32 g = 0; g < NG; g++) {
            for (i32 b = b0, end; b < b1; b = end) {
                end = block_end(b, b1);
                fwd_next(w, &(struct fwd_block){t, g, b, end - b});
            }
        }
    }
}

static void fwd_steps(const struct layout *l, i32 b0, i32 b1, i32 t0, i32 t1) {
    const struct cell_args *x = l->x;
    struct fwd_pipeline w;
    w.l = l, w.overlap = l->K >= OVERLAP_LINES, w.rows_first = l->NG * wf_tiles(l->K) <= RESIDENT_TILES,
    w.last = (struct fwd_block){0}, w.turn = 0;
    tiles_begin(&w.tl);
    for (i32 t = t0; t < t1; t++) {
        const i32 n = imin(b1, cell_live(x, t));
        pack_x(l, t, b0, n);
        fwd_step(&w, t, b0, n);
        for (i32 b = imax(b0, n); b < b1 && x->y; b++) memset(x->y + ((i64)t * l->B + b) * l->Hp, 0, (size_t)l->Hp * sizeof(f32));
    }
    fwd_finish(&w);
    tiles_end(&w.tl);
    if (l->stream) _mm_sfence();
    _mm_sfence();                /* make non-temporal stores visible before this thread signals completion */
}

static void cell_fwd(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    if (team_is_leader(x)) {
        const struct layout l = layout_of(x);
        if (t0 == 0) fwd_start(&l, b0, b1);
        fwd_steps(&l, b0, b1, t0, t1);
        fwd_end(&l, b0, b1, t1);
    }
    team_end(x, t1 - t0);
}

#endif
