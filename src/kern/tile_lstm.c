/* tile_lstm.c - the LSTM on register tiles: the element-wise cell and its tile sizes. cell_tile.h is the rest. Compiled once
 * per instruction set.
 *
 *     c = f c_prev + i g      h = o tanh(c)       i, f, o = sigmoid, g = tanh of x Wx + h Wh + b */
#include "kern/tile.h"

#define KIND CELL_LSTM
#define FILL kern_fill_lstm
#define GW 4
#define GA 4
#define XSLOT 0
#define HSLOT 0
#define FWD_PANELS 1
#define K_PANELS 8 /* block of the backward product: panels of dz (64 rows of wt each) added before the next block starts */
#if REGS == 32
#define ONE_PANELS 4
#define DW_NV 4
#define DW_MK 6
#elif defined(ISA_avx2)
#define ONE_PANELS 2
#define DW_NV 2
#define DW_MK 6
#else
#define ONE_PANELS 2
#define DW_NV 2
#define DW_MK 4
#endif

static const i32 slot_of[GA] = {0, 1, 2, 3};

INLINE void gates_fwd(vf *z, vf c_prev, vf *c, vf *h) {
    z[0] = v_sigmoid(z[0]);
    z[1] = v_sigmoid(z[1]);
    z[2] = v_tanh(z[2]);
    z[3] = v_sigmoid(z[3]);
    *c = v_fma(z[1], c_prev, z[0] * z[2]);
    *h = z[3] * v_tanh(*c);
}

INLINE void gates_bwd(vf *z, vf c_prev, vf c, vf dh, vf *dc) {
    const vf one = v_set1(1), i = z[0], f = z[1], g = z[2], o = z[3], tc = v_tanh(c);
    const vf d = v_fma(dh * o, v_fnma(tc, tc, one), *dc);
    z[0] = d * g * (i * (one - i));
    z[1] = d * c_prev * (f * (one - f));
    z[2] = d * i * v_fnma(g, g, one);
    z[3] = dh * tc * (o * (one - o));
    *dc = d * f;
}

#include "kern/cell_tile.h"
