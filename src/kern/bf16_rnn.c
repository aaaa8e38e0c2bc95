/* bf16_rnn.c - the plain recurrent cell h = tanh(x W + h U + b) in bf16; compiled for amx and for avx512_bf16.
 *
 * One gate: two panels of units make a group, a line of dz is 32 units. */
#include "kern/bf16_vec.h"

#define KIND CELL_RNN
#define FILL kern_fill_bf16_rnn
#define GW 1
#define GROUP_PANELS 2
#define DZ 1
#define LINES 1
#define SPLIT (-1)

static const struct { signed char panel, gate_x, gate_h; } column_of[2 * DZ] = {{0, 0, 0}, {1, 0, 0}};

struct cell_curves {
    struct curve tanh;
};
INLINE struct cell_curves cell_curves(void) { return (struct cell_curves){curve_of(&tanh_pieces)}; }

/* z: a column a panel; f: the slope of tanh. */
INLINE void cell_fwd_row(const struct cell_curves *k, const f32 *z, i64 column, f32 *s, i64 s_panel, vf *h, vf *f) {
    (void)s, (void)s_panel;
    UNROLL for (int p = 0; p < 2; p++) {
        h[p] = curve_at(&k->tanh, v_load(z + p * column));
        f[p] = v_fnma(h[p], h[p], v_set1(1));
    }
}

INLINE void cell_bwd_row(const u16 *f, const vf *dh, f32 *s, i64 s_panel, vf *dz) {
    (void)s, (void)s_panel;
    UNROLL for (int p = 0; p < 2; p++) dz[p] = dh[p] * from_fp16(f + p * LANES);
}

#include "kern/bf16_cell.h"
