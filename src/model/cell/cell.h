/* cell.h - the descriptor of a recurrent cell: one file, one const struct, one line in cells.def.
 *
 * Canonical tensors are PyTorch's: weight_ih [G*H,I], weight_hh [G*H,H], bias_ih, bias_hh [G*H], gates in the order of
 * gate_name.  Packed weights: kern.h.  When split_last is set, the last gate keeps two biases and its two products apart (gru's
 * n), so bias and z have one gate more than the weights. */
#ifndef STRETTO_MODEL_CELL_CELL_H
#define STRETTO_MODEL_CELL_CELL_H

#include "kern/kern.h"

enum { CELL_TENSORS = 4 };

struct cell {
    const char *name, *help;
    enum cell_kind kind; /* its place in cells.def */
    i32 gates, states;   /* 4 blocks of H rows in W; 2 carried vectors (h, c) */
    bool split_last;
    bool linear_in_h;                /* an exact scan along t is possible */
    const char *gate_name;           /* "ifgo" */
    const char *onnx_op;             /* NULL = exported as primitive ops */
    const char *onnx_gates;          /* the same letters in ONNX's order: "iofg" */
    const struct cell_kern *kernels; /* NULL = kern->cell[kind] */
};

const struct cell *cell_find(const char *name); /* NULL = none */
const struct cell *cell_of(enum cell_kind kind);
i32 cell_count(void);

static inline i32 cell_slots(const struct cell *c) { return c->gates + (c->split_last ? 1 : 0); }
/* NULL where the table has none in this precision; a cell that brings its own kernels has them in f32. */
static inline const struct cell_kern *cell_kernels(const struct cell *c, const struct kern *k, enum precision p) {
    if (c->kernels) return p == PREC_F32 ? c->kernels : NULL;
    return cell_at(k, c->kind, p);
}
/* Floats that are enough for the kernels of every instruction set of this machine that has the precision: sizes must not depend
 * on the choice.  0 where no set has it. */
i64 cell_act_max(const struct cell *c, enum precision p, i32 T, i32 B, i32 I, i32 H);
i64 cell_wt_max(const struct cell *c, enum precision p, i32 I, i32 H);

/* Floats of the packed weights and of the packed bias that follows them. */
static inline i64 cell_packed_w(const struct cell *c, i32 I, i32 H) { return (i64)round_up(H, LANES) * c->gates * ((i64)I + H); }
static inline i64 cell_packed_bias(const struct cell *c, i32 H) { return (i64)round_up(H, LANES) * cell_slots(c); }

/* Tensor i (0 weight_ih, 1 weight_hh, 2 bias_ih, 3 bias_hh) out of and into packed weights.  Loading bias_ih replaces, loading
 * bias_hh then adds, but for a split last gate. */
const char *cell_tensor(i32 i, i32 I, i32 H, i32 gates, i32 *rows, i32 *cols);
void cell_store(const struct cell *c, i32 tensor, i32 I, i32 H, const f32 *packed, f32 *canonical);
void cell_load(const struct cell *c, i32 tensor, i32 I, i32 H, const f32 *canonical, f32 *packed);

#endif
