/* planner.h - a plan under construction: what strategies and the plan parser call.
 *
 *     cut --> pieces --place--> device of each --(planner)--> PREP FWD ZERO BWD DW tasks --exchange--> MERGE tasks
 * --(planner)--> NORM
 *     UPDATE --deps, cost, check--> plan
 *
 * A task is added with its uses, which follow from its kind, op and ranges alone (task.c): so a plan read from a text has the
 * same uses as one that was made, and nobody writes an edge.  One caller. */
#ifndef STRETTO_PLAN_PLANNER_H
#define STRETTO_PLAN_PLANNER_H

#include "plan/build.h"
#include "step/netplan.h"

struct strategy;

enum { PLAN_BUCKETS = 8, PLAN_PARTS = 4 };

struct piece {
    struct slice box;
    u32 device;
};

struct planner {
    const struct plan_request *q;
    const struct net *net;
    const struct machine *machine;
    i32 wanted;  /* N of "data_sync:N", 0 = as many as are useful */
    bool chosen; /* the wish names the strategy; false: auto looks for one */
    i32 grain, ngrain;
    struct piece piece[MACHINE_DEVICES];
    i32 npiece;
    bool sliced;       /* rows are slices of time */
    bool early;        /* several ranks: gradients of an op are merged right after its backward, so that they can be sent */
    i32 nbucket;       /* ranges of theta that are shared out one by one: more than one where `early` */
    i32 nteam;         /* > 1: ops whose layer can be shared by units go to the first nteam devices (one piece, one process) */
    i32 nwave, chunks; /* nwave > 1: layers go to the first nwave devices, chunk by chunk of time (one piece, one process) */
    char why[256];     /* why the strategy does not apply */
    struct builder build;
    struct plan *plan;                                                   /* NULL while asking whether a strategy applies */
    u32 act[NET_BUFS], dact[NET_BUFS], saved[NET_OPS], scratch[NET_OPS]; /* pbuf of each, NONE = it has none */
    u32 theta, derived, grad0, state0, norm, loss;
    i64 bucket[PLAN_BUCKETS + PLAN_PARTS + 1]; /* where they begin and end, rising */
};

/* planner.c */
err planner_init(struct planner *p, const struct plan_request *q);
/* Makes the empty plan and its buffers; called as `name` says, which may have a number behind the strategy's. */
err planner_begin(struct planner *p, const char *name, const struct strategy *s, i32 ndevice);
err planner_build(struct planner *p, const struct strategy *s); /* all tasks of a training or forward plan */
err planner_finish(struct planner *p, struct plan **out);       /* deps, cost; the plan is the caller's */
void planner_drop(struct planner *p);
const char *planner_why(struct planner *p, const char *fmt, ...) PRINTF_LIKE(2, 3); /* for strategy.applicable */

/* task.c: each adds one task with its uses.  Ranges must be inside the box, rows at grain borders: the plan's check looks. */
err task_prep(struct planner *p, u32 device, i32 op);
struct work {
    i32 op, b0, b1, t0, t1; /* t1 = 0: all steps */
    i32 member, members;    /* members 0: alone */
};
err task_fwd(struct planner *p, u32 device, struct work w);
err task_zero(struct planner *p, u32 device, i32 b0, i32 b1);
err task_bwd(struct planner *p, u32 device, struct work w);
err task_dw(struct planner *p, u32 device, i32 b0, i32 b1, i32 part); /* of plan.parted */
err task_merge(struct planner *p, u32 device, i32 a, i32 b, i64 lo, i64 hi);
err task_norm(struct planner *p, u32 device, i64 lo, i64 hi);
err task_update(struct planner *p, u32 device, i64 lo, i64 hi);
bool op_is_loss(const struct op *op);
bool op_has_backward(const struct net *n, const struct op *op); /* a gradient comes in, and somebody wants what it makes of it */

/* planner.c: devices that share ranges of theta, and how many panels of units a team can share of an op (1: it must be alone). */
static inline bool planner_one_piece(const struct planner *p) { return p->nteam > 1 || p->nwave > 1; }
i32 planner_sharers(const struct planner *p);
u32 planner_sharer(const struct planner *p, i32 i);
i32 op_panels(const struct op *op);
bool net_sliced(const struct net *n); /* some op's rows are slices of time */
i32 net_rank(const struct net *n);    /* of the correction of their begins: the largest of any op */

/* wave.c: runs of ops that can be walked chunk by chunk, each on a device of its own; how many can be at work at once in the best
 * of them (0 or 1: no wave), the number of chunks that is good for n devices, and the tasks of a step. */
i32 wave_width(const struct net *n);
i32 wave_chunks(const struct planner *p, i32 devices);
err wave_tasks(struct planner *p);

/* merge.c: the pairs of the fixed tree over n grains, in order; pair i adds grain vector b to a.  Returns the number, n - 1. */
struct merge_pair {
    i32 a, b, end; /* a holds the sum of grains [a,b), b that of [b,end) */
    i32 level;
};
i32 merge_pairs(i32 n, struct merge_pair *out);
err planner_merge(struct planner *p); /* MERGE tasks for the pieces: what is left of them where `early`, else all */
err planner_merge_early(struct planner *p, i64 lo, i64 hi); /* of a range of theta, the pairs that a rank holds */
void planner_buckets(struct planner *p);
i32 planner_bucket(const struct planner *p, i32 i); /* the i-th in the order in which backward is done with them */
/* Where part k of plan.parted begins in theta, at a block of the norm, and where the last one ends. */
i64 planner_part(const struct planner *p, i32 k);
/* What sharer i has of a bucket: a range that begins and ends at norm blocks. */
void planner_share(const struct planner *p, i32 bucket, i32 i, i64 *lo, i64 *hi);

err plan_tables(const struct net *n, struct plan *out); /* table.c */
/* Bytes of elements [lo,hi) of theta, or of a vector that sums grains, that rows of so many grains touch at most. */
i64 plan_touched_bytes(const struct plan *p, i64 lo, i64 hi, i32 grains);
/* Grains whose sum vector `grad` (node_a or node_b) holds before a merge. */
static inline i32 merge_grains(const struct plan *p, const struct task *t, i32 grad) {
    return grad == t->node_a ? t->node_b - t->node_a : imin(2 * t->node_b - t->node_a, p->ngrain) - t->node_b;
}

void plan_cost(struct plan *p, const struct net *n, const struct machine *m); /* cost.c: cost of tasks, predicted, exchange */
/* Of all that the op's backward pass computes for these rows, what the task does: 1 but where the op is plan.parted. */
f64 plan_part_of_backward(const struct plan *p, const struct net *n, const struct task *t);

#endif
