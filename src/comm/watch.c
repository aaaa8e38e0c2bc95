/* watch.c - see watch.h. Quiet time is the sum of the watchdog's own ticks, so a process suspended for an hour was not quiet
 * for an hour. */
#define _GNU_SOURCE
#include "comm/watch.h"

#include "base/clock.h"

#define TICK_S 0.25
#define TURN_S 1.0  /* maximum that one tick counts */
#define SHARE 0.75  /* fraction of the deadline */
enum { TICKS = 8 };  /* minimum ticks per deadline */

static void rest(struct watch *w, f64 seconds) {
    const u32 seen = wakeup_prepare(&w->ending);
    if (!atomic_load(&w->quit)) wakeup_wait(&w->ending, seen, seconds);
    wakeup_finish(&w->ending);
}

static void *look(void *self) {
    struct watch *w = self;
    f64 quiet = 0, last = clock_now();
    u64 seen = 0;
    bool alarmed = false;
    while (!atomic_load(&w->quit)) {
        const f64 deadline = atomic_load_explicit(&w->deadline, memory_order_relaxed), tick = dmin(TICK_S, deadline / TICKS);
        rest(w, tick);
        const f64 now = clock_now();
        const u64 moves = atomic_load_explicit(&w->moves, memory_order_relaxed);
        quiet = moves != seen ? 0 : quiet + dmin(now - last, TURN_S);
        alarmed = alarmed && moves == seen;
        seen = moves;
        last = now;
        if (alarmed || atomic_load(&w->quit) || !(quiet > SHARE * deadline)) continue;
        alarmed = true;
        w->alarm(w->self, quiet);
    }
    return NULL;
}

err watch_begin(struct watch *w) {
    w->running = pthread_create(&w->thread, NULL, look, w) == 0;
    if (!w->running) return FAIL(E601, "no thread could be made for the watchdog of a rank");
    pthread_setname_np(w->thread, "stretto.watch");
    return 0;
}

void watch_end(struct watch *w) {
    if (!w->running) return;
    atomic_store(&w->quit, true);
    wakeup_signal(&w->ending);
    pthread_join(w->thread, NULL);
    w->running = false;
}
