/* delay1.c - delayed update: the gradient of a step is summed over ranks, and the weights are moved by it, while the next step is
 * computed (Pipe-SGD, Li et al., NeurIPS 2018, with one step of delay).
 *
 *     queues   | step 7: fwd bwd, own merges  | step 8: fwd bwd, own merges  | step 9 ..
 *     agent    | of 6: grads, update, theta   | of 7: grads, update, theta   |
 *     weights  | after the updates 0 .. 5     | after 0 .. 6                 |
 *
 * Tasks that need other ranks (sums across them, norm, update) leave the workers' queues for a queue of their own, which the
 * agent runs between two looks at its messages.  Gradient vectors and losses are there twice, and change places after a step; the
 * update writes the coming weights beside those that the step computes with.  A rank alone runs the same queue before the step,
 * so that the bits are the same for any number of ranks. */
#include <string.h>

#include "base/float_mode.h"
#include "exec/bound.h"
#include "exec/policy.h"

struct delay {
    u32 at;                    /* items of the queue that are done */
    bool due, made;            /* an update is due; it was made, and only the weights are not in place */
    struct exec_result result; /* where made */
};

static struct delay *delay_of(const struct exec *x) { return x->policy_state; }

/* Rounds of slices need the agent while it is on the step before. */
static err fits(i32 slices, i32 ranks) {
    if (slices < 2 || ranks < 2) return 0;
    return FAIL_AT(E401, "--pipeline", "--pipeline overlap   or   --parallel data",
                   "delay1 delays gradients by a step, but time slices on several ranks exchange states within a step");
}

static err bind(struct exec *x) {
    struct delay *d;
    ARENA_NEW(&x->arena, d, 1);
    x->policy_state = d;
    return 0;
}

static bool defers(const struct exec *x, const struct task *t) {
    return x->client.deferred && x->client.deferred(x->client.self, t);
}

static bool has_come(const struct exec *x, const struct item *it) {
    for (u32 k = 0; k < it->nlink; k++)
        if (atomic_load_explicit(&x->link[it->link[k]].arrived, memory_order_acquire) < x->summed) return false;
    return true;
}

static u32 progress(struct exec *x, bool *moved) {
    struct delay *d = delay_of(x);
    struct queue *q = &x->queue[x->nqueue];
    const u64 mode = float_mode_fast();
    while (d->at < q->n && has_come(x, &q->item[d->at])) {
        exec_item(x, &q->item[d->at], x->mem[1]);
        d->at += q->item[d->at].run;
        atomic_store_explicit(&q->done, x->summed << 32 | d->at, memory_order_release);
        wakeup_signal(&x->changed);
        *moved = true;
    }
    float_mode_back(mode);
    return q->n - d->at;
}

static void begin(struct exec *x) {
    struct delay *d = delay_of(x);
    bool moved;
    if (!d->due || d->made) return;
    d->at = 0;
    exchange_aim(x);
    if (x->comm)
        exchange_begin(x);
    else
        progress(x, &moved);
}

/* The update is made; what it found. */
static err make(struct exec *x) {
    struct delay *d = delay_of(x);
    if (!d->due || d->made) return 0;
    TRY(exchange_end(x));
    d->result = x->client.result(x->client.self, x->mem[1]);
    d->made = true;
    return 0;
}

/* The coming weights become the current ones. */
static struct exec_result arrive(struct exec *x) {
    struct delay *d = delay_of(x);
    if (!d->due) return (struct exec_result){.finite = true, .none = true};
    for (u32 i = 0; i < x->plan->nbuf && d->result.finite; i++)
        if (x->plan->buf[i].twin == TWIN_COPY && x->mem[0][i]) memcpy(x->mem[0][i], x->mem[1][i], (size_t)x->plan->buf[i].bytes);
    d->due = d->made = false;
    return d->result;
}

static void change_places(struct exec *x) {
    for (u32 i = 0; i < x->plan->nbuf; i++) {
        if (x->plan->buf[i].twin != TWIN_SWAP) continue;
        void *now = x->mem[0][i];
        x->mem[0][i] = x->mem[1][i];
        x->mem[1][i] = now;
    }
}

/* A step whose update failed takes the one after it along: both are void. */
static err end(struct exec *x, struct exec_result *out) {
    TRY(make(x));
    *out = arrive(x);
    if (!out->finite) return 0;
    change_places(x);
    x->summed = x->serial;
    x->keep = false;
    delay_of(x)->due = true;
    if (x->client.defer) x->client.defer(x->client.self);
    return 0;
}

static err settle(struct exec *x, struct exec_result *out) {
    begin(x);
    TRY(make(x));
    *out = arrive(x);
    return 0;
}

static err look_ahead(struct exec *x, bool *due, struct exec_result *out) {
    struct delay *d = delay_of(x);
    *due = d->due;
    if (!d->due) return 0;
    begin(x);
    TRY(make(x));
    *out = d->result;
    return 0;
}

static void set_ahead(struct exec *x, bool due, const struct exec_result *r) {
    struct delay *d = delay_of(x);
    d->due = d->made = due;
    if (due) d->result = *r;
}

extern const struct policy policy_delay1;
const struct policy policy_delay1 = {
    .name = "delay1",
    .help = "delayed by one step; sums and the update run while the next step is computed",
    .delay = 1,
    .fits = fits,
    .bind = bind,
    .defers = defers,
    .begin = begin,
    .end = end,
    .progress = progress,
    .settle = settle,
    .look_ahead = look_ahead,
    .set_ahead = set_ahead,
};
