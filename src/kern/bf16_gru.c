/* bf16_gru.c - the GRU of PyTorch (linear before reset) in bf16; compiled for amx and for avx512_bf16.
 *
 *     r, u = sigmoid(x W + h U + b)     n = tanh(x Wn + bn + r (h Un + bhn))     h' = n + u (h - n)
 *
 * Columns r, u, n_x, n_h: the second line of z is split, n_x from the lines of x and n_h from those of h. */
#include "kern/bf16_vec.h"

#define KIND CELL_GRU
#define FILL kern_fill_bf16_gru
#define GW 3
#define GROUP_PANELS 1
#define DZ 2
#define LINES 3
#define SPLIT 1

static const struct { signed char panel, gate_x, gate_h; } column_of[2 * DZ] = {{0, 0, 0}, {0, 1, 1}, {0, 2, -1}, {0, -1, 2}};

struct cell_curves {
    struct curve tanh, sigmoid;
};
INLINE struct cell_curves cell_curves(void) { return (struct cell_curves){curve_of(&tanh_pieces), curve_of(&sigmoid_pieces)}; }

/* z: r u n_x n_h; s: h; f: the factors. */
INLINE void cell_fwd_row(const struct cell_curves *k, const f32 *z, i64 column, f32 *s, i64 s_panel, vf *h, vf *f) {
    const vf r = curve_at(&k->sigmoid, v_load(z)), u = curve_at(&k->sigmoid, v_load(z + column)), nh = v_load(z + 3 * column);
    const vf n = curve_at(&k->tanh, v_fma(r, nh, v_load(z + 2 * column))), step = v_load(s) - n;
    const vf dn = v_fnma(n, n, v_set1(1)) * (v_set1(1) - u), ur = step * u, rn = dn * nh * r;
    (void)s_panel;
    h[0] = v_fma(u, step, n);
    v_store(s, h[0]);
    f[0] = v_fnma(rn, r, rn); /* dh / dz_r     = (1 - u)(1 - n^2) n_h r (1 - r) */
    f[1] = v_fnma(ur, u, ur); /* dh / dz_u     = (h_prev - n) u (1 - u) */
    f[2] = dn;                /* dh / dn_x     = (1 - u)(1 - n^2) */
    f[3] = dn * r;            /* dh / dn_h */
    f[4] = u;                 /* dh / dh_prev, through the element-wise part */
    f[5] = v_zero();
}

/* dz from dh; s: the part of dh that did not go through a product. */
INLINE void cell_bwd_row(const u16 *f, const vf *dh, f32 *s, i64 s_panel, vf *dz) {
    const vf d = dh[0] + v_load(s);
    (void)s_panel;
    UNROLL for (int j = 0; j < 4; j++) dz[j] = d * from_fp16(f + j * LANES);
    v_store(s, d * from_fp16(f + 4 * LANES));
}

#include "kern/bf16_cell.h"
