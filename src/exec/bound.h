/* bound.h - a plan bound to memory and workers: inside of struct exec, for the files of this folder only.
 *
 *     worker 0   item item item ...      one lane per worker: its devices' tasks in plan order
 *     worker 1   item item ...           before an item: wait until other lanes have done so many items of this step
 *
 * Each worker counts the items it has done in a line of its own; nobody else writes there.  A dependency is "lane w has done
 * n items of this step", so an item waits for at most one number per other lane, whatever the number of edges in the plan. */
#ifndef STRETTO_EXEC_BOUND_H
#define STRETTO_EXEC_BOUND_H

#include <stdatomic.h>

#include "base/wakeup.h"
#include "comm/comm.h"
#include "exec/chain.h"
#include "exec/effort.h"
#include "exec/exec.h"
#include "exec/pace.h"
#include "exec/touched.h"
#include "plan/exchange.h"

struct wait {
    u32 lane, count;
};

struct item {
    u32 task;
    u32 wait0, nwait;
    u32 nlink, *link; /* messages that must have come, or gone */
    u32 nbefore, *before; /* the same of the step before (trail.c) */
    u32 run; /* merges of one range that are done together, block by block: this one and run - 1 after it */
    bool sends; /* a message waits for it */
};

/* A message that this rank sends or awaits. */
struct link {
    struct plan_message plan;
    struct comm_message m;
    bool trails;        /* goes while the next step is computed */
    unsigned char *packed; /* lines on their way (touched.h), NULL = the range goes as it is */
    struct wait *ready; /* [nready] what lanes must have done before */
    u32 nready;
    _Alignas(64) _Atomic u64 arrived; /* the step in which it was done last */
};

/* Messages that a worker has handed to the agent in the middle of a task, and waits for. */
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

struct lane {
    _Alignas(64) _Atomic u64 done; /* step << 32 | items done */
    _Atomic bool waits;            /* for another lane, or a message; not set for short waits */
    _Alignas(64) struct item *item;
    u32 n, ncompute; /* ncompute: up to the last forward or backward task */
    u32 nrecord;         /* records written so far, modulo nothing */
    struct record *ring; /* [TRACE_RING], NULL = off */
    f64 busy, debt;      /* seconds at rows in this step; of sleep that is owed (effort.h) */
};
enum { UPDATE_OPEN, UPDATE_MADE, UPDATE_VOID };
enum { TRACE_RING = 4096, MERGE_BLOCK = 4096 };

/* Loss and gradient norm of the step, from the partial sums in their fixed order: the same number on every worker. */
struct totals {
    f64 loss, norm;
    bool finite;
};

/* What merges between ranks, the norm and the update work on: the gradient of this step, or of the one before (late.c). */
struct sums {
    struct grads of;
    f64 *loss;
    f32 loss_scale;
    struct optim_hyper hyper;
    f64 clip;
    bool accumulate;
    u64 serial; /* of the step */
};

struct exec {
    const struct plan *plan;
    const struct net *net;
    const struct kern *kern;
    struct pool *pool;
    struct store *store;
    struct arena arena; /* lanes, items, waits */
    char *block;        /* all buffers but gradients */
    f32 *grads;         /* of grain k at grads + k * ntheta; what ranks send each other most (comm_alloc) */
    i64 block_bytes, grad_bytes;
    struct run run;
    f32 *buf[NET_BUFS], *dbuf[NET_BUFS], *saved[NET_OPS], *scratch[NET_OPS];
    f32 **input;            /* [nbuf] where only this rank's rows are here: its copies of inputs; NULL = taken as they are */
    f64 *norm; /* [blocks] partial sums of squares */
    i64 nnorm;
    struct comm *comm;  /* NULL = all devices of the plan are ours */
    u32 device0;        /* the first that is */
    struct link *link;  /* [nlink] */
    u32 nlink;
    struct round round;    /* what a worker waits for */
    bool *pair_waits;      /* [ranks][2] for a turn of the agent: a message to or from that rank is not ready yet */
    _Atomic bool broken;   /* the agent failed: nobody waits any more */
    struct err_record *why; /* where broken */
    bool made;             /* though broken: the step is done */
    _Atomic u32 update;    /* plan->whole: of this step, UPDATE_OPEN until one of the two is certain */
    bool direct;           /* messages are under way, and there is no agent (exchange_turn) */
    _Atomic bool turning;  /* somebody looks at them */
    f64 usual;             /* seconds of a step, smoothed: what a deadline is a multiple of */
    struct wakeup bell; /* rung when an item is done, or a message is, or nothing will be any more */
    struct lane *lane;
    u32 nlane;
    u32 nlist; /* lanes, and behind them the late list where there is one (late.c) */
    bool alone; /* member 0 of a team does the whole op, the others nothing: fewer lanes than devices, or pace says so */
    bool apart; /* alone, it does the members' rows of chains one after another (exec_apart) */
    bool rounds; /* chains are shared with other ranks */
    bool teams; /* the plan has teams, and a lane for each member */
    struct pace pace;
    struct effort effort; /* of steps with other ranks */
    struct wait *wait;
    u64 serial; /* number of this step, from 1 */
    const struct exec_step *step;
    struct sums sums;
    enum exec_pipe pipe;
    bool trailing;     /* links that trail are under way, of step trail_serial */
    u64 trail_serial;
    struct late *late; /* NULL unless PIPE_DELAY1 */
    struct chain_solver *chain[NET_OPS][2]; /* forward and backward of ops whose rows are slices of time; NULL = none */
    bool skip[NET_OPS]; /* loss ops whose target is not bound (forward plans) */
    bool pending;       /* gradient of the step before is kept: this one adds to it */
    struct exec_sent sent;
    bool trace;
    f64 epoch; /* clock at bind */
};

