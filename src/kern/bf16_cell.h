/* bf16_cell.h - the recurrent layer in bf16: includes its parts, packs the weights and fills the table slot.
 *
 * Compiled for amx (bf16_tile_amx.h) and for avx512_bf16 (bf16_tile_dp.h); only the tile products differ. Layouts:
 * bf16_layout.h. Products sum in f32. x, h, w and dz are rounded to bf16 when they enter a product. The saved factors of
 * backward are fp16; values beyond 65504 become infinite, which needs |c| > 2.6e5. */
#include "kern/bf16_layout.h"
#if defined(ISA_amx)
#include "kern/bf16_tile_amx.h"
#else
#include "kern/bf16_tile_dp.h"
#endif
#include "kern/bf16_fwd.h"
#include "kern/bf16_bwd.h"
#include "kern/bf16_dw.h"

/* Row k of gate `gate` of panel p of the packed weights: 16 units. */
static const f32 *w_at(i32 I, i32 H, const f32 *w, i32 p, i32 gate, i32 k) {
    return w + (((i64)p * (I + H) + k) * GW + gate) * LANES;
}

/* One forward tile: 32 rows of k x 16 units; from NULL = zero. */
static void pack_forward_tile(const f32 *from, i32 rows, u16 *to) {
    for (i32 k = 0; k < 32; k += 2) {
        const vf even = v_load_or_zero(from && k < rows ? from + (i64)k * W_ROW : NULL, 0);
        const vf odd = v_load_or_zero(from && k + 1 < rows ? from + (i64)(k + 1) * W_ROW : NULL, 0);
        line_store(to + k / 2 * LINE, in_pairs(to_bf16(even, odd)));
    }
}

static u16 *pack_forward(i32 I, i32 H, const f32 *w, u16 *to) {
    const i32 K = row_lines(I, H), XK = x_lines(I);
    for (i32 g = 0; g < groups(H); g++) {
        for (i32 j = 0; j < DZ; j++) {
            for (i32 k = 0; k < K; k++) {
                const bool h_side = k >= XK;
                const i32 k0 = h_side ? I + 32 * (k - XK) : 32 * k, rows = (h_side ? I + H : I) - k0;
                for (i32 c = 2 * j; c < 2 * j + 2; c++) {
                    const i32 p = g * GROUP_PANELS + column_of[c].panel, gate = column_gate(c, h_side);
                    if (j == SPLIT && gate < 0) continue;
                    pack_forward_tile(p < panels(H) ? w_at(I, H, w, p, gate, k0) : NULL, rows, to);
                    to += TILE;
                }
            }
        }
    }
    return to;
}

/* One backward tile: 32 dz (the two columns of a line) x 16 outputs, from rows k0.. of the weights, transposed. */
static void pack_backward_tile(i32 I, i32 H, const f32 *w, i32 g, i32 j, bool h_side, i32 k0, i32 rows, u16 *to) {
    vi v[16];
    UNROLL for (int n = 0; n < 16; n++) {
        const f32 *from[2] = {NULL, NULL};
        for (i32 i = 0; i < 2; i++) {
            const i32 p = g * GROUP_PANELS + column_of[2 * j + i].panel, gate = column_gate(2 * j + i, h_side);
            if (n < rows && p < panels(H) && gate >= 0) from[i] = w_at(I, H, w, p, gate, k0 + n);
        }
        v[n] = to_bf16(v_load_or_zero(from[0], 0), v_load_or_zero(from[1], 0));
    }
    transpose16(v);
    UNROLL for (int n = 0; n < 16; n++) line_store(to + n * LINE, v[n]);
}

static u16 *pack_backward(i32 I, i32 H, const f32 *w, bool h_side, u16 *to) {
    const i32 first = h_side ? I : 0, count = h_side ? H : I;
    for (i32 k = 0; k < count; k += 32) {
        for (i32 g = 0; g < groups(H); g++) {
            for (i32 j = 0; j < DZ; j++) {
                pack_backward_tile(I, H, w, g, j, h_side, first + k, count - k, to);
                pack_backward_tile(I, H, w, g, j, h_side, first + k + 16, count - k - 16, to + TILE);
                to += 2 * TILE;
            }
        }
    }
    return to;
}

static void cell_prep(i32 I, i32 H, const f32 *w, f32 *wt) {
    u16 *to = pack_forward(I, H, w, line_up(wt));
    to = pack_backward(I, H, w, true, to);
    pack_backward(I, H, w, false, to);
}

void ISA_NAME(FILL)(struct kern *k) {
    k->bf16[KIND] = (struct cell_kern){.bwd_again = true,
                                       .act_floats = act_floats,
                                       .wt_floats = wt_floats,
                                       .prep = cell_prep,
                                       .fwd = cell_fwd,
                                       .bwd = cell_bwd,
                                       .dw = cell_dw,
                                       .point_fwd = k->cell[KIND].point_fwd,
                                       .point_bwd = k->cell[KIND].point_bwd};
}
