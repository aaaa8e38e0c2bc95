/* inside.h - what the files of place/ share: a problem (graph and machine, indexed), a trial (devices and priorities under
 * search), the simulator and the parts that methods are made of. */
#ifndef STRETTO_PLACE_INSIDE_H
#define STRETTO_PLACE_INSIDE_H

#include "place/place.h"

enum {
    DENSE_DEVICES = 64,  /* links of so many devices are a table */
    LIST_MOST = 2000000, /* nodes x devices up to which list schedulers run */
    LIST_NODES = 10000,
    ETF_MOST = 200000000,   /* nodes x nodes x devices up to which greedy runs: all ready tasks on all devices at each step */
    ANNEAL_NODES = 1500,    /* nodes up to which annealing runs */
    HYBRID_NODES = 4000000, /* nodes x simulations of the search over replicas and stages */
    TRIAL_NAME = 48
};

struct arc {
    i32 node; /* the other end */
    i32 edge;
    i64 bytes;
};

struct sim;

struct problem {
    const struct place_graph *g;
    const struct place_machine *m;
    struct place_options o;
    i32 n, P, G, U;          /* nodes, devices, groups, units */
    f64 *work;               /* [n] */
    i32 *group, *unit;       /* [n] */
    i32 *succ0, *pred0;      /* [n + 1] where the arcs of a node begin */
    struct arc *succ, *pred; /* [nedge] */
    i32 *topo;               /* [n] nodes in an order that respects the edges */
    f64 *rank;               /* [n] upward rank with mean speeds and mean transfers */
    f64 *by_column;          /* [n] priorities: column after column, forward before backward, by rank inside a column */
    i32 *node0, *node_of;    /* [G + 1], [n] nodes of a group in topological order */
    i32 *unit0, *unit_group; /* [U + 1], [G] groups of a unit, by column; the unit of a group is that of its first node */
    i32 *held0, *held;       /* [U + 1], groups with a node of the unit */
    i64 *group_memory;       /* [G] */
    f64 *group_work;         /* [G] */
    i32 *column;             /* [G] of its first node */
    i32 ncolumn;
    i32 *by_speed; /* [P] devices, fastest first; of equal speed by number: ranks stay together */
    f64 speed_sum, speed_most;
    struct place_link mean;   /* between two different devices drawn at random; rate INFINITY for one device */
    struct place_link *dense; /* [P][P]; NULL for more devices than DENSE_DEVICES */
    bool limited;             /* a device has a limit of memory */
    struct sim *sim;
    struct place_bound bound; /* once it is known */
    i64 simulated;
    struct arena arena;
};

/* Devices and priorities that a method proposes, and what the simulator says of them. */
struct trial {
    i32 *device;   /* [G] */
    f64 *priority; /* [n] a free device takes the ready task of the largest one */
    f64 makespan;
    i64 over; /* most bytes that a device lacks, <= 0: it fits */
    char name[TRIAL_NAME];
};

struct place_method {
    const char *name;
    const char *help;
    bool number;   /* takes ":SEED" */
    bool baseline; /* ignores limits of memory */
    bool starts;   /* a start of `best` */
    /* Sets the trial.  false in *able: too large for this method. */
    err (*run)(struct problem *p, u64 seed, struct trial *t, bool *able);
};
const struct place_method *place_method_at(i32 index); /* NULL behind the last one */

/* --- problem.c */
err problem_new(const struct place_graph *g, const struct place_machine *m, const struct place_options *o, struct problem *p);
void problem_free(struct problem *p);
/* Sorts the n nodes or devices of `index` by falling key, stable; spare [n]. */
void sort_falling(i32 *index, i32 *spare, i32 n, const f64 *key);

/* --- trial.c */
err trial_new(struct problem *p, struct trial *t); /* in the problem's arena; as trial_reset leaves it */
void trial_reset(const struct problem *p, struct trial *t); /* no device is chosen yet; priority = rank */
void trial_copy(const struct problem *p, const struct trial *from, struct trial *to);
bool trial_better(const struct trial *a, const struct trial *b);                     /* fits, or lacks less; then shorter */
void trial_put_unit(const struct problem *p, struct trial *t, i32 unit, i32 device); /* all groups of the unit */
/* A whole number below n from a random word, each about as often. */
static inline i32 place_below(u32 word, i32 n) { return (i32)(((u64)word * (u64)n) >> 32); }

