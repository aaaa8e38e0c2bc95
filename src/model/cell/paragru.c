/* paragru.c - ParaGRU, a GRU whose gates read only their own unit's state; Danieli et al. 2025.
 *
 *     z = sigmoid(Wz x + a_z h + b)    r = sigmoid(Wr x + a_r h + b)    n = tanh(Wn x + a_n r h + b)    h' = h + z (n - h) */
#include "model/cell/diag.h"

static const struct cell_set *set(enum kern_arch arch) { return DIAG_CHOOSE(paragru, arch); }

extern const struct cell cell_paragru;
const struct cell cell_paragru = {
    .name = "paragru",
    .help = "gru whose gates read the state of their own unit alone, 3 gates, state h",
    .kind = (enum cell_kind)CELL_AT_paragru,
    .gates = 3,
    .states = 1,
    .diagonal = true,
    .state_rows = 1,
    .gate_name = "zrn",
    .set = set,
};
