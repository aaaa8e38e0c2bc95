/* time_slice.c - sequences cut in time: their slices are rows, shared out; where they meet, rounds until they fit.
 *
 *     device 0   slices 0..8    fwd lstm.0 chain 0/2 | head, loss | bwd lstm.0 chain 0/2 | merges, update of its share
 *     device 1   slices 8..16   fwd lstm.0 chain 1/2 | head, loss | bwd lstm.0 chain 1/2 | merges, update of its share
 *
 * The number of slices is the net's (its rows are slices) and decides the numbers; that of devices decides nothing but the time:
 * any of them give the same bits.  Not those of the serial run: slices are taken as fitting within a tolerance. */
#include "plan/plan.h"
#include "plan/slice.h"
#include "plan/strategy/strategy.h"

/* Slices of one chain are run by devices that share memory, in whole grains. */
static i32 devices(const struct planner *p) { return imin(machine_together(p->machine), p->ngrain); }

static const char *applicable(struct planner *p) {
    if (!p->sliced) return planner_why(p, "the sequences of this net are not cut in time");
    if (p->wanted && p->wanted != p->q->slices)
        return planner_why(p, "%d slices are wanted, the rows of this net are %d slices", p->wanted, p->q->slices);
    return NULL;
}

static err cut(struct planner *p, struct slice whole) {
    struct slice box[MACHINE_DEVICES];
    f64 weight[MACHINE_DEVICES];
    i32 who[MACHINE_DEVICES], n = devices(p);
    for (i32 i = 0; i < n; i++) weight[i] = p->machine->device[i].weight;
    p->npiece = slice_cut_weight(whole, AXIS_B, p->grain, n, weight, box, who);
    for (i32 i = 0; i < p->npiece; i++) p->piece[i] = (struct piece){box[i], (u32)who[i]};
    return 0;
}

/* Piece and device were chosen together, by weight. */
static err place(struct planner *p) {
    (void)p;
    return 0;
}

const struct strategy strategy_time_slice = {
    .name = "time_slice",
    .help = "sequences cut into slices of time that run side by side, in rounds until they fit",
    .exact = false,
    .tol = 1e-5f,
    .counted = true,
    .slices = true,
    .applicable = applicable,
    .cut = cut,
    .place = place,
    .exchange = planner_merge,
};
