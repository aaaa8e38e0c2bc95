/* cell.c - the list of cells (cells.def), and the conversion between canonical tensors and packed weights, common to all cells.
 */
#include "model/cell/cell.h"

#include <string.h>

#define CELL(name) extern const struct cell cell_##name;
#include "model/cell/cells.def"
#undef CELL

static const struct cell *const all[] = {
#define CELL(name) &cell_##name,
#include "model/cell/cells.def"
#undef CELL
};

i32 cell_count(void) { return (i32)COUNT(all); }
const struct cell *cell_of(enum cell_kind kind) { return (u32)kind < COUNT(all) ? all[kind] : NULL; }

const struct cell *cell_find(const char *name) {
    for (i32 i = 0; i < cell_count(); i++)
        if (!strcmp(all[i]->name, name)) return all[i];
    return NULL;
}

/* Kernels of instruction set a in a precision; NULL if this machine or the set lacks them. */
static const struct cell_kern *kernels_of(const struct cell *c, enum precision p, i32 a) {
    const struct kern *k = kern_get((enum kern_arch)a);
    return k ? cell_kernels(c, k, p) : NULL;
}

i64 cell_act_max(const struct cell *c, enum precision p, i32 T, i32 B, i32 I, i32 H) {
    i64 most = 0;
    for (i32 a = 0; a < KERN_NARCH; a++)
        if (kernels_of(c, p, a)) most = lmax(most, kernels_of(c, p, a)->act_floats(T, B, I, H));
    return most;
}

i64 cell_wt_max(const struct cell *c, enum precision p, i32 I, i32 H) {
    i64 most = 0;
    for (i32 a = 0; a < KERN_NARCH; a++)
        if (kernels_of(c, p, a)) most = lmax(most, kernels_of(c, p, a)->wt_floats(I, H));
    return most;
}

/* ------------------------------------------------------------------ canonical tensors --------------------------------------- */

enum tensor { WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH, HH_DIAG, CH_DIAG };

/* Kind of tensor i of a cell. */
static enum tensor tensor_of(const struct cell *c, i32 i) {
    static const enum tensor dense[] = {WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH};
    static const enum tensor diagonal[] = {WEIGHT_IH, BIAS_IH, HH_DIAG, CH_DIAG};
    return c->diagonal ? diagonal[i] : dense[i];
}

i32 cell_tensors(const struct cell *c) { return c->diagonal ? 2 + c->state_rows : 4; }

const char *cell_tensor(const struct cell *c, i32 i, i32 I, i32 H, i32 *rows, i32 *cols) {
    static const char *const name[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hh_diag", "weight_ch_diag"};
    enum tensor t = tensor_of(c, i);
    *rows = c->gates * H;
    *cols = t == WEIGHT_IH ? I : t == WEIGHT_HH ? H : 0;
    if (t == CH_DIAG) *rows = __builtin_popcount(c->peep) * H;
    return name[t];
}

/* Offset of weight k (over x, then the state rows) of gate g of unit u. */
static i64 at_w(const struct cell *c, i32 I, i32 H, i32 g, i32 u, i32 k) {
    return (((i64)(u / LANES) * (I + cell_state_rows(c, H)) + k) * c->gates + g) * LANES + u % LANES;
}

static i64 at_bias(const struct cell *c, i32 I, i32 H, i32 slot, i32 u) {
    return cell_packed_w(c, I, H) + ((i64)(u / LANES) * cell_slots(c) + slot) * LANES + u % LANES;
}

/* The n-th gate with a bit in peep. */
static i32 peep_gate(const struct cell *c, i32 n) {
    i32 g = 0;
    while (!(c->peep >> g & 1) || n-- > 0) g++;
    return g;
}

i64 cell_place(const struct cell *c, i32 i, i32 I, i32 H, i32 row, i32 col) {
    const i32 g = row / H, u = row % H;
    switch (tensor_of(c, i)) {
        case WEIGHT_IH:
            return at_w(c, I, H, g, u, col);
        case WEIGHT_HH:
        case HH_DIAG:
            return at_w(c, I, H, g, u, I + col);
        case CH_DIAG:
            return at_w(c, I, H, peep_gate(c, g), u, I + 1);
        case BIAS_IH:
            return at_bias(c, I, H, g, u);
        default:
            return c->split_last && g == c->gates - 1 ? at_bias(c, I, H, g + 1, u) : ~at_bias(c, I, H, g, u);
    }
}
