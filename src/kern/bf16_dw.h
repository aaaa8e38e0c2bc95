/* bf16_dw.h - weight gradients of the bf16 cells; accumulators stay in tiles or registers for a chunk of rows.
 *
 *     dW [I+H][gates]  +=  [x;h]' dz        32 k x two columns of 16, for up to CHUNK rows (t,b) in increasing order
 *
 * Loop nest: chunk > line of dz (two columns, 32 rows at a time interleaved in pairs, in L1) > line of k. [x;h]' of a chunk is
 * transposed once into the scratch area of the call's rows in act: X [K][32 rows][2] tiles of 16 k. Sums are read from and
 * written to dw directly; tiles that extend past the end of x or h use a copy (dot products handle fewer rows). A product sums
 * 32 rows at once, so splitting time at other than multiples of 32 rows changes the last bits. */
#ifndef STRETTO_KERN_BF16_DW_H
#define STRETTO_KERN_BF16_DW_H

#include "kern/bf16_layout.h"

enum {
    CHUNK = 512,       /* rows whose sums stay in tiles */
    SHORT_CHUNK = 256, /* the same for a small dW: the pairs of two lines then stay in L1 */
    SHORT_LINES = 6,   /* up to this many lines of k dW counts as small */
    W_ROW = GW * LANES
};

struct chunk {
    i32 n, groups;          /* rows; groups of 32 rows, the last padded with zeros */
    i64 a[CHUNK], d[CHUNK]; /* offsets of the rows in A (line 0) and in D (group 0) */
    i64 line[CHUNK];        /* offset between lines of A */
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

static void chunk_transpose(const struct layout *l, const struct chunk *c) {
    for (i32 r = 0; r < 32 * c->groups; r += 16) {
        i64 at[16];
        for (i32 i = 0; i < 16; i++) at[i] = r + i < c->n ? c->a[r + i] : 0;
        for (i32 k = 0; k < l->K; k++) {
            transpose_half(l->a, at, c->n - r, c->xt + ((i64)k * c->groups + r / 32) * 2 * TILE + r % 32);
            for (i32 i = 0; i < 16 && r + i < c->n; i++) at[i] += c->line[r + i];
        }
    }
}

/* Conversion of one line of dz of the chunk to right operands, [32 rows][column] tiles, and the column sums (bias). */
struct pairing {
    const struct chunk *c;
    const u16 *dz;
    u16 *to;
    vf sum[2];
    i32 r;
};

/* Permutation that interleaves words n, n + 1, .. of two rows. */
INLINE vi pair_order(i32 n) {
    const vi even =
        _mm512_add_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi32(n));
    return _mm512_or_si512(even, _mm512_slli_epi32(_mm512_add_epi32(even, _mm512_set1_epi32(32)), 16));
}

/* The next `count` pairs of rows. */
INLINE void pair_rows(struct pairing *m, i32 count) {
    const vi ones = _mm512_set1_epi16(0x3f80), first = pair_order(0), second = pair_order(16);
    const struct chunk *c = m->c;
    const i32 end = imin(32 * c->groups, m->r + 2 * count);
    vf s0 = m->sum[0], s1 = m->sum[1];
    for (i32 r = m->r; r < end; r += 2) {
        const vi even = chunk_line(m->dz, c->d, r, c->n), odd = chunk_line(m->dz, c->d, r + 1, c->n);
        const vi lo = _mm512_permutex2var_epi16(even, first, odd), hi = _mm512_permutex2var_epi16(even, second, odd);
        u16 *line = m->to + r / 32 * 2 * TILE + r % 32 / 2 * LINE;
        s0 = _mm512_dpbf16_ps(s0, (__m512bh)lo, (__m512bh)ones);
        s1 = _mm512_dpbf16_ps(s1, (__m512bh)hi, (__m512bh)ones);
        line_store(line, lo);
        line_store(line + TILE, hi);
    }
    m->sum[0] = s0, m->sum[1] = s1;
    m->r = end;
}

/* ------------------------------------------------------------------ products ------------------------------------------------ */

#if defined(ISA_amx)
/* A tile of sums: in dw itself, or a copy of which the first `rows` rows are valid. */
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
    for (i32 r = 0; r < 16 && rows < 16; r++) v_store(s->copy + r * 16, v_load_or_zero(r < rows ? dw : NULL, (i64)r * W_ROW));
}

