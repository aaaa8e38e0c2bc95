/* slice.h - cutting the rows of a box of work at multiples of the micro-batch.
 *
 *     b  0        56       112  ...  448
 *        [ piece 0 ][ piece 1 ] ...
 */
#ifndef STRETTO_PLAN_SLICE_H
#define STRETTO_PLAN_SLICE_H

#include "base/bits.h"

struct slice {
    i32 b0, b1, t0, t1; /* rows and steps, half-open */
};

/* Cuts the rows of `whole` into at most n pieces of whole micro-batches of `grain` rows (the last micro-batch may be shorter).
 * The pieces are in order, none is empty; returns their number.  out has room for n.
 *   count    sizes are equal, or differ by one micro-batch, longer pieces first
 *   weight   sizes are in proportion to weight[i] >= 0; owner[k] is the i of piece k: a weight may be too small for a piece */
i32 slice_cut_count(struct slice whole, i32 grain, i32 n, struct slice *out);
i32 slice_cut_weight(struct slice whole, i32 grain, i32 n, const f64 *weight, struct slice *out, i32 *owner);

/* Slice k of a sequence of T steps in P slices, as equal as possible, longer ones first.  Returns its steps; *from: its first. */
static inline i32 slice_steps(i32 T, i32 P, i32 k, i32 *from) {
    *from = k * (T / P) + imin(k, T % P);
    return T / P + (k < T % P);
}

#endif
