/* gather.h - gather-multiply: for each row of a graph the sum of what its edges bring.  Pure kernels.
 *
 *     sum[r] = sum over edges e of row r, row[r] <= e < row[r + 1]: weight[e] * y[from[e]]
 *     add: the same for edges of a tile in any order, each of which names its row: sum[to[e]] += weight[e] * y[from[e]]
 */
#ifndef STRETTO_LEARN_GRAPH_GATHER_H
#define STRETTO_LEARN_GRAPH_GATHER_H

#include "base/bits.h"

/* n rows; weight NULL = 1.  The order of a sum follows from the length of its row alone.  f32: sums in f32, for steps that
 * another one corrects. */
void gather_f32(const i64 *row, const u32 *from, const f64 *weight, i64 n, const f32 *y, f32 *sum);
void gather_f64(const i64 *row, const u32 *from, const f64 *weight, i64 n, const f32 *y, f64 *sum);
/* n edges; weight NULL = 1; sums are added to.  f64: each edge times `factor`. */
void add_f32(const u32 *from, const u16 *to, const f64 *weight, i64 n, const f32 *y, f32 *sum);
void add_f64(const u32 *from, const u16 *to, const f64 *weight, i64 n, f64 factor, const f32 *y, f64 *sum);

#endif