static void sums_close(const struct sums *s) {
    for (i32 r = 0; r < s->rows && s->rows < 16; r++) v_store(s->dw + (i64)r * W_ROW, v_load(s->copy + r * 16));
}

/* Two tiles of k x two columns. Meanwhile prefetches the next sums and interleaves rows of the next line of dz, `count` pairs
 * per group. */
static void dw_two(struct tiles *tl, const struct chunk *c, const u16 *x, const u16 *v, struct sums s[4], const f32 *next,
                   struct pairing *m, i32 count) {
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
        pair_rows(m, count);
    }
    tile_store(tl, 0, s[0].p, s[0].stride), tile_store(tl, 1, s[1].p, s[1].stride);
    tile_store(tl, 2, s[2].p, s[2].stride), tile_store(tl, 3, s[3].p, s[3].stride);
    tiles_order();
}

/* Two tiles of k x one column. */
static void dw_one(struct tiles *tl, const struct chunk *c, const u16 *x, const u16 *v, struct sums s[4], struct pairing *m,
                   i32 count) {
    tiles_order();
    tile_load(tl, 0, s[0].p, s[0].stride), tile_load(tl, 2, s[2].p, s[2].stride);
    for (i32 r = 0; r < c->groups; r++, x += 2 * TILE, v += 2 * TILE) {
        tile_load_once(tl, 4, x, 64);
        tile_load(tl, 6, v, 64);
        tile_load_once(tl, 5, x + TILE, 64);
        tile_mul(tl, 0, 4, 6), tile_mul(tl, 2, 5, 6);
        pair_rows(m, count);
    }
    tile_store(tl, 0, s[0].p, s[0].stride), tile_store(tl, 2, s[2].p, s[2].stride);
    tiles_order();
}
#endif

/* ------------------------------------------------------------------ the loop over time steps -------------------------------- */

/* Place in dw of line k of [x;h] (its first row) and a column; NULL = there is none. */
static f32 *sums_at(const struct layout *l, f32 *dw, i32 k, i32 line, i32 i) {
    const bool h_side = k >= l->XK;
    const i32 column = line % DZ * 2 + i, p = line / DZ * GROUP_PANELS + column_of[column].panel,
              gate = column_gate(column, h_side);
    const i64 row = h_side ? l->x->I + 32 * (k - l->XK) : 32 * k;
    if (p >= l->NP || gate < 0) return NULL;
    return dw + ((i64)p * (l->x->I + l->x->H) + row) * W_ROW + gate * LANES;
}

#if defined(ISA_amx)
/* dW of one line of dz, given as pairs in v. Meanwhile the next line is interleaved. */
static void dw_line(struct tiles *tl, const struct layout *l, const struct chunk *c, i32 line, const u16 *v, f32 *dw,
                    struct pairing *m) {
    const i32 count = ceil_div(16, l->K);
    struct sums s[4];
    for (i32 k = 0; k < l->K; k++) {
        const i32 rows = k < l->XK ? l->x->I - 32 * k : l->x->H - 32 * (k - l->XK);
        const u16 *x = c->xt + (i64)k * c->groups * 2 * TILE;
        f32 *const at[2] = {sums_at(l, dw, k, line, 0), sums_at(l, dw, k, line, 1)};
        for (i32 i = 0; i < 2; i++) {
            if (!at[i]) continue;
            sums_open(&s[i], at[i], imin(16, rows));
            sums_open(&s[2 + i], at[i] + 16 * W_ROW, imax(0, imin(16, rows - 16)));
        }
        const f32 *next = k + 1 < l->K ? sums_at(l, dw, k + 1, line, 0) : sums_at(l, dw, 0, line + 1, 0);
        if (at[0] && at[1])
            dw_two(tl, c, x, v, s, next, m, count);
        else
            dw_one(tl, c, x, at[1] ? v + TILE : v, at[1] ? s + 1 : s, m, count);
        for (i32 i = 0; i < 4; i++)
            if (at[i % 2]) sums_close(&s[i]);
    }
}
#else
/* dW of one line of dz, given as pairs in v. After each line of k a share of the next line is interleaved. */
static void dw_line(struct tiles *tl, const struct layout *l, const struct chunk *c, i32 line, const u16 *v, f32 *dw,
                    struct pairing *m) {
    const i32 count = ceil_div(16 * c->groups, l->K);
    (void)tl;
    for (i32 k = 0; k < l->K; k++) {
        const i32 rows = imin(32, k < l->XK ? l->x->I - 32 * k : l->x->H - 32 * (k - l->XK));
        struct run q = {.a_two = 4 * TILE, .a_one = 2 * TILE, .w = v, .w_line = 2 * TILE, .lines = c->groups, .in_row = W_ROW,
                        .out_row = W_ROW, .part = {{-1, 0}, {-1, 0}}, .odd = {0, RUN_PAIRS}};
        q.a = c->xt + (i64)k * c->groups * 2 * TILE;
        for (i32 i = 0; i < 2; i++) q.in[i] = q.out[i] = sums_at(l, dw, k, line, i);
        const f32 *next = k + 1 < l->K ? sums_at(l, dw, k + 1, line, 0) : sums_at(l, dw, 0, line + 1, 0);
        for (i32 i = 0; i < 32 && next; i++, next += W_ROW) {
            _mm_prefetch((const char *)next, _MM_HINT_T0);
            _mm_prefetch((const char *)(next + LANES), _MM_HINT_T0);
        }
        if (q.out[0] && q.out[1]) {
            run_two(LINE, &q, rows);
        } else {
            if (q.out[1]) q.w += TILE, q.in[0] = q.out[0] = q.out[1];
            run_one(LINE, &q, rows);
        }
        pair_rows(m, count);
    }
}
#endif

