/* lstm.c - long short-term memory: c = f c + i g, h = o tanh(c); i f o sigmoid, g tanh. */
#include "model/cell/cell.h"

extern const struct cell cell_lstm;
const struct cell cell_lstm = {
    .name = "lstm",
    .help = "long short-term memory, 4 gates, states h and c",
    .kind = CELL_LSTM,
    .gates = 4,
    .states = 2,
    .gate_name = "ifgo",
};
