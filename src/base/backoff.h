/* backoff.h - wait for another thread: spin, then yield, then sleep for short intervals.
 *
 *     for (struct backoff r = {0}; !condition;) backoff_pause(&r);
 *
 * Spinning covers waits of about a microsecond, the rule if every thread has a core. The later phases give up the core: with
 * more threads than cores the awaited thread needs it, and sched_yield alone does not guarantee that it gets one. */
#ifndef STRETTO_BASE_BACKOFF_H
#define STRETTO_BASE_BACKOFF_H

#include "base/bits.h"

enum { BACKOFF_SPINS = 1024 };

struct backoff {
    i32 spins;
    f64 until; /* clock_now() at which yielding ends and sleeping starts; 0 = still spinning */
};

static inline void cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void backoff_sleep(struct backoff *r); /* backoff.c: the phases after spinning */

static inline void backoff_pause(struct backoff *r) {
    if (r->spins == BACKOFF_SPINS) {
        backoff_sleep(r);
        return;
    }
    r->spins++;
    cpu_relax();
}

#endif
