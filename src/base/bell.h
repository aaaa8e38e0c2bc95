/* bell.h - threads that sleep until somebody has done something, and those who ring when they have.
 *
 *     sleeper:  heard = bell_near(b)    look at what is awaited, still not there?    bell_sleep(b, heard)    bell_leave(b)
 *     ringer:   do it                   bell_ring(b)
 *
 * No ring is lost: a sleeper says that it is near before it looks, a ringer looks for sleepers after it has done its work, in one
 * order that all see.  Who rings and finds nobody near has paid for a fence.
 *
 * A loop of yields is no such sleep: it keeps a core, and where that is busy those who are waited for come to run late.  Four
 * ranks that shared two cores with twenty other threads took 25 s to over a minute for 40 steps so, and take one to eight now. */
#ifndef STRETTO_BASE_BELL_H
#define STRETTO_BASE_BELL_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"

struct bell {
    _Alignas(64) _Atomic u32 rung; /* modulo nothing */
    _Atomic u32 near;              /* who sleeps, or is about to */
};

/* Until the word is no longer `seen`, or somebody wakes those who sleep on it, or so many seconds (0 = for ever) have passed. */
static inline void futex_wait(_Atomic u32 *word, u32 seen, f64 most) {
    const struct timespec t = {(time_t)most, (long)(1e9 * (most - (f64)(time_t)most))};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, most > 0 ? &t : NULL, NULL, 0);
}

static inline void futex_wake(_Atomic u32 *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

/* What this thread wrote before is seen before what it reads then. */
static inline void bell_order(struct bell *b) {
#ifdef __SANITIZE_THREAD__ /* it knows of no fences */
    atomic_fetch_add(&b->near, 0);
#else
    (void)b;
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

static inline u32 bell_near(struct bell *b) {
    atomic_fetch_add(&b->near, 1);
    bell_order(b);
    return atomic_load(&b->rung);
}

static inline void bell_sleep(struct bell *b, u32 heard, f64 most) { futex_wait(&b->rung, heard, most); }

static inline void bell_leave(struct bell *b) { atomic_fetch_sub(&b->near, 1); }

static inline void bell_ring(struct bell *b) {
    bell_order(b);
    if (atomic_load_explicit(&b->near, memory_order_relaxed) == 0) return;
    atomic_fetch_add(&b->rung, 1);
    futex_wake(&b->rung);
}

#endif
