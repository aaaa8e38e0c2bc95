/* planner.h - a plan under construction: the functions that cuts and the plan parser call.
 *
 *     product --apply.c--> pieces, each with a group of devices --planner.c--> PREP FWD ZERO BWD DW tasks
 *     --merge.c--> MERGE tasks --planner.c--> NORM, UPDATE --deps, cost, check--> plan
 *
 * The uses of a task follow from its kind, op and ranges alone (task.c).  So a plan that is read from a text has the same uses,
 * and the same edges, as the plan that was printed.  One caller. */
#ifndef STRETTO_STEP_PLANNER_H
#define STRETTO_STEP_PLANNER_H

#include "plan/build.h"
#include "plan/tree.h"
#include "step/netplan.h"
#include "step/product.h"

struct strategy;

enum { PLAN_BUCKETS = 8, PLAN_PARTS = 4, ALL_STAGES = -1 };

#define FLOAT_FLOPS 200.0  /* flops in whose time element-wise work (exp, masks, losses) writes one activation */
#define BACKWARD_WORK 2.0  /* work of backward against forward */

/* Part of the work, and the group of devices that runs it: devices at + k * team.stride + j * layers.stride of planner.device. */
struct piece {
    struct slice box;
    i32 row; /* part of the rows */
    i32 at;
};

/* Devices of a group along one axis. */
struct axis_of {
    i32 n, stride;
};

/* A run of ops that no cut between devices separates: a layer, or several of which one shares the weights of another. */
struct pipeline_units {
    i32 n, first[NET_OPS + 1]; /* first op of each */
    f64 before[NET_OPS + 1];   /* work of the units before it, in flops */
    u16 of[NET_OPS];           /* the unit of an op */
};

/* The nodes of a piece (placed.c): forward of unit u and micro-batch m is u * micro + m, backward the same behind all forward. */
struct placed {
    i32 micro, nnode;
    struct slice *rows; /* [micro] */
    i32 *node;          /* [nnode] in the order in which they begin */
};

struct planner {
    const struct plan_request *q;
    const struct net *net;
    const struct machine *machine;
    struct product product; /* the cuts; n of each that is applied */
    bool chosen;            /* --parallel names the cuts; false: `auto` chooses */
    i32 grain, ngrain;
    struct piece piece[MACHINE_DEVICES];
    i32 npiece, nrow;            /* pieces; parts of the rows */
    struct axis_of team;         /* n > 1: n devices of a group divide the hidden units of layers that support it */
    struct axis_of layers;       /* n > 1: n devices of a group run different layers */
    bool split;                  /* devices along `team` are of several ranks (split.c) */
    bool staged;                 /* each device along `layers` has ops of its own, with their weights: */
    u16 stage[NET_OPS];          /* index along `layers` of the device that runs an op; placed: its unit */
    struct pipeline_units unit;  /* of a pipeline */
    struct placed *placed;       /* [npiece] a method of placement chose devices; NULL = stages of consecutive ops */
    u16 *on;                     /* [unit][ngrain] placed: index along `layers` of the device that runs it */
    i32 chunks;                  /* chunks of a sequence, if there is a wave */
    u32 device[MACHINE_DEVICES]; /* of the machine, in the order of the pieces' groups */
    u32 sharer[MACHINE_DEVICES]; /* devices that each update a range of theta */
    u16 sharer_stage[MACHINE_DEVICES], sharer_nth[MACHINE_DEVICES]; /* staged: of which stage, and which of its sharers */
    u16 sharer_unit[MACHINE_DEVICES], sharer_rest[MACHINE_DEVICES]; /* split: member of its team, and which of these */
    i32 ndevice, nsharer;
    bool sliced;   /* rows are time slices */
    bool early;    /* several ranks: gradients of an op are merged right after its backward, so that they can be sent */
    i32 nbucket;   /* ranges of theta that are divided one by one; several if `early` */
    char why[256]; /* why a cut does not apply */
    char fix[64];  /* what to type instead; "" = the nearest product that applies (plan.c) */
    struct builder build;
    struct plan *plan;                         /* NULL while asking whether cuts apply */
    struct step_buffers *at;                   /* of the plan */
    i64 bucket[NET_OPS + PLAN_PARTS + 2];      /* their bounds, increasing */
    i32 bucket_stage[NET_OPS + PLAN_PARTS + 2]; /* staged: whose devices merge and update it; else ALL_STAGES */
};

