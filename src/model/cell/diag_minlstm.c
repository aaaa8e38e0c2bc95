/* diag_minlstm.c - arithmetic of minlstm (equations: minlstm.c) for diag_kern.h; compiled once per instruction set. */
#define SET diag_minlstm
#define GATES 3
#define STATE_ROWS 0
#define TWO_STATES 0
#define KEEPS 0
#define LINEAR 1
#include "model/cell/diag_math.h"

enum { F, IN, N };

/* Fraction of h that is kept; both gates are at least 2^-126, so 0/0 is impossible. */
INLINE vf stays(const vf *g) { return g[F] * v_recip(g[F] + g[IN]); }

/* Turns x-side pre-activations into gates; returns the state after the step. */
INLINE struct state step(const vf *a, vf *z, struct state s) {
    (void)a;
    z[F] = v_sigmoid(z[F]);
    z[IN] = v_sigmoid(z[IN]);
    return state_of(v_fma(stays(z), s.h - z[N], z[N]), v_zero());
}

/* The state after the step as a linear function of the state before; exact for this cell. */
INLINE void frozen(const vf *g, vf *factor, vf *add) {
    *factor = stays(g);
    *add = (v_set1(1) - *factor) * g[N];
}

INLINE struct jac jacobian(const vf *a, const vf *g, struct state s, struct state after) {
    (void)a, (void)s, (void)after;
    return (struct jac){stays(g), v_zero(), v_zero(), v_zero()};
}

/* Turns gates into dz, and d from the gradient of the state after the step into that of the state before. */
INLINE struct state back(const vf *a, vf *g, struct state s, struct state after, struct state d, vf *keep) {
    (void)a, (void)after, (void)keep;
    const vf one = v_set1(1), f = stays(g), i = one - f, both = d.h * (s.h - g[N]) * (f * i);
    g[F] = both * (one - g[F]);
    g[IN] = v_zero() - both * (one - g[IN]);
    g[N] = d.h * i;
    return state_of(d.h * f, v_zero());
}

INLINE void rows_grad(const vf *dz, struct state s, vf keep, vf *da) { (void)dz, (void)s, (void)keep, (void)da; }

#include "model/cell/diag_kern.h"
