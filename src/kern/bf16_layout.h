/* bf16_layout.h - buffer layouts of the bf16 cells. A cell file (bf16_lstm.c, ..) defines the names below and includes
 * bf16_cell.h.
 *
 *   KIND            CELL_LSTM
 *   GW              gates in the weights
 *   GROUP_PANELS    panels of a group, the units whose gates are multiplied together: 1, or 2 for a cell with one gate
 *   DZ              lines of dz per group; columns 2j, 2j+1 of z and dz (16 units of one gate each) share line j
 *   LINES           lines of factors that forward stores for backward, at least DZ
 *   column_of[2*DZ]   for a column: its panel in the group, and its gate in the weights on the x side and the h side (-1: none)
 *   SPLIT           the line with one column fed by x alone and one by h alone (gru's n), or -1
 *
 *   line = 64 bytes = 32 bf16 or fp16, or 16 f32.      tile = 16 lines
 *
 *   act   A [T+1][B/32][K][32]         a row of step t: x_t (XK lines, the rest of the last one zero), then h_{t-1} (HK lines)
 *         G [T][B/32][NG][32][LINES]   factors of backward, fp16
 *         D [T][NG][B][DZ]             dz, bf16; step t lies at t % d_steps: few steps if bwd and dw alternate (x->slice)
 *         S [NG * panels][B]           f32: the running state (c; gru: h); in backward its gradient
 *         X [B][32 K]                  scratch of bwd and dw
 *
 *   wt    WF [NG][line of z][K][2]        tiles of W for forward: 32 k x 16 units of one gate (one tile if the line is split)
 *         WB [NP/2][NG*DZ][2]             tiles of Wh' : 32 dz x 16 units
 *         WX [I/32][NG*DZ][2]             tiles of Wx' : 32 dz x 16 inputs
 *
 * A and G consist of blocks of 32 rows (the last may be shorter), so that data used together is contiguous. A tile used as
 * right operand holds pairs of k: line j = rows 2j, 2j+1 of 16 columns, interleaved. A left operand is any 16 consecutive rows
 * of a block of A or G in place, so a range may start and end anywhere. The last tile of a range may read rows that other
 * threads are writing; those sums are discarded. */
#ifndef STRETTO_KERN_BF16_LAYOUT_H
#define STRETTO_KERN_BF16_LAYOUT_H

#include "kern/bf16_vec.h"
#include "kern/fill.h"
#include "kern/team.h"

#include <string.h>

enum {
    HAS_C = KIND == CELL_LSTM,
    HAS_S = KIND != CELL_RNN,
    GB = KIND == CELL_GRU ? 4 : GW, /* gates in the bias */
    ROWS = 32,                      /* rows of a block: two tiles */
    RESIDENT_TILES = 1024,          /* weights up to 1 MB stay in L2 */
    STREAM_BYTES = 24 << 20,        /* more factors than this leave the last-level cache before backward */
    FETCH_BYTES = 4 << 20           /* more than this leave L2 */
};

struct layout {
    const struct cell_args *x;
    i32 B, Hp, NP, NG, XK, K; /* NP panels, NG groups; XK, K: lines of x and of a row of A */
    u16 *a, *g, *d;
    i32 d_steps;
    f32 *s;
    u16 *xt;
    const u16 *wf, *wb, *wx;
    bool stream, fetch; /* forward uses non-temporal stores; backward prefetches */
};

static const f32 no_bias[LANES];

static i32 x_lines(i32 I) { return ceil_div(I, 32); }
static i32 row_lines(i32 I, i32 H) { return x_lines(I) + ceil_div(H, 32); }
static i32 panels(i32 H) { return ceil_div(H, LANES); }
static i32 groups(i32 H) { return ceil_div(H, LANES * GROUP_PANELS); }

/* Lines of the parts of act; tiles of the parts of wt. */
static i64 a_lines(i32 T, i32 B, i32 K) { return ((i64)T + 1) * B * K; }
static i64 g_lines(i32 T, i32 B, i32 H) { return (i64)T * B * groups(H) * LINES; }
static i64 d_lines(i32 T, i32 B, i32 H) { return (i64)T * B * groups(H) * DZ; }
static i64 s_lines(i32 B, i32 H) { return (i64)B * groups(H) * GROUP_PANELS; }
static i64 wf_tiles(i32 K) { return (i64)K * (2 * DZ - (SPLIT >= 0)); } /* of one group */
static i64 wb_tiles(i32 cols, i32 H) { return (i64)ceil_div(cols, 32) * groups(H) * DZ * 2; }

