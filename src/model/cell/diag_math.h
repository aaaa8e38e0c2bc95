/* diag_math.h - vector types of states and Jacobians for the arithmetic of diagonal cells; included before diag_kern.h. */
#ifndef STRETTO_MODEL_CELL_DIAG_MATH_H
#define STRETTO_MODEL_CELL_DIAG_MATH_H

#include "kern/simd.h"
#include "model/cell/diag.h"

/* h and c of VL units; c is zero in cells without c. */
struct state {
    vf h, c;
};

/* d state after / d state before: hc = d h' / d c. */
struct jac {
    vf hh, hc, ch, cc;
};

INLINE struct state state_of(vf h, vf c) { return (struct state){h, c}; }

#endif
