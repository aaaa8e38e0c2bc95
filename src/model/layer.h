/* layer.h - the descriptor of a kind of layer: one file, one const struct, one line in layers.def.
 *
 * fwd and bwd work on a part of the box and must give the same bits however the box was cut.  bwd covers whole grains: for each
 * grain in [b0,b1) it ADDS that grain's parameter gradient to run->grad + grain * ntheta + op->theta0, and WRITES the gradient of
 * its input buffer (when that has one).  No allocation, no errors in fwd and bwd: shape() has checked everything.  bwd may change
 * the gradient of its own output in place.  Padded lanes of what is written are zero. */
#ifndef STRETTO_MODEL_LAYER_H
#define STRETTO_MODEL_LAYER_H

#include <string.h>

#include "model/chain.h"
#include "model/net.h"

/* One canonical tensor of an op, as files name it: "<op>.weight" [rows, cols] row-major, or [rows] when cols = 0. */
struct tensor_info {
    char name[48];
    i32 rows, cols;
};

struct layer {
    const char *name;
    const char *help; /* one line, shape included */
    bool team;        /* fwd and bwd may be shared by units (part.n > 1): the layer waits for its other members itself */
    bool steps;       /* fwd called on parts of the steps in order, bwd in reverse, give the bits of one call */
    bool table;       /* theta is rows of round_up(F, LANES): a row of the batch adds to at most T of them, and says to which */
    i32 nin;          /* inputs it looks at: in[0..nin) */
    i32 after;        /* > 0: with this input rows are slices of time, and a step runs the layer's chain instead of fwd and bwd */
    i32 from;         /* > 0: with this input a row is made of any other: parts read all rows, and write their own */
    /* Check spec and inputs, set T, I, F, ntheta, nderived, declare out (and end) with net_out(). */
    err (*shape)(struct net *n, struct op *op);
    i64 (*saved)(const struct op *op, const struct net *n, struct rows B);   /* NULL = 0 */
    i64 (*scratch)(const struct op *op, const struct net *n, struct rows B); /* NULL = 0 */
    f64 (*flops)(const struct op *op, const struct net *n, i32 B, bool backward);
    void (*init)(const struct op *op, u64 seed, f32 *theta); /* NULL = no parameters; theta points at the op's block */
    /* NULL = none; theta and derived are the whole vectors */
    void (*prep)(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived);
    void (*fwd)(const struct op *op, const struct run *r, struct part part);
    void (*bwd)(const struct op *op, const struct run *r, struct part part);
    /* NULL = bwd alone makes the gradient of weights; else what bwd with part.apart has left out, with the same bits, in any
     * number of parts, one after another.  Part k of n adds to floats [adds(k,n), adds(k+1,n)) of the op's theta, all to those
     * from adds(n,n) on. */
    void (*dw)(const struct op *op, const struct run *r, struct part part);
    i64 (*adds)(const struct op *op, i32 k, i32 n);
    /* Where op_is_chain(): the recurrence over the rows of r, whose slices are the rows. */
    void (*chain)(const struct op *op, const struct run *r, bool backward, struct chain *out);
    i32 (*tensors)(const struct op *op, struct tensor_info out[8]); /* NULL = none; returns the count */
    /* theta points at the op's block.  All tensors are loaded one after another in the order of tensors(). */
    void (*store)(const struct op *op, i32 tensor, const f32 *theta, f32 *canonical);
    void (*load)(const struct op *op, i32 tensor, const f32 *canonical, f32 *theta);
};

static inline bool op_is_chain(const struct op *op) { return op->layer->after > 0 && op->spec.in[op->layer->after] >= 0; }
static inline bool op_crosses(const struct op *op) { return op->layer->from > 0 && op->spec.in[op->layer->from] >= 0; }

const struct layer *layer_find(const char *name);
i32 layer_count(void);
const struct layer *layer_at(i32 i);

/* For shape(): declare an output buffer of the op; input i of the op as a buffer of numbers (E1 when it is absent or ids). */
err net_out(struct net *n, const char *name, i32 T, i32 F, bool grad, i32 *out);
err layer_input(const struct net *n, const struct op *op, i32 i, const struct buf **out);
err layer_range(const struct op *op, const char *what, f64 v, f64 min, f64 max); /* E103 unless min <= v <= max */

