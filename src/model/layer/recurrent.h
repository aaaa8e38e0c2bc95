/* recurrent.h - interface between the layers that run over time (recurrent.c, projected.c: a row is a sequence) and time
 * slicing (recurrent_chain.c: a row is a slice), which is common to them. */
#ifndef STRETTO_MODEL_LAYER_RECURRENT_H
#define STRETTO_MODEL_LAYER_RECURRENT_H

#include "model/cell/cell.h"
#include "model/layer.h"

enum { RECURRENT_AFTER = 3 }; /* the input that names the row which a row continues */

static inline bool recurrent_sliced(const struct op *op) { return op->spec.in[RECURRENT_AFTER] >= 0; }

/* Callbacks of such a layer. A state has a row of h (op->F values) and, if the cell has one, a row of c (spec.hidden values).
 * fwd, bwd and dw have the contract of the cell kernels in kern.h on the arguments that `args` returns (y and h op->F wide). */
struct recurrence {
    i64 (*floats)(const struct op *op); /* floats per row and step: saved values and output */
    i64 (*act)(const struct op *op, enum precision p, i32 T, i32 B); /* floats saved for T steps of B rows */
    i64 (*scratch)(const struct op *op, i32 B); /* scratch floats of fwd, bwd and dw; a chain's own scratch follows */
    /* The kernel arguments of the op for some rows. */
    struct cell_args (*args)(const struct op *op, const struct run *r, struct part p);
    bool (*bwd_again)(const struct op *op, const struct run *r);
    void (*fwd)(const struct op *op, const struct run *r, enum precision p, const struct cell_args *x, struct part part);
    void (*bwd)(const struct op *op, const struct run *r, const struct cell_args *x, struct part part);
    void (*dw)(const struct op *op, const struct run *r, const struct cell_args *x, struct part part, f32 *dw); /* [ntheta] += */
};
extern const struct recurrence recurrence_plain, recurrence_projected;
extern const struct layer_split recurrent_split; /* recurrent_split.c */

/* For shape(): checks in[2] and in[3], declares out and end. */
err recurrent_buffers(struct net *n, struct op *op, i32 states);
/* Zeroes the padding of dx: the kernels write only the I values of a row. */
void recurrent_pad_dx(const struct run *r, const struct cell_args *args, struct part p);

/* Sizes for layer.saved and layer.scratch, including the chain's if the op is sliced. */
i64 recurrent_saved(const struct op *op, const struct net *n, struct rows B);
i64 recurrent_scratch(const struct op *op, const struct net *n, struct rows B);

void recurrent_chain(const struct op *op, const struct run *r, bool backward, struct chain *out);

#endif
