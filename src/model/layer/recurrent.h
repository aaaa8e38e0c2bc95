/* recurrent.h - the recurrent layer: what recurrent.c (a row is a sequence) and recurrent_chain.c (a slice of one) share. */
#ifndef STRETTO_MODEL_LAYER_RECURRENT_H
#define STRETTO_MODEL_LAYER_RECURRENT_H

#include "model/cell/cell.h"
#include "model/layer.h"

enum { RECURRENT_AFTER = 3 }; /* the input that says which row a row goes on from */

static inline bool recurrent_sliced(const struct op *op) { return op->spec.in[RECURRENT_AFTER] >= 0; }

/* The op bound to its buffers, for a part of its rows. */
struct cell_box recurrent_box(const struct op *op, const struct run *r, struct part p);

/* Steps of a slice of the walk back, after which dW is added: sums go on slice by slice, so their length must not depend on the
 * number of threads: B decides the grains. */
i32 recurrent_dw_steps(const struct run *r, i32 T);
/* The kernels write the I values of a row of dx, not the lanes after them. */
void recurrent_pad_dx(const struct cell_box *box, struct part p);

/* Floats of saved and of scratch behind those of the plain layer; 0 where the op is not sliced. */
i64 recurrent_chain_saved(const struct op *op, struct rows B);
i64 recurrent_chain_scratch(const struct op *op, struct rows B);
i64 recurrent_plain_saved(const struct op *op, struct rows B);
i32 recurrent_kept_steps(const struct op *op, struct rows B); /* whose gates are kept at a time */
i64 recurrent_plain_scratch(const struct op *op, struct rows B);

void recurrent_chain(const struct op *op, const struct run *r, bool backward, struct chain *out);

#endif
