/* faulty.h - ranks over a transport that delays, loses and swaps messages, for tests and benchmarks. */
#ifndef STRETTO_TESTS_COMM_FAULTY_H
#define STRETTO_TESTS_COMM_FAULTY_H

#include "comm/comm.h"

/* Over a transport that goes wrong, for tests: every message late by up to `delay` seconds; the drop-th message of `rank` lost,
 * the swap-th behind the next one, a failure at the die-th (0 = none; a rank counts what it sends from 1 on).  Or one that is
 * only slow, as a network is: `lag` seconds a message, `rate` bytes per second from each rank to each (0 = any).  With a name the
 * n-th message that is called so is meant, and the rank dies over it when all else that it has begun is done. */
struct comm_fault {
    f64 delay, lag, rate;
    u64 seed, drop, swap, die, die2; /* die2: of rank2 */
    i32 rank, rank2;
    const char *of, *of2;
};
err comm_faulty(i32 size, const struct comm_fault *fault, struct comm **out);

#endif
