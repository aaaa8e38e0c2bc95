/* place.h - places the tasks of a step on devices: a portfolio of methods, all judged by one event simulator.
 *
 *     place_lstm / own arrays -> place_graph --.
 *                                              |--place_run("best")--> placement: device and order of every node, makespan, bound
 *     place_machine_of / own numbers -> machine'
 *
 * The simulator imitates the runtime: a free device takes the ready task that is next in its order, and waits for it where the
 * plan waits.  Methods that only choose devices leave the order to priorities: a free device then takes the ready task of the
 * largest upward rank (Topcuoglu et al., HEFT, 2002), and the order that results becomes the order of the placement.  Transfers
 * overlap computation; a link carries one transfer at a time unless place_options.no_contention is set.
 *
 * Units: seconds, bytes, bytes per second.  A device of speed s runs `work` in work / s seconds.  Everything is deterministic:
 * the same inputs give the same placement.
 *
 * Errors: E103 unknown method or bad number; E401 invalid graph or machine, or a model that does not fit; E601 no memory. */
#ifndef STRETTO_PLACE_PLACE_H
#define STRETTO_PLACE_PLACE_H

#include "base/arena.h"
#include "base/str.h"
#include "topo/machine.h"

/* --- what is placed --- */

enum place_kind { PLACE_FORWARD, PLACE_BACKWARD, PLACE_HEAD };

struct place_node {
    f64 work;   /* seconds on a device of speed 1, >= 0 */
    i32 unit;   /* what has weights: a layer; devices that run nodes of one unit hold a copy of its weights each */
    i32 group;  /* nodes of one group are on one device: forward and its backward */
    i32 column; /* chunk of time or micro-batch, from 0 on */
    u8 kind;    /* enum place_kind */
    i64 memory; /* bytes kept from the start of the node to the end of the last node of its group */
};

struct place_edge {
    i32 from, to;
    i64 bytes; /* sent if the two are on different devices */
};

/* A unit on j devices holds j copies of its weights, whose gradients are summed when its last node has ended.  Sums of several
 * units overlap, and overlap tasks; the step ends with the last of them.  Without a ring, j - 1 devices send to the first one,
 * one after the other: each takes copy_seconds plus the transfer of copy_bytes.  With a ring, all take copy_seconds plus 2 (j -
 * 1) transfers of copy_bytes / j over the slowest link. */
struct place_unit {
    i64 memory; /* bytes per copy: weights, gradient, optimizer */
    f64 copy_seconds;
    i64 copy_bytes;
};

/* Groups are numbered 0..ngroup-1, units 0..nunit-1 from the input upwards. */
struct place_graph {
    i32 nnode, nedge, nunit, ngroup;
    struct place_node *node;
    struct place_edge *edge;
    struct place_unit *unit;
    bool ring;          /* how gradients of copies are summed */
    struct arena arena; /* of place_lstm; empty where the caller owns the arrays */
};

/* A layer of an LSTM for one column. */
struct place_layer {
    f64 forward, backward;  /* seconds; backward 0 in all layers: no backward pass */
    i64 activation, state;  /* bytes to the layer above; to the next chunk of time */
    i64 saved;              /* bytes kept for backward */
    struct place_unit unit; /* its weights */
};

struct place_lstm {
    i32 layers, columns;
    bool time; /* columns are chunks of time: F(l,c-1) -> F(l,c); else micro-batches, which are independent */
    const struct place_layer *layer; /* [layers] */
    bool ring;
    const struct place_layer *head; /* one node per column between forward and backward: its `forward`; NULL = none */
};

/* Nodes of layer l and column c of L x C: forward l C + c; head L C + c; backward L C + (C if there is a head) + l C + c.  unit =
 * layer, the head is the last unit.  The caller frees the graph. */
err place_lstm(const struct place_lstm *spec, struct place_graph *out);
void place_graph_free(struct place_graph *g);

/* --- where --- */

