/* learners.h - launches the kernels of learners on the lane of the calling thread (learn/offload.h).
 *
 * All addresses are the device's; nothing is returned.  Each kernel has its twin on the host, which the tests compare. */
#ifndef STRETTO_GPU_LEARNERS_H
#define STRETTO_GPU_LEARNERS_H

#include "base/bits.h"

/* k-means: rows [from, to) of x [..][d] -> label [..], see text/args.h.  panel [groups][d][LANES], start [groups][LANES]. */
struct gpu_nearest {
    const f32 *x, *panel, *start;
    i32 *label;
    i64 from, to;
    i32 d, groups;
    f32 margin, share;
};
void gpu_nearest(const struct gpu_nearest *n);

#endif
