/* run.c - a step: every worker runs its queue, waiting for other queues and for messages where the plan says so.
 *
 * Queues are in plan order and the plan's order respects its edges, so the first undone item of the whole plan can always run:
 * there is no deadlock, with any number of workers.  Members of a team wait for each other inside their item; nothing that the
 * plan has between them could hold one back (plan_check), and each has a queue of its own (x->alone). */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/float_mode.h"
#include "base/mem.h"
#include "base/backoff.h"
#include "exec/bound.h"
#include "exec/space.h"

enum { SPIN = 2000 };
#define YIELD_S 0.3e-3   /* duration of yielding before a worker sleeps; yielding costs no wake-up if no other program needs
                          * the core */
#define SLEEP_MOST_S 0.5 /* at a time */

static bool is_over(const struct exec *x, const _Atomic u64 *done, u64 want) {
    return atomic_load_explicit(done, memory_order_acquire) >= want || atomic_load_explicit(&x->broken, memory_order_acquire);
}

/* For a worker that polls messages itself, alternating with others. */
static void turn_until(struct exec *x, struct queue *q, const _Atomic u64 *done, u64 want) {
    if (atomic_load_explicit(done, memory_order_acquire) >= want) return;
    atomic_store_explicit(&q->waits, true, memory_order_relaxed);
    for (struct backoff r = {0}; !is_over(x, done, want);)
        if (!exchange_turn(x, true)) backoff_pause(&r);
    atomic_store_explicit(&q->waits, false, memory_order_relaxed);
}

/* Yields the core to the threads that this worker waits for, if there are more threads than cores. */
static void sleep_until(struct exec *x, const _Atomic u64 *done, u64 want) {
    while (!is_over(x, done, want)) {
        const u32 heard = wakeup_prepare(&x->changed);
        if (!is_over(x, done, want)) wakeup_wait(&x->changed, heard, SLEEP_MOST_S);
        wakeup_finish(&x->changed);
    }
}

static void wait_until(struct exec *x, struct queue *q, const _Atomic u64 *done, u64 want) {
    if (x->direct) {
        turn_until(x, q, done, want);
        return;
    }
    for (i32 spin = SPIN; spin > 0; spin--) {
        if (atomic_load_explicit(done, memory_order_acquire) >= want) return;
        cpu_relax();
    }
    atomic_store_explicit(&q->waits, true, memory_order_relaxed);
    if (x->comm) comm_wake(x->comm);
    for (const f64 end = clock_now() + YIELD_S; clock_now() < end && !is_over(x, done, want);) sched_yield();
    sleep_until(x, done, want);
    atomic_store_explicit(&q->waits, false, memory_order_relaxed);
}

static void wait_for(struct exec *x, struct queue *q, const struct item *it) {
    for (u32 k = it->wait0; k < it->wait0 + it->nwait; k++)
        wait_until(x, q, &x->queue[x->wait[k].queue].done, x->serial << 32 | x->wait[k].count);
    for (u32 k = 0; k < it->nbefore; k++) wait_until(x, q, &x->link[it->before[k]].arrived, x->trail_serial);
    for (u32 k = 0; k < it->nlink; k++) wait_until(x, q, &x->link[it->link[k]].arrived, x->serial);
    space_wait(x, it);
}

/* Wakes the agent if an item with a message to send is done. */
static void tell_agent(struct exec *x, const struct item *it) {
    bool sends = false;
    for (u32 k = 0; k < it->run; k++) sends = sends || it[k].sends;
    if (sends) comm_wake(x->comm);
}

/* A commit that every rank runs happens on all or on none. */
static bool skips(struct exec *x, const struct task *t, const struct kernel *k) {
    if (t->member > 0 && x->alone && !t->split && exec_is_ours(x, t - 1)) return true; /* member 0 has done it */
    return k->commits && !exchange_commits(x);
}

/* Tasks over one range, block by block: what the first has summed is still in the cache for the second. */
static void run_blocks(struct exec *x, const struct item *it, const struct kernel *k, void *const *mem) {
    const struct task *first = &x->plan->task[it->task];
    for (i64 at = first->lo; at < first->hi; at += MERGE_BLOCK)
        for (u32 i = 0; i < it->run; i++) {
            const struct kernel_call c = {.task = &x->plan->task[it[i].task],
                                          .mem = mem,
                                          .host = mem,
                                          .alone = x->alone,
                                          .lo = at,
                                          .hi = lmin(at + MERGE_BLOCK, first->hi)};
            k->run(x->client.self, &c);
        }
}

void exec_item(struct exec *x, const struct item *it, void *const *mem) {
    const struct task *t = &x->plan->task[it->task];
    const struct kernel *k = &x->client.kernel[t->kind];
    if (skips(x, t, k)) return;
    if (x->space) {
        space_item(x, it);
        return;
    }
    if (k->blocks) {
        run_blocks(x, it, k, mem);
        return;
    }
    const struct kernel_call c = {.task = t, .mem = mem, .host = mem, .alone = x->alone, .lo = t->lo, .hi = t->hi};
    k->run(x->client.self, &c);
}

static void run_queue(struct exec *x, struct queue *q) {
    for (u32 i = space_replay(x); i < q->n;) {
        const struct item *it = &q->item[i];
        wait_for(x, q, it);
        f64 t0 = x->trace || x->comm ? clock_now() : 0;
        space_start(x, (u32)(q - x->queue), i);
        exec_item(x, it, x->mem[0]);
        if (x->comm) load_task(x, q, &x->plan->task[it->task], t0);
        if (x->trace && !x->space) trace_add(x, q, it->task, t0, clock_now());
        space_done(x, (u32)(q - x->queue), i, it->run);
        i += it->run;
        space_recorded(x, i);
        atomic_store_explicit(&q->done, x->serial << 32 | i, memory_order_release);
        if (!x->direct) wakeup_signal(&x->changed);
        if (x->direct)
            exchange_turn(x, false);
        else
            tell_agent(x, it);
    }
}

