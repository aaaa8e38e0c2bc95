/* data.c - data parallelism, devices share the samples of a batch: the merge tree adds gradients, bit-identical to serial.
 *
 *     group 0   rows 0..224     fwd bwd | its own merges | merges of its share of theta | update of that share
 *     group 1   rows 224..448   fwd bwd | its own merges | merges of its share of theta | update of that share
 *
 * Every share is a whole number of micro-batches. For a net with time slices it divides the rows as `time` does. */
#include "step/strategy/strategy.h"

static i32 most(struct planner *p, i32 n) {
    const i32 useful = p->ngrain / p->nrow;
    if (p->ngrain < 2)
        planner_why(p, "a batch of %d is one micro-batch", p->q->B);
    else if (useful < imax(2, n))
        planner_why(p, "a batch of %d gives %d micro-batches of %d sample%s, so at most %d devices have work", p->q->B,
                    p->ngrain, p->grain, p->grain > 1 ? "s" : "", p->ngrain);
    return useful;
}

const struct strategy strategy_data = {
    .name = "data",
    .alias = "data_sync",
    .help = "data parallelism: each device has some rows of the batch",
    .exact = true,
    .counted = true,
    .parts = true,
    .most = most,
    .cut = planner_cut_rows,
};
