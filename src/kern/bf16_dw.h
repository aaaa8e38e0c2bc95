/* bf16_dw.h - the weight gradients of the bf16 cells, accumulators staying in tiles over a chunk of rows.
 *
 *     dW [I+H][gates]  +=  [x;h]' dz        32 k x two columns of 16, for up to CHUNK rows (t,b) in increasing order
 *
 *     chunk > line of dz (two columns; 32 rows at a time as pairs, in the first cache) > line of k
 *
 * [x;h]' of the chunk is transposed once, into the scratch of the call's own rows in act:  X [K][32 rows][2] tiles of 16 k.  The
 * sums are read from and written to dw itself; only where x or h end inside a tile they go by way of a copy.  The bias is the
 * gradient of a row of ones.
 *
 * Rows are summed by 32 in one product: a cut in time elsewhere than after a multiple of 32 rows changes the last bits. */
#ifndef STRETTO_KERN_BF16_DW_H
#define STRETTO_KERN_BF16_DW_H

#include "kern/bf16_box.h"

enum { CHUNK = 512, W_ROW = GW * LANES };

struct chunk {
    i32 n, groups;          /* rows; groups of 32, the last one filled up with zeros */
    i64 a[CHUNK], d[CHUNK]; /* where the rows lie in A and in D (group 0) */
    u16 *xt;
};

/* Rows r.. of a line, or zero beyond the last row. */
INLINE vi chunk_line(const u16 *p, const i64 *at, i32 r, i32 n) { return r < n ? line_load(p + at[r]) : _mm512_setzero_si512(); }

/* 16 rows x 32 k of A -> 32 k x 16 rows: half of each line of two tiles. */
INLINE void transpose_half(const u16 *a, const i64 *at, i32 n, u16 *to) {
    vi v[16];
    UNROLL for (int r = 0; r < 8; r++) {
        const vi even = chunk_line(a, at, 2 * r, n), odd = chunk_line(a, at, 2 * r + 1, n);
        v[r] = _mm512_unpacklo_epi16(even, odd);
        v[8 + r] = _mm512_unpackhi_epi16(even, odd);
    }
    transpose16(v);
    UNROLL for (int q = 0; q < 16; q++) {
        u16 *line = to + (q / 4 * 8 + q % 4) * LINE;
        _mm256_storeu_si256((void *)line, _mm512_castsi512_si256(v[q]));
        _mm256_storeu_si256((void *)(line + 4 * LINE), _mm512_extracti64x4_epi64(v[q], 1));
    }
}

static void chunk_transpose(const struct lay *l, const struct chunk *c) {
    for (i32 k = 0; k < l->K; k++)
        for (i32 r = 0; r < 32 * c->groups; r += 16)
            transpose_half(l->a + k * LINE, c->a + r, c->n - r, c->xt + ((i64)k * c->groups + r / 32) * 2 * TILE + r % 32);
}

/* One line of dz of the chunk as right operands: [32 rows][column] tiles. */
static void chunk_pairs(const struct chunk *c, const u16 *dz, u16 *to) {
    const vi by_column = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    for (i32 r = 0; r < 32 * c->groups; r += 2) {
        const vi even = _mm512_permutexvar_epi64(by_column, chunk_line(dz, c->d, r, c->n));
        const vi odd = _mm512_permutexvar_epi64(by_column, chunk_line(dz, c->d, r + 1, c->n));
        u16 *line = to + r / 32 * 2 * TILE + r % 32 / 2 * LINE;
        line_store(line, _mm512_unpacklo_epi16(even, odd));
        line_store(line + TILE, _mm512_unpackhi_epi16(even, odd));
    }
}

/* ------------------------------------------------------------------ products ------------------------------------------------ */

/* A tile of sums: in dw, or a copy of it of which the first `rows` count. */
struct sums {
    f32 *p, *dw;
    i64 stride;
    i32 rows;
    f32 copy[ZTILE] __attribute__((aligned(64)));
};

