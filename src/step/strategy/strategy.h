/* strategy.h - the descriptor of a cut: one file, one const struct, one line in strategies.def.
 *
 *     --parallel data:2*unit:2            a product of cuts, outermost first (step/product.h)
 *
 *     data:2   rows 0..32         rows 32..64           2 pieces, each with its group of devices
 *     unit:2   dev 0 | dev 1      dev 2 | dev 3         the devices of a group share the layers of its piece
 *
 * A cut divides the work of every piece, and the devices of its group, into n parts.  It reads the net, the batch and the
 * machine, and no other cut.  Tasks, their uses and the edges follow from the pieces (planner.c). */
#ifndef STRETTO_STEP_STRATEGY_STRATEGY_H
#define STRETTO_STEP_STRATEGY_STRATEGY_H

#include "step/planner.h"

struct strategy {
    const char *name, *help;
    const char *alias; /* the older name, which is read too; NULL = none */
    bool exact;        /* the bits of `serial` */
    bool counted;      /* takes a number of parts: "data:4" */
    bool slices;       /* .. the number is of time slices, and the parts are all devices that the other cuts leave */
    bool together;     /* its parts share memory: devices of one rank */
    bool parts;        /* on several ranks the last weight gradient is made in parts */
    /* The number of parts that have work, at most n; n = 0: as many as are useful.  Where it is less than n, or less than 2,
     * planner_why says why.  0 = this net cannot be cut this way. */
    i32 (*most)(struct planner *p, i32 n);
    err (*cut)(struct planner *p, i32 n); /* planner_cut_rows, planner_share_units, ..; NULL = no cut: stands alone */
    /* Gives each op to one device along the layers, with its weights, where these are of several ranks; NULL = never. */
    void (*stages)(struct planner *p);
    err (*tasks)(struct planner *p);      /* all FWD, ZERO and BWD tasks in an order of its own; NULL = piece by piece */
};

const struct strategy *strategy_find(const char *name); /* by name or alias; NULL = there is none */
i32 strategy_count(void);
const struct strategy *strategy_at(i32 i);

#endif
