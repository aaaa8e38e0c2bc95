/* unit.c - tensor parallelism, devices share the hidden units of recurrent layers: bit-identical to serial.
 *
 *     device 0   fwd lstm.0 unit 0/2 | fwd head | fwd loss | bwd .. | bwd lstm.0 unit 0/2 | norm, update of its share of theta
 *     device 1   fwd lstm.0 unit 1/2 | zero     |                     bwd lstm.0 unit 1/2 | norm, update of its share of theta
 *
 * A member of a team computes its panels of every step and waits for the others between steps, so a step must be worth more than
 * an exchange of flags: the cost model knows both.  Where rows can be cut (data), nobody waits; auto looks here only for more
 * devices than there are micro-batches. */
#include "model/layer.h"
#include "step/strategy/strategy.h"

/* Panels of the widest layer that can be shared; 0 = no layer can. */
static i32 widest(const struct net *n) {
    i32 most = 0;
    for (i32 l = 0; l < n->nop; l++)
        if (n->op[l].layer->team && n->op[l].spec.precision == PREC_F32) most = imax(most, op_panels(&n->op[l]));
    return most;
}

static i32 most(struct planner *p, i32 n) {
    const i32 panels = widest(p->net), useful = imin(panels, TEAM_MAX);
    const i32 members = n ? n : imin(useful, machine_together(p->machine));
    if (p->sliced) {
        planner_why(p, "a slice of time is run by one device: its layers cannot be shared by units");
        return 0;
    }
    if (panels == 0)
        planner_why(p, "no layer of this model can be shared by units");
    else if (n > TEAM_MAX)
        planner_why(p, "a team has at most %d members", TEAM_MAX);
    else if (panels < 2)
        planner_why(p, "the widest layer has one panel of %d units", LANES);
    else if (n > panels)
        planner_why(p, "the widest layer has %d panels of %d units, so at most %d devices have work", panels, LANES, panels);
    else if (!p->chosen && members * p->nrow <= p->ngrain) {
        planner_why(p, "a batch of %d has %d micro-batches, rows for %d devices", p->q->B, p->ngrain, members * p->nrow);
        return 1;
    }
    return useful;
}

const struct strategy strategy_unit = {
    .name = "unit",
    .alias = "unit_split",
    .help = "tensor parallelism: each device has some units of a layer",
    .exact = true,
    .counted = true,
    .together = true,
    .most = most,
    .cut = planner_share_units,
};