struct totals exec_totals(const struct exec *x);
static inline struct grads exec_grads(const struct exec *x) { return (struct grads){x->run.grad, x->run.touched}; }

/* exchange.c: tasks of this rank; messages of a step. */
bool exec_is_ours(const struct exec *x, const struct task *t);
u32 exec_lane_of(const struct exec *x, const struct task *t);
/* The first of those who do the task together in this process, and how many they are. */
const struct task *exec_team(const struct exec *x, const struct task *t, i32 *n);
err exchange_bind(struct exec *x, const u32 *place); /* place: of each task in its lane */
void exchange_begin(struct exec *x);
/* A link that is not done: sent or awaited, if it is not yet, and looked at; *moved when something happened to it. */
err exchange_move(struct exec *x, struct link *l, u64 serial, bool *moved);
bool exchange_round(void *exec, struct comm_message *m, i32 n); /* a chain_pass */
err exchange_end(struct exec *x);
/* plan->whole: all updates of a step are made or none, whatever fails.  True: this one is to be made. */
bool exchange_updates(struct exec *x);
/* For workers where x->direct: a look at all messages, or false: somebody else is at it.  waits: there is nothing else to do. */
bool exchange_turn(struct exec *x, bool waits);
void exchange_aim(struct exec *x); /* messages are of what x->sums says now */

/* trail.c: weights that come while the next step is computed. */
bool trail_has(const struct exec *x, const struct plan_message *m);
bool trail_holds(const struct exec *x, const struct link *l, u32 task); /* it is waited for by the task of the step after */
err trail_begin(struct exec *x);
err trail_some(struct exec *x, bool *moved, u32 *left, const struct comm_message **waiting);
bool exchange_touches(const struct exec *x, u32 task, const struct plan_message *m, bool writing);

/* late.c: delay1. */
err late_bind(struct exec *x);
void late_free(struct exec *x);
i64 late_bytes(const struct exec *x);
bool late_has(const struct exec *x, const struct task *t); /* it is done in the step that follows */
f32 *late_theta(const struct exec *x);                     /* where the update writes; NULL = into the weights */
u32 late_some(struct exec *x, bool *moved); /* does what can be done now; the number of items that are left */
void late_begin(struct exec *x);
err late_end(struct exec *x, struct exec_result *out);
struct exec_result exec_result_of(const struct totals *t);
void exec_sums(struct exec *x, const struct exec_step *s); /* x->sums is of this step */

void exec_task(struct exec *x, const struct task *t);              /* task.c: run one task */
f64 exec_waited(const struct exec *x, const struct task *t);       /* seconds inside of it for others, of the last time */
void exec_merges(struct exec *x, struct grads g, const struct item *first, u32 n); /* merges of one range together */
void exec_work(void *exec, i32 worker);                            /* sched.c: what a worker does in a step */
void trace_add(struct exec *x, struct lane *l, u32 task, f64 t0, f64 t1);

#endif