struct place_link {
    f64 seconds; /* latency */
    f64 rate;    /* bytes per second, > 0; INFINITY is allowed */
};

struct place_device {
    f64 speed;  /* > 0 */
    i64 memory; /* bytes; 0 = no limit */
    i32 rank;   /* 0..nrank-1 */
};

/* A link joins two devices of one rank (`inside`), or two ranks, whose devices share it; one for each direction. */
struct place_machine {
    i32 ndevice, nrank;
    struct place_device *device;
    struct place_link inside, between;
    const struct place_link *pair; /* [nrank][nrank] from, to: replaces `between`; NULL = all alike */
    struct arena arena;            /* of the functions below; empty where the caller owns the arrays */
};

/* n devices of speed 1 without a limit of memory, each a rank of its own; the caller may change it. */
err place_machine_equal(i32 n, struct place_link between, struct place_machine *out);
/* The devices of a machine text.  gflops: rate of the device on which node works were measured, that is, of speed 1. */
err place_machine_of(const struct machine *m, f64 gflops, struct place_machine *out);
void place_machine_free(struct place_machine *m);

/* --- the result --- */

struct place_options {
    bool no_contention; /* transfers do not wait for each other */
    i32 iterations;     /* simulations of one annealing run; 0 = chosen from the number of nodes; < 0: no annealing */
};

struct placement {
    char method[96]; /* what made it: "best: heft, annealed" */
    i32 nnode, ndevice;
    i32 *device;            /* [nnode] */
    i32 *order;             /* [nnode] nodes of device 0 in the order in which it runs them, then those of device 1, .. */
    i32 *first;             /* [ndevice + 1] where the nodes of a device begin in `order` */
    f64 *start, *end;       /* [nnode] predicted: the spans of a Gantt chart */
    f64 *busy;              /* [ndevice] seconds in tasks */
    i64 *peak;              /* [ndevice] bytes */
    i32 copies;             /* copies of weights beyond the first ones */
    f64 makespan;           /* predicted seconds until the last task and the last sum end */
    f64 bound;              /* no placement is faster */
    const char *bound_name; /* "critical path", "work", "head-body-tail" */
    bool fits;              /* false (random methods only): over_device needs over_bytes more than it has */
    i32 over_device;
    i64 over_bytes;
    i64 simulated; /* simulations of the search */
    f64 seconds;   /* duration of the search */
    struct arena arena;
};

/* Places g on m by a method of methods.def, with a random seed where it takes one: "blocks", "random:7", "best".  The caller
 * frees the result with placement_free.  All methods but the random ones fail with E401 if the model does not fit: which device
 * lacks how much, and what would fit. */
err place_run(const char *method, const struct place_graph *g, const struct place_machine *m, const struct place_options *o,
              struct placement **out);
void placement_free(struct placement *p);

/* Simulates a placement again, in its order, on another graph (measured works) or machine of the same sizes: sets start, end,
 * busy, peak, makespan, bound and fits.  E401 if order and edges contradict each other. */
err place_judge(const struct place_graph *g, const struct place_machine *m, const struct place_options *o, struct placement *p);

/* The fastest placement there is, by branch and bound over (task, device); transfers without contention, no limits of memory.
 * *solved: false if `most` steps of the search did not suffice; the placement is then the best one seen.  Up to 64 nodes. */
err place_exact(const struct place_graph *g, const struct place_machine *m, i64 most, struct placement **out, bool *solved);

struct place_bound {
    f64 seconds;
    const char *name;
};
err place_lower_bound(const struct place_graph *g, const struct place_machine *m, struct place_bound *out);

/* The methods of methods.def in order; NULL behind the last one. */
const char *place_method_name(i32 index);
const char *place_method_help(i32 index);

/* A table for people, one row per placement: makespan, saving against the first row, gap to the bound, devices, copies. */
void place_print(const struct placement *const *p, i32 n, struct str *out);

#endif
