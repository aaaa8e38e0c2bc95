/* simulate.h - runs the dealer on a virtual clock: the makespan of a policy on described devices, also if the dealer believes
 * wrong rates, and if devices slow down, refuse memory or fail.
 *
 * A piece costs its lane the overhead, then a transfer on the device's link (one at a time), then computation (at most `kernels`
 * pieces at once share the device's rate).  So lanes hide transfers behind computation, as streams do. */
#ifndef STRETTO_DEAL_SIMULATE_H
#define STRETTO_DEAL_SIMULATE_H

#include "base/str.h"
#include "deal/deal.h"
#include "topo/machine.h"

/* What a device truly does; the dealer gets struct deal_device. */
struct deal_truth {
    f64 rate, overhead_s;
    f64 bytes_per_s; /* 0 = no transfer */
    i64 memory;      /* pieces in flight with their buffers above it are refused; 0 = no limit */
    f64 slow_at, slow_by; /* from that second on the rate is divided by slow_by; 0 = never */
    f64 lost_at;          /* 0 = never */
    i32 kernels;          /* computations at once that reach the rate; 0 = 1 */
    f64 crowd;            /* each further lane in flight prolongs a computation by this fraction */
};

struct deal_case {
    i32 n;
    const struct deal_device *belief; /* [n] */
    const struct deal_truth *truth;   /* [n] */
    struct deal_work work;
    f64 noise; /* relative deviation of the seconds of a piece */
    u64 seed;
    i32 rounds; /* of iterative work; 0 = 1.  The result is that of the last one */
};

struct deal_result {
    f64 makespan, ideal; /* ideal: no overhead, no transfer, work divides anywhere */
    f64 balance;         /* max / mean of busy seconds */
    i64 pieces, refused;
    f64 moved;           /* cost that changed its device between rounds */
    struct deal_report first; /* of device 0 */
};

/* E831 if the work cannot be finished. */
err deal_simulate(const struct deal_case *c, const char *policy, struct deal_result *out);

/* Table 4.5 of the design note for a machine: makespan / ideal and, in brackets, max / mean busy of every policy, for partitions
 * of size i^-a.  E401 for more than DEAL_TABLE devices. */
enum { DEAL_TABLE = 1024 };
err deal_table(const struct machine *m, struct str *out);

/* Mean of `shuffles` cases of the recipe: 64 partitions of size i^-a in random order on devices of these rates, a piece costs
 * 2e-4 W / n. */
struct deal_cell {
    f64 makespan, balance; /* busiest device: ratio to ideal; ratio to the mean */
    f64 spread;            /* standard deviation of `makespan` over the shuffles */
};
err deal_recipe(const f64 *rate, i32 n, f64 a, i32 shuffles, const char *policy, struct deal_cell *out);

#endif
