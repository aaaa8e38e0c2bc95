/* bound.h - a plan bound to memory and workers: the inside of struct exec, private to src/exec.
 *
 *     worker 0   item item item ...      one queue per worker: its devices' tasks in plan order
 *     worker 1   item item ...           before an item: wait until other queues have done so many items of this step
 *
 * Each worker counts the items that it has done on a cache line of its own; no other thread writes there.  A dependency is "queue
 * w has done n items of this step", so an item waits for at most one number per other queue, whatever the number of edges. */
#ifndef STRETTO_EXEC_BOUND_H
#define STRETTO_EXEC_BOUND_H

#include <stdatomic.h>

#include "base/wakeup.h"
#include "comm/comm.h"
#include "dev/dev.h"
#include "exec/codec.h"
#include "exec/exec.h"
#include "exec/load.h"
#include "exec/pace.h"
#include "exec/policy.h"
#include "plan/exchange.h"

struct item {
    u32 task;
    u32 wait0, nwait;
    u32 nlink, *link;     /* messages that must have completed */
    u32 nbefore, *before; /* the same for messages of the previous step (async_gather.c) */
    u32 run;              /* tasks of a `blocks` kernel that run together: this one and run - 1 after it */
    bool sends;           /* a message must be sent after it */
};

/* A message that this rank sends or awaits. */
struct link {
    struct plan_message plan;
    struct comm_message m;
    const struct codec *codec; /* NULL = dense, sent as stored */
    unsigned char *packed;     /* [codec.room] buffer of the encoded message */
    f32 *residual;             /* sends: [codec.residual] what the codec has dropped so far; NULL = none */
    bool trails;               /* sent during the next step (asynchronous all-gather) */
    struct dev_wait *ready;    /* [nready] items that queues must complete before */
    u32 nready;
    _Alignas(64) _Atomic u64 arrived; /* the last step in which it completed */
};

/* Messages that a worker has passed to the agent during a task, and waits for. */
struct round {
    struct comm_message *m;
    i32 n;
    _Alignas(64) _Atomic u32 state;
};
enum { ROUND_NONE, ROUND_ASKED, ROUND_DONE };

struct record { /* one span of the trace */
    u32 task;
    f64 t0, t1;
};

struct queue {
    _Alignas(64) _Atomic u64 done; /* step << 32 | items done */
    _Atomic bool waits;            /* it waits for another queue or a message; not set for short waits */
    _Alignas(64) struct item *item;
    u32 n, ncompute;     /* ncompute: items up to the last `compute` task */
    u32 nrecord;         /* records written so far; the ring keeps the last TRACE_RING */
    struct record *ring; /* [TRACE_RING], NULL = off */
    f64 busy, debt;      /* seconds of row tasks in this step; seconds of sleep still due (load.h) */
};
enum { UPDATE_OPEN, UPDATE_MADE, UPDATE_VOID };
enum { TRACE_RING = 4096, MERGE_BLOCK = 4096 };

