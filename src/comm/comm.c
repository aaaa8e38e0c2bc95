/* comm.c - a rank: its agent thread, its messages, and waiting with a deadline. */
#define _GNU_SOURCE
#include "comm/comm.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "comm/rank.h"

#define SPIN_S 50e-6   /* spin time before the agent sleeps: a spinning agent takes a core from the workers */
#define YIELD_S 5e-3   /* the same without an agent */
#define SLEEP_NS 30000.0 /* first sleep of the agent; longer sleeps follow, since each poll interrupts a worker */
#define SLEEP_MOST_NS 500000.0
#define IDLE_SLEEP_MOST_NS 2000000.0
#define SLEEP_SHARE 16   /* a sleep lasts 1/16 of the time since the last message */
#define UNKNOWN 60     /* comm_broadcast_slow: factor on the wait if the hint knows nothing of the rank */
#define LEAVE_S 2.0    /* to leave MPI after another rank has ended */
#define LEAVE_LOOK_NS 2000000
#define TURN_S 1.0     /* maximum that one iteration counts: a process suspended for an hour has not waited for an hour */

enum { SPINS = 8 };    /* iterations per look at the clock, without an agent */

i32 comm_rank(const struct comm *c) { return c ? c->rank : 0; }
i32 comm_size(const struct comm *c) { return c ? c->size : 1; }

const struct comm_rank_info *comm_rank_info(const struct comm *c, i32 rank) { return &c->member[rank]; }
void comm_end_stopped(struct comm *c) {
    if (c && c->recovery) recovery_end_stopped(c->recovery);
}

bool comm_died(const struct comm *c) { return c && c->recovery && atomic_load(&c->recovery->died); }
bool comm_direct(const struct comm *c) { return c && c->t->direct; }

void *comm_alloc(struct comm *c, size_t bytes) {
    void *p = c && c->t->alloc ? c->t->alloc(c->self, bytes) : NULL;
    return p ? p : mem_alloc(bytes);
}

void comm_release(struct comm *c, void *p) {
    if (c && c->t->release && c->t->release(c->self, p)) return;
    mem_free(p);
}

void comm_zero(struct comm *c, void *p) {
    if (p && !(c && c->t->zero && c->t->zero(c->self, p))) mem_zero(p);
}

i32 comm_local_size(const struct comm *c) {
    i32 n = 0;
    for (i32 k = 0; c && k < c->size; k++) n += strcmp(c->member[k].host, c->member[c->rank].host) == 0;
    return c ? n : 1;
}

f64 comm_set_deadline(struct comm *c, f64 seconds) {
    if (!c) return 0;
    const f64 before = c->deadline;
    c->deadline = seconds > 0 ? seconds : clock_deadline();
    atomic_store_explicit(&c->watch.deadline, c->deadline, memory_order_relaxed);
    return before;
}

void comm_set_idle_sleep(struct comm *c, f64 seconds) { c->idle_sleep = seconds; }

bool comm_watch_requested(void) {
    const char *wish = getenv("STRETTO_WATCH");
    return !(wish && strcmp(wish, "off") == 0);
}

bool comm_watched(const struct comm *c) {
    for (i32 k = 0; c && k < c->size; k++)
        if (!c->member[k].unwatched) return true;
    return !c;
}

void comm_set_hint(struct comm *c, comm_hint *hint, void *self) {
    if (!c) return;
    pthread_mutex_lock(&c->writes);
    c->hint = hint;
    c->hint_self = self;
    pthread_mutex_unlock(&c->writes);
}

/* ------------------------------------------------------------------ the agent ----------------------------------------------- */

void comm_cancel(struct comm *c) {
    if (c->t->cancel) c->t->cancel(c->self);
}

static void reset_wait(struct comm *c) {
    c->since = 0;
    c->waited = 0;
    c->spared = false;
    c->spins = 0;
    watch_moved(&c->watch);
}

static void run_job(struct comm *c) {
    c->result = c->job(c, c->arg);
    watch_moved(&c->watch);
    if (c->result >= 0) return;
    c->why = *err_last();
    c->failed = true;
    rank_failure(c, c->why.text, c->result == -E801 && !comm_died(c));
    comm_cancel(c);
}

static void *agent(void *self) {
    struct comm *c = self;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->state != WORK && c->state != QUIT) pthread_cond_wait(&c->turn, &c->lock);
        if (c->state == QUIT) break;
        pthread_mutex_unlock(&c->lock);
        reset_wait(c);
        run_job(c);
        pthread_mutex_lock(&c->lock);
        c->state = DONE;
        pthread_cond_broadcast(&c->turn);
    }
    pthread_mutex_unlock(&c->lock);
    c->t->close(c->self, !c->failed);
    return NULL;
}

