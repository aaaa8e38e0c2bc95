/* bf16_lstm.c - the LSTM in bf16: its columns and element-wise cell; bf16_cell.h is the rest. Compiled for amx and avx512_bf16.
 *
 *     c = f c_prev + i g      h = o tanh(c)       i, f, o = sigmoid, g = tanh of x Wx + h Wh + b
 *
 * Forward stores the factors of backward, so one multiplication gives each dz, without cancellation where gates saturate. */
#include "kern/bf16_gate.h"

#define KIND CELL_LSTM
#define FILL kern_fill_bf16_lstm
#define GW 4
#define GROUP_PANELS 1
#define DZ 2
#define LINES 3
#define SPLIT (-1)

static const struct { signed char panel, gate_x, gate_h; } column_of[2 * DZ] = {{0, 0, 0}, {0, 1, 1}, {0, 2, 2}, {0, 3, 3}};

/* z: i f g o; s: c, in/out; f: factors for backward. */
INLINE vg unit_fwd(const struct cell_curves *k, const vg *z, struct state *s, vg *f) {
    const vg i = g_sigmoid(k, z[0]), forget = g_sigmoid(k, z[1]), g = g_tanh(k, z[2]), o = g_sigmoid(k, z[3]), ig = i * g;
    *s = g_move(forget, *s, ig);
    const vg c = g_narrow(*s), fc = c - ig, tc = g_tanh(k, c), h = o * tc;
    f[0] = g_fnma(ig, i, ig);      /* dc / dz_i    = g i (1 - i) */
    f[1] = g_fnma(fc, forget, fc); /* dc / dz_f    = c_prev f (1 - f) */
    f[2] = g_fnma(ig, g, i);       /* dc / dz_g    = i (1 - g^2) */
    f[3] = g_fnma(h, o, h);        /* dh / dz_o    = tanh(c) o (1 - o) */
    f[4] = g_fnma(h, tc, o);       /* dh / dc      = o (1 - tanh(c)^2) */
    f[5] = forget;                 /* dc / dc_prev */
    return h;
}

/* dz from dh; s: dc, in/out. */
INLINE void unit_bwd(const u16 *f, const vf *dh, f32 *s, i64 s_panel, vf *dz) {
    const vf dc = v_fma(dh[0], from_fp16(f + 4 * LANES), v_load(s));
    (void)s_panel;
    dz[0] = dc * from_fp16(f);
    dz[1] = dc * from_fp16(f + LANES);
    dz[2] = dc * from_fp16(f + 2 * LANES);
    dz[3] = dh[0] * from_fp16(f + 3 * LANES);
    v_store(s, dc * from_fp16(f + 5 * LANES));
}

#include "kern/bf16_cell.h"