static void sums_open(struct sums *s, f32 *dw, i32 rows) {
    s->dw = dw;
    s->rows = rows;
    s->p = rows == 16 ? dw : s->copy;
    s->stride = rows == 16 ? W_ROW * 4 : 64;
    for (i32 r = 0; r < 16 && rows < 16; r++) v_store(s->copy + r * 16, v_load_or_zero(r < rows ? dw + (i64)r * W_ROW : NULL));
}

static void sums_close(const struct sums *s) {
    for (i32 r = 0; r < s->rows && s->rows < 16; r++) v_store(s->dw + (i64)r * W_ROW, v_load(s->copy + r * 16));
}

/* Two tiles of k x two columns; the sums that come next are fetched on the way. */
static void dw_two(struct tiles *tl, const struct chunk *c, const u16 *x, const u16 *v, struct sums s[4], const f32 *next) {
    tiles_order();
    tile_load(tl, 0, s[0].p, s[0].stride), tile_load(tl, 1, s[1].p, s[1].stride);
    tile_load(tl, 2, s[2].p, s[2].stride), tile_load(tl, 3, s[3].p, s[3].stride);
    for (i32 r = 0; r < c->groups; r++, x += 2 * TILE, v += 2 * TILE) {
        for (i32 i = 0; i < 2 && r < 16 && next; i++, next += W_ROW) {
            _mm_prefetch((const char *)next, _MM_HINT_T0);
            _mm_prefetch((const char *)(next + LANES), _MM_HINT_T0);
        }
        tile_load_once(tl, 4, x, 64);
        tile_load(tl, 6, v, 64);
        tile_load(tl, 7, v + TILE, 64);
        tile_load_once(tl, 5, x + TILE, 64);
        tile_mul(tl, 0, 4, 6), tile_mul(tl, 1, 4, 7), tile_mul(tl, 2, 5, 6), tile_mul(tl, 3, 5, 7);
    }
    tile_store(tl, 0, s[0].p, s[0].stride), tile_store(tl, 1, s[1].p, s[1].stride);
    tile_store(tl, 2, s[2].p, s[2].stride), tile_store(tl, 3, s[3].p, s[3].stride);
    tiles_order();
}

/* Two tiles of k x one column. */
static void dw_one(struct tiles *tl, const struct chunk *c, const u16 *x, const u16 *v, struct sums s[4]) {
    tiles_order();
    tile_load(tl, 0, s[0].p, s[0].stride), tile_load(tl, 2, s[2].p, s[2].stride);
    for (i32 r = 0; r < c->groups; r++, x += 2 * TILE, v += 2 * TILE) {
        tile_load_once(tl, 4, x, 64);
        tile_load(tl, 6, v, 64);
        tile_load_once(tl, 5, x + TILE, 64);
        tile_mul(tl, 0, 4, 6), tile_mul(tl, 2, 5, 6);
    }
    tile_store(tl, 0, s[0].p, s[0].stride), tile_store(tl, 2, s[2].p, s[2].stride);
    tiles_order();
}

/* Sums of two columns over the rows: even and odd groups apart, for there to be four chains. */
static void dw_bias(struct tiles *tl, const struct chunk *c, const u16 *v, f32 *to0, f32 *to1) {
    static const u16 ones[TILE] __attribute__((aligned(64))) = {
        [0] = 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80,
        0x3f80,       0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80,
        0x3f80,       0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80};
    f32 sum[4][ZTILE] __attribute__((aligned(64)));
    tiles_order();
    tile_zero(tl, 0), tile_zero(tl, 1), tile_zero(tl, 2), tile_zero(tl, 3);
    tile_load(tl, 4, ones, 64);
    for (i32 r = 0; r < c->groups; r++, v += 2 * TILE) {
        tile_load(tl, 6, v, 64);
        tile_load(tl, 7, v + TILE, 64);
        if (r % 2 == 0) {
            tile_mul(tl, 0, 4, 6), tile_mul(tl, 1, 4, 7);
        } else {
            tile_mul(tl, 2, 4, 6), tile_mul(tl, 3, 4, 7);
        }
    }
    tile_store(tl, 0, sum[0], 64), tile_store(tl, 1, sum[1], 64), tile_store(tl, 2, sum[2], 64), tile_store(tl, 3, sum[3], 64);
    tiles_order();
    v_store(to0, v_load(to0) + (v_load(sum[0]) + v_load(sum[2])));
    if (to1) v_store(to1, v_load(to1) + (v_load(sum[1]) + v_load(sum[3])));
}

