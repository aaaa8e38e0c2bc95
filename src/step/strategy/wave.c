/* wave.c - pipeline parallelism, devices run different layers on different chunks of time: bit-identical to serial.
 *
 *     device 0   fwd lstm.0 0 1 2 3   .     loss   .  bwd lstm.0 3 2 1 0 | norm, update of its share of theta
 *     device 1   fwd lstm.1 . 0 1 2 3  zero | bwd lstm.1 3 2 1 0       . | norm, update of its share of theta
 *
 * Devices wait for each other once per chunk, not at every step as in a team (unit), so narrow layers gain too.  The model needs
 * two recurrent layers or two directions.  Efficiency is L C / (L C + P (P - 1)) for L layers, C chunks, P devices. */
#include "step/strategy/strategy.h"

static i32 most(struct planner *p, i32 n) {
    const i32 together = machine_together(p->machine), near = together > 1 ? together : p->machine->ndevice;
    const i32 width = wave_width(p->net), devices = n ? n : imin(near, width);
    if (p->sliced) {
        planner_why(p, "time slices converge layer by layer, so layers cannot run at the same time");
        return 0;
    }
    if (p->layers.n > 1) {
        planner_why(p, "the cut pipeline divides the layers already");
        return 0;
    }
    if (width < 2) {
        planner_why(p, "no two recurrent layers or directions of this model can run at the same time");
        return 0;
    }
    if (n > width) {
        planner_why(p, "the model has %d consecutive layers (or directions), so at most %d devices have work", width, width);
    } else if (wave_chunks(p, devices) < 2) {
        planner_why(p, "the sequence is too short to be divided into chunks of time steps");
        return 1;
    }
    return width;
}

const struct strategy strategy_wave = {
    .name = "wave",
    .alias = "wavefront",
    .help = "pipeline over layers and chunks of time",
    .exact = true,
    .counted = true,
    .most = most,
    .cut = planner_share_layers,
    .stages = wave_stages,
    .tasks = wave_tasks,
};
