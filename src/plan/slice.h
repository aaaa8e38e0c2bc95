/* slice.h - cutting the box of work, and checking that the pieces cover it once.
 *
 *     b  0        56       112  ...  448        cut along b at multiples of the grain; along t and l at any step or op
 *        [ piece 0 ][ piece 1 ] ...
 */
#ifndef STRETTO_PLAN_SLICE_H
#define STRETTO_PLAN_SLICE_H

#include "base/bits.h"

struct slice {
    i32 b0, b1, t0, t1, l0, l1; /* half-open; l = index of the layer or op */
};

enum cut_axis { AXIS_B, AXIS_T, AXIS_L };

/* Cut `whole` along an axis into at most n pieces, each at least one grain long (the last may end inside a grain); pieces in
 * order, none empty; returns how many.  out has room for n.
 *   count    as equal as grains allow, longer ones first
 *   size     every piece `size` long, rounded up to a grain (at most n pieces: the last takes the rest)
 *   weight   piece i in proportion to weight[i] >= 0; a weight of 0 gives no piece (out then skips it: see `who`)            */
i32 slice_cut_count(struct slice whole, enum cut_axis axis, i32 grain, i32 n, struct slice *out);
i32 slice_cut_size(struct slice whole, enum cut_axis axis, i32 grain, i32 size, i32 n, struct slice *out);
i32 slice_cut_weight(struct slice whole, enum cut_axis axis, i32 grain, i32 n, const f64 *weight, struct slice *out, i32 *who);

/* Slice k of a sequence of T steps in P: as equal as they can be, longer ones first.  Gives its steps, and where it begins. */
static inline i32 slice_steps(i32 T, i32 P, i32 k, i32 *from) {
    *from = k * (T / P) + imin(k, T % P);
    return T / P + (k < T % P);
}

/* Is every cell of `whole` in exactly one of the pieces? */
bool slice_tile(struct slice whole, const struct slice *piece, i32 n);

i64 slice_volume(struct slice s);

#endif
