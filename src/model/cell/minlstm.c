/* minlstm.c - minLSTM, whose gates read x alone, so that the cell is linear in h; Feng et al. 2024.
 *
 *     f = sigmoid(Wf x + b)    i = sigmoid(Wi x + b)    n = Wn x + b      h' = (f h + i n) / (f + i) */
#include "model/cell/diag.h"

static const struct cell_set *set(enum kern_arch arch) { return DIAG_CHOOSE(minlstm, arch); }

extern const struct cell cell_minlstm;
const struct cell cell_minlstm = {
    .name = "minlstm",
    .help = "lstm whose gates read x alone, linear in h, 3 gates, state h",
    .kind = (enum cell_kind)CELL_AT_minlstm,
    .gates = 3,
    .states = 1,
    .linear_in_h = true,
    .diagonal = true,
    .gate_name = "fin",
    .set = set,
};
