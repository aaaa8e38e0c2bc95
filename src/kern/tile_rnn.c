/* tile_rnn.c - the Elman cell h = tanh(x W + h U + b) on register tiles; cell_tile.h is the rest. Compiled once per instruction
 * set. */
#include "kern/tile.h"

#define KIND CELL_RNN
#define FILL kern_fill_rnn
#define GW 1
#define GA 1
#define XSLOT 0
#define HSLOT 0
#define FWD_PANELS 4
#define ONE_PANELS 4
#define K_PANELS 32
#if REGS == 32
#define DW_NV 1
#define DW_MK 16
#elif defined(ISA_avx2)
#define DW_NV 2
#define DW_MK 6
#else
#define DW_NV 1
#define DW_MK 8
#endif

static const i32 slot_of[GA] = {0};

INLINE void gates_fwd(vf *z, vf h_prev, vf *s, vf *h) {
    (void)h_prev;
    *s = *h = z[0] = v_tanh(z[0]);
}

INLINE void gates_bwd(vf *z, vf h_prev, vf s, vf dh, vf *ds) {
    (void)h_prev, (void)s;
    z[0] = dh * v_fnma(z[0], z[0], v_set1(1));
    *ds = v_zero();
}

#include "kern/cell_tile.h"
