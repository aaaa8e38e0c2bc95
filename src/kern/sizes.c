/* sizes.c - gates of a cell, and floats of its weights, its biases and the copied rows of dW. */
#include "kern/kern.h"

i32 cell_gates(enum cell_kind kind) { return kind == CELL_LSTM ? 4 : kind == CELL_GRU ? 3 : 1; }
i32 cell_bias_gates(enum cell_kind kind) { return kind == CELL_RNN ? 1 : 4; }

i64 cell_w_floats(enum cell_kind kind, i32 I, i32 H) { return (i64)round_up(H, LANES) * (I + H) * cell_gates(kind); }
i64 cell_bias_floats(enum cell_kind kind, i32 H) { return (i64)round_up(H, LANES) * cell_bias_gates(kind); }

/* One cache line of padding: rows of a power of two of floats would share few sets of L1. */
i64 cell_gather_row(i32 I, i32 H) { return round_up(I + H, LANES) + LANES; }

/* A batch has about 16 micro-batches (ADR 003), and dW takes 256 rows of each at a time; a batch of one row has no others. */
i32 cell_gather_rows(i32 T, i32 B) {
    enum { ROWS = 16 * 256 };
    return B > 1 ? imin(T, imax(1, ROWS / B)) : 0;
}
