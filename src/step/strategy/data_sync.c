/* data_sync.c - rows of the batch are shared out, gradients merged along the fixed tree: the bits of serial.
 *
 *     device 0   rows 0..224     fwd bwd | its own merges | merges of its share of theta | update of that share
 *     device 1   rows 224..448   fwd bwd | its own merges | merges of its share of theta | update of that share
 */
#include "step/netplan.h"
#include "plan/slice.h"
#include "step/strategy/strategy.h"

/* Devices that get work: what was asked for, else all that have a grain to do.  A forward plan takes what it can use: the wish
 * was about training, and a single window to predict is no reason to refuse it. */
static i32 devices(const struct planner *p) {
    i32 n = p->wanted ? p->wanted : imin(p->machine->ndevice, p->ngrain);
    return p->q->train ? n : imin(n, p->ngrain);
}

static const char *applicable(struct planner *p) {
    i32 have = p->machine->ndevice;
    if (p->sliced) return planner_why(p, "rows are slices of time: they need each other (time_slice)");
    if (p->wanted > have) return planner_why(p, "%d devices are wanted, the machine has %d", p->wanted, have);
    if (p->wanted == 1 || !p->q->train) return NULL;
    if (have < 2) return planner_why(p, "the machine has one device");
    if (p->ngrain < 2) return planner_why(p, "a batch of %d has one grain", p->q->B);
    if (devices(p) > p->ngrain)
        return planner_why(p, "a batch of %d gives %d grains of %d rows, so at most %d devices have work", p->q->B, p->ngrain,
                           p->grain, p->ngrain);
    return NULL;
}

static err cut(struct planner *p, struct slice whole) {
    struct slice box[MACHINE_DEVICES];
    f64 weight[MACHINE_DEVICES];
    i32 who[MACHINE_DEVICES], n = devices(p);
    bool even = true;
    for (i32 i = 0; i < n; i++) {
        weight[i] = p->machine->device[i].weight;
        even = even && weight[i] == weight[0];
        who[i] = i;
    }
    p->npiece =
        even ? slice_cut_count(whole, AXIS_B, p->grain, n, box) : slice_cut_weight(whole, AXIS_B, p->grain, n, weight, box, who);
    for (i32 i = 0; i < p->npiece; i++) p->piece[i] = (struct piece){box[i], (u32)who[i]};
    return 0;
}

/* Piece and device were chosen together, by weight. */
static err place(struct planner *p) {
    (void)p;
    return 0;
}

const struct strategy strategy_data_sync = {
    .name = "data_sync",
    .help = "rows of the batch shared out, gradients merged along a fixed tree",
    .exact = true,
    .counted = true,
    .parts = true,
    .applicable = applicable,
    .cut = cut,
    .place = place,
    .exchange = planner_merge,
};
