/* run.c - lanes as threads around one dealer, and a watch over pieces that do not come back. */
#include "deal/run.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"

#define LATE 20.0 /* times the expected seconds */

struct run;

struct lane {
    struct run *run;
    i32 device, index;
    pthread_t thread;
    bool started, busy;
    bool left;            /* its thread is left behind */
    struct deal_piece piece;
    f64 begin, deadline;
};

/* On the heap: a thread that was left behind may use it after deal_run has returned.  The last user frees it. */
struct run {
    pthread_mutex_t lock;
    pthread_cond_t change, ended; /* for lanes that wait; for deal_run */
    struct dealer *d;             /* only while deal_run has not returned */
    struct deal_job job;
    i32 n, active, users; /* lanes; that run and are not left behind; threads that may use this */
    bool stop;
    f64 wake;                        /* when deal_run looks for overdue pieces next */
    err failed;                      /* first error that stops */
    struct err_record why, last_out; /* of `failed`; of the last device that went out */
    struct deal_ran ran;
    struct lane lane[];
};

/* --- a lane --- */

static void fail(struct run *r, err e) {
    if (r->failed < 0) return;
    r->failed = e;
    r->why = *err_last();
    r->stop = true;
}

static void lose(struct run *r, i32 device) {
    struct deal_report before;
    deal_report(r->d, device, &before);
    if (before.status == DEAL_LOST) return;
    r->ran.lost++;
    r->last_out = *err_last();
    deal_lost(r->d, device);
}

static void done(struct run *r, struct lane *l, f64 now) {
    if (!deal_done(r->d, l->device, l->index, &l->piece, now - l->begin, now)) {
        r->ran.dropped++;
        return;
    }
    r->ran.pieces++;
    const err e = r->job.accept ? r->job.accept(r->job.self, l->device, l->index, &l->piece) : 0;
    if (e < 0) fail(r, e);
}

static void refused(struct run *r, struct lane *l) {
    struct deal_report after;
    if (!deal_refused(r->d, l->device, l->index, &l->piece)) return;
    r->ran.refused++;
    deal_report(r->d, l->device, &after);
    if (after.status == DEAL_REFUSED) r->last_out = *err_last();
}

static void came_back(struct run *r, struct lane *l, err e) {
    struct deal_report now;
    deal_report(r->d, l->device, &now);
    if (e >= 0)
        done(r, l, clock_now());
    else if (now.status == DEAL_LOST)
        r->ran.dropped++; /* another lane said so before; errors of a lost device say nothing new */
    else if (e == -E601)
        refused(r, l);
    else if (e == -E831)
        lose(r, l->device);
    else
        fail(r, e);
}

static void begin(struct run *r, struct lane *l) {
    const f64 patience = r->job.patience_s > 0 ? r->job.patience_s : 1, first = r->job.first_s > 0 ? r->job.first_s : 60;
    const f64 expected = deal_expected(r->d, l->device, l->piece.cost);
    l->busy = true;
    l->begin = clock_now();
    l->deadline = l->begin + (expected > 0 ? LATE * expected + patience : first);
    if (l->deadline < r->wake) pthread_cond_signal(&r->ended);
}

/* One piece, or a wait.  Under the lock, which it gives up meanwhile.  False: the lane is at its end. */
static bool lane_step(struct run *r, struct lane *l) {
    if (r->stop) return false;
    const int got = deal_next(r->d, l->device, l->index, &l->piece);
    if (got < 0) fail(r, got);
    if (got < 0 || got == DEAL_NONE) return false;
    if (got == DEAL_WAIT) {
        pthread_cond_wait(&r->change, &r->lock);
        return true;
    }
    begin(r, l);
    const struct deal_piece piece = l->piece;
    pthread_mutex_unlock(&r->lock);
    const err e = r->job.piece(r->job.self, l->device, l->index, &piece);
    pthread_mutex_lock(&r->lock);
    if (l->left) return false; /* the dealer may be gone */
    l->busy = false;
    came_back(r, l, e);
    pthread_cond_broadcast(&r->change);
    return true;
}

static void leave(struct run *r) {
    const bool last = --r->users == 0;
    pthread_mutex_unlock(&r->lock);
    if (!last) return;
    if (r->job.ended) r->job.ended(r->job.self);
    pthread_cond_destroy(&r->change);
    pthread_cond_destroy(&r->ended);
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
}

