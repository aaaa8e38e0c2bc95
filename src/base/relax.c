/* relax.c - a wait that lasts. */
#define _GNU_SOURCE
#include "base/relax.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"

#define YIELD_S 0.3e-3
#define SLEEP_NS 50000

void relax_long(struct relax *r) {
    const f64 now = clock_now();
    if (r->until <= 0) r->until = now + YIELD_S;
    if (now < r->until) sched_yield();
    else nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}
