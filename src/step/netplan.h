/* netplan.h - the plan of one training or forward step of a network.
 *
 *     net + machine + B --cuts (product.h)--> plan --deps--> edges --exec--> numbers
 *                                              |-> print / parse / draw / cost / compare
 *
 * A strategy cuts the rows, steps and layers of a step and says which task uses which range of which buffer in which mode; edges
 * follow from the uses (plan/deps.c).  Rows are cut at micro-batches only, and their gradients merge along one fixed dyadic
 * tree, so the bits of a step do not depend on the number of workers.
 *
 * team    (plan.h) FWD or BWD tasks over the same rows, for batches too small to be cut: a member computes some hidden units
 * pass    some rows of a device, forward and backward before its next ones (plan/rows.h), where its memory holds no more
 * chunk   a FWD or BWD task over some of the steps (layer.steps).  Chunks of an op keep their order, and two consecutive ops may
 *         be at different chunks at the same time (wave.c).
 * split   (split.c) where members of a team are of several ranks, FWD and BWD tasks of one step each; their units are messages
 * parts   on several ranks the op that backward reaches last has its weight gradient made in parts, by DW tasks (layer.dw): the
 *         first parts are sent while the last one is computed
 * chain   where rows are time slices (op_is_chain), the tasks of an op are a team whose members have rows of their own.  Together
 *         they run the op's recurrence in rounds (step/slices/solver.h).  The net sets the number of slices, the plan their
 *         devices. */
#ifndef STRETTO_STEP_NETPLAN_H
#define STRETTO_STEP_NETPLAN_H

#include "base/str.h"
#include "model/chain.h"
#include "model/net.h"
#include "plan/plan.h"
#include "topo/machine.h"

/* PREP copies of weights, FWD, ZERO gradient vectors of micro-batches, BWD, DW part node_a of node_b of a weight gradient that
 * BWD leaves out, MERGE vector node_b into node_a, NORM sums of squares, UPDATE.  Of a split layer: GATHER the units of all
 * members after a forward step, DGATHER their dz after a backward step, DX the gradient of the input, DW that of the weights. */
enum task_kind {
    TASK_FWD,
    TASK_BWD,
    TASK_MERGE,
    TASK_NORM,
    TASK_UPDATE,
    TASK_PREP,
    TASK_ZERO,
    TASK_DW,
    TASK_GATHER,
    TASK_DGATHER,
    TASK_DX,
    TASK_NKIND
};
enum pbuf_kind {
    PBUF_ACT,
    PBUF_DACT,
    PBUF_SAVED,
    PBUF_GRAD,
    PBUF_THETA,
    PBUF_STATE,
    PBUF_DERIVED,
    PBUF_NORM,
    PBUF_INPUT,
    PBUF_SCRATCH,
    PBUF_LOSS,
    PBUF_MARKS, /* marks of a gradient: the rows of tables that were touched */
    PBUF_UNITS, /* of a split layer: h of the units, as members send it; their dz */
    PBUF_DUNITS
};

/* A change of the number of slices, and of the rank of the correction of their initial states, after a step of a member of the
 * ensemble.  The planner then makes the tasks anew. */
struct plan_turn {
    i64 step;
    i32 refit, member, slices, rank; /* refit: in the training on all rows */
};
enum { TURNS_MOST = 32, SLICE_RANKS = 4 }; /* directions, of --slice-rank */
struct plan_turns {
    i32 n;
    struct plan_turn at[TURNS_MOST]; /* in the order of training */
};

/* Numbers of the plan's buffers, by what they hold; PBUF_NONE (plan/build.h) = there is none.  grad0, state0, marks0: the first
 * of several. */
struct step_buffers {
    u32 act[NET_BUFS], dact[NET_BUFS], saved[NET_OPS], scratch[NET_OPS]; /* of each buffer, of each op of the net */
    u32 units[NET_OPS], dunits[NET_OPS]; /* of each op that is split */
    u32 theta, derived, grad0, state0, marks0, norm, loss;
};

/* A plan that the search of `auto` has costed. */
struct plan_choice {
    char name[64];
    f64 seconds; /* predicted */
    i64 bytes;   /* of the fullest device */
};
enum { PLAN_CHOICES = 3 };