struct space;
struct exec {
    const struct plan *plan;
    struct client client;
    const struct policy *policy;
    const struct dev_type *dev; /* of this rank's devices */
    struct space *space;        /* memory of the device (space.h); NULL = that of the host */
    struct pool *pool;
    struct comm *comm;  /* NULL = this rank has all devices of the plan */
    struct arena arena; /* queues, items, waits */
    void **mem[2];      /* [nbuf] memory of the step that is computed, and of the one that is summed; equal without twins */
    char *block, *sent_block, *twin_block; /* buffers of this rank; those that are sent; second copies */
    i64 block_bytes, sent_bytes, twin_bytes;
    u32 device0;                  /* first device of this rank */
    bool *runs;                   /* [ntask] this rank runs the task; NULL = it runs all */
    struct plan_message *message; /* [nmessage] of all ranks (plan_exchange); none if one rank has all devices */
    u32 nmessage;
    struct link *link; /* [nlink] */
    u32 nlink, open; /* open: the messages before it are done in this step (exchange.c) */
    struct exec_residuals residuals; /* of all ranks */
    f32 *residual;                   /* of this rank's messages */
    struct round round;     /* what a worker waits for */
    bool *pair_waits;       /* [ranks][2] for one poll by the agent: a message to or from that rank is not ready yet */
    _Atomic bool broken;    /* the agent failed: all waits return */
    struct err_record *why; /* the error, if broken */
    bool made;              /* the step completed although broken is set */
    bool feeds;             /* the policy may hold messages back, but tasks that compute wait for some */
    bool all_commit;        /* tasks of `commits` kernels run on all ranks or on none */
    _Atomic u32 update;     /* decision for this step: UPDATE_OPEN until it is made */
    bool direct;            /* messages are pending, and there is no agent: workers poll (exchange_turn) */
    _Atomic bool turning;   /* a worker is polling */
    f64 usual;              /* smoothed duration of a step; deadlines are multiples of it */
    struct wakeup changed;  /* an item or a message was completed, or the run is aborted */
    struct queue *queue;
    u32 nqueue;
    u32 nlist;   /* queues, and after them the deferred queue if the policy has one */
    bool alone;  /* member 0 of a team computes the whole task: there are fewer workers than devices, or pace.h has measured
                  * that it is faster */
    bool rounds; /* kernels exchange messages within a task (exec_round) */
    bool teams;  /* the plan has teams on the same rows, and a worker for each member */
    struct pace pace;
    struct load load; /* measured cost of rows, with several ranks */
    struct dev_wait *wait;
    u64 serial;    /* number of this step, from 1 */
    u32 number;    /* the caller's */
    u64 summed;    /* the step whose gradients are merged: this one, or with delay1 the one before */
    bool keep;     /* argument of exec_step: the gradient of step `summed` is accumulated, not applied */
    bool trailing; /* trailing messages of step trail_serial are pending */
    u64 trail_serial;
    void *policy_state;
    struct exec_sent sent;
    enum message_when asked; /* messages that ask_for moves (exchange.c) */
    bool trace;
    f64 epoch; /* clock at bind */
    struct dev_work work;
    struct task_bytes {
        f64 used, moved;
        bool across;
    } * bytes;                          /* [ntask] for virtual devices (virtual.c) */
    f64 virtual_seconds, virtual_epoch; /* of the last step on virtual devices; of all steps before it */
};

static inline void trace_add(struct exec *x, struct queue *q, u32 task, f64 t0, f64 t1) {
    q->ring[q->nrecord++ % TRACE_RING] = (struct record){task, t0 - x->epoch, t1 - x->epoch};
}

/* own.c */
u32 exec_queue_of(const struct exec *x, const struct task *t);

void exec_buffer_name(const struct exec *x, u32 buf, char out[COMM_NAME]);

void exec_task_name(const struct exec *x, u32 task, char out[64]);
void exec_work(void *exec, i32 worker); /* run.c: the queue of a worker */

/* link.c */
void *link_data(const struct exec *x, const struct plan_message *m); /* the range, in the memory of the step that is summed */
/* True if the task uses the range of the message; with `writing` only if it writes the range. */
bool link_touches(const struct exec *x, u32 task, const struct plan_message *m, bool writing);
/* Progresses a message that has not completed: posts it on the first call, then tests it. *moved: its status changed. */
err link_move(struct exec *x, struct link *l, u64 serial, bool *moved);

/* virtual.c */
err virtual_bind(struct exec *x);

/* run.c */
void exec_item(struct exec *x, const struct item *it, void *const *mem); /* the tasks of an item */
bool exec_computed(const struct exec *x);                                /* no worker has a `compute` task left */

/* exchange.c */
err exchange_bind(struct exec *x, const u32 *place); /* place: of each task in its queue */
void exchange_begin(struct exec *x);
err exchange_end(struct exec *x);
err exchange_settle(struct exec *x); /* after it every rank has what some rank has written for readers (HOME_READERS) */
/* all_commit: all ranks run the updates of a step or none does, whatever fails. Returns true if this one may run. */
bool exchange_commits(struct exec *x);
/* For workers if x->direct: polls all messages once; false if another worker is doing so. waits: the caller has no other
 * work. */
bool exchange_turn(struct exec *x, bool waits);
void exchange_aim(struct exec *x); /* points messages to x->mem[1] */

/* residual.c; bind: after all messages of the plan are counted and those of this rank have links */
void residual_count(struct exec *x, const struct plan_message *m);
err residual_bind(struct exec *x);

/* async_gather.c */
bool gather_holds(const struct exec *x, const struct link *l, u32 task); /* true if the task of the next step waits for the
                                                                          * message */
err gather_begin(struct exec *x);
err gather_some(struct exec *x, bool *moved, u32 *left, const struct comm_message **waiting);

#endif
