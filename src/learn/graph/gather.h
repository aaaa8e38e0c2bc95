/* gather.h - gather-multiply: for each row of a graph the sum of what its edges bring.  Pure kernels.
 *
 *     out[r] = sum over edges e of row r: weight[e] * y[from[e]]      in f64, in an order that follows from the row alone
 */
#ifndef STRETTO_LEARN_GRAPH_GATHER_H
#define STRETTO_LEARN_GRAPH_GATHER_H

#include "base/bits.h"

/* n edges of a row; weight NULL = 1. */
f64 gather_f64(const u32 *from, const f64 *weight, i64 n, const f64 *y);
f64 gather_f32(const u32 *from, const f64 *weight, i64 n, const f32 *y);

#endif
