/* calib.h - how fast this core is right now: loops that only compute, run around every sample.
 *
 *     |-- warm-up --|-- burst --|-- burst --| ... 7 ...|      ~150 us; the median of the bursts counts
 *
 * fma   multiply-adds in registers, the peak that "% of peak" means, in the instruction set of the kernels that are measured
 * tile  2x2 AMX tiles with loads from L1: sees a neighbour that the register loop does not (kernels.md 12.1); 0 without AMX
 *
 * The same file is a shared module (bench_calib) that PyTorch's process loads, so both sides are measured by one yardstick. */
#ifndef STRETTO_BENCH_CALIB_H
#define STRETTO_BENCH_CALIB_H

#include <stdatomic.h>

#include "kern/kern.h"

enum { CALIB_THREADS = 64 };

struct calib {
    _Atomic i32 next;                            /* threads that have run; the slot of the next */
    i32 tiles;                                   /* also run the tile loop */
    f64 fma[CALIB_THREADS], tile[CALIB_THREADS]; /* GF/s by thread */
};

err calib_init(const struct kern *k); /* once, before threads run bursts: finds how long the loops are */
f64 calib_fma(void);
f64 calib_tile(void);

/* For a thread of any pool, ours or OpenMP's: takes the next slot of struct calib. */
void calib_burst(void *calib);

/* Seconds that threads of this process have stood in the queue for a processor so far, while other programs ran on it: what no
 * short loop can see.  0 where the system does not say. */
f64 calib_waited(void);

/* Slowest thread of the slots taken since; the slots are free again. */
f64 calib_take(struct calib *c, f64 *tile);

#endif
