/* wavefront.c - layers at different chunks of time at once: the bits of serial, for a batch of too few rows to be cut.
 *
 *     device 0   fwd lstm.0 0 1 2 3   .     loss   .  bwd lstm.0 3 2 1 0 | norm, update of its share of theta
 *     device 1   fwd lstm.1 . 0 1 2 3  zero | bwd lstm.1 3 2 1 0       . | norm, update of its share of theta
 *
 * Nobody waits at every step, as a team does (unit_split), so layers of any width gain; but there must be two of them, or two
 * directions.  Efficiency is L C / (L C + P (P - 1)) for L layers, C chunks, P devices. */
#include "step/netplan.h"
#include "step/strategy/strategy.h"

/* A forward plan takes what it can use, as in data_sync. */
static i32 devices(const struct planner *p) {
    i32 useful = imin(machine_together(p->machine), wave_width(p->net));
    if (!p->wanted) return useful;
    return p->q->train ? p->wanted : imin(p->wanted, useful);
}

static const char *applicable(struct planner *p) {
    i32 have = machine_together(p->machine), width = wave_width(p->net), n = devices(p);
    if (p->sliced) return planner_why(p, "rows are slices of time: layers converge one after another (time_slice)");
    if (p->wanted > p->machine->ndevice)
        return planner_why(p, "%d devices are wanted, the machine has %d", p->wanted, p->machine->ndevice);
    if (p->wanted == 1 || (p->wanted && !p->q->train)) return NULL;
    if (width < 2) return planner_why(p, "no two recurrent layers or directions of this model can be at work at once");
    if (p->machine->ndevice < 2) return planner_why(p, "the machine has one device");
    if (have < 2) return planner_why(p, "no two devices share memory");
    if (n > have) return planner_why(p, "%d devices are wanted, and %d share memory", n, have);
    if (n > width)
        return planner_why(p, "the model has %d layers (or directions) in a row, so at most %d devices have work", width, width);
    if (wave_chunks(p, n) < 2) return planner_why(p, "a step is too short to be cut into chunks of time");
    return NULL;
}

static err place(struct planner *p) {
    p->piece[0].device = 0;
    p->nwave = devices(p);
    p->chunks = wave_chunks(p, p->nwave);
    return 0;
}

const struct strategy strategy_wavefront = {
    .name = "wavefront",
    .help = "layers at different chunks of time at once, for batches of too few rows",
    .exact = true,
    .counted = true,
    .applicable = applicable,
    .cut = strategy_whole,
    .place = place,
    .exchange = planner_merge,
};