static void *lane_main(void *lane) {
    struct lane *l = lane;
    struct run *r = l->run;
    pthread_mutex_lock(&r->lock);
    while (lane_step(r, l)) {}
    if (!l->left) {
        r->active--;
        pthread_cond_broadcast(&r->change);
        pthread_cond_signal(&r->ended);
    }
    leave(r);
    return NULL;
}

/* --- the run --- */

static void overdue(struct run *r, struct lane *l, f64 now) {
    (void)FAIL(E831, "device %d has not finished a piece after %.3g s, which should take %.3g s", l->device, now - l->begin,
               deal_expected(r->d, l->device, l->piece.cost));
    lose(r, l->device);
    l->left = true;
    r->ran.left_behind++;
    r->active--;
    pthread_detach(l->thread);
    pthread_cond_broadcast(&r->change);
}

/* Leaves overdue lanes behind; returns the next deadline. */
static f64 watch(struct run *r, f64 now) {
    f64 next = now + 3600;
    for (i32 i = 0; i < r->n; i++) {
        struct lane *l = &r->lane[i];
        if (!l->busy || l->left) continue;
        if (now >= l->deadline)
            overdue(r, l, now);
        else
            next = dmin(next, l->deadline);
    }
    return next;
}

static void wait_until(struct run *r, f64 seconds) {
    struct timespec at = {.tv_sec = (time_t)seconds};
    at.tv_nsec = (long)((seconds - (f64)at.tv_sec) * 1e9);
    pthread_cond_timedwait(&r->ended, &r->lock, &at);
}

static i32 lanes_of(const struct dealer *d, i32 device) {
    struct deal_report v;
    deal_report(d, device, &v);
    return v.status == DEAL_IN ? imax(1, v.as.lanes_most) : 0;
}

static err run_new(struct dealer *d, const struct deal_job *job, struct run **out) {
    pthread_condattr_t attr;
    i32 n = 0;
    for (i32 i = 0; i < deal_devices(d); i++) n += lanes_of(d, i);
    struct run *r = mem_alloc(sizeof *r + (size_t)n * sizeof *r->lane);
    if (!r) return -E601;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->change, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->ended, &attr);
    pthread_condattr_destroy(&attr);
    r->d = d;
    r->job = *job;
    r->users = 1;
    for (i32 i = 0; i < deal_devices(d); i++)
        for (i32 k = 0, most = lanes_of(d, i); k < most; k++) r->lane[r->n++] = (struct lane){.run = r, .device = i, .index = k};
    *out = r;
    return 0;
}

/* A device without a thread for its first lane cannot run; further lanes are not needed. */
static void start(struct run *r) {
    for (i32 i = 0; i < r->n; i++) {
        struct lane *l = &r->lane[i];
        r->users++;
        r->active++;
        l->started = pthread_create(&l->thread, NULL, lane_main, l) == 0;
        if (l->started) continue;
        r->users--;
        r->active--;
        if (l->index > 0) continue;
        (void)FAIL(E831, "no thread could be made for device %d", l->device);
        lose(r, l->device);
    }
}

static void join(struct run *r) {
    for (i32 i = 0; i < r->n; i++)
        if (r->lane[i].started && !r->lane[i].left) pthread_join(r->lane[i].thread, NULL);
}

static err verdict(const struct run *r) {
    if (r->failed < 0) {
        err_put(&r->why);
        return r->failed;
    }
    if (deal_state(r->d) == DEAL_FINISHED) return 0;
    if (r->last_out.code == E601) return FAIL(E601, "no device has memory for the work: %s", r->last_out.text);
    return FAIL(E831, "no device is left for the work: %s",
                r->last_out.text[0] ? r->last_out.text : "none was usable from the beginning");
}

err deal_run(struct dealer *d, const struct deal_job *job, struct deal_ran *out) {
    struct run *r;
    const f64 begin_s = clock_now();
    *out = (struct deal_ran){0};
    const err made = run_new(d, job, &r);
    if (made < 0) {
        if (job->ended) job->ended(job->self);
        return made;
    }
    pthread_mutex_lock(&r->lock);
    start(r);
    while (r->active > 0) {
        r->wake = watch(r, clock_now());
        if (r->active > 0) wait_until(r, r->wake);
    }
    pthread_mutex_unlock(&r->lock);
    join(r);
    pthread_mutex_lock(&r->lock);
    r->ran.seconds = clock_now() - begin_s;
    *out = r->ran;
    const err e = verdict(r);
    leave(r);
    return e;
}