void comm_begin(struct comm *c, comm_job *job, void *arg) {
    if (c->t->direct) {
        c->job = job;
        c->arg = arg;
        reset_wait(c);
        return;
    }
    pthread_mutex_lock(&c->lock);
    c->job = job;
    c->arg = arg;
    c->state = WORK;
    pthread_cond_broadcast(&c->turn);
    pthread_mutex_unlock(&c->lock);
}

static void await_agent(struct comm *c) {
    pthread_mutex_lock(&c->lock);
    while (c->state != DONE) pthread_cond_wait(&c->turn, &c->lock);
    c->state = IDLE;
    pthread_mutex_unlock(&c->lock);
}

err comm_end(struct comm *c) {
    if (c->t->direct) run_job(c);
    else await_agent(c);
    if (c->result < 0) err_put(&c->why);
    return c->result;
}

err rank_job(struct comm *c, comm_job *job, void *arg) {
    comm_begin(c, job, arg);
    return comm_end(c);
}

/* ------------------------------------------------------------------ messages ------------------------------------------------ */

/* Records the start of a message, then its end. */
static void note_state(struct comm *c, struct comm_message *m) {
    if (m->done || !m->noted) rank_note(c, m, m->done);
    m->noted = true;
}

err comm_post(struct comm *c, struct comm_message *m) {
    m->started = true;
    m->done = false;
    m->noted = false;
    TRY((m->sends ? c->t->send : c->t->recv)(c->self, m));
    if (m->sends) note_state(c, m);
    return 0;
}

err comm_test(struct comm *c, struct comm_message *m, bool *done) {
    *done = m->done;
    if (m->done) return 0;
    TRY(c->t->test(c->self, m, &m->done));
    note_state(c, m);
    *done = m->done;
    return 0;
}

err comm_poll(struct comm *c, struct comm_message *m, i32 n, bool *moved, const struct comm_message **waiting) {
    for (i32 k = 0; k < n; k++)
        if (!m[k].started) TRY(comm_post(c, &m[k]));
    for (i32 k = 0; k < n; k++) {
        bool done;
        if (m[k].done) continue;
        TRY(comm_test(c, &m[k], &done));
        *moved = *moved || done || m[k].moved;
        m[k].moved = false;
        if (!done) *waiting = &m[k];
    }
    return 0;
}

err head_check(struct comm_message *m, const struct comm_head *got) {
    const struct comm_head *want = &m->head;
    if (want->serial == got->serial && want->number == got->number && strncmp(want->name, got->name, COMM_NAME) == 0 &&
        (want->bytes == got->bytes || (m->fewer && got->bytes < want->bytes))) {
        m->head.bytes = got->bytes;
        return 0;
    }
    return FAIL_AT(E804, NULL, "the same program, options and data on every rank",
                   "rank %d sent message %u of exchange %llu, %.*s of %u bytes; message %u of exchange %llu, %.*s of %s%u bytes, "
                   "is awaited", m->peer, got->number, (unsigned long long)got->serial, COMM_NAME, got->name, got->bytes,
                   want->number, (unsigned long long)want->serial, COMM_NAME, want->name, m->fewer ? "at most " : "",
                   want->bytes);
}

static err check_abort(struct comm *c) {
    i32 who = -1;
    const struct err_record *r = c->t->find_abort ? c->t->find_abort(c->self, &who) : NULL;
    if (!r) return 0;
    struct err_record mine = *r; /* same code: the run ends with the error of that rank */
    snprintf(mine.text, sizeof mine.text, "rank %d: %.1000s", who, r->text);
    err_put(&mine);
    atomic_store(&c->relayed, true);
    return -mine.code;
}

/* With recovery, a stopped rank of this host is killed instead: the others heal, and the launcher does not wait for it. */
static err fail_deadline(struct comm *c, const struct comm_message *m, f64 seconds) {
    if (c->recovery && recovery_end_stopped(c->recovery)) return c->waited = 0, 0;
    if (c->recovery && !c->spared) { /* another rank may have killed the awaited one just now: it takes a while to die */
        c->spared = true;
        c->waited -= DYING_S;
        return 0;
    }
    const struct comm_rank_info *w = &c->member[m->peer];
    char more[200] = "", why[700], kept[FLIGHT_PATH + 40] = "";
    if (c->hint) c->hint(c->hint_self, m->peer, more, sizeof more);
    snprintf(why, sizeof why, "rank %d has waited %.3g s %s rank %d (host %s, pid %d): message %u, %.*s of %u bytes%s%s", c->rank,
             seconds, m->sends ? "to send to" : "for", m->peer, w->host, w->pid, m->head.number, COMM_NAME, m->head.name,
             m->head.bytes, more[0] ? "; " : "", more);
    rank_failure(c, why, true);
    if (c->record[0]) snprintf(kept, sizeof kept, "; stacks and last messages in %s", c->record);
    return FAIL_AT(E801, NULL, "stretto resume RUN, once that host is well", "%s%s", why, kept);
}

