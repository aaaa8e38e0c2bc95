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
        planner_why(p, "this network has no time slices");
        return 0;
    }
    if (n && n != p->q->slices && !p->q->any_slices) {
        planner_why(p, "%d time slices are requested, this network has %d", n, p->q->slices);
        return 0;
    }
    for (i32 l = 0; l < p->net->nop && p->machine->nrank > 1; l++)
        if (op_crosses(&p->net->op[l])) {
            planner_why(p, "the directions of a bidirectional layer end in different slices, so all slices must be on one rank");
            return 0;
        }
    if (p->machine->nrank > p->ngrain) {
        planner_why(p, "%d slices form %d micro-batches, fewer than the %d ranks", p->q->B, p->ngrain, p->machine->nrank);
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
