/* watch.h - the watchdog of a rank: a thread that looks at a clock four times a second, and calls when nothing moves for long.
 *
 *     moved moved moved .............................................
 *                      | quiet ------- 3/4 of the deadline ---> alarm, once
 *
 * Three quarters: so that all ranks have written down where they are before the first gives up and the launcher ends them. */
#ifndef STRETTO_COMM_WATCH_H
#define STRETTO_COMM_WATCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"

struct watch {
    _Atomic u64 moves;     /* anything that shows life; only whether it changes counts */
    _Atomic f64 deadline;  /* seconds; infinite = no alarm */
    void (*alarm)(void *self, f64 quiet); /* on the watchdog's thread */
    void *self;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    bool running, quit;
};

err watch_begin(struct watch *w); /* alarm, self and deadline are set */
void watch_end(struct watch *w);  /* waits for an alarm that is being given; fine where it never began */

static inline void watch_moved(struct watch *w) {
    const u64 n = atomic_load_explicit(&w->moves, memory_order_relaxed);
    atomic_store_explicit(&w->moves, n + 1, memory_order_relaxed);
}

#endif
