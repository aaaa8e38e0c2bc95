/* cuts.h - cuts of a column of numbers into bins of one byte: what every learner of histogram trees bins its inputs with.
 *
 *     cut 0.5 | 1.5 | ..        bin = 1 + cuts below the value       at most CUTS_MOST cuts: quantiles        bin 0: missing cell
 */
#ifndef STRETTO_DATA_CUTS_H
#define STRETTO_DATA_CUTS_H

#include "base/bits.h"

enum { CUTS_MOST = 254 };

/* Sorts n numbers without NaN in ascending order; spare [n] is work space. */
void cuts_sort(f64 *v, f64 *spare, i64 n);

/* Cuts of n ascending numbers into cut [CUTS_MOST]: halfway between all different ones, or at quantiles where there are too many.
 * Returns their number; a cut is below the larger of the two numbers that it divides. */
i32 cuts_of(const f64 *v, i64 n, f64 *cut);

/* 1 + the number of the n ascending cuts that are below v; the search has no branch that depends on v. */
static inline u8 cuts_bin(const f64 *cut, i32 n, f64 v) {
    const f64 *p = cut;
    for (i32 half; n > 1; n -= half) {
        half = n / 2;
        p += p[half - 1] < v ? half : 0;
    }
    return (u8)(1 + (p - cut) + (n == 1 && *p < v));
}

#endif
