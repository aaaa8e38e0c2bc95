/* delay1.c - delayed update: the gradient of a step is summed over ranks, and the weights are moved by it, while the next step is
 * computed (Pipe-SGD, Li et al., NeurIPS 2018, with one step of delay).
 *
 *     queues   | step 7: fwd bwd, own merges  | step 8: fwd bwd, own merges  | step 9 ..
 *     agent    | step 6: sum, update, weights | step 7: sum, update, weights |
 *     weights  | after updates 0 .. 5         | after updates 0 .. 6         |
 *
 * Tasks that need other ranks (sums across them, norm, update) leave the workers' queues for a queue of their own, which the
 * agent runs between two polls of its messages.  Gradient vectors and losses have two copies, swapped after a step; the update
 * writes the next weights to a second copy while the step computes with the first.  A single rank runs the same queue before the
 * step, so that the bits are the same for any number of ranks. */
#include <string.h>

#include "base/float_mode.h"
#include "exec/bound.h"
#include "exec/policy.h"

struct delay {
    u32 at;                    /* completed items of the deferred queue */
    bool due, made;            /* due: the update of the last step is pending; made: it is computed, its weights not installed */
    struct exec_result result; /* valid if made */
};

static struct delay *delay_of(const struct exec *x) { return x->policy_state; }

/* Rounds of slices need the agent, which still works on the step before. */
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

static bool has_arrived(const struct exec *x, const struct item *it) {
    for (u32 k = 0; k < it->nlink; k++)
        if (atomic_load_explicit(&x->link[it->link[k]].arrived, memory_order_acquire) < x->summed) return false;
    return true;
}

static u32 progress(struct exec *x, bool *moved) {
    struct delay *d = delay_of(x);
    struct queue *q = &x->queue[x->nqueue];
    const u64 mode = float_mode_fast();
    while (d->at < q->n && has_arrived(x, &q->item[d->at])) {
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

/* Waits until the pending update is computed, and stores its result. */
static err finish_update(struct exec *x) {
    struct delay *d = delay_of(x);
    if (!d->due || d->made) return 0;
    TRY(exchange_end(x));
    d->result = x->client.result(x->client.self, x->mem[1]);
    d->made = true;
    return 0;
}

/* Copies the updated weights over the current ones, unless the update failed; returns its result. */
static struct exec_result install_weights(struct exec *x) {
    struct delay *d = delay_of(x);
    if (!d->due) return (struct exec_result){.finite = true, .none = true};
    for (u32 i = 0; i < x->plan->nbuf && d->result.finite; i++)
        if (x->plan->buf[i].twin == TWIN_COPY && x->mem[0][i]) memcpy(x->mem[0][i], x->mem[1][i], (size_t)x->plan->buf[i].bytes);
    d->due = d->made = false;
    return d->result;
}

static void swap_copies(struct exec *x) {
    for (u32 i = 0; i < x->plan->nbuf; i++) {
        if (x->plan->buf[i].twin != TWIN_SWAP) continue;
        void *now = x->mem[0][i];
        x->mem[0][i] = x->mem[1][i];
        x->mem[1][i] = now;
    }
}

/* Ends a step: installs the update of the step before, then makes this step's gradient the pending one.  If that update failed,
 * this step is dropped too. */
static err end(struct exec *x, struct exec_result *out) {
    TRY(finish_update(x));
    *out = install_weights(x);
    if (!out->finite) return 0;
    swap_copies(x);
    x->summed = x->serial;
    x->keep = false;
    delay_of(x)->due = true;
    if (x->client.defer) x->client.defer(x->client.self);
    return 0;
}

static err settle(struct exec *x, struct exec_result *out) {
    begin(x);
    TRY(finish_update(x));
    *out = install_weights(x);
    return 0;
}

static err look_ahead(struct exec *x, bool *due, struct exec_result *out) {
    struct delay *d = delay_of(x);
    *due = d->due;
    if (!d->due) return 0;
    begin(x);
    TRY(finish_update(x));
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