/* The network's part of a plan: plan->client. */
struct netplan {
    bool train;
    bool whole;                 /* plan_update_everywhere was called (--heal) */
    i32 slices;                 /* time slices per sequence; 0 = rows are whole sequences */
    i32 passes;                 /* of the device that takes its rows in most; 0 = the cuts order tasks themselves */
    struct chain_course course; /* how rounds over slices run */
    i32 forgets;                /* plan_request.forgets */
    struct plan_turns turns;
    i64 ntheta, nderived;
    i32 nstate;
    i64 norm_block; /* floats per partial sum of the norm: a function of ntheta alone */
    struct {
        i32 op, n; /* n DW tasks compute the weight gradient of the op; n = 0: its BWD task does */
    } parted;
    struct step_buffers at;
    struct plan_choice choice[PLAN_CHOICES]; /* the best ones, this plan first, where `auto` searched */
    i32 nchoice, tried;                      /* tried: plans that it costed */
    bool overfull;                           /* no plan of the search fits into the memory of its devices */
    i64 store_bytes; /* the part of peak_bytes that a second plan of the same model shares: theta, derived, state */
};
static inline struct netplan *netplan(const struct plan *p) { return p->client; }
/* True if ranks hold only the rows of their own tasks: with time slices, in training. */
static inline bool plan_holds_own_rows(const struct plan *p) { return netplan(p)->slices > 0 && netplan(p)->train; }
/* Rows [b0,b1) of the batch that the tasks of a rank run. */
void plan_rank_rows(const struct plan *p, i32 rank, i32 *b0, i32 *b1);

struct costs;
struct plan_request {
    const struct net *net;
    const struct machine *machine;
    i32 B;
    bool train;                 /* false: forward only */
    bool joint;                 /* forward only: layers on ranks as in training; else a pipeline has one stage */
    i32 nstate;                 /* optimiser state vectors */
    i32 grains;                 /* micro-batches per batch of whole windows, approximately; 0 = chosen by cost */
    const char *parallel;       /* "auto", "serial", "data", "data:2", "data:2*unit:2", "time:16" (product.h) */
    i32 microbatches;           /* of the rows of a pipeline; 0 = one per grain */
    bool all_forward;           /* a pipeline runs all forward tasks before any backward task (GPipe); else 1F1B */
    const char *place;          /* method of place/methods.def that places a pipeline's layers and micro-batches: "heft",
                                 * "random:7"; NULL = stages of consecutive layers */
    const struct plan *serial;  /* set by plan_make where there is a `place`: the plan whose costs the method takes */
    i32 passes;                 /* parts of the rows of a device that run one after another, each forward and backward, so that
                                 * it needs room for one of them (plan/rows.h); 0 = one.  No effect on bits */
    i32 slices;                 /* time slices per sequence, as in the net's rows; 0 = none */
    bool any_slices;            /* ignore the number of slices in `parallel` */
    struct chain_course course; /* tol 0 = by the precision of the net's cells */
    i32 forgets; /* steps after which its recurrences forget their initial state, for the cost model; 0 = unknown */
    const struct costs *costs; /* measured ones (costs.h); NULL = the cost model alone */
    bool dense;  /* no sparse rows for gradients of embeddings: for tests and measurements */
};

/* The layer of each op, from 0: an op with weights and the ops without that follow it; those before the first belong to it.
 * Returns the number of layers, at least 1. */
i32 net_layers(const struct net *n, i32 layer[NET_OPS]);

bool net_sliced(const struct net *n); /* some op's rows are time slices */
bool net_splits(const struct net *n); /* ranks can share the units of some op */
/* Has a device of the machine memory of its own (dev_type.driver)?  Its tasks are timed by the device, not by costs.h. */
bool machine_is_apart(const struct machine *m);
i32 plan_grain(i32 B, i32 count); /* rows per micro-batch, for about `count` micro-batches; 0 = as many as are cheap */

/* Number of time slices in an expression, before there is a net: N of "time:N", -1 for "time", 0 = none. */
enum { SLICES_MAX = 65536 };
err plan_slices(const char *parallel, i32 *slices);
/* The expression with this number of time slices; 0: without the cut `time`, "auto" if no cut is left. */
err plan_with_slices(const char *parallel, i32 slices, char *out, size_t size);