/* ------------------------------------------------------------------ the walk ------------------------------------------------ */

/* dW of line j of group g: v holds its pairs. */
static void dw_line(struct tiles *tl, const struct lay *l, const struct chunk *c, i32 g, i32 j, const u16 *v, f32 *dw) {
    const i32 I = l->x->I, H = l->x->H;
    struct sums s[4];
    for (i32 k = 0; k < l->K; k++) {
        const bool h_side = k >= l->XK;
        const i32 k0 = h_side ? I + 32 * (k - l->XK) : 32 * k, rows = imin(32, h_side ? I + H - k0 : I - k0);
        const u16 *x = c->xt + (i64)k * c->groups * 2 * TILE;
        f32 *at[2] = {NULL, NULL};
        for (i32 i = 0; i < 2; i++) {
            const i32 p = g * GROUP_PANELS + column_of[2 * j + i].panel, gate = column_gate(2 * j + i, h_side);
            if (p >= l->NP || gate < 0) continue;
            at[i] = dw + ((i64)p * (I + H) + k0) * W_ROW + gate * LANES;
            sums_open(&s[i], at[i], imin(16, rows));
            sums_open(&s[2 + i], at[i] + 16 * W_ROW, imax(0, rows - 16));
        }
        const f32 *next = k + 1 < l->K ? at[0] + 32 * W_ROW : NULL;
        if (at[0] && at[1])
            dw_two(tl, c, x, v, s, GROUP_PANELS == 1 ? next : NULL);
        else
            dw_one(tl, c, x, at[1] ? v + TILE : v, at[1] ? s + 1 : s);
        for (i32 i = 0; i < 4; i++)
            if (at[i % 2]) sums_close(&s[i]);
    }
}

static void dw_chunk(struct tiles *tl, const struct lay *l, struct chunk *c, f32 *dw, f32 *dbias) {
    u16 v[CHUNK * LINE] __attribute__((aligned(64)));
    if (c->n == 0) return;
    c->groups = ceil_div(c->n, 32);
    chunk_transpose(l, c);
    for (i32 g = 0; g < l->NG; g++) {
        for (i32 j = 0; j < DZ; j++) {
            f32 *bias[2];
            for (i32 i = 0; i < 2; i++) {
                const i32 p = g * GROUP_PANELS + column_of[2 * j + i].panel;
                bias[i] = p < l->NP ? dbias + ((i64)p * GB + (GROUP_PANELS == 1 ? 2 * j + i : 0)) * LANES : NULL;
            }
            chunk_pairs(c, l->d + (i64)g * l->B * DZ * LINE + j * LINE, v);
            dw_bias(tl, c, v, bias[0], bias[1]);
            dw_line(tl, l, c, g, j, v, dw);
        }
    }
    c->n = 0;
}

static void cell_dw(const struct cell_box *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) {
    if (!team_first(x) || b0 >= b1) return;
    const struct lay l = lay_of(x);
    const i32 most = (i32)lmin(CHUNK, (i64)(b1 - b0) * 32); /* what the scratch of these rows holds */
    struct chunk c;
    struct tiles tl;
    c.n = 0;
    c.xt = l.xt + (i64)b0 * 32 * l.K * LINE;
    tiles_begin(&tl);
    for (i32 t = t0; t < t1; t++) {
        for (i32 b = b0; b < imin(b1, live_rows(x, t)); b++) {
            c.a[c.n] = a_at(&l, t, b) - l.a;
            c.d[c.n++] = d_at(&l, t, 0, b) - l.d;
            if (c.n == most) dw_chunk(&tl, &l, &c, dw, dbias);
        }
    }
    dw_chunk(&tl, &l, &c, dw, dbias);
    tiles_end(&tl);
}

#endif
