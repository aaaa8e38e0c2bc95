/* paralstm.c - ParaLSTM, an LSTM whose gates read only their own unit's state; Danieli et al. 2025.
 *
 *     f = sigmoid(Wf x + a_f h + p_f c + b)      z = tanh(Wz x + a_z h + b)         c' = f c + (1 - f) z
 *     o = sigmoid(Wo x + a_o h + p_o c' + b)     h' = o tanh(c') */
#include "model/cell/diag.h"

static const struct cell_set *set(enum kern_arch arch) { return DIAG_CHOOSE(paralstm, arch); }

extern const struct cell cell_paralstm;
const struct cell cell_paralstm = {
    .name = "paralstm",
    .help = "lstm whose gates read the state of their own unit alone, 3 gates, states h and c",
    .kind = (enum cell_kind)CELL_AT_paralstm,
    .gates = 3,
    .states = 2,
    .diagonal = true,
    .state_rows = 2,
    .peep = 1 << 0 | 1 << 2,
    .gate_name = "fzo",
    .set = set,
};