void exec_work(void *exec, i32 worker) {
    struct exec *x = exec;
    if ((u32)worker >= x->nqueue) return;
    const u64 mode = float_mode_fast();
    space_enter(x, (u32)worker);
    run_queue(x, &x->queue[worker]);
    space_leave(x);
    float_mode_back(mode);
}

/* For the flight record: the item that each worker is running. */
static void scene(void *exec, char *text, size_t size) {
    const struct exec *x = exec;
    char name[64];
    size_t n = 0;
    for (u32 w = 0; w < x->nqueue && n < size; w++) {
        const struct queue *q = &x->queue[w];
        const u64 done = atomic_load_explicit(&q->done, memory_order_acquire);
        const u32 at = done >> 32 == x->serial ? (u32)done : 0;
        name[0] = 0;
        if (at < q->n) exec_task_name(x, q->item[at].task, name);
        const char *how = atomic_load_explicit(&q->waits, memory_order_relaxed) ? ", waits before " : ", at ";
        n +=
            (size_t)snprintf(text + n, size - n, "worker %u: %u of %u tasks done%s%s\n", w, at, q->n, at < q->n ? how : "", name);
    }
}

err exec_step(struct exec *x, u32 number, bool keep, struct exec_result *out) {
    if (x->policy->delay && keep) return FAIL(E1, "an accumulated gradient cannot be delayed as well");
    if (atomic_load(&x->broken)) {
        err_put(x->why);
        return -x->why->code;
    }
    x->serial++;
    x->number = number;
    TRY(load_begin(x));
    TRY(space_begin(x));
    const bool timed = x->teams || x->comm;
    const f64 t0 = timed ? clock_now() : 0;
    if (x->teams) x->alone = x->pace.alone;
    if (!x->policy->begin) {
        x->summed = x->serial;
        x->keep = keep;
    }
    comm_set_step(x->comm, x->serial, number, scene, x);
    x->policy->begin ? x->policy->begin(x) : exchange_begin(x);
    x->virtual_epoch += x->virtual_seconds;
    x->virtual_seconds = x->dev->run(&x->work);
    err e = x->policy->end ? x->policy->end(x, out) : exchange_end(x);
    comm_set_step(x->comm, x->serial, number, NULL, NULL);
    if (exec_failed(x) < 0) e = exec_failed(x); /* the cause of what messages say */
    TRY(e);
    TRY(space_end(x));
    const f64 took = timed ? clock_now() - t0 : 0;
    if (x->comm) load_end(x);
    if (x->teams) pace_took(&x->pace, took);
    x->usual = x->usual > 0 ? 0.9 * x->usual + 0.1 * took : took;
    if (x->comm) comm_set_deadline(x->comm, dmax(clock_deadline(), 20 * x->usual));
    x->sent.steps++;
    if (x->policy->end) return 0;
    TRY(gather_begin(x));
    *out = x->client.result(x->client.self, x->mem[1]);
    return 0;
}

err exec_settle(struct exec *x, struct exec_result *out) {
    *out = (struct exec_result){.finite = true, .none = true};
    return x->policy->settle ? x->policy->settle(x, out) : exchange_settle(x);
}

err exec_look_ahead(struct exec *x, bool *due, struct exec_result *out) {
    *due = false;
    return x->policy->look_ahead ? x->policy->look_ahead(x, due, out) : exchange_settle(x);
}

void exec_set_ahead(struct exec *x, bool due, const struct exec_result *r) {
    if (x->policy->set_ahead) x->policy->set_ahead(x, due, r);
}

void exec_trace(struct exec *x, bool on) {
    for (u32 w = 0; on && w < x->nqueue; w++) {
        struct queue *q = &x->queue[w];
        if (!q->ring) q->ring = mem_alloc(TRACE_RING * sizeof *q->ring);
        if (!q->ring) on = false; /* tracing is optional: continue without memory for it */
    }
    x->trace = on;
}

bool exec_step_spans(const struct exec *x, struct plan_span *last) {
    memset(last, 0, x->plan->ntask * sizeof *last);
    for (u32 w = 0; w < x->nqueue; w++) {
        const struct queue *q = &x->queue[w];
        if (!q->ring || q->n > TRACE_RING) return false;
        for (u32 i = q->nrecord - (u32)lmin(q->nrecord, q->n); i != q->nrecord; i++) {
            const struct record *r = &q->ring[i % TRACE_RING];
            last[r->task] = (struct plan_span){r->t0, r->t1};
        }
    }
    return true;
}

/* Copies the newest spans: an equal number from each queue, in order of time within a queue. */
i32 exec_spans(const struct exec *x, struct task_span *out, i32 max) {
    i32 n = 0;
    char name[64];
    for (u32 w = 0; w < x->nqueue; w++) {
        const struct queue *q = &x->queue[w];
        if (!q->ring) continue;
        u32 count = (u32)lmin(lmin(q->nrecord, TRACE_RING), max / (i32)x->nqueue);
        for (u32 i = q->nrecord - count; i != q->nrecord; i++) {
            const struct record *r = &q->ring[i % TRACE_RING];
            struct task_span *s = &out[n++];
            *s = (struct task_span){.worker = (i32)w, .task = r->task, .t0 = r->t0, .t1 = r->t1};
            exec_task_name(x, r->task, name);
            snprintf(s->name, sizeof s->name, "%.31s", name);
        }
    }
    return n;
}