/* Have ranks layers of their own, whose weights the others lack between two steps? */
bool plan_splits_weights(const struct plan *p);
/* Makes every rank perform all updates, so that each holds the whole optimizer state. */
void plan_update_everywhere(struct plan *p);

err plan_make(const struct plan_request *q, struct plan **out);
void plan_print(const struct plan *p, const struct net *n, struct str *out);
err plan_parse(const char *text, const char *path, const struct plan_request *q, struct plan **out); /* E402 with line:column */
err plan_glance(const char *text, const char *path); /* checks the title of a plan, before there is a net; E402 */
/* Sets the costs of tasks, p->predicted and p->exchange_bytes, by measured costs where there are any (NULL = none). */
void plan_cost(struct plan *p, const struct net *n, const struct machine *m, const struct costs *costs);
/* NULL if every op, merge and update is done exactly once, in an order that gives the bits of the serial plan. Otherwise a
 * message, and the task that it is about (ntask = none). plan_make and plan_parse call it on their results. */
const char *plan_check(const struct plan *p, const struct net *n, u32 *task);

/* Sets the execution mode (enum cell_how) of the forward tasks of an op; no effect on layers with one mode. */
void plan_set_how(struct plan *p, const struct net *n, i32 op, u32 how);
bool op_has_how(const struct op *op);
const char *plan_walked(const struct plan *p); /* execution mode of the first task that has one: "fold", "ahead"; "-" = none */

/* One row per strategy of strategies.def, with costs or the reason why it does not apply. */
err plan_compare(const struct plan_request *q, struct str *out);
/* The same; n > 0: the rows of `time` are costed with the n requests, whose nets have time slices. */
err plan_compare_sliced(const struct plan_request *q, const struct plan_request *sliced, i32 n, struct str *out);
/* "fwd lstm.0 b[0,224)", "fwd lstm.0 b[0,1) unit 1/2" */
void plan_task_name(const struct plan *p, const struct net *n, u32 task, char out[64]);
void plan_buffer_name(const struct plan *p, const struct net *n, u32 buf, char *out, size_t size); /* "grad.3", "theta" */
static inline bool task_walks(const struct task *t) { return t->kind == TASK_FWD || t->kind == TASK_BWD; }
/* True if a task zeroes a part of a gradient only: that of a stage of a pipeline. */
static inline bool task_zeroes_part(const struct plan *p, const struct task *t) {
    return t->kind == TASK_ZERO && (t->lo > 0 || t->hi < netplan(p)->ntheta);
}
static inline bool task_is_chunk(const struct task *t, const struct net *n) {
    return task_walks(t) && t->op < n->nop && t->box.t1 - t->box.t0 < n->op[t->op].T;
}
/* "auto compared 9 plans by predicted time: data:4 3.1 ms (2.0 MiB a device), .."; nothing where there was no search. */
void plan_choices(const struct plan *p, struct str *out);
/* A hash of what every rank of a step must know alike: tasks, ranges, devices. Predictions and execution modes do not count. */
err plan_hash(const struct plan *p, const struct net *n, u64 *out);
void plan_draw_text(const struct plan *p, i32 width, struct str *out);

/* Parts of texts of plans, shared by the printer, the parser and tables. */
/* How a task is written: its kind, then those of these fields that its kind has, in this order. */
struct task_form {
    const char *name;
    bool op, pair, rows, part, steps, range, some; /* pair: micro-batches node_a, node_b; range: of theta; some: if not all */
};
extern const struct task_form task_forms[TASK_NKIND];
enum { TEXT_HOWS = CELL_SCAN + 1 };
extern const char *const text_hows[TEXT_HOWS];                                        /* names of enum cell_how */
void text_uses(const struct plan *p, const struct net *n, u32 task, struct str *out); /* " uses x[0,32):r ..." */
const char *byte_unit(i64 bytes, f64 *v); /* "MiB", and the number of them */
void text_bytes(i64 bytes, struct str *out); /* "1.3MiB" */

#endif
