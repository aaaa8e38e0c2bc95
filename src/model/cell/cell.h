/* cell.h - descriptor of a recurrent cell: one file, one const struct, one line in cells.def.
 *
 * Canonical tensors are PyTorch's: weight_ih [G*H,I], weight_hh [G*H,H], bias_ih, bias_hh [G*H], gates in the order of
 * gate_name. Packed weights: kern.h. With split_last the last gate keeps two biases and two separate products (gru's n), so
 * bias and z have one gate more than the weights.
 *
 * Diagonal cells: the gates of a unit read only the unit's own state. A panel of w then has `state_rows` rows after those of x
 * instead of H: none (gates of x alone), h, or h and c. They have one bias, and vectors instead of matrices: weight_hh_diag
 * [G*H] for h, weight_ch_diag [n*H] for c, for the n gates with a bit in `peep`. */
#ifndef STRETTO_MODEL_CELL_CELL_H
#define STRETTO_MODEL_CELL_CELL_H

#include "kern/kern.h"

/* Index of a cell in cells.def, which is its number: (enum cell_kind)CELL_AT_paragru. */
enum {
#define CELL(name) CELL_AT_##name,
#include "model/cell/cells.def"
#undef CELL
};

/* Arguments of one step of a diagonal cell on n batch rows, for callers with their own products (decoders). */
struct cell_rows {
    i32 n, I, H;
    const f32 *w;         /* packed weights of a layer with I inputs */
    f32 *z;               /* [n][NP][G][LANES] pre-activations of the x side with bias; becomes gates, then dz */
    const f32 *h0, *c0;   /* [n][Hp] state before the step; c0 for cells with two states */
    f32 *keep, *h;        /* [n][Hp] value saved for backward (c, if the cell has one); h after the step */
    const f32 *dh;        /* bwd: gradient of h */
    f32 *dh0, *dc0, *dw;  /* bwd adds to these: gradient of the state before the step, and of the state rows of w */
};
struct cell_step {
    void (*fwd)(const struct cell_rows *r);
    void (*bwd)(const struct cell_rows *r);
};

/* The kernels of a diagonal cell for one instruction set. */
struct cell_set {
    struct cell_kern kern; /* point_fwd and point_bwd are NULL in a diagonal cell: step */
    struct cell_step step;
};

struct cell {
    const char *name, *help;
    enum cell_kind kind; /* index in cells.def */
    i32 gates, states;   /* gates: blocks of H rows in W; states: carried vectors (h, c) */
    bool split_last;
    bool linear_in_h;                /* a parallel scan over t is exact */
    bool diagonal;
    i32 state_rows; /* of a diagonal cell */
    u32 peep;
    const char *gate_name;           /* "ifgo" */
    const struct cell_kern *kernels; /* the same for every instruction set; NULL = kern->cell[kind], or the ones that set
                                      * returns */
    const struct cell_set *(*set)(enum kern_arch arch);
};

const struct cell *cell_find(const char *name); /* NULL = none */
const struct cell *cell_of(enum cell_kind kind);
i32 cell_count(void);

static inline i32 cell_slots(const struct cell *c) { return c->gates + (c->split_last ? 1 : 0); }
/* True if the cell supports execution mode `how` (enum cell_how). */
static inline bool cell_walks(const struct cell *c, u32 how) {
    return how == CELL_NEWTON ? c->diagonal && !c->linear_in_h : how == CELL_SCAN ? c->diagonal && c->linear_in_h : true;
}
/* NULL if the table has none in this precision; a cell's own kernels are f32. */
static inline const struct cell_kern *cell_kernels(const struct cell *c, const struct kern *k, enum precision p) {
    if (c->kernels) return p == PREC_F32 ? c->kernels : NULL;
    if (c->set) return p == PREC_F32 ? &c->set(k->arch)->kern : NULL;
    return cell_at(k, c->kind, p);
}
/* Floats that suffice for the kernels of every instruction set of this machine: buffer sizes must not depend on the chosen set.
 * 0 if no set has the precision. */
i64 cell_act_max(const struct cell *c, enum precision p, i32 T, i32 B, i32 I, i32 H);
i64 cell_wt_max(const struct cell *c, enum precision p, i32 I, i32 H);

/* Rows of a panel of w after the rows of x. */
static inline i32 cell_state_rows(const struct cell *c, i32 H) { return c->diagonal ? c->state_rows : H; }

/* Floats of the packed weights and of the packed bias that follows them. */
static inline i64 cell_packed_w(const struct cell *c, i32 I, i32 H) {
    return (i64)round_up(H, LANES) * c->gates * ((i64)I + cell_state_rows(c, H));
}
static inline i64 cell_packed_bias(const struct cell *c, i32 H) { return (i64)round_up(H, LANES) * cell_slots(c); }

/* Canonical tensors of a cell; offset of element (row, col) of tensor i in the packed weights and bias, as in layer.place:
 * ~offset where bias_hh is part of the sum in bias_ih. */
i32 cell_tensors(const struct cell *c);
const char *cell_tensor(const struct cell *c, i32 i, i32 I, i32 H, i32 *rows, i32 *cols);
i64 cell_place(const struct cell *c, i32 i, i32 I, i32 H, i32 row, i32 col);

#endif
