/* near.h - the inner loops of k-means, per instruction set: products of rows with a panel of centers, distances, bound tests.
 *
 *     panel [d][LANES]     LANES centers side by side, times -2, so that  start + x . panel  =  |c|^2 - 2 x.c
 *
 * Values are f32 and carry a rounding error, which assign.c bounds; decisions within that error are made again in f64.  The
 * scalar reference near_ref computes the same to rounding. */
#ifndef STRETTO_LEARN_KMEANS_NEAR_H
#define STRETTO_LEARN_KMEANS_NEAR_H

#include "kern/kern.h"

enum { NEAR_CHAIN = 64 }; /* products that are added one after another; sums of such chains follow.  Bounds the rounding error */

struct near_ops {
    /* out[r][k] = start[k] + sum over j < d of row[r][j] panel[j][k]; least[r] = the smallest of them.  n >= 0 rows. */
    void (*product)(i32 n, i32 d, const f32 *const *row, const f32 *panel, const f32 *start, f32 *out, f32 *least);
    f32 (*distance)(i32 d, const f32 *a, const f32 *b); /* squared */
    /* Groups whose centers may be nearer than u: the g < n with u >= bound[g] - drift[g] and u >= half[g], ascending in list.
     * All three arrays have 15 readable floats behind the last.  Returns their number. */
    i32 (*open)(i32 n, f32 u, const f32 *bound, const f32 *drift, const f32 *half, i32 *list);
    /* mask[r]: the lanes k of row r of a panel's products that are not above least[r] + margin + share * |least[r]|. */
    void (*pick)(i32 n, const f32 *value, const f32 *least, f32 margin, f32 share, u32 *mask);
};

extern const struct near_ops near_ref;
const struct near_ops *near_choose(enum kern_arch arch);

#endif