/* comm_broadcast_slow: the sender shows signs of life while it works; fail if there is no new one. */
static err check_life(struct comm *c, const struct comm_message *m) {
    char text[200] = "";
    const f64 sign = c->hint ? c->hint(c->hint_self, m->peer, text, sizeof text) : 0;
    if (sign == 0 && c->waited < UNKNOWN * c->patience) return c->life_check = c->waited + c->patience, 0;
    if (sign == 0 || sign == c->life_sign) return fail_deadline(c, m, c->waited);
    c->life_sign = sign;
    c->life_check = c->patience;
    c->waited = 0;
    return 0;
}

static err check_deaths(struct comm *c) {
    if (!recovery_poll(c->recovery)) return 0;
    if (c->noticed <= 0) c->noticed = clock_now();
    return recovery_fail(c->recovery);
}

/* `woken` stays set until a sleep ends, so a call during a poll prevents the next sleep. A caller that finds it set relies on
 * the earlier caller's signal, or on a sleep that will not start. A stale `woken` costs one skipped sleep. */
void comm_wake(struct comm *c) {
    if (!atomic_exchange(&c->woken, true)) wakeup_signal(&c->wake);
}

static void sleep_until_woken(struct comm *c, f64 seconds) {
    const u32 seen = wakeup_prepare(&c->wake);
    if (!atomic_load(&c->woken)) wakeup_wait(&c->wake, seen, seconds);
    wakeup_finish(&c->wake);
    atomic_exchange(&c->woken, false); /* exchange, not store: acquires what the waker wrote */
}

err comm_check(struct comm *c) { return c->recovery ? check_deaths(c) : check_abort(c); }

/* Short waits spin or yield instead of sleeping. Without an agent the caller is a worker with nothing else to do. */
static bool wait_briefly(const struct comm *c, const struct comm_message *waiting) {
    if (c->t->direct && c->idle < SPIN_S / 2) cpu_relax();
    else if (c->t->direct ? !waiting || c->waited < YIELD_S : waiting && c->waited < SPIN_S) sched_yield();
    else return false;
    return true;
}

void comm_reset_wait(struct comm *c) {
    c->since = clock_now();
    c->waited = c->idle = 0;
    c->spared = false;
}

err comm_idle(struct comm *c, bool moved, const struct comm_message *waiting) {
    if (c->t->direct && !moved && ++c->spins < SPINS) {
        cpu_relax();
        return 0;
    }
    c->spins = 0;
    if (moved) { /* the time without a message begins with the next look at the clock */
        c->since = c->waited = c->idle = 0;
        c->spared = false;
        watch_moved(&c->watch);
        return 0;
    }
    const f64 now = clock_now(), turn = c->since > 0 ? now - c->since : 0;
    c->since = now;
    c->waited = !waiting ? 0 : c->waited + dmin(turn, TURN_S);
    c->idle += turn;
    if (wait_briefly(c, waiting)) return 0;
    TRY(comm_check(c));
    if (c->waited > c->deadline) return fail_deadline(c, waiting, c->deadline);
    if (c->patience > 0 && c->waited > c->life_check) TRY(check_life(c, waiting));
    const f64 least = waiting ? SLEEP_NS : dmax(SLEEP_NS, dmin(IDLE_SLEEP_MOST_NS, 1e9 * c->idle_sleep));
    sleep_until_woken(c, 1e-9 * dmax(least, dmin(SLEEP_MOST_NS, 1e9 * c->idle / SLEEP_SHARE)));
    return 0;
}

err comm_wait(struct comm *c, struct comm_message *m, i32 n) {
    for (;;) {
        const struct comm_message *waiting = NULL;
        bool moved = false;
        TRY(comm_poll(c, m, n, &moved, &waiting));
        if (!waiting) return 0;
        TRY(comm_idle(c, moved, waiting));
    }
}

void comm_succeed(struct comm *c) {
    if (c) c->failed = false;
}

void comm_abort(struct comm *c) {
    if (!c) return;
    c->failed = true;
    const bool tells = c->recovery || !atomic_load(&c->relayed); /* with recovery it also reports this rank as dead */
    if (tells && c->t->abort) c->t->abort(c->self, err_last()); /* first, since others wait */
    rank_failure(c, err_last()->text, false);
}

