/* cell.c - the list of cells, and their canonical tensors out of and into packed weights, the same for every cell. */
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

/* The kernels of instruction set a in a precision, NULL = this machine or the set has none. */
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

const char *cell_tensor(i32 i, i32 I, i32 H, i32 gates, i32 *rows, i32 *cols) {
    static const char *const name[CELL_TENSORS] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    *rows = gates * H;
    *cols = i == 0 ? I : i == 1 ? H : 0;
    return name[i];
}

/* Place of weight k (over x, then h) of gate g of unit u. */
static i64 at_w(const struct cell *c, i32 I, i32 H, i32 g, i32 u, i32 k) {
    return (((i64)(u / LANES) * (I + H) + k) * c->gates + g) * LANES + u % LANES;
}

static i64 at_bias(const struct cell *c, i32 I, i32 H, i32 slot, i32 u) {
    return cell_packed_w(c, I, H) + ((i64)(u / LANES) * cell_slots(c) + slot) * LANES + u % LANES;
}

void cell_store(const struct cell *c, i32 tensor, i32 I, i32 H, const f32 *packed, f32 *canonical) {
    i32 k0 = tensor == 0 ? 0 : I, n = tensor == 0 ? I : H;
    for (i32 g = 0; g < c->gates; g++) {
        bool split = c->split_last && g == c->gates - 1;
        for (i32 u = 0; u < H; u++) {
            f32 *row = canonical + ((i64)g * H + u) * (tensor < 2 ? n : 1);
            if (tensor < 2)
                for (i32 k = 0; k < n; k++) row[k] = packed[at_w(c, I, H, g, u, k0 + k)];
            else if (tensor == 2)
                *row = packed[at_bias(c, I, H, g, u)];
            else
                *row = split ? packed[at_bias(c, I, H, g + 1, u)] : 0;
        }
    }
}

void cell_load(const struct cell *c, i32 tensor, i32 I, i32 H, const f32 *canonical, f32 *packed) {
    i32 k0 = tensor == 0 ? 0 : I, n = tensor == 0 ? I : H;
    for (i32 g = 0; g < c->gates; g++) {
        bool split = c->split_last && g == c->gates - 1;
        for (i32 u = 0; u < H; u++) {
            const f32 *row = canonical + ((i64)g * H + u) * (tensor < 2 ? n : 1);
            if (tensor < 2)
                for (i32 k = 0; k < n; k++) packed[at_w(c, I, H, g, u, k0 + k)] = row[k];
            else if (tensor == 2)
                packed[at_bias(c, I, H, g, u)] = *row;
            else if (split)
                packed[at_bias(c, I, H, g + 1, u)] = *row;
            else
                packed[at_bias(c, I, H, g, u)] += *row;
        }
    }
}
