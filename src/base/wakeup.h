/* wakeup.h - wake-up signal between threads over a futex (an event count): sleep until another thread has changed a condition.
 *
 *     waiter:    seen = wakeup_prepare(w)    test the condition; if it does not hold: wakeup_wait(w, seen, s)    wakeup_finish(w)
 *     signaller: make the condition true     wakeup_signal(w)
 *
 * No signal is lost: the waiter registers before it tests the condition, the signaller looks for waiters after it made the
 * condition true, and full fences order both. Without a waiter wakeup_signal costs one fence and no system call.
 *
 * A loop of sched_yield is no substitute, since the kernel may return the core at once (measured in docs/adr/020). */
#ifndef STRETTO_BASE_WAKEUP_H
#define STRETTO_BASE_WAKEUP_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"

struct wakeup {
    _Alignas(64) _Atomic u32 signals; /* futex word: number of signals, may wrap */
    _Atomic u32 waiters;              /* threads that sleep or are about to */
};

/* Returns when *word != seen, when another thread wakes this one, or after `most` seconds (0 = no limit). */
static inline void futex_wait(_Atomic u32 *word, u32 seen, f64 most) {
    const struct timespec t = {(time_t)most, (long)(1e9 * (most - (f64)(time_t)most))};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, most > 0 ? &t : NULL, NULL, 0);
}

static inline void futex_wake(_Atomic u32 *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

/* Store-load barrier: stores before it are visible to all threads before any load after it. */
static inline void wakeup_fence(struct wakeup *w) {
#ifdef __SANITIZE_THREAD__ /* ThreadSanitizer does not model fences */
    atomic_fetch_add(&w->waiters, 0);
#else
    (void)w;
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

static inline u32 wakeup_prepare(struct wakeup *w) {
    atomic_fetch_add(&w->waiters, 1);
    wakeup_fence(w);
    return atomic_load(&w->signals);
}

static inline void wakeup_wait(struct wakeup *w, u32 seen, f64 most) { futex_wait(&w->signals, seen, most); }

static inline void wakeup_finish(struct wakeup *w) { atomic_fetch_sub(&w->waiters, 1); }

static inline void wakeup_signal(struct wakeup *w) {
    wakeup_fence(w);
    if (atomic_load_explicit(&w->waiters, memory_order_relaxed) == 0) return;
    atomic_fetch_add(&w->signals, 1);
    futex_wake(&w->signals);
}

#endif
