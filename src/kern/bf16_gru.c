/* bf16_gru.c - PyTorch's GRU (linear before reset) in bf16: its columns and element-wise cell; bf16_cell.h is the rest.
 * Compiled for amx and avx512_bf16.
 *
 *     r, u = sigmoid(x W + h U + b)     n = tanh(x Wn + bn + r (h Un + bhn))     h' = n + u (h - n)
 *
 * Columns r, u, n_x, n_h: the second line of z is split, n_x sums over x only and n_h over h only. */
#include "kern/bf16_gate.h"

#define KIND CELL_GRU
#define FILL kern_fill_bf16_gru
#define GW 3
#define GROUP_PANELS 1
#define DZ 2
#define LINES 3
#define SPLIT 1

static const struct { signed char panel, gate_x, gate_h; } column_of[2 * DZ] = {{0, 0, 0}, {0, 1, 1}, {0, 2, -1}, {0, -1, 2}};

/* z: r u n_x n_h; s: h, in/out; f: factors for backward. */
INLINE vg unit_fwd(const struct cell_curves *k, const vg *z, struct state *s, vg *f) {
    const vg r = g_sigmoid(k, z[0]), u = g_sigmoid(k, z[1]), n = g_tanh(k, g_fma(r, z[3], z[2])), one = g_set1(1);
    const vg dn = g_fnma(n, n, one) * (one - u), rn = dn * z[3] * r, un = (g_narrow(*s) - n) * u;
    *s = g_move(u, *s, g_fnma(u, n, n));
    f[0] = g_fnma(rn, r, rn); /* dh / dz_r     = (1 - u)(1 - n^2) n_h r (1 - r) */
    f[1] = g_fnma(un, u, un); /* dh / dz_u     = (h_prev - n) u (1 - u) */
    f[2] = dn;                /* dh / dn_x     = (1 - u)(1 - n^2) */
    f[3] = dn * r;            /* dh / dn_h */
    f[4] = u;                 /* dh / dh_prev, through the element-wise part */
    f[5] = g_zero();
    return g_narrow(*s);
}

/* dz from dh; s: in/out, the part of dh that bypasses the products. */
INLINE void unit_bwd(const u16 *f, const vf *dh, f32 *s, i64 s_panel, vf *dz) {
    const vf d = dh[0] + v_load(s);
    (void)s_panel;
    UNROLL for (int j = 0; j < 4; j++) dz[j] = d * from_fp16(f + j * LANES);
    v_store(s, d * from_fp16(f + 4 * LANES));
}

#include "kern/bf16_cell.h"
