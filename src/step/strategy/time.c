/* time.c - time parallelism, devices share the time slices of sequences: rounds repeat until the states at the cuts agree.
 *
 *     device 0   slices 0..8    fwd lstm.0 chain 0/2 | head, loss | bwd lstm.0 chain 0/2 | merges, update of its share
 *     device 1   slices 8..16   fwd lstm.0 chain 1/2 | head, loss | bwd lstm.0 chain 1/2 | merges, update of its share
 *
 * A row of the net is a slice. The number of slices changes the result; the number of devices changes only the speed, any number
 * gives the same bits. The result differs from the serial run: slices converge within a tolerance. */
#include "model/layer.h"
#include "step/strategy/strategy.h"

/* Devices share slices in whole micro-batches. Every rank has at least one, since it must know how the chains converged. */
static i32 most(struct planner *p, i32 n) {
    if (!p->sliced) {
        planner_why(p, "the sequences of this net are not cut in time");
        return 0;
    }
    if (n && n != p->q->slices && !p->q->any_slices) {
        planner_why(p, "%d slices are wanted, the rows of this net are %d slices", n, p->q->slices);
        return 0;
    }
    for (i32 l = 0; l < p->net->nop && p->machine->nrank > 1; l++)
        if (op_crosses(&p->net->op[l])) {
            planner_why(p, "what is read both ways ends in the row of another slice: its slices stay on one rank");
            return 0;
        }
    if (p->machine->nrank > p->ngrain) {
        planner_why(p, "%d slices are %d shares (micro-batches) at most, for %d ranks", p->q->B, p->ngrain, p->machine->nrank);
        return 0;
    }
    return imax(1, p->ngrain / p->nrow);
}

const struct strategy strategy_time = {
    .name = "time",
    .alias = "time_slice",
    .help = "time slices run in parallel and repeat until their states agree",
    .exact = false,
    .counted = true,
    .slices = true,
    .most = most,
    .cut = planner_cut_rows,
};