/* Rows of different lengths: input i of an op as ids [1][B] of lengths (layer_is_lengths, in shape()).  They lie
 * in 0..T, longest first.  layer_live counts the rows that are live at each of T steps, and says false when all rows are, always;
 * what is out of range or order is taken for the nearest that is not. */
err layer_is_lengths(const struct net *n, const struct op *op, i32 i);
bool layer_live(i32 T, i32 B, const i32 *length, i32 *live);

/* Write one entry of tensors(). */
void layer_tensor(struct tensor_info *t, const struct op *op, const char *what, i32 rows, i32 cols);

/* The same as PyTorch's recurrent modules name it: "lstm.1.reverse" with "weight_ih" is lstm.weight_ih_l1_reverse; a name without
 * a number is layer 0. */
void layer_torch_tensor(struct tensor_info *t, const struct op *op, const char *what, i32 rows, i32 cols);

/* The value of weight i of an op's initialisation: uniform in [-a,a), or normal. */
f32 layer_uniform(const struct op *op, u64 seed, i64 i, f64 a);
f32 layer_normal(const struct op *op, u64 seed, i64 i);

/* PyTorch's initial weights of a cell, packed w and bias from theta on; returns how many random numbers it took. */
struct cell;
i64 layer_cell_init(const struct op *op, const struct cell *c, i32 I, i32 H, u64 seed, f32 *theta);

/* Canonical rows [rows][cols] from and to rows padded to LANES. */
void rows_store(i32 rows, i32 cols, const f32 *padded, f32 *canonical);
void rows_load(i32 rows, i32 cols, const f32 *canonical, f32 *padded);

/* A part as runs of rows that are next to each other in a [T][B] buffer: one run when it is as wide as the whole batch, else one
 * run a step.  Run i begins at row *first (t*B + b) and has *n rows. */
static inline i32 part_runs(const struct run *r, struct part p) { return p.b1 - p.b0 == r->whole ? 1 : p.t1 - p.t0; }
static inline i64 part_run(const struct run *r, struct part p, i32 i, i32 *n) {
    *n = p.b1 - p.b0 == r->whole ? (p.t1 - p.t0) * r->B : p.b1 - p.b0;
    return (i64)(p.t0 + i) * r->B + p.b0;
}

/* Where row `at` of a [T][B] buffer is in that of the whole batch: what random numbers are counted by. */
static inline i64 run_place(const struct run *r, i64 at) { return at / r->B * r->whole + r->row0 + at % r->B; }

/* Grain g as a part of p, which covers whole grains. */
static inline struct part part_grain(const struct run *r, struct part p, i32 g) {
    p.b0 = imax(p.b0, g * r->grain - r->row0);
    p.b1 = imin(p.b1, (g + 1) * r->grain - r->row0);
    return p;
}
static inline i32 grain_first(const struct run *r, struct part p) { return (p.b0 + r->row0) / r->grain; }
static inline i32 grain_end(const struct run *r, struct part p) { return ceil_div(p.b1 + r->row0, r->grain); }
static inline i32 grain_of(const struct run *r, i32 b) { return (b + r->row0) / r->grain; } /* of row b of those that are here */
static inline f32 *grain_grad(const struct run *r, i32 g, i64 at) { return r->grad + (i64)g * r->net->ntheta + at; }
/* A layer with `table` has added to n floats from `at` on of a grain's vector, both multiples of LANES. */
static inline void grain_touch(const struct run *r, i32 g, i64 at, i64 n) {
    for (i64 i = 0; r->touched && i < n; i += LANES) r->touched[((i64)g * r->net->ntheta + at + i) / LANES] = 1;
}

/* Buffer of input i and its gradient (NULL when none flows back). */
static inline f32 *run_in(const struct op *op, const struct run *r, i32 i) { return r->buf[op->spec.in[i]]; }
static inline f32 *run_din(const struct op *op, const struct run *r, i32 i) {
    return buf_sends(&r->net->buf[op->spec.in[i]]) ? r->dbuf[op->spec.in[i]] : NULL;
}
static inline f32 *run_dout(const struct run *r, i32 buf) {
    return buf >= 0 && buf_sends(&r->net->buf[buf]) ? r->dbuf[buf] : NULL;
}

#endif
