/* diag_paragru.c - arithmetic of paragru (equations: paragru.c) for diag_kern.h; compiled once per instruction set. */
#define SET diag_paragru
#define GATES 3
#define STATE_ROWS 1
#define TWO_STATES 0
#define KEEPS 1
#define LINEAR 0
#include "model/cell/diag_math.h"

enum { Z, R, N };

/* Turns x-side pre-activations into gates; returns the state after the step. */
INLINE struct state step(const vf *a, vf *z, struct state s) {
    z[Z] = v_sigmoid(v_fma(a[Z], s.h, z[Z]));
    z[R] = v_sigmoid(v_fma(a[R], s.h, z[R]));
    z[N] = v_tanh(v_fma(a[N], z[R] * s.h, z[N]));
    return state_of(v_fma(z[Z], z[N] - s.h, s.h), v_zero());
}

/* The state after the step as a linear function of the state before, with fixed gates. */
INLINE void frozen(const vf *g, vf *factor, vf *add) {
    *factor = v_set1(1) - g[Z];
    *add = g[Z] * g[N];
}

/* h after the step, from the state s that the linear solve computes: here h is this state. */
INLINE vf h_of(const vf *a, vf z_out, vf h, vf s) {
    (void)a, (void)z_out, (void)h;
    return s;
}

INLINE struct jac jacobian(const vf *a, const vf *g, struct state s, struct state after) {
    (void)after;
    const vf one = v_set1(1), rh = v_fma(s.h * g[R] * (one - g[R]), a[R], g[R]);
    vf hh = one - g[Z];
    hh = v_fma((g[N] - s.h) * (g[Z] * (one - g[Z])), a[Z], hh);
    hh = v_fma(g[Z] * v_fnma(g[N], g[N], one) * a[N], rh, hh);
    return (struct jac){hh, v_zero(), v_zero(), v_zero()};
}

/* Turns gates into dz, and d from the gradient of the state after the step into that of the state before; keep is for dW. */
INLINE struct state back(const vf *a, vf *g, struct state s, struct state after, struct state d, vf *keep) {
    (void)after;
    const vf one = v_set1(1), dn = d.h * g[Z] * v_fnma(g[N], g[N], one), drh = dn * a[N];
    const vf dz = d.h * (g[N] - s.h) * (g[Z] * (one - g[Z])), dr = drh * s.h * (g[R] * (one - g[R]));
    vf dh = d.h * (one - g[Z]);
    dh = v_fma(drh, g[R], dh);
    dh = v_fma(dr, a[R], v_fma(dz, a[Z], dh));
    *keep = g[R] * s.h;
    g[Z] = dz, g[R] = dr, g[N] = dn;
    return state_of(dh, v_zero());
}

/* Gradient of the state rows. */
INLINE void rows_grad(const vf *dz, struct state s, vf keep, vf *da) {
    da[Z] = v_fma(dz[Z], s.h, da[Z]);
    da[R] = v_fma(dz[R], s.h, da[R]);
    da[N] = v_fma(dz[N], keep, da[N]);
}

#include "model/cell/diag_kern.h"
