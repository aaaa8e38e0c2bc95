/* time_slice.c - sequences cut in time: their slices are rows, shared out; where they meet, rounds until they fit.
 *
 *     device 0   slices 0..8    fwd lstm.0 chain 0/2 | head, loss | bwd lstm.0 chain 0/2 | merges, update of its share
 *     device 1   slices 8..16   fwd lstm.0 chain 1/2 | head, loss | bwd lstm.0 chain 1/2 | merges, update of its share
 *
 * The number of slices is the net's (its rows are slices) and decides the numbers; that of devices decides nothing but the time:
 * any of them give the same bits.  Not those of the serial run: slices are taken as fitting within a tolerance. */
#include "model/layer.h"
#include "step/netplan.h"
#include "plan/slice.h"
#include "step/strategy/strategy.h"

/* Slices are shared out in whole grains: to all devices, or, where these are more, to as many of each rank as there are grains
 * for.  Every rank has some, since every rank has to know how the chains went. */
static i32 devices(const struct planner *p, u32 *out) {
    const struct machine *m = p->machine;
    i32 n = 0, seen = 0;
    for (i32 d = 0; d < m->ndevice; d++) {
        seen = d > 0 && m->device[d].rank == m->device[d - 1].rank ? seen + 1 : 0;
        const i32 share = p->ngrain / m->nrank + (m->device[d].rank < p->ngrain % m->nrank);
        if (m->ndevice <= p->ngrain || seen < share) out[n++] = (u32)d;
    }
    return n;
}

static const char *applicable(struct planner *p) {
    if (!p->sliced) return planner_why(p, "the sequences of this net are not cut in time");
    if (p->wanted && p->wanted != p->q->slices)
        return planner_why(p, "%d slices are wanted, the rows of this net are %d slices", p->wanted, p->q->slices);
    for (i32 l = 0; l < p->net->nop && p->machine->nrank > 1; l++)
        if (op_crosses(&p->net->op[l]))
            return planner_why(p, "what is read both ways ends in the row of another slice: its slices stay on one rank");
    if (p->machine->nrank > p->ngrain)
        return planner_why(p, "%d slices are %d shares (grains) at most, for %d ranks", p->q->B, p->ngrain, p->machine->nrank);
    return NULL;
}

/* Shares so small that a rank would get no grain are made to be one, at the cost of the others. */
static void one_each(const struct planner *p, i32 n, const u32 *device, f64 *weight) {
    const i32 ranks = p->machine->nrank;
    bool small[MACHINE_DEVICES] = {0};
    for (i32 turn = 0; turn < ranks; turn++) { /* those that pay may become small themselves */
        f64 sum[MACHINE_DEVICES] = {0}, large = 0;
        i32 grains = p->ngrain;
        for (i32 i = 0; i < n; i++) sum[p->machine->device[device[i]].rank] += weight[i];
        for (i32 r = 0; r < ranks; r++) large += small[r] ? 0 : sum[r];
        for (i32 r = 0; r < ranks; r++) grains -= small[r];
        for (i32 i = 0; i < n; i++) {
            const i32 r = p->machine->device[device[i]].rank;
            weight[i] *= small[r] ? 1 / sum[r] : grains / large;
        }
        bool more = false;
        for (i32 r = 0; r < ranks; r++) {
            if (small[r] || sum[r] * grains / large >= 1) continue;
            small[r] = more = true;
        }
        if (!more) return;
    }
}

static err cut(struct planner *p, struct slice whole) {
    struct slice box[MACHINE_DEVICES];
    f64 weight[MACHINE_DEVICES];
    u32 device[MACHINE_DEVICES];
    i32 who[MACHINE_DEVICES], n = devices(p, device);
    for (i32 i = 0; i < n; i++) weight[i] = p->machine->device[device[i]].weight;
    if (p->machine->nrank > 1) one_each(p, n, device, weight);
    p->npiece = slice_cut_weight(whole, AXIS_B, p->grain, n, weight, box, who);
    for (i32 i = 0; i < p->npiece; i++) p->piece[i] = (struct piece){box[i], device[who[i]]};
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
