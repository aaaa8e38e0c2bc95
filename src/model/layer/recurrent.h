/* recurrent.h - what the layers that walk along t (recurrent.c, projected.c: a row is a sequence) tell the chain of slices
 * (recurrent_chain.c: a row is a slice of one), which is the same for all of them. */
#ifndef STRETTO_MODEL_LAYER_RECURRENT_H
#define STRETTO_MODEL_LAYER_RECURRENT_H

#include "model/cell/cell.h"
#include "model/layer.h"

enum { RECURRENT_AFTER = 3 }; /* the input that says which row a row goes on from */

static inline bool recurrent_sliced(const struct op *op) { return op->spec.in[RECURRENT_AFTER] >= 0; }

/* The walk of such a layer.  A state has a row of h, op->F values, and where the cell has one a row of c, spec.hidden values.
 * fwd, bwd and dw keep the contract of kern.h's cell kernels, on a box as that describes it (y and h as wide as op->F says). */
struct recurrence {
    i64 (*floats)(const struct op *op); /* of a step of a row: what is kept of it, and its output */
    i64 (*act)(const struct op *op, enum precision p, i32 T, i32 B); /* of what is kept of T steps of B rows */
    i64 (*scratch)(const struct op *op, i32 B); /* that fwd, bwd and dw need; a chain has its own behind it */
    /* The op bound to its buffers, for some rows. */
    struct cell_args (*box)(const struct op *op, const struct run *r, struct part p);
    bool (*bwd_again)(const struct op *op, const struct run *r);
    void (*fwd)(const struct op *op, const struct run *r, enum precision p, const struct cell_args *x, struct part part);
    void (*bwd)(const struct op *op, const struct run *r, const struct cell_args *x, struct part part);
    void (*dw)(const struct op *op, const struct run *r, const struct cell_args *x, struct part part, f32 *dw); /* [ntheta] += */
};
extern const struct recurrence recurrence_plain, recurrence_projected;

/* Steps of a slice of the walk back, after which dW is added: sums go on slice by slice, so their length must not depend on the
 * number of threads: B decides the grains. */
i32 recurrent_dw_steps(const struct run *r, i32 T);
/* The kernels write the I values of a row of dx, not the lanes after them. */
void recurrent_pad_dx(const struct cell_args *box, struct part p);

/* Floats of the layer, with those of its chain where the op is sliced; layer.saved and layer.scratch. */
i64 recurrent_saved(const struct op *op, const struct net *n, struct rows B);
i64 recurrent_scratch(const struct op *op, const struct net *n, struct rows B);

void recurrent_chain(const struct op *op, const struct run *r, bool backward, struct chain *out);

#endif
