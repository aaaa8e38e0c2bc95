/* sched.c - a step: every worker walks its lane, waiting for other lanes where the plan says so.
 *
 * Lanes are in plan order and the plan's order respects its edges, so the first undone item of the whole plan can always run:
 * there is no deadlock, with any number of workers.  Members of a team wait for each other inside their item; nothing that the
 * plan has between them could hold one back (plan_check), and each has a lane of its own (x->alone). */
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
#include "model/layer.h"

enum { SPIN = 2000 };
#define YIELD_S 0.3e-3 /* then it sleeps: on a machine of our own nobody is kept from running, and no wake-up is to be paid */
#define SLEEP_MOST_S 0.5 /* at a time */

static bool is_over(const struct exec *x, const _Atomic u64 *done, u64 want) {
    return atomic_load_explicit(done, memory_order_acquire) >= want || atomic_load_explicit(&x->broken, memory_order_acquire);
}

/* For a worker that drives the messages itself, in turn with the others. */
static void turn_until(struct exec *x, struct lane *l, const _Atomic u64 *done, u64 want) {
    if (atomic_load_explicit(done, memory_order_acquire) >= want) return;
    atomic_store_explicit(&l->waits, true, memory_order_relaxed);
    for (struct backoff r = {0}; !is_over(x, done, want);)
        if (!exchange_turn(x, true)) backoff_pause(&r);
    atomic_store_explicit(&l->waits, false, memory_order_relaxed);
}

/* More threads than cores: the core is for those who are waited for. */
static void sleep_until(struct exec *x, const _Atomic u64 *done, u64 want) {
    while (!is_over(x, done, want)) {
        const u32 heard = wakeup_prepare(&x->bell);
        if (!is_over(x, done, want)) wakeup_wait(&x->bell, heard, SLEEP_MOST_S);
        wakeup_finish(&x->bell);
    }
}

static void wait_until(struct exec *x, struct lane *l, const _Atomic u64 *done, u64 want) {
    if (x->direct) {
        turn_until(x, l, done, want);
        return;
    }
    for (i32 spin = SPIN; spin > 0; spin--) {
        if (atomic_load_explicit(done, memory_order_acquire) >= want) return;
        cpu_relax();
    }
    atomic_store_explicit(&l->waits, true, memory_order_relaxed);
    if (x->comm) comm_wake(x->comm);
    for (const f64 end = clock_now() + YIELD_S; clock_now() < end && !is_over(x, done, want);) sched_yield();
    sleep_until(x, done, want);
    atomic_store_explicit(&l->waits, false, memory_order_relaxed);
}

static void wait_for(struct exec *x, struct lane *l, const struct item *it) {
    for (u32 k = it->wait0; k < it->wait0 + it->nwait; k++)
        wait_until(x, l, &x->lane[x->wait[k].lane].done, x->serial << 32 | x->wait[k].count);
    for (u32 k = 0; k < it->nbefore; k++) wait_until(x, l, &x->link[it->before[k]].arrived, x->trail_serial);
    for (u32 k = 0; k < it->nlink; k++) wait_until(x, l, &x->link[it->link[k]].arrived, x->serial);
}

/* That what was done may be sent. */
static void tell_agent(struct exec *x, const struct item *it) {
    bool sends = false;
    for (u32 k = 0; k < it->run; k++) sends = sends || it[k].sends;
    if (sends) comm_wake(x->comm);
}

static void walk_lane(struct exec *x, struct lane *l) {
    for (u32 i = 0; i < l->n;) {
        const struct item *it = &l->item[i];
        wait_for(x, l, it);
        f64 t0 = x->trace || x->comm ? clock_now() : 0;
        const struct task *t = &x->plan->task[it->task];
        if (t->kind == TASK_MERGE)
            exec_merges(x, exec_grads(x), it, it->run);
        else
            exec_task(x, t);
        if (x->comm) effort_task(x, l, t, t0);
        if (x->trace) trace_add(x, l, it->task, t0, clock_now());
        i += it->run;
        atomic_store_explicit(&l->done, x->serial << 32 | i, memory_order_release);
        if (!x->direct) wakeup_signal(&x->bell);
        if (x->direct) exchange_turn(x, false);
        else tell_agent(x, it);
    }
}

void exec_work(void *exec, i32 worker) {
    struct exec *x = exec;
    if ((u32)worker >= x->nlane) return;
    const u64 mode = float_mode_fast();
    walk_lane(x, &x->lane[worker]);
    float_mode_back(mode);
}

static bool bound(const struct net *n, const struct exec_step *s, const struct op *op, i32 *missing) {
    for (i32 i = 0; i < op->layer->nin; i++) {
        i32 in = op->spec.in[i];
        if (in < 0 || !n->buf[in].input || s->input[in]) continue;
        *missing = in;
        return false;
    }
    return true;
}

/* The rows of this rank out of an input of the whole batch. */
static f32 *own_input(struct exec *x, i32 i, const f32 *whole) {
    const struct buf *b = &x->net->buf[i];
    const i64 row = b->ids ? 1 : buf_fp(b), n = x->run.B * row;
    for (i32 t = 0; t < b->T; t++)
        memcpy(x->input[i] + t * n, whole + ((i64)t * x->run.whole + x->run.row0) * row, (size_t)n * sizeof *whole);
    return x->input[i];
}

