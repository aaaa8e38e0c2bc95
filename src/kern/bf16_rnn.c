/* bf16_rnn.c - the Elman cell h = tanh(x W + h U + b) in bf16; bf16_cell.h is the rest. Compiled for amx and avx512_bf16.
 *
 * With one gate, a group is two panels of units and a line of dz holds 32 units. */
#include "kern/bf16_gate.h"

#define KIND CELL_RNN
#define FILL kern_fill_bf16_rnn
#define GW 1
#define GROUP_PANELS 2
#define DZ 1
#define LINES 1
#define SPLIT (-1)

static const struct { signed char panel, gate_x, gate_h; } column_of[2 * DZ] = {{0, 0, 0}, {1, 0, 0}};

/* f: the derivative of tanh. */
INLINE vg unit_fwd(const struct cell_curves *k, const vg *z, struct state *s, vg *f) {
    const vg h = g_tanh(k, z[0]);
    (void)s;
    f[0] = g_fnma(h, h, g_set1(1));
    return h;
}

INLINE void unit_bwd(const u16 *f, const vf *dh, f32 *s, i64 s_panel, vf *dz) {
    (void)s, (void)s_panel;
    UNROLL for (int p = 0; p < 2; p++) dz[p] = dh[p] * from_fp16(f + p * LANES);
}

#include "kern/bf16_cell.h"
