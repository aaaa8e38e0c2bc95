/* layer.h - descriptor of a kind of layer: one file, one const struct, one line in layers.def.
 *
 * fwd and bwd process a part of the batch and the steps, and give the same bits for every partition. bwd covers whole
 * micro-batches (grains): for each micro-batch in [b0,b1) it ADDS the parameter gradient to run->grad[grain] +
 * op->theta0, and WRITES the gradient of its input buffer, if that has one. fwd and bwd allocate nothing and cannot fail;
 * shape() checks everything before. bwd may overwrite the gradient of its own output. Padding of what is written is zero. */
#ifndef STRETTO_MODEL_LAYER_H
#define STRETTO_MODEL_LAYER_H

#include <string.h>

#include "model/chain.h"
#include "model/net.h"

/* One canonical tensor of an op as named in files: "<op>.weight" [rows, cols] row-major, or [rows] if cols = 0. */
struct tensor_info {
    char name[48];
    i32 rows, cols;
};

/* A layer whose hidden units members in different processes share (part.n > 1, part.flags NULL): its cell runs step by step, and
 * between two steps what a member computed for its panels goes to the others, forward in run->units [entries][NP][B][LANES],
 * backward in run->dunits [2][NP][B][floats], which alternate.  A part of fwd and bwd is one step; bits as without members. */
struct layer_split {
    bool (*can)(const struct op *op, const struct net *n);
    i32 (*entries)(const struct op *op); /* a step each, then what the end state needs */
    i32 (*floats)(const struct op *op);
    void (*fwd)(const struct op *op, const struct run *r, struct part part);
    void (*gather)(const struct op *op, const struct run *r, struct part part); /* units -> out and end, all panels */
    void (*bwd)(const struct op *op, const struct run *r, struct part part);    /* neither dx nor weight gradients */
    void (*dgather)(const struct op *op, const struct run *r, struct part part); /* dunits -> what the layer keeps */
    void (*dx)(const struct op *op, const struct run *r, struct part part); /* of the steps of the part, by one member */
};

struct layer {
    const char *name;
    const char *help; /* one line with the shape */
    bool team;        /* a team may run fwd and bwd split by units (part.n > 1); the layer synchronizes the members */
    bool steps;       /* calls of fwd on consecutive ranges of steps (bwd in reverse) give the bits of one call */
    bool draws;       /* training draws random numbers by run->seed and run->step */
    bool table;       /* theta is a table with rows of round_up(F, LANES): a sample adds to at most T of them and records which */
    i32 nin;          /* number of inputs: in[0..nin) */
    i32 after;        /* > 0: if this input is given, rows are time slices and the layer's chain runs instead of fwd and bwd */
    i32 from;         /* > 0: with this input a row may depend on any other row: parts read all rows and write their own */
    /* Checks spec and inputs, sets T, I, F, ntheta, nderived, declares out (and end) with net_out(). */
    err (*shape)(struct net *n, struct op *op);
    i64 (*saved)(const struct op *op, const struct net *n, struct rows B);   /* NULL = 0 */
    i64 (*scratch)(const struct op *op, const struct net *n, struct rows B); /* NULL = 0 */
    f64 (*flops)(const struct op *op, const struct net *n, i32 B, bool backward);
    void (*init)(const struct op *op, u64 seed, f32 *theta); /* NULL = no parameters; theta points at the op's block */
    /* NULL = none; theta and derived are the vectors of the whole net. */
    void (*prep)(const struct op *op, const struct net *n, const struct kern *k, const f32 *theta, f32 *derived);
    void (*fwd)(const struct op *op, const struct run *r, struct part part);
    void (*bwd)(const struct op *op, const struct run *r, struct part part);
    /* NULL = bwd computes weight gradients itself. Otherwise dw computes what bwd with part.apart omits, with the same bits, in
     * any number of sequential parts. Part k of n adds to floats [adds(k,n), adds(k+1,n)) of the op's theta; all parts add to
     * those from adds(n,n) on. */
    void (*dw)(const struct op *op, const struct run *r, struct part part);
    i64 (*adds)(const struct op *op, i32 k, i32 n);
    const struct layer_split *split; /* NULL = all units of the layer are computed in one process */
    /* If op_is_chain(): describes the recurrence over the rows of r, which are the slices. */
    void (*chain)(const struct op *op, const struct run *r, bool backward, struct chain *out);
    i32 (*tensors)(const struct op *op, struct tensor_info out[8]); /* NULL = none; returns the count */
    /* True if all functions above but init and shape touch buffers, weights and gradients through run->kern alone (of ids: pass
     * their address on), so that they work on the memory of a device.  NULL = never: a device runs the op on the host. */
    bool (*on_device)(const struct op *op, const struct net *n);
    /* Offset of element (row, col) of a tensor in the op's block of theta. ~offset for a bias that theta holds only as part of a
     * sum: storing gives zero, loading adds to the element at offset. */
    i64 (*place)(const struct op *op, i32 tensor, i32 row, i32 col);
};

static inline bool op_is_chain(const struct op *op) { return op->layer->after > 0 && op->spec.in[op->layer->after] >= 0; }
static inline bool op_crosses(const struct op *op) { return op->layer->from > 0 && op->spec.in[op->layer->from] >= 0; }

const struct layer *layer_find(const char *name);
i32 layer_count(void);
const struct layer *layer_at(i32 i);

