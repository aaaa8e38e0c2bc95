/* sparse_rows.h - vectors of which few rows of LINE_FLOATS floats are not zero: a byte a row says which.
 *
 *     rows     0    1    2    3    4    5  ..        a row that is not marked is zero: it need not be zeroed, added or sent
 *     values   0   .3    0    0  -.1    0
 *     marks    0    1    0    0    1    0   --pack--> | 2 | 1 4 | .3 .. | -.1 .. | --unpack--> the same, on another rank
 *
 * Sums are those of whole vectors, to the bit: a row that either side has marked is added as it is, and zeros to zeros make
 * zeros. Rows that are marked without need change nothing.  n counts rows everywhere; values are borrowed. */
#ifndef STRETTO_EXEC_SPARSE_ROWS_H
#define STRETTO_EXEC_SPARSE_ROWS_H

#include "plan/exchange.h"

struct sparse_rows {
    f32 *value; /* [n][LINE_FLOATS] */
    u8 *mark;   /* [n] */
};

void sparse_clear(i64 n, struct sparse_rows v); /* zeroes the marked rows and the marks */
/* a += b; add: y[i] += x[i] over n floats, used where many rows are marked. */
typedef void vector_add(i64 n, f32 *y, const f32 *x);
void sparse_add(i64 n, struct sparse_rows a, struct sparse_rows b, vector_add *add);
/* Writes to `out`, which has lines_bytes(n, n); returns the bytes, never more. */
u32 sparse_pack(i64 n, struct sparse_rows v, unsigned char *out);
bool sparse_unpack(i64 n, struct sparse_rows v, const unsigned char *in, u32 bytes); /* overwrites v; false: malformed */

#endif