/* --- cost.c */
const struct place_link *problem_link(const struct place_machine *m, i32 a, i32 b); /* of two different devices */
f64 problem_transfer_slow(const struct problem *p, i32 a, i32 b, i64 bytes);

/* Seconds that `bytes` take from device a to device b. */
static inline f64 problem_transfer(const struct problem *p, i32 a, i32 b, i64 bytes) {
    if (a == b) return 0;
    if (!p->dense) return problem_transfer_slow(p, a, b, bytes);
    const struct place_link *l = &p->dense[a * p->P + b];
    return l->seconds + (f64)bytes / l->rate;
}
/* When the inputs of node x are on device d, without waits for links.  device [G] of each group, end [n] of each node. */
f64 problem_inputs(const struct problem *p, const i32 *device, const f64 *end, i32 x, i32 d);
static inline f64 problem_seconds(const struct problem *p, i32 node, i32 device) {
    return p->work[node] / p->m->device[device].speed;
}
f64 problem_sum_seconds(const struct problem *p, i32 unit, i32 home, i32 other); /* one copy more, without a ring */
f64 problem_sum(const struct problem *p, i32 unit, const i32 *holder, i32 n);    /* all copies, on n devices in any order */

/* --- simulate.c */
err sim_new(struct problem *p);
/* Runs the trial by priorities; sets makespan and over, and start and end of every node in the sim. */
void sim_trial(struct problem *p, struct trial *t);
/* Takes the better of two orders: the trial's priorities, or those of start [n], the times of the method's own schedule, which is
 * overwritten. */
void sim_trial_or(struct problem *p, struct trial *t, f64 *start);
/* Takes the better of upward ranks and column after column. */
void sim_trial_columns(struct problem *p, struct trial *t);
/* Runs a fixed order (struct placement); false if it cannot be followed. */
bool sim_order(struct problem *p, const i32 *device, const i32 *order, const i32 *first);
const f64 *sim_start(const struct problem *p); /* [n] of the last run */
const f64 *sim_end(const struct problem *p);
const i32 *sim_started(const struct problem *p); /* [n] nodes in order of their start */
const i64 *sim_peak(const struct problem *p);    /* [P] */
f64 sim_makespan(const struct problem *p);
i32 sim_copies(const struct problem *p);

/* --- bound.c */
err problem_bound(struct problem *p, struct place_bound *out);

/* --- list.c: list schedulers, with memory limits */
bool list_able(const struct problem *p); /* the problem is small enough for them */
err list_heft(struct problem *p, f64 affinity, struct trial *t);
err list_etf(struct problem *p, struct trial *t);

/* --- stages.c: contiguous ranges of units on a row of devices, by dynamic programming */
enum stages_aim {
    STAGES_FAST,  /* least seconds of the slowest stage */
    STAGES_FIT,   /* the same within the memory of each device */
    STAGES_MEMORY /* least bytes of the largest stage */
};
struct stages {
    enum stages_aim aim;
    i32 k;
    const i32 *row; /* [k] devices; a stage may be empty */
    f64 share;      /* part of the columns that the row computes */
    bool transfers; /* add to a stage the transfers that enter or leave it */
};
/* stage [U] = position in the row, and the value that was minimised: INFINITY if no ranges fit, stage is then as it was. */
err stages_cut(struct problem *p, const struct stages *s, i32 *stage, f64 *value);
i32 stages_devices(const struct problem *p, i64 memory); /* devices of `memory` bytes that ranges need; 0: a unit does not fit */

/* --- anneal.c */
err anneal_run(struct problem *p, u64 seed, struct trial *t, f64 bound);

/* --- place.c */
err placement_new(struct placement **out);
/* The devices of the groups, and the nodes in order of their start: simulated in that order.  Sets all but method. */
err placement_fill(struct problem *p, const i32 *device, const i32 *sequence, struct placement *out);

#endif