/* For shape(): declares an output buffer of the op; returns input i as a buffer of numbers (E1 if it is absent or ids). */
err net_out(struct net *n, const char *name, i32 T, i32 F, bool grad, i32 *out);
err layer_input(const struct net *n, const struct op *op, i32 i, const struct buf **out);
/* E103 unless min <= v <= max. For numbers that no option gives: the table of options has the ranges of the others. */
err layer_range(const struct op *op, const char *what, i64 v, i64 min, i64 max);

/* Rows of different lengths: input i of an op holds lengths as ids [1][B], in 0..T, longest first (checked by layer_is_lengths
 * in shape()). layer_live computes the number of live rows for each of T steps; NULL if all rows are always live. Invalid
 * lengths are clamped. */
err layer_is_lengths(const struct net *n, const struct op *op, i32 i);
const i32 *layer_live(i32 T, i32 B, const i32 *length, i32 *live);

/* For layer.flops: one operation for each value of the output. */
f64 layer_value_flops(const struct op *op, const struct net *n, i32 B, bool backward);

/* For layer.on_device: every op of the layer works there. */
bool layer_on_device(const struct op *op, const struct net *n);

/* Fills one entry of tensors(). */
void layer_tensor(struct tensor_info *t, const struct op *op, const char *what, i32 rows, i32 cols);

/* The same with PyTorch's names for recurrent modules: "lstm.1.reverse" and "weight_ih" give lstm.weight_ih_l1_reverse; a name
 * without a number is layer 0. */
void layer_torch_tensor(struct tensor_info *t, const struct op *op, const char *what, i32 rows, i32 cols);
/* The tensors of the op's cell with H units; returns their number. */
i32 layer_cell_tensors(const struct op *op, i32 H, struct tensor_info *out);

/* Initial value of weight i of an op: uniform in [-a,a), or normal. */
f32 layer_uniform(const struct op *op, u64 seed, i64 i, f64 a);
f32 layer_normal(const struct op *op, u64 seed, i64 i);

/* PyTorch's initial weights of a cell: packed w, then bias, from theta on; returns the number of random numbers used. */
struct cell;
i64 layer_cell_init(const struct op *op, const struct cell *c, i32 I, i32 H, u64 seed, f32 *theta);

/* Conversion of a tensor between the op's block of theta and canonical order. Load all tensors in the order of tensors(). */
void layer_store(const struct op *op, i32 tensor, const f32 *theta, f32 *canonical);
void layer_load(const struct op *op, i32 tensor, const f32 *canonical, f32 *theta);

/* A part as runs of contiguous rows in a [T][B] buffer: one run if it spans the whole batch, else one per step. Run i starts at
 * row *first (t*B + b) and has *n rows. */
static inline i32 part_runs(const struct run *r, struct part p) { return p.b1 - p.b0 == r->whole ? 1 : p.t1 - p.t0; }
static inline i64 part_run(const struct run *r, struct part p, i32 i, i32 *n) {
    *n = p.b1 - p.b0 == r->whole ? (p.t1 - p.t0) * r->B : p.b1 - p.b0;
    return (i64)(p.t0 + i) * r->B + p.b0;
}

/* Index of row `at` of a [T][B] buffer in the whole batch: the counter of random numbers. */
static inline i64 run_place(const struct run *r, i64 at) { return at / r->B * r->whole + r->row0 + at % r->B; }

/* Micro-batch g as a part of p, which covers whole micro-batches. */
static inline struct part part_grain(const struct run *r, struct part p, i32 g) {
    p.b0 = imax(p.b0, g * r->grain - r->row0);
    p.b1 = imin(p.b1, (g + 1) * r->grain - r->row0);
    return p;
}
static inline i32 grain_first(const struct run *r, struct part p) { return (p.b0 + r->row0) / r->grain; }
static inline i32 grain_end(const struct run *r, struct part p) { return ceil_div(p.b1 + r->row0, r->grain); }
static inline i32 grain_of(const struct run *r, i32 b) { return (b + r->row0) / r->grain; } /* micro-batch of local row b */
static inline f32 *grain_grad(const struct run *r, i32 g, i64 at) { return (f32 *)r->grad[g] + at; }
/* For layers with `table`: marks n floats from `at` of a micro-batch's gradient as nonzero; both are multiples of LANES. */
static inline void grain_touch(const struct run *r, i32 g, i64 at, i64 n) {
    for (i64 i = 0; r->touched && i < n; i += LANES) ((u8 *)r->touched[g])[(at + i) / LANES] = 1;
}

/* Buffer of input i, as numbers or as ids, and its gradient (NULL if none is propagated). */
static inline f32 *run_in(const struct op *op, const struct run *r, i32 i) { return r->buf[op->spec.in[i]]; }
static inline const i32 *run_ids(const struct op *op, const struct run *r, i32 i) {
    return (const i32 *)(const void *)run_in(op, r, i);
}
static inline f32 *run_din(const struct op *op, const struct run *r, i32 i) {
    return buf_sends(&r->net->buf[op->spec.in[i]]) ? r->dbuf[op->spec.in[i]] : NULL;
}
static inline f32 *run_dout(const struct run *r, i32 buf) {
    return buf >= 0 && buf_sends(&r->net->buf[buf]) ? r->dbuf[buf] : NULL;
}

#endif
