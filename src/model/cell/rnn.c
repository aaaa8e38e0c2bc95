/* rnn.c - Elman cell: h = tanh(W x + U h + b). */
#include "model/cell/cell.h"

extern const struct cell cell_rnn;
const struct cell cell_rnn = {
    .name = "rnn",
    .help = "plain tanh cell, state h",
    .kind = CELL_RNN,
    .gates = 1,
    .states = 1,
    .gate_name = "n",
};
