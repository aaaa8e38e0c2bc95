/* prefetch.c - see prefetch.h: two slots, one mutex, one condition; the filling thread stays at most one step ahead. */
#include "data/prefetch.h"

#include <pthread.h>

#include "base/mem.h"

struct prefetch {
    void (*fill)(void *self, i64 step, i32 slot);
    void *self;
    i64 filled, taken, end; /* steps < filled are ready; steps < taken were handed out */
    bool threaded, stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t turn;
};

static i32 slot_of(i64 step) { return (i32)(step % PREFETCH_SLOTS); }

/* The slot of step s is free once step s - 1 was requested: the caller no longer uses step s - 2. */
static void *filler(void *arg) {
    struct prefetch *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stop && p->filled < p->end) {
        if (p->filled >= p->taken + PREFETCH_SLOTS - 1) {
            pthread_cond_wait(&p->turn, &p->lock);
            continue;
        }
        i64 step = p->filled;
        pthread_mutex_unlock(&p->lock);
        p->fill(p->self, step, slot_of(step));
        pthread_mutex_lock(&p->lock);
        p->filled++;
        pthread_cond_broadcast(&p->turn);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

err prefetch_new(void (*fill)(void *self, i64 step, i32 slot), void *self, i64 first, i64 end, bool threaded,
                 struct prefetch **out) {
    struct prefetch *p;
    NEW(p, 1);
    *p = (struct prefetch){.fill = fill, .self = self, .filled = first, .taken = first, .end = end, .threaded = threaded};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->turn, NULL);
    if (threaded && pthread_create(&p->thread, NULL, filler, p) != 0) p->threaded = false; /* without a thread: fill on demand */
    *out = p;
    return 0;
}

i32 prefetch_next(struct prefetch *p) {
    if (!p->threaded) {
        i64 step = p->taken++;
        p->fill(p->self, step, slot_of(step));
        return slot_of(step);
    }
    pthread_mutex_lock(&p->lock);
    while (p->filled <= p->taken) pthread_cond_wait(&p->turn, &p->lock);
    i32 slot = slot_of(p->taken++);
    pthread_cond_broadcast(&p->turn);
    pthread_mutex_unlock(&p->lock);
    return slot;
}

void prefetch_free(struct prefetch *p) {
    if (!p) return;
    if (p->threaded) {
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_cond_broadcast(&p->turn);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    pthread_cond_destroy(&p->turn);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}
