/* wave.c - pipeline parallelism, devices run different layers on different chunks of time: bit-identical to serial.
 *
 *     device 0   fwd lstm.0 0 1 2 3   .     loss   .  bwd lstm.0 3 2 1 0 | norm, update of its share of theta
 *     device 1   fwd lstm.1 . 0 1 2 3  zero | bwd lstm.1 3 2 1 0       . | norm, update of its share of theta
 *
 * Nobody waits at every step, as a team does (unit), so layers of any width gain; but there must be two of them, or two
 * directions.  Efficiency is L C / (L C + P (P - 1)) for L layers, C chunks, P devices. */
#include "step/strategy/strategy.h"

static i32 most(struct planner *p, i32 n) {
    const i32 width = wave_width(p->net), devices = n ? n : imin(machine_together(p->machine), width);
    if (p->sliced) {
        planner_why(p, "slices of time converge layer by layer: layers cannot be at work at once");
        return 0;
    }
    if (width < 2) {
        planner_why(p, "no two recurrent layers or directions of this model can be at work at once");
        return 0;
    }
    if (n > width) {
        planner_why(p, "the model has %d layers (or directions) in a row, so at most %d devices have work", width, width);
    } else if (wave_chunks(p, devices) < 2) {
        planner_why(p, "a step is too short to be cut into chunks of time");
        return 1;
    }
    return width;
}

const struct strategy strategy_wave = {
    .name = "wave",
    .alias = "wavefront",
    .help = "pipeline over layers and chunks of time, in one process",
    .exact = true,
    .counted = true,
    .together = true,
    .most = most,
    .cut = planner_share_layers,
    .tasks = wave_tasks,
};