/* Rows of scratch for [x;h]' per batch row; for many steps dW may sum over one batch row alone. */
static i64 xt_rows(i32 T) { return T < 256 ? 32 : 64; }

static i64 act_floats(i32 T, i32 B, i32 I, i32 H) {
    const i32 K = row_lines(I, H);
    return LANES * (a_lines(T, B, K) + g_lines(T, B, H) + s_lines(B, H) + B * xt_rows(T) * K + d_lines(T, B, H) + 16 * DZ + 1);
}

static i64 wt_floats(i32 I, i32 H) {
    return (TILE / 2) * (groups(H) * wf_tiles(row_lines(I, H)) + wb_tiles(H, H) + wb_tiles(I, H)) + LANES;
}

static u16 *line_up(const f32 *p) { return (u16 *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }

static struct layout layout_of(const struct cell_args *x) {
    const i32 K = row_lines(x->I, x->H);
    struct layout l = {
        .x = x, .B = x->B, .Hp = round_up(x->H, LANES), .NP = panels(x->H), .NG = groups(x->H), .XK = x_lines(x->I), .K = K};
    l.a = line_up(x->act);
    l.xt = l.a + LINE * a_lines(x->T, x->B, K);
    l.g = l.xt + LINE * x->B * xt_rows(x->T) * K;
    l.d = l.g + LINE * g_lines(x->T, x->B, x->H);
    l.s = (f32 *)(l.d + LINE * (d_lines(x->T, x->B, x->H) + 16 * DZ)); /* room for the last tile of dz, which reads past the end
                                                                        */
    l.d_steps = x->slice > 0 ? imin(x->T, x->slice + 1) : x->T;
    l.wf = line_up(x->wt);
    l.wb = l.wf + TILE * l.NG * wf_tiles(K);
    l.wx = l.wb + TILE * wb_tiles(x->H, x->H);
    l.stream = g_lines(x->T, x->B, x->H) * 64 > STREAM_BYTES;
    l.fetch = g_lines(x->T, x->B, x->H) * 64 > FETCH_BYTES;
    return l;
}

/* The block that contains row b: its number of rows, and its first row at step t counted in rows. */
static i32 block_rows(const struct layout *l, i32 b) { return imin(ROWS, l->B - b / ROWS * ROWS); }
static i64 block_row0(const struct layout *l, i32 t, i32 b) { return (i64)t * l->B + b / ROWS * ROWS; }

/* Line k of row b; a_line: offset from one line to the next. */
static i64 a_line(const struct layout *l, i32 b) { return block_rows(l, b) * LINE; }
static u16 *a_at(const struct layout *l, i32 t, i32 b, i32 k) {
    return l->a + block_row0(l, t, b) * l->K * LINE + k * a_line(l, b) + b % ROWS * LINE;
}

/* Offset from one group of G to the next, for the block of row b. */
static i64 g_group(const struct layout *l, i32 b) { return (i64)block_rows(l, b) * LINES * LINE; }
static u16 *g_at(const struct layout *l, i32 t, i32 g, i32 b) {
    return l->g + block_row0(l, t, b) * l->NG * LINES * LINE + g * g_group(l, b) + b % ROWS * LINES * LINE;
}
static u16 *d_at(const struct layout *l, i32 t, i32 g, i32 b) {
    return l->d + (((i64)(t % l->d_steps) * l->NG + g) * l->B + b) * DZ * LINE;
}
static f32 *s_at(const struct layout *l, i32 panel, i32 b) { return l->s + ((i64)panel * l->B + b) * LANES; }

/* End of the block of rows that starts at b; blocks do not cross multiples of ROWS. */
static i32 block_end(i32 b, i32 b1) { return imin(b1, (b / ROWS + 1) * ROWS); }

/* Gate of the weights that feeds a column on one side, or -1. */
INLINE i32 column_gate(i32 column, bool h_side) { return h_side ? column_of[column].gate_h : column_of[column].gate_x; }

static void copy_row(f32 *to, const f32 *from, i64 row, i32 n) {
    copy_or_zero(to + row * n, from ? from + row * n : NULL, n);
}

#endif
