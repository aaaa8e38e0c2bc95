/* backoff.c - the yield and sleep phases of a wait (backoff.h). */
#define _GNU_SOURCE
#include "base/backoff.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"

#define YIELD_S 0.3e-3 /* length of the yield phase */
#define SLEEP_NS 50000 /* one sleep */

void backoff_sleep(struct backoff *r) {
    const f64 now = clock_now();
    if (r->until <= 0) r->until = now + YIELD_S;
    if (now < r->until) sched_yield();
    else nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}
