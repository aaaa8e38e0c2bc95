/* tile_gru.c - PyTorch's GRU (linear before reset) on register tiles: the element-wise cell and its tile sizes. cell_tile.h is
 * the rest. Compiled once per instruction set.
 *
 *     r, z = sigmoid(x W + h U + b)     n = tanh(x Wn + bn + r (h Un + bhn))     h' = n + z (h - n)
 *
 * A unit has the values r, z, n_x (then n), n_h. An act row stores them in the order n_x, r, z, n_h. */
#include "kern/tile.h"

#define KIND CELL_GRU
#define FILL kern_fill_gru
#define GW 3
#define GA 4
#define XSLOT 0
#define HSLOT 1
#define FWD_PANELS 1
#define K_PANELS 8
#if REGS == 32
#define ONE_PANELS 4
#define DW_NV 3
#define DW_MK 8
#elif defined(ISA_avx2)
#define ONE_PANELS 2
#define DW_NV 2
#define DW_MK 6
#else
#define ONE_PANELS 2
#define DW_NV 3
#define DW_MK 2
#endif

static const i32 slot_of[GA] = {1, 2, 0, 3};

INLINE void gates_fwd(vf *z, vf h_prev, vf *s, vf *h) {
    z[0] = v_sigmoid(z[0]);
    z[1] = v_sigmoid(z[1]);
    z[2] = v_tanh(v_fma(z[0], z[3], z[2]));
    *s = *h = v_fma(z[1], h_prev - z[2], z[2]);
}

INLINE void gates_bwd(vf *z, vf h_prev, vf s, vf dh, vf *ds) {
    const vf one = v_set1(1), r = z[0], u = z[1], n = z[2], hn = z[3];
    const vf dn = dh * (one - u) * v_fnma(n, n, one);
    (void)s;
    z[0] = dn * hn * (r * (one - r));
    z[1] = dh * (h_prev - n) * (u * (one - u));
    z[2] = dn;
    z[3] = dn * r;
    *ds = dh * u;
}

#include "kern/cell_tile.h"
