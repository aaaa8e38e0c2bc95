/* sizes.c - gates of a cell, and floats of its weights and biases in panels. */
#include "kern/kern.h"

i32 cell_gates(enum cell_kind kind) { return kind == CELL_LSTM ? 4 : kind == CELL_GRU ? 3 : 1; }
i32 cell_bias_gates(enum cell_kind kind) { return kind == CELL_RNN ? 1 : 4; }

i64 cell_w_floats(enum cell_kind kind, i32 I, i32 H) { return (i64)round_up(H, LANES) * (I + H) * cell_gates(kind); }
i64 cell_bias_floats(enum cell_kind kind, i32 H) { return (i64)round_up(H, LANES) * cell_bias_gates(kind); }
