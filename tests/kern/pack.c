/* pack.c - between PyTorch's layout of a recurrent layer and the panels of the kernels.
 *
 *     w_ih [G*H][I], w_hh [G*H][H]   <->   w [NP][I+H][G][LANES]      unit u = panel u / LANES, lane u % LANES
 *     b_ih, b_hh [G*H]               <->   bias [NP][GB][LANES] */
#include "kern/pack.h"

#include <string.h>

/* Offset in w of the weight of gate g of unit u for input k (k < I: x, else h). */
static i64 w_at(enum cell_kind kind, i32 I, i32 H, i32 g, i32 u, i32 k) {
    return (((i64)(u / LANES) * (I + H) + k) * cell_gates(kind) + g) * LANES + u % LANES;
}

static i64 bias_at(enum cell_kind kind, i32 g, i32 u) {
    return ((i64)(u / LANES) * cell_bias_gates(kind) + g) * LANES + u % LANES;
}

void cell_pack(enum cell_kind kind, i32 I, i32 H, const struct cell_canon *from, f32 *w, f32 *bias) {
    memset(w, 0, (size_t)cell_w_floats(kind, I, H) * sizeof *w);
    memset(bias, 0, (size_t)cell_bias_floats(kind, H) * sizeof *bias);
    for (i32 g = 0; g < cell_gates(kind); g++) {
        for (i32 u = 0; u < H; u++) {
            const i64 row = (i64)g * H + u;
            for (i32 k = 0; k < I; k++) w[w_at(kind, I, H, g, u, k)] = from->w_ih[row * I + k];
            for (i32 k = 0; k < H; k++) w[w_at(kind, I, H, g, u, I + k)] = from->w_hh[row * H + k];
            if (kind == CELL_GRU && g == 2) {
                bias[bias_at(kind, 2, u)] = from->b_ih[row];
                bias[bias_at(kind, 3, u)] = from->b_hh[row];
            } else {
                bias[bias_at(kind, g, u)] = from->b_ih[row] + from->b_hh[row];
            }
        }
    }
}

void cell_unpack(enum cell_kind kind, i32 I, i32 H, const f32 *w, const f32 *bias, const struct cell_canon *to) {
    for (i32 g = 0; g < cell_gates(kind); g++) {
        for (i32 u = 0; u < H; u++) {
            const i64 row = (i64)g * H + u;
            for (i32 k = 0; k < I; k++) to->w_ih[row * I + k] = w[w_at(kind, I, H, g, u, k)];
            for (i32 k = 0; k < H; k++) to->w_hh[row * H + k] = w[w_at(kind, I, H, g, u, I + k)];
            to->b_ih[row] = bias[bias_at(kind, g, u)];
            to->b_hh[row] = kind == CELL_GRU && g == 2 ? bias[bias_at(kind, 3, u)] : 0;
        }
    }
}
