/* gru.c - gated recurrent unit as in PyTorch: h = (1-z) n + z h, n = tanh(x part + r * h part), so n has two biases. */
#include "model/cell/cell.h"

extern const struct cell cell_gru;
const struct cell cell_gru = {
    .name = "gru",
    .help = "gated recurrent unit, 3 gates, state h",
    .kind = CELL_GRU,
    .gates = 3,
    .states = 1,
    .split_last = true,
    .gate_name = "rzn",
};