/* planner.c */
err planner_init(struct planner *p, const struct plan_request *q);
err planner_begin(struct planner *p, i32 ndevice);        /* the empty plan and its buffers, named by the product */
err planner_build(struct planner *p);                     /* all tasks of a training or forward plan; cuts were applied */
err planner_finish(struct planner *p, struct plan **out); /* deps, cost; the plan is the caller's */
void planner_drop(struct planner *p);

/* apply.c: cuts the work and assigns devices as a product says.  NULL, or a sentence why that is not possible; *cut: its cut. */
const char *planner_apply(struct planner *p, const struct product *cuts, i32 *cut);
/* plan.c: planner_init and planner_apply; *why as planner_apply returns it. */
err planner_try(struct planner *p, const struct plan_request *q, const struct product *cuts, bool chosen, const char **why,
                i32 *cut);
/* plan.c: the plan of one product, or E401 with the reason of the cut. */
err planner_plan(const struct plan_request *q, const struct product *cuts, bool chosen, struct plan **out);
struct plan_memory {
    i64 most;  /* bytes of the device that holds most */
    i32 over;  /* a device whose part exceeds its memory; -1 = none */
    i64 bytes; /* of that device */
};
err plan_memory(const struct plan *g, const struct machine *m, struct plan_memory *out);
const char *planner_why(struct planner *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The functions for strategy.cut. */
err planner_cut_rows(struct planner *p, i32 n);     /* divides each piece into n pieces with devices of their own */
err planner_share_units(struct planner *p, i32 n);  /* n devices of each group divide the hidden units of a layer */
err planner_share_layers(struct planner *p, i32 n); /* n devices of each group divide the layers, chunk by chunk */
err planner_share_stages(struct planner *p, i32 n); /* n devices of each group have layers of their own */
i32 planner_group(const struct planner *p);                                    /* devices of a piece */
u32 planner_member(const struct planner *p, const struct piece *c, i32 i);     /* device i of the piece's group */
u32 planner_device(const struct planner *p, const struct piece *c, i32 k, i32 j); /* member k of the team, j along the layers */
i32 planner_member_stage(const struct planner *p, i32 i);                      /* j of device i of a group */
bool planner_in_stage(const struct planner *p, i32 i, i32 stage); /* sharer i merges and updates ranges of this stage */
/* The stage of an op; ALL_STAGES where every device has the weights of all ops. */
static inline i32 planner_stage(const struct planner *p, i32 l) { return p->staged ? p->stage[l] : ALL_STAGES; }
static inline i32 piece_rank(const struct planner *p, const struct piece *c) {
    return p->machine->device[p->device[c->at]].rank;
}

/* task.c. Adds a task with its uses; t: kind, device, op, rows, steps (t1 = 0: all), member, nodes and range as the kind
 * needs. Ranges must lie inside the iteration range, rows at bounds of micro-batches: plan_check verifies. */
err planner_task(struct planner *p, struct task t);
/* piece.c: the FWD or BWD tasks of an op for a piece, one for each member of a team, or the piece's member of a chain.
 * t: kind, op and steps; j: device along the layers. */
err planner_op(struct planner *p, struct task t, const struct piece *c, i32 j);
/* Adds all steps of op l for a piece; nothing if a backward pass has nothing to compute. */
err planner_whole(struct planner *p, enum task_kind kind, const struct piece *c, i32 l);
err planner_zero(struct planner *p, const struct piece *c);
err planner_prepare(struct planner *p, i32 l); /* copies the weights of op l, or of all ops if l < 0 */
/* passes.c. */
err passes_op_by_op(struct planner *p);
err passes_piece_by_piece(struct planner *p);
bool op_is_loss(const struct op *op);
bool op_has_backward(const struct net *n, const struct op *op); /* it receives a gradient, and its weights or inputs need one */

/* split.c: the tasks of a split op, as planner_op and pipeline_zero. */
err split_op(struct planner *p, struct task t, const struct piece *c, i32 j);
err split_zero(struct planner *p, const struct piece *c, i32 l0, i32 l1, i32 j);

/* ops.c: ops whose units ranks can share, and do in this plan; the members of a team that share those of op l. */
bool op_splits(const struct net *n, const struct op *op);
bool planner_splits(const struct planner *p, i32 l);
i32 split_members(const struct planner *p, i32 l);
bool op_sends_dx(const struct net *n, const struct op *op); /* the op writes the gradient of its first input */
/* Weights and biases of member k of n, as ranges of theta. */
void split_weights(const struct op *op, i32 k, i32 n, struct plan_range out[2]);

/* ops.c: panels of hidden units that the members of a team can divide (1: a team is not possible). */
i32 op_panels(const struct op *op);
i32 net_rank(const struct net *n);    /* rank of the correction of initial states (--slice-rank): the largest of any op */

/* wave.c.  A wave is a run of consecutive ops that can compute chunks of steps, each on a device of its own. */
i32 wave_width(const struct net *n);                   /* recurrent ops of the widest wave; 0 or 1: there is no wave */
i32 wave_chunks(const struct planner *p, i32 devices); /* number of chunks with the least predicted time on n devices */
void wave_stages(struct planner *p);                   /* devices of ops, with their weights, where they are of several ranks */
err wave_tasks(struct planner *p);                     /* all FWD, ZERO and BWD tasks of a step */

/* stages.c, pipeline.c */
f64 pipeline_work(const struct net *n, i32 l, i32 rows); /* of op l in both directions, in flops */
void pipeline_units(const struct net *n, i32 rows, struct pipeline_units *out);
err pipeline_stages(struct planner *p);     /* sets p->unit, and p->stage of each op, for p->layers.n stages */
err pipeline_tasks(struct planner *p);      /* all FWD, ZERO and BWD tasks of a step */
/* Zeroes gradients of ops [l0,l1), up to those of the next op, for the rows of c, on device j along the layers. */
err pipeline_zero(struct planner *p, const struct piece *c, i32 l0, i32 l1, i32 j);
err pipeline_placed(struct planner *p);     /* the same, for nodes that placed_find has put on devices */
/* The rows of each micro-batch of a piece; returns their number. rows: [ngrain] */
i32 pipeline_rows(const struct planner *p, const struct piece *c, struct slice *rows);

/* placed.c */
err placed_find(struct planner *p);  /* sets p->placed and p->on; E103, E401 of place_run */
i32 placed_stage(const struct planner *p, i32 unit, i32 grain);  /* index along `layers` of the device of a unit and a grain */
u32 placed_device(const struct planner *p, i32 unit, i32 grain); /* of the machine, that runs a unit for a grain of the batch */

/* MERGE tasks over a range of theta of a stage, for pairs that one rank holds. */
err planner_merge_early(struct planner *p, i32 stage, i64 lo, i64 hi);
err planner_merge(struct planner *p);                       /* all MERGE tasks that planner_merge_early has not added */
/* ranges.c.  The range of a bucket whose gradients member k of a team sums: that of its panels, in whole norm blocks. */
void split_range(const struct planner *p, i64 from, i64 to, i32 k, i64 *lo, i64 *hi);
/* Part `part` of `parts` of a range of theta, cut at norm blocks. */
void planner_range(const struct plan *p, i64 from, i64 to, i32 part, i32 parts, i64 *lo, i64 *hi);
i64 planner_block(const struct planner *p, i64 at); /* the first norm block from `at` on, or the end of theta */
void planner_buckets(struct planner *p);
i32 planner_bucket(const struct planner *p, i32 i); /* bucket i in the order in which backward completes them */
/* First element of part k of netplan.parted, at a norm block; k = n: the end of the last part. */
i64 planner_part(const struct planner *p, i32 k);
/* The range of a bucket that sharer i merges and updates; it begins and ends at norm blocks. */
void planner_share(const struct planner *p, i32 bucket, i32 i, i64 *lo, i64 *hi);

err plan_tables(const struct net *n, struct plan *out);
/* Bytes of elements [lo,hi) of theta or a gradient that the rows of n micro-batches touch, at most. */
i64 plan_touched_bytes(const struct plan *p, i64 lo, i64 hi, i32 n);
/* Micro-batches whose sum vector `grad` (node_a or node_b) holds before a merge. */
static inline i32 merge_grains(const struct plan *p, const struct task *t, i32 grad) {
    return grad == t->node_a ? t->node_b - t->node_a : imin(2 * t->node_b - t->node_a, p->ngrain) - t->node_b;
}

#endif
