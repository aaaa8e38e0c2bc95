/* cut.h - cuts a row of items into parts of neighbours, so that the longest part is as short as possible.
 *
 *     items    | 0 1 2 | 3 4 | 5 6 7 8 |        border: 0 3 5 9
 *     parts        0      1       2
 *
 * Dynamic programming over the cuts: best[k][i] = min over j of max(best[k - 1][j], cost of items [j,i) as part k). */
#ifndef STRETTO_BASE_CUT_H
#define STRETTO_BASE_CUT_H

#include "base/bits.h"
#include "base/err.h"

struct cut {
    i32 items, parts;
    /* Cost of items [lo,hi) as a part, 0 or more; INFINITY = not allowed.  lo = hi: an empty part. */
    f64 (*cost)(const void *self, i32 lo, i32 hi, i32 part);
    const void *self;
    bool late; /* of equal cuts, the one with the longest last parts; else with the shortest */
};
/* border [parts + 1]: part k has items [border[k], border[k + 1]).  *longest: the cost of the longest part; INFINITY = no cut is
 * allowed, and the borders mean nothing.  E601 without memory. */
err cut_row(const struct cut *c, i32 *border, f64 *longest);

#endif