/* ------------------------------------------------------------------ life ---------------------------------------------------- */

static err open_job(struct comm *c, void *arg) {
    (void)arg;
    return c->t->open ? c->t->open(c->self) : 0;
}

/* Time of day until which the agent may take to enter or leave the MPI library. */
static struct timespec join_deadline(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += (time_t)ceil(dmin(clock_deadline(), 1e9)) + 1;
    return t;
}

/* MPI_Init may block forever for a rank that never starts, and cannot be cancelled: wait with a deadline. */
static err open_transport(struct comm *c) {
    const struct timespec end = join_deadline();
    i32 late = 0;
    comm_begin(c, open_job, NULL);
    pthread_mutex_lock(&c->lock);
    while (c->state != DONE && late == 0) late = pthread_cond_timedwait(&c->turn, &c->lock, &end);
    const bool done = c->state == DONE;
    pthread_mutex_unlock(&c->lock);
    if (done) return comm_end(c);
    return FAIL_AT(E801, NULL, "the same command again; stretto doctor, if it comes back",
                   "%s has not joined this rank to the others for %.3g s: one of them has not started, or has ended", c->t->name,
                   clock_deadline());
}

static err start(struct comm *c) {
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->turn, NULL);
    pthread_mutex_init(&c->writes, NULL);
    c->watch.alarm = rank_alarm;
    c->watch.self = c;
    comm_set_deadline(c, c->deadline);
    if (c->t->direct) return 0;
    if (pthread_create(&c->thread, NULL, agent, c) != 0) return FAIL(E601, "no thread could be made for messages between ranks");
    c->running = true;
    TRY(open_transport(c));
    pthread_setname_np(c->thread, "stretto.agent"); /* after open: MPI's threads would inherit the name */
    return 0;
}

static void free_memory(struct comm *c) {
    if (!c) return;
    mem_free(c->flight);
    mem_free(c->member);
    mem_free(c->first);
    mem_free(c);
}

err comm_new(const struct transport *t, void *self, i32 rank, i32 size, struct comm **out) {
    *out = NULL;
    if (size > COMM_RANKS) {
        t->close(self, false);
        return FAIL_AT(E803, NULL, "fewer ranks, with more threads in each", "%d ranks: at most %d are possible", size,
                       COMM_RANKS);
    }
    struct comm *c = mem_alloc(sizeof *c);
    if (c) *c = (struct comm){.t = t, .self = self, .rank = rank, .size = size, .deadline = clock_deadline(),
                              .failed = true};
    err e = c ? mem_new((void **)&c->member, size, sizeof *c->member) : -E601;
    if (e >= 0) e = mem_new((void **)&c->first, size, sizeof *c->first);
    if (e >= 0 && size > 1) e = mem_new((void **)&c->flight, 1, sizeof *c->flight);
    if (e < 0) {
        free_memory(c);
        t->close(self, false);
        return e;
    }
    for (i32 k = 0; k < size; k++) c->member[k].rank = c->first[k] = k;
    e = start(c);
    if (e < 0) {
        comm_free(c);
        return e;
    }
    *out = c;
    return 0;
}

/* MPI_Finalize waits for every rank, also for one that has died since the ranks have parted.  Once a rank of this host has ended,
 * the others have LEAVE_S to leave. */
static bool agent_leaves(struct comm *c) {
    f64 end = clock_now() + ceil(clock_deadline()) + 1;
    bool left = false;
    while (clock_now() < end) {
        if (pthread_tryjoin_np(c->thread, NULL) == 0) return true;
        if (!left && recovery_left(c->recovery)) {
            left = true;
            end = dmin(end, clock_now() + LEAVE_S);
        }
        nanosleep(&(struct timespec){.tv_nsec = LEAVE_LOOK_NS}, NULL);
    }
    return false;
}

/* False: the agent is stuck inside a library call; its memory is kept until the process ends. */
static bool end_agent(struct comm *c) {
    pthread_mutex_lock(&c->lock);
    const bool stuck = c->state == WORK;
    if (!stuck) c->state = QUIT;
    pthread_cond_broadcast(&c->turn);
    pthread_mutex_unlock(&c->lock);
    const struct timespec end = join_deadline();
    if (stuck) return false;
    return c->recovery ? agent_leaves(c) : pthread_timedjoin_np(c->thread, NULL, &end) == 0;
}

void comm_free(struct comm *c) {
    if (!c) return;
    watch_end(&c->watch);
    if (c->running && !end_agent(c)) return;
    if (!c->running) c->t->close(c->self, false);
    pthread_cond_destroy(&c->turn);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->writes);
    recovery_free(c->recovery);
    free_memory(c);
}
