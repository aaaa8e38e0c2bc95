/* calib.h - current speed of a core: compute-bound loops that run before and after every sample.
 *
 *     |-- warm-up --|-- burst --|-- burst --| ... 7 ...|      ~150 us; the median of the bursts counts
 *
 * fma   multiply-adds in registers, the reference of "% of peak", in the instruction set of the measured kernels
 * tile  2x2 AMX tiles with loads from L1, or without AMX products of the measured kernels from L1: shows load on the sibling
 *       thread of the core, which takes half of L1 and of the load ports and which the register loop does not notice
 *
 * The same file is a shared module (bench_calib) for PyTorch's process, so both sides use the same calibration. */
#ifndef STRETTO_BENCH_KERN_CALIB_H
#define STRETTO_BENCH_KERN_CALIB_H

#include <stdatomic.h>

#include "kern/kern.h"

enum { CALIB_THREADS = 64 };

struct calib {
    _Atomic i32 next;                            /* threads that have run = slot of the next */
    i32 tiles;                                   /* AMX: also run the tile loop */
    f64 fma[CALIB_THREADS], tile[CALIB_THREADS]; /* GF/s by thread */
};

err calib_init(const struct kern *k); /* call once before any burst: determines the loop lengths */
f64 calib_fma(void);
f64 calib_tile(void);

/* Runs on any thread, of our pool or OpenMP's; takes the next slot of struct calib. */
void calib_burst(void *calib);

/* Total seconds that threads of this process waited in the run queue while other programs ran. 0 if the system does not report
 * it. */
f64 calib_waited(void);

/* Rate of the slowest thread since the last call; resets the slots. */
f64 calib_take(struct calib *c, f64 *tile);

#endif
