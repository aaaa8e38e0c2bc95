/* pool.c - see pool.h: persistent worker threads; worker 0 is the caller.
 *
 *     pool_run:   job++  ->  [line 1] [line 2] ...   each worker spins on its own cache line, then sleeps on it (futex)
 *     the end:    each worker writes the job number into `done` of its line; the caller waits for all
 *
 * One cache line per worker and direction: no two threads write the same line, and a step costs two line transfers per worker.
 * System calls occur only to sleep and to wake a sleeping thread. */
#define _GNU_SOURCE
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/backoff.h"
#include "base/mem.h"
#include "base/wakeup.h"

enum { SPIN = 4000, POOL_MAX = 1024 };

struct line {
    _Alignas(64) _Atomic u32 job;  /* number of the job to run; written by the caller */
    _Atomic u32 sleeps;            /* the worker is (about to be) asleep on `job` */
    _Alignas(64) _Atomic u32 done; /* number of the last job it has run */
    _Atomic u32 caller_sleeps;     /* the caller is (about to be) asleep on `done` */
    _Alignas(64) pthread_t thread;
    struct pool *pool;
    i32 worker;
};

struct pool {
    i32 n, spin;
    u32 job;
    bool stop; /* published by the store to line.job, as fn and arg are */
    void (*fn)(void *arg, i32 worker);
    void *arg;
    struct line *line; /* [n]; line 0 is unused */
};

/* Waits until *word != seen: spins, then sleeps. `sleeps` tells the writer to wake this thread. Both sides use sequentially
 * consistent order, so either the writer sees the flag or the sleeper sees the new word. */
static u32 wait_change(_Atomic u32 *word, u32 seen, _Atomic u32 *sleeps, i32 spin) {
    for (i32 i = 0; i < spin; i++) {
        u32 now = atomic_load_explicit(word, memory_order_acquire);
        if (now != seen) return now;
        cpu_relax();
    }
    for (;;) {
        atomic_store(sleeps, 1);
        u32 now = atomic_load(word);
        if (now == seen) {
            futex_wait(word, seen, 0);
            now = atomic_load(word);
        }
        atomic_store_explicit(sleeps, 0, memory_order_relaxed);
        if (now != seen) return now;
    }
}

static void post(_Atomic u32 *word, u32 value, _Atomic u32 *sleeps) {
    atomic_store(word, value);
    if (atomic_load(sleeps)) futex_wake(word);
}

static void *worker_main(void *arg) {
    struct line *l = arg;
    struct pool *p = l->pool;
    u32 job = 0;
    for (;;) {
        job = wait_change(&l->job, job, &l->sleeps, p->spin);
        if (p->stop) return NULL;
        p->fn(p->arg, l->worker);
        post(&l->done, job, &l->caller_sleeps);
    }
}

/* With more workers than cores spinning would only delay the awaited thread. */
static i32 spin_for(i32 threads) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < threads) return 1;
    return SPIN;
}

err pool_new(i32 threads, struct pool **out) {
    *out = NULL;
    if (threads < 1 || threads > POOL_MAX) return FAIL(E1, "a pool of %d threads was asked for (1..%d)", threads, POOL_MAX);
    struct pool *p = mem_alloc(sizeof *p);
    if (!p) return -E601;
    p->n = 1;
    p->spin = spin_for(threads);
    p->line = mem_alloc((size_t)threads * sizeof *p->line);
    if (!p->line) {
        pool_free(p);
        return -E601;
    }
    for (i32 w = 1; w < threads; w++) {
        struct line *l = &p->line[w];
        l->pool = p;
        l->worker = w;
        if (pthread_create(&l->thread, NULL, worker_main, l) != 0) {
            pool_free(p);
            return FAIL_AT(E601, NULL, "fewer --threads", "thread %d of %d could not be started", w + 1, threads);
        }
        p->n = w + 1;
        char name[24];
        snprintf(name, sizeof name, "stretto.%d", w);
        pthread_setname_np(l->thread, name);
    }
    *out = p;
    return 0;
}

void pool_free(struct pool *p) {
    if (!p) return;
    p->stop = true;
    p->job++;
    for (i32 w = 1; w < p->n; w++) post(&p->line[w].job, p->job, &p->line[w].sleeps);
    for (i32 w = 1; w < p->n; w++) pthread_join(p->line[w].thread, NULL);
    mem_free(p->line);
    mem_free(p);
}

i32 pool_size(const struct pool *p) { return p->n; }

void pool_run(struct pool *p, void (*fn)(void *arg, i32 worker), void *arg) {
    p->fn = fn;
    p->arg = arg;
    u32 before = p->job++;
    for (i32 w = 1; w < p->n; w++) post(&p->line[w].job, p->job, &p->line[w].sleeps);
    fn(arg, 0);
    for (i32 w = 1; w < p->n; w++) {
        struct line *l = &p->line[w];
        wait_change(&l->done, before, &l->caller_sleeps, p->spin);
    }
}
