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

static bool has_peep(const struct cell *c, i32 g) { return c->peep >> g & 1; }

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

/* Offset of element k of row u of gate g of a tensor; -1 if there is none (bias_hh is merged into bias_ih). */
static i64 place(const struct cell *c, enum tensor t, i32 I, i32 H, i32 g, i32 u, i32 k) {
    bool split = c->split_last && g == c->gates - 1;
    switch (t) {
        case WEIGHT_IH:
            return at_w(c, I, H, g, u, k);
        case WEIGHT_HH:
        case HH_DIAG:
            return at_w(c, I, H, g, u, I + k);
        case CH_DIAG:
            return at_w(c, I, H, g, u, I + 1);
        case BIAS_IH:
            return at_bias(c, I, H, g, u);
        default:
            return split ? at_bias(c, I, H, g + 1, u) : -1;
    }
}

void cell_store(const struct cell *c, i32 tensor, i32 I, i32 H, const f32 *packed, f32 *canonical) {
    enum tensor t = tensor_of(c, tensor);
    i32 n = t == WEIGHT_IH ? I : t == WEIGHT_HH ? H : 1;
    for (i32 g = 0; g < c->gates; g++)
        for (i64 j = 0; j < (i64)H * n && (t != CH_DIAG || has_peep(c, g)); j++) {
            i64 at = place(c, t, I, H, g, (i32)(j / n), (i32)(j % n));
            *canonical++ = at < 0 ? 0 : packed[at];
        }
}

void cell_load(const struct cell *c, i32 tensor, i32 I, i32 H, const f32 *canonical, f32 *packed) {
    enum tensor t = tensor_of(c, tensor);
    i32 n = t == WEIGHT_IH ? I : t == WEIGHT_HH ? H : 1;
    for (i32 g = 0; g < c->gates; g++)
        for (i64 j = 0; j < (i64)H * n && (t != CH_DIAG || has_peep(c, g)); j++) {
            i64 at = place(c, t, I, H, g, (i32)(j / n), (i32)(j % n));
            if (at < 0)
                packed[place(c, BIAS_IH, I, H, g, (i32)(j / n), 0)] += *canonical++;
            else
                packed[at] = *canonical++;
        }
}
