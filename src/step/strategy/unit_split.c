/* unit_split.c - layers that can are shared by units, for a batch of too few rows to be cut: the bits of serial.
 *
 *     device 0   fwd lstm.0 unit 0/2 | fwd head | fwd loss | bwd .. | bwd lstm.0 unit 0/2 | norm, update of its share of theta
 *     device 1   fwd lstm.0 unit 1/2 | zero     |                     bwd lstm.0 unit 1/2 | norm, update of its share of theta
 *
 * A member of a team computes its panels of every step and waits for the others between steps, so a step must be worth more than
 * an exchange of flags: the cost model knows both.  Where rows can be shared out (data_sync), nobody waits; auto looks here only
 * for more devices than there are grains. */
#include "model/layer.h"
#include "step/netplan.h"
#include "step/strategy/strategy.h"

/* Panels of the widest layer that can be shared; 0 = no layer can. */
static i32 widest(const struct net *n) {
    i32 most = 0;
    for (i32 l = 0; l < n->nop; l++)
        if (n->op[l].layer->team && n->op[l].spec.precision == PREC_F32) most = imax(most, op_panels(&n->op[l]));
    return most;
}

/* A forward plan takes what it can use, as in data_sync. */
static i32 devices(const struct planner *p) {
    i32 useful = imin(imin(machine_together(p->machine), TEAM_MAX), widest(p->net));
    if (!p->wanted) return useful;
    return p->q->train ? p->wanted : imin(p->wanted, useful);
}

static const char *applicable(struct planner *p) {
    i32 have = machine_together(p->machine), panels = widest(p->net), n = devices(p);
    if (p->sliced) return planner_why(p, "rows are slices of time: they need each other (time_slice)");
    if (panels == 0) return planner_why(p, "no layer of this model can be shared by units");
    if (p->wanted > p->machine->ndevice)
        return planner_why(p, "%d devices are wanted, the machine has %d", p->wanted, p->machine->ndevice);
    if (p->wanted == 1) return NULL;
    if (p->machine->ndevice < 2) return planner_why(p, "the machine has one device");
    if (have < 2) return planner_why(p, "no two devices share memory");
    if (n > have) return planner_why(p, "%d devices are wanted, and %d share memory", n, have);
    if (n > TEAM_MAX) return planner_why(p, "a team has at most %d members", TEAM_MAX);
    if (panels < 2) return planner_why(p, "the widest layer has one panel of %d units", LANES);
    if (n > panels)
        return planner_why(p, "the widest layer has %d panels of %d units, so at most %d devices have work", panels, LANES,
                           panels);
    if (!p->chosen && n <= p->ngrain)
        return planner_why(p, "a batch of %d has %d grains, rows for %d devices", p->q->B, p->ngrain, n);
    return NULL;
}

static err place(struct planner *p) {
    p->piece[0].device = 0;
    p->nteam = devices(p);
    return 0;
}

const struct strategy strategy_unit_split = {
    .name = "unit_split",
    .help = "units of recurrent layers shared out, for batches of too few rows",
    .exact = true,
    .counted = true,
    .applicable = applicable,
    .cut = strategy_whole,
    .place = place,
    .exchange = planner_merge,
};
