/* watch.h - watchdog of a rank: a thread that checks four times a second and calls `alarm` once if nothing moves for long.
 *
 *     moved moved moved .............................................
 *                      | quiet ------- 3/4 of the deadline ---> alarm, once
 *
 * Three quarters of the deadline: all ranks write their records before the first one fails and the launcher kills the others. */
#ifndef STRETTO_COMM_WATCH_H
#define STRETTO_COMM_WATCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "base/wakeup.h"

struct watch {
    _Atomic u64 moves;     /* counter of progress events; only changes matter */
    _Atomic f64 deadline;  /* seconds; infinite = no alarm */
    void (*alarm)(void *self, f64 quiet); /* runs on the watchdog's thread */
    void *self;
    pthread_t thread;
    struct wakeup ending;
    _Atomic bool quit;
    bool running;
};

err watch_begin(struct watch *w); /* the caller has set alarm, self and deadline */
void watch_end(struct watch *w);  /* waits for a running alarm; allowed without watch_begin */

static inline void watch_moved(struct watch *w) {
    const u64 n = atomic_load_explicit(&w->moves, memory_order_relaxed);
    atomic_store_explicit(&w->moves, n + 1, memory_order_relaxed);
}

#endif