static void add_bias(const struct layout *l, i32 line, const vf sum[2], f32 *dbias) {
    for (i32 i = 0; i < 2; i++) {
        const i32 column = line % DZ * 2 + i, p = line / DZ * GROUP_PANELS + column_of[column].panel;
        f32 *to = dbias + ((i64)p * GB + (GROUP_PANELS == 1 ? column : 0)) * LANES;
        if (p < l->NP) v_store(to, v_load(to) + sum[i]);
    }
}

static struct pairing pairing_of(const struct layout *l, const struct chunk *c, i32 line, u16 *to) {
    const u16 *dz = l->d + (i64)(line / DZ) * l->B * DZ * LINE + line % DZ * LINE;
    struct pairing m = {.c = c, .dz = dz, .to = to, .sum = {v_zero(), v_zero()}};
    if (line == l->NG * DZ) m.r = 32 * c->groups; /* no next line */
    return m;
}

static void dw_chunk(struct tiles *tl, const struct layout *l, struct chunk *c, f32 *dw, f32 *dbias) {
    u16 v[2][CHUNK * LINE] __attribute__((aligned(64)));
    if (c->n == 0) return;
    c->groups = ceil_div(c->n, 32);
    chunk_transpose(l, c);
    struct pairing m = pairing_of(l, c, 0, v[0]);
    pair_rows(&m, CHUNK);
    for (i32 line = 0; line < l->NG * DZ; line++) {
        add_bias(l, line, m.sum, dbias);
        m = pairing_of(l, c, line + 1, v[(line + 1) % 2]);
        dw_line(tl, l, c, line, v[line % 2], dw, &m);
    }
    c->n = 0;
}

static void cell_dw(const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1, f32 *dw, f32 *dbias) {
    if (!team_is_leader(x) || b0 >= b1) return;
    const struct layout l = layout_of(x);
    const i64 room = xt_rows(x->T); /* scratch rows per batch row */
    const i32 most = (i32)lmin(l.K <= SHORT_LINES ? SHORT_CHUNK : CHUNK, (b1 - b0) * room);
    struct chunk c;
    struct tiles tl;
    c.n = 0;
    c.xt = l.xt + b0 * room * l.K * LINE;
    tiles_begin(&tl);
    for (i32 t = t0; t < t1; t++) {
        for (i32 b = b0; b < imin(b1, cell_live(x, t)); b++) {
            c.a[c.n] = a_at(&l, t, b, 0) - l.a;
            c.line[c.n] = a_line(&l, b);
            c.d[c.n++] = d_at(&l, t, 0, b) - l.d;
            if (c.n == most) dw_chunk(&tl, &l, &c, dw, dbias);
        }
    }
    dw_chunk(&tl, &l, &c, dw, dbias);
    tiles_end(&tl);
}

#endif
