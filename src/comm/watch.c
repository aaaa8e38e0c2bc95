/* watch.c - see watch.h. Quiet time is the sum of the watchdog's own ticks, so a process suspended for an hour was not quiet
 * for an hour. */
#define _GNU_SOURCE
#include "comm/watch.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"

#define TICK_S 0.25
#define TURN_S 1.0  /* maximum that one tick counts */
#define SHARE 0.75  /* fraction of the deadline */
enum { TICKS = 8 };  /* minimum ticks per deadline */

static void rest(struct watch *w, f64 seconds) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const i64 ns = t.tv_nsec + (i64)(1e9 * seconds);
    t.tv_sec += ns / 1000000000;
    t.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&w->turn, &w->lock, &t);
}

static void *look(void *self) {
    struct watch *w = self;
    f64 quiet = 0, last = clock_now();
    u64 seen = 0;
    bool told = false;
    pthread_mutex_lock(&w->lock);
    while (!w->quit) {
        const f64 deadline = atomic_load_explicit(&w->deadline, memory_order_relaxed), tick = dmin(TICK_S, deadline / TICKS);
        rest(w, tick);
        const f64 now = clock_now();
        const u64 moves = atomic_load_explicit(&w->moves, memory_order_relaxed);
        quiet = moves != seen ? 0 : quiet + dmin(now - last, TURN_S);
        told = told && moves == seen;
        seen = moves;
        last = now;
        if (w->quit || told || !(quiet > SHARE * deadline)) continue;
        told = true;
        pthread_mutex_unlock(&w->lock);
        w->alarm(w->self, quiet);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

err watch_begin(struct watch *w) {
    pthread_condattr_t a;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&w->turn, &a);
    pthread_condattr_destroy(&a);
    w->running = pthread_create(&w->thread, NULL, look, w) == 0;
    if (!w->running) return FAIL(E601, "no thread could be made for the watchdog of a rank");
    pthread_setname_np(w->thread, "stretto.watch");
    return 0;
}

void watch_end(struct watch *w) {
    if (!w->running) return;
    pthread_mutex_lock(&w->lock);
    w->quit = true;
    pthread_cond_broadcast(&w->turn);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->turn);
    pthread_mutex_destroy(&w->lock);
    w->running = false;
}
