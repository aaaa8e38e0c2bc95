/* guard.h - the weight of the recurrent correction, from its gain on validation relative to the noise of that gain.
 *
 *     forecast = base + a * correction      a = u / (1 + u),  u = max(0, z)^2
 *
 *     validation origins  o o o o | o o o o | o o o o      d = loss(base) - loss(base + correction), mean over each block of H
 *                           d1        d2        d3         origins (windows of a block overlap); t = mean(d) / standard error
 *
 * z is the normal deviate that is as rare as t: three blocks agree by chance more often than thirty (Wallace 1959).
 *
 * A gain as large as its standard error gives the weight 0.5, one three times as large 0.9, if blocks are many. */
#ifndef STRETTO_TRAIN_GUARD_H
#define STRETTO_TRAIN_GUARD_H

#include "base/bits.h"

enum { GUARD_BLOCKS = 3 }; /* with fewer blocks the weight is 0, unless the caller permits fewer */

struct guard {
    i32 norigin, nblock;      /* counted: origins with any target */
    f64 loss_base, loss_both; /* means over the origins */
    f64 t, a;
    const char *why;          /* one line for the report */
};

/* base[i], both[i]: mean loss at validation origin i, in order of the origins; NaN = nothing to score there.
 * block: origins whose windows overlap: H / stride.  1 when they do not (days forecast a day ahead), or when the entries are
 * (series, origin) pairs.
 * least: GUARD_BLOCKS; 1 for preset `short`.  With one or two blocks there is no spread of block means; the spread over single
 * origins stands in for it, which counts the blocks as the independent pieces: t = mean(d) / (deviation(d) / root(blocks)).
 * However even their gain is, one block earns a half of a at most, two three quarters. */
void guard_weigh(const f64 *base, const f64 *both, i32 n, i32 block, i32 least, struct guard *out);

#endif
