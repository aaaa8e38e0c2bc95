/* relax.h - waiting for another thread that is about to do something, turn by turn.
 *
 *     for (struct relax r = {0}; what is awaited is not there;) relax_turn(&r);
 *
 * At first the core is kept: the wait is a microsecond when all threads run.  Then others may have it for a moment, and then it
 * sleeps, a little at a time: where threads are more than cores, or cores have other work, those who are waited for need it, and
 * a yield is no promise that they get it. */
#ifndef STRETTO_BASE_RELAX_H
#define STRETTO_BASE_RELAX_H

#include "base/bits.h"

enum { RELAX_SPINS = 1024 };

struct relax {
    i32 spins;
    f64 until; /* clock_now() at which yielding is over; 0 = it has not begun */
};

static inline void cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void relax_long(struct relax *r); /* relax.c: a turn of a wait that is no microsecond */

static inline void relax_turn(struct relax *r) {
    if (r->spins == RELAX_SPINS) {
        relax_long(r);
        return;
    }
    r->spins++;
    cpu_relax();
}

#endif
