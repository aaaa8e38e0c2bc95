/* pipeline.c - pipeline parallelism: each device has some layers and their weights, and passes micro-batches on; bit-identical to
 * serial.
 *
 *     device 0   fwd 0 1 2 3 ..                bwd . . 0 1 2 3 | norm, update of its layers
 *     device 1         fwd 0 bwd 0 fwd 1 bwd 1 ..              | norm, update of its layers
 *
 * Devices may be of different ranks: activations and their gradients become messages, and a rank holds gradients, optimizer state
 * and activations of its own layers alone.  With M micro-batches P devices are idle for (P - 1) / (M + P - 1) of the time, where
 * their layers take equally long.  GPipe: Huang et al., NeurIPS 2019; 1F1B: Narayanan et al., PipeDream, SOSP 2019. */
#include <stdio.h>

#include "step/strategy/strategy.h"

/* Micro-batches of different lengths would make every stage wait for the longest; the nearest numbers that divide the grains are
 * the way out. */
static bool uneven(struct planner *p) {
    const i32 grains = p->ngrain / p->nrow, m = p->q->microbatches;
    i32 fewer = m, more = m;
    if (m < 1 || grains % m == 0) return false;
    if (p->ngrain % p->nrow != 0) return false; /* parts have unequal numbers of grains */
    while (grains % fewer != 0) fewer--;
    while (grains % more != 0) more++;
    planner_why(p, "a batch of %d in %d part%s has %d grains of %d rows a part, which %d micro-batches do not divide evenly",
                p->q->B,
                p->nrow, p->nrow > 1 ? "s" : "", grains, p->grain, m);
    snprintf(p->fix, sizeof p->fix, "--micro-batches %d   or   --micro-batches %d", fewer, more);
    return true;
}

static i32 most(struct planner *p, i32 n) {
    if (p->sliced) {
        planner_why(p, "time slices converge layer by layer, so layers cannot run at the same time");
        return 0;
    }
    if (p->layers.n > 1) {
        planner_why(p, "the cut wave divides the layers already");
        return 0;
    }
    if (!p->q->train && !p->q->joint) return 1;
    pipeline_units(p->net, p->grain, &p->unit);
    const i32 units = p->unit.n;
    if (p->q->place && p->ngrain / p->nrow * units > 1) return imin(p->ngrain / p->nrow, MACHINE_DEVICES) * units;
    if (units < 2) {
        planner_why(p, "the model has one layer with weights of its own, and a stage needs one");
        return 0;
    }
    if (n > units)
        planner_why(p, "the model has %d layers with weights of their own, so at most %d stages have work", units, units);
    if (p->ngrain / p->nrow < 2) {
        planner_why(p, "a batch of %d gives one micro-batch, so only one stage would work at a time", p->q->B);
        return 1;
    }
    if (p->q->microbatches > p->ngrain / p->nrow) {
        planner_why(p, "a batch of %d in %d part%s has %d grains of %d rows a part, so %d micro-batches are too many (--grains)",
                    p->q->B, p->nrow, p->nrow > 1 ? "s" : "", p->ngrain / p->nrow, p->grain, p->q->microbatches);
        snprintf(p->fix, sizeof p->fix, "--micro-batches %d   or   a larger --grains", p->ngrain / p->nrow);
        return 1;
    }
    if (uneven(p)) return 1;
    return units;
}

static err tasks(struct planner *p) { return p->placed ? pipeline_placed(p) : pipeline_tasks(p); }

const struct strategy strategy_pipeline = {
    .name = "pipeline",
    .help = "pipeline parallelism: each device has some layers, and passes on micro-batches",
    .exact = true,
    .counted = true,
    .most = most,
    .cut = planner_share_stages,
    .tasks = tasks,
};
