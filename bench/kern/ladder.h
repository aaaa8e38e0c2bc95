/* ladder.h - measurements of every kernel slot; see ladder.c. */
#ifndef STRETTO_BENCH_KERN_LADDER_H
#define STRETTO_BENCH_KERN_LADDER_H

#include "kern/kern.h"

err ladder_time(void);  /* ns, GF/s, share of the peak of each slot on each instruction set of this machine */
err ladder_count(void); /* instructions of one call of each slot */

#endif
