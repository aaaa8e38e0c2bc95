/* diag_paralstm.c - arithmetic of paralstm (equations: paralstm.c) for diag_kern.h; compiled once per instruction set. */
#define SET diag_paralstm
#define GATES 3
#define STATE_ROWS 2
#define TWO_STATES 1
#define KEEPS 1
#define LINEAR 0
#include "model/cell/diag_math.h"

enum { F, Z, O, PF = GATES + F, PO = GATES + O };

/* Turns x-side pre-activations into gates; returns the state after the step. */
INLINE struct state step(const vf *a, vf *z, struct state s) {
    z[F] = v_sigmoid(v_fma(a[PF], s.c, v_fma(a[F], s.h, z[F])));
    z[Z] = v_tanh(v_fma(a[Z], s.h, z[Z]));
    const vf c = v_fma(z[F], s.c - z[Z], z[Z]);
    z[O] = v_sigmoid(v_fma(a[PO], c, v_fma(a[O], s.h, z[O])));
    return state_of(z[O] * v_tanh(c), c);
}

/* c after the step as a linear function of c before, with fixed gates. */
INLINE void frozen(const vf *g, vf *factor, vf *add) {
    *factor = g[F];
    *add = (v_set1(1) - g[F]) * g[Z];
}

/* h after the step, from h before, c after and the output gate's pre-activation. */
INLINE vf h_of(const vf *a, vf z_out, vf h, vf c) {
    return v_sigmoid(v_fma(a[PO], c, v_fma(a[O], h, z_out))) * v_tanh(c);
}

INLINE struct jac jacobian(const vf *a, const vf *g, struct state s, struct state after) {
    const vf one = v_set1(1), tc = v_tanh(after.c), df = (s.c - g[Z]) * (g[F] * (one - g[F])), to = tc * (g[O] * (one - g[O]));
    const vf cc = v_fma(df, a[PF], g[F]), ch = v_fma(df, a[F], (one - g[F]) * v_fnma(g[Z], g[Z], one) * a[Z]);
    const vf via = v_fma(to, a[PO], g[O] * v_fnma(tc, tc, one));
    return (struct jac){v_fma(via, ch, to * a[O]), via * cc, ch, cc};
}

/* Turns gates into dz, and d from the gradient of the state after the step into that of the state before. */
INLINE struct state back(const vf *a, vf *g, struct state s, struct state after, struct state d, vf *keep) {
    (void)keep;
    const vf one = v_set1(1), tc = v_tanh(after.c), out = d.h * tc * (g[O] * (one - g[O]));
    vf dc = v_fma(d.h * g[O], v_fnma(tc, tc, one), d.c);
    dc = v_fma(out, a[PO], dc);
    const vf df = dc * (s.c - g[Z]) * (g[F] * (one - g[F])), dz = dc * (one - g[F]) * v_fnma(g[Z], g[Z], one);
    const vf dh = v_fma(df, a[F], v_fma(dz, a[Z], out * a[O]));
    const vf dc0 = v_fma(df, a[PF], dc * g[F]);
    g[F] = df, g[Z] = dz, g[O] = out;
    return state_of(dh, dc0);
}

/* Gradient of the state rows of w; the output gate reads c after the step. */
INLINE void rows_grad(const vf *dz, struct state s, vf keep, vf *da) {
    da[F] = v_fma(dz[F], s.h, da[F]);
    da[Z] = v_fma(dz[Z], s.h, da[Z]);
    da[O] = v_fma(dz[O], s.h, da[O]);
    da[PF] = v_fma(dz[F], s.c, da[PF]);
    da[PO] = v_fma(dz[O], keep, da[PO]);
}

#include "model/cell/diag_kern.h"
