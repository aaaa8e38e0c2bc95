/* unit.c - tensor parallelism, devices share the hidden units of recurrent layers: bit-identical to serial.
 *
 *     device 0   fwd lstm.0 unit 0/2 | fwd head | fwd loss | bwd .. | bwd lstm.0 unit 0/2 | norm, update of its share of theta
 *     device 1   fwd lstm.0 unit 1/2 | zero     |                     bwd lstm.0 unit 1/2 | norm, update of its share of theta
 *
 * A member of a team computes its panels of hidden units in every step and waits for the other members between two steps.  So a
 * step must take longer than an exchange of flags; the cost model predicts both.  Members of different ranks send each other the
 * units (split.c): a step must take longer than a message.  Data parallelism has no such waits: `auto` tries this strategy only
 * where there are more devices than micro-batches. */
#include "model/layer.h"
#include "step/strategy/strategy.h"

/* Panels of the widest layer that a team can compute; 0 = there is none. */
static i32 widest(const struct net *n) {
    i32 most = 0;
    for (i32 l = 0; l < n->nop; l++)
        if (n->op[l].layer->team && n->op[l].spec.precision == PREC_F32) most = imax(most, op_panels(&n->op[l]));
    return most;
}

static i32 most(struct planner *p, i32 n) {
    const i32 panels = widest(p->net), useful = imin(panels, TEAM_MAX);
    const i32 near = machine_together(p->machine), far = net_splits(p->net) ? p->machine->ndevice : near;
    const i32 members = n ? n : imin(useful, near > 1 ? near : far);
    if (p->sliced) {
        planner_why(p, "time slices and tensor parallelism do not combine: one device runs all hidden units of a slice");
        return 0;
    }
    if (panels == 0)
        planner_why(p, "no layer of this model supports tensor parallelism");
    else if (n > TEAM_MAX)
        planner_why(p, "a layer is divided among at most %d devices", TEAM_MAX);
    else if (panels < 2)
        planner_why(p, "the widest layer has one panel of %d hidden units, and a device computes whole panels", LANES);
    else if (n > panels)
        planner_why(p, "the widest layer has %d panels of %d hidden units, so at most %d devices have work", panels, LANES,
                    panels);
    else if (!p->chosen && members * p->nrow <= p->ngrain) {
        planner_why(p, "a batch of %d has %d micro-batches, so data parallelism has work for all %d devices", p->q->B, p->ngrain,
                    members * p->nrow);
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