static err bind_inputs(struct exec *x, const struct exec_step *s) {
    const struct net *n = x->net;
    for (i32 l = 0; l < n->nop; l++) {
        const struct op *op = &n->op[l];
        i32 missing = -1;
        x->skip[l] = !bound(n, s, op, &missing);
        if (x->skip[l] && (op->out >= 0 || netplan(x->plan)->train))
            return FAIL(E1, "input \"%s\" of op \"%s\" is not bound", n->buf[missing].name, op->spec.name);
    }
    for (i32 i = 0; i < n->nbuf; i++)
        if (n->buf[i].input) x->buf[i] = x->input && x->input[i] && s->input[i] ? own_input(x, i, s->input[i]) : s->input[i];
    return 0;
}

void exec_sums(struct exec *x, const struct exec_step *s) {
    x->sums.loss_scale = s->loss_scale;
    x->sums.hyper = s->hyper;
    x->sums.clip = s->clip;
    x->sums.accumulate = s->accumulate;
    x->sums.serial = x->serial;
}

struct exec_result exec_result_of(const struct totals *t) {
    return (struct exec_result){.loss = t->loss, .grad_norm = t->norm, .finite = t->finite};
}

/* For the record of a rank that hangs: what each worker is at, from its own count. */
static void scene(void *exec, char *text, size_t size) {
    const struct exec *x = exec;
    char name[64];
    size_t n = 0;
    for (u32 w = 0; w < x->nlane && n < size; w++) {
        const struct lane *l = &x->lane[w];
        const u64 done = atomic_load_explicit(&l->done, memory_order_acquire);
        const u32 at = done >> 32 == x->serial ? (u32)done : 0;
        name[0] = 0;
        if (at < l->n) plan_task_name(x->plan, x->net, l->item[at].task, name);
        const char *how = atomic_load_explicit(&l->waits, memory_order_relaxed) ? ", waits before " : ", at ";
        n += (size_t)snprintf(text + n, size - n, "worker %u: %u of %u tasks done%s%s\n", w, at, l->n, at < l->n ? how : "",
                              name);
    }
}

err exec_step(struct exec *x, const struct exec_step *s, struct exec_result *out) {
    if (x->late && s->accumulate) return FAIL(E1, "an accumulated gradient cannot be delayed as well");
    TRY(bind_inputs(x, s));
    if (atomic_load(&x->broken)) {
        err_put(x->why);
        return -x->why->code;
    }
    x->serial++;
    x->step = s;
    x->run.loss_scale = s->loss_scale;
    x->run.seed = s->seed;
    x->run.step = s->step;
    x->run.serial = x->serial;
    x->run.warm = s->warm;
    TRY(effort_begin(x));
    const bool timed = x->teams || x->comm;
    const f64 t0 = timed ? clock_now() : 0;
    if (x->teams) x->alone = x->pace.alone;
    if (!x->late) exec_sums(x, s);
    comm_set_step(x->comm, x->serial, s->step, scene, x);
    x->late ? late_begin(x) : exchange_begin(x);
    if (x->nlane == 1)
        exec_work(x, 0);
    else
        pool_run(x->pool, exec_work, x);
    const err e = x->late ? late_end(x, out) : exchange_end(x);
    comm_set_step(x->comm, x->serial, s->step, NULL, NULL);
    TRY(e);
    const f64 took = timed ? clock_now() - t0 : 0;
    if (x->comm) effort_end(x);
    if (x->teams) pace_took(&x->pace, took);
    x->usual = x->usual > 0 ? 0.9 * x->usual + 0.1 * took : took;
    if (x->comm) comm_set_deadline(x->comm, dmax(comm_default_deadline(), 20 * x->usual));
    x->sent.steps++;
    if (x->late) return 0;
    TRY(trail_begin(x));
    struct totals t = exec_totals(x);
    x->pending = s->accumulate && t.finite;
    x->step = NULL;
    *out = exec_result_of(&t);
    return 0;
}

void trace_add(struct exec *x, struct lane *l, u32 task, f64 t0, f64 t1) {
    l->ring[l->nrecord++ % TRACE_RING] = (struct record){task, t0 - x->epoch, t1 - x->epoch};
}

void exec_apart(struct exec *x, bool on) {
    x->apart = on;
    for (i32 l = 0; l < 2 * x->net->nop && !on; l++)
        if (x->chain[l / 2][l % 2]) x->chain[l / 2][l % 2]->apart = NULL;
}

void exec_trace(struct exec *x, bool on) {
    for (u32 w = 0; on && w < x->nlane; w++) {
        struct lane *l = &x->lane[w];
        if (!l->ring) l->ring = mem_alloc(TRACE_RING * sizeof *l->ring);
        if (!l->ring) on = false; /* no memory for a timeline is no reason to stop */
    }
    x->trace = on;
}

/* The newest spans: an equal number of each lane, in order of time within a lane. */
i32 exec_spans(const struct exec *x, struct task_span *out, i32 max) {
    i32 n = 0;
    char name[64];
    for (u32 w = 0; w < x->nlane; w++) {
        const struct lane *l = &x->lane[w];
        if (!l->ring) continue;
        u32 count = (u32)lmin(lmin(l->nrecord, TRACE_RING), max / (i32)x->nlane);
        for (u32 i = l->nrecord - count; i != l->nrecord; i++) {
            const struct record *r = &l->ring[i % TRACE_RING];
            struct task_span *s = &out[n++];
            *s = (struct task_span){.lane = (i32)w, .task = r->task, .t0 = r->t0, .t1 = r->t1};
            plan_task_name(x->plan, x->net, r->task, name);
            snprintf(s->name, sizeof s->name, "%.31s", name);
        }
    }
    return n;
}
