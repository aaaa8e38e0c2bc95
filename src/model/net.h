/* net.h - a network as a list of ops over one box [B rows x T steps x L layers], and the bound step that runs it.
 *
 *     input x [T][B][I] --> seg dense --> lstm.0 --> lstm.1 --end--> decode --> dropout --> head dense --> loss(target, base)
 *           l = 0             1            2           3              4           5            6             7
 *
 * An op is one layer of the box (its index is l).  It reads one or two buffers and writes one; buffers are [T][B][F], time-major,
 * F a multiple of LANES, padded columns zero.  A buffer has one consumer that sends a gradient back (net_check), so gradients are
 * written, never added.  Parameters of all ops live in one flat vector theta (packed layouts of kern.h, blocks aligned to LANES,
 * padded lanes zero): the optimiser sees flat ranges, files see canonical tensors (layer.tensor/load/store).
 *
 * Nothing here knows devices, threads or files.  A box may be cut along b and t into plain numbers (struct part). */
#ifndef STRETTO_MODEL_NET_H
#define STRETTO_MODEL_NET_H

#include "base/arena.h"
#include "base/option_structs.h"
#include "kern/kern.h"

struct layer;

enum activation { ACT_NONE, ACT_RELU, ACT_TANH };
enum { NET_OPS = 96, NET_BUFS = 160, NET_IN = 5 };

struct buf {
    char name[24];
    i32 T, F;     /* steps and features (unpadded); storage [T][B][Fp], Fp = round_up(F, LANES) */
    bool input;   /* bound to the batch at every step */
    bool ids;     /* i32 category numbers instead of f32 (input only, F = 1, storage [T][B] without padding) */
    bool grad;    /* a gradient flows back into it */
    i32 consumer; /* op that sends the gradient, -1 = none */
    i32 role;     /* input: what the client fills it with, a number of the client's; 0 = not said */
    i32 item;     /* input: which of several of this role */
};

/* Specification of an op by the builder; unused fields stay 0. */
struct op_spec {
    const char *layer; /* name in layers.def: "dense", "recurrent", "decode", "embed", "dropout", "norm", "loss_mse", ... */
    char name[24];     /* "lstm.0"; prefix of its tensors in files */
    i32 in[NET_IN];    /* input buffers; meaning per layer (layer.help). Absent ones must be -1: start with net_spec() */
    /* The options of layers by name: hidden, cell, precision, projection, recompute, dropout, .. (base/option_structs.h). */
    union {
        struct net_options options;
        struct {
#define OPTION_NET OPTION_MEMBER32
#include "base/option_members.h"
        };
    };
    i32 units;         /* outputs of a dense, width of an embedding */
    u32 how;                  /* enum cell_how of a recurrent op: speed, never bits; may be set when the net is built */
    enum activation act;
    i32 vocab;      /* rows of an embedding */
    i32 steps;      /* decode, unroll: output steps */
    i32 share;      /* op whose parameters are used and trained too (decode: the cell), -1 = none */
    bool zero_init; /* initialize parameters to zero */
    bool zero_head; /* unroll: initialize the head to zero */
    i32 nquantile;  /* quantile loss */
    f32 quantile[16];
};

struct op {
    struct op_spec spec;
    const struct layer *layer;
    i32 l;                  /* index */
    i32 out, end;           /* buffers written; end = state after the last step (recurrent): T = states, F = H; -1 = none */
    i32 T, I, F;            /* steps of the op's parts, features in, features out */
    i64 theta0, ntheta;     /* block in theta */
    i64 derived0, nderived; /* block of copies made by prep (transposes) */
};

struct net {
    i32 nop, nbuf;
    struct op op[NET_OPS];
    struct buf buf[NET_BUFS];
    i64 ntheta, nderived; /* P and the derived floats, multiples of LANES */
    struct net_options options; /* of the ops to come: a client copies them into each op_spec */
};

/* Build: inputs first, then ops in order of l. Each function returns the index of the buffer or op through out. net_spec
 * returns a spec with one input and everything else absent. After a failure of net_input or net_op the net must not be used. */
struct op_spec net_spec(const char *layer, const char *name, i32 in);
void net_init(struct net *n);
err net_input(struct net *n, const char *name, i32 T, i32 F, bool ids, i32 *out);
err net_op(struct net *n, const struct op_spec *spec, i32 *op);
err net_check(const struct net *n);
/* E103 when the kernels lack the precision that an op, or a cell by itself, wants. */
err net_runs(const struct net *n, const struct kern *k);
err net_cell_runs(enum cell_kind cell, enum precision p, const struct kern *k);
/* Number of batch rows in this process (n) and in the whole batch (of). They differ only for ranks that share a batch by time
 * slices. A layer decides by `of`, so that decisions do not depend on the distribution. */
struct rows {
    i32 n, of;
};
static inline struct rows rows_all(i32 B) { return (struct rows){B, B}; }
/* Rows per micro-batch if rows are time slices: few rows with many steps each, so that zeroing and merging gradients is cheap
 * relative to the work. 16 devices can share 16 rows; kernels prefer tiles of 4 rows. */
static inline i32 slice_grain(i32 B) {
    const i32 rows = ceil_div(B, 16);
    return rows > 2 ? round_up(rows, 4) : rows;
}
static inline i32 slice_grains(i32 B) { return ceil_div(B, slice_grain(B)); }
static inline i32 buf_fp(const struct buf *b) { return round_up(b->F, LANES); }
static inline i64 buf_floats(const struct buf *b, i32 B) {
    return b->ids ? (i64)b->T * B : (i64)b->T * B * round_up(b->F, LANES);
}
static inline bool buf_sends(const struct buf *b) { return b->grad && b->consumer >= 0; } /* it has a gradient buffer */
bool net_recomputes(const struct net *n); /* some recurrent op recomputes its gates in backward */
i32 net_find_op(const struct net *n, const char *name);                                   /* -1 = none */
i64 op_saved_floats(const struct op *op, const struct net *n, struct rows B);   /* kept between forward and backward */
i64 op_scratch_floats(const struct op *op, const struct net *n, struct rows B); /* one block per op; parts of different rows use
                                                                                 * it at once */
void net_weights_init(const struct net *n, u64 seed, f32 *theta);             /* PyTorch's default distributions */

/* A part of an op's work: rows [b0,b1) and steps [t0,t1), half-open. n > 1: member `me` of a team of n workers that split it by
 * units and run it at the same time (layer.team); for layer.dw: part `me` of n. */
struct part {
    i32 b0, b1, t0, t1;
    i32 me, n;
    char *flags; /* n > 1: a line of TEAM_LINE bytes for each member, of these rows, steps and direction alone; they only rise.
                  * NULL = the members are in different processes (layer_split) */
    u32 how;    /* enum cell_how, 0 = op_spec.how */
    bool apart; /* backward without weight gradients, which layer.dw computes */
};

/* One bound step: pointers to all buffers. The executor owns it; layers only read the pointers. */
struct run {
    const struct net *net;
    const struct kern *kern;
    i32 B;             /* local rows; parts are ranges of these */
    i32 row0, whole;   /* number of the first local row in the batch (a multiple of grain); rows of the whole batch */
    i32 grain, ngrain; /* rows per micro-batch (fixed by the batch, never by the number of threads), number of micro-batches;
                        * micro-batch k covers the rows [k*grain, (k+1)*grain) of the batch */
    f32 **buf;         /* [nbuf] */
    f32 **dbuf;        /* [nbuf] gradient of buf where buf_sends(), else NULL */
    f32 **saved;       /* [nop] */
    f32 **scratch;     /* [nop] op_scratch_floats each */
    f32 **units, **dunits; /* [nop] what members of a split layer exchange (layer_split); NULL = it is not split */
    const f32 *theta, *derived;
    void *const *grad;    /* [ngrain] f32 [ntheta]: layers ADD the parameter gradient of each micro-batch to its own vector */
    void *const *touched; /* [ngrain] u8 [ntheta / LANES]: 1 where a layer with `table` has added to a panel of grad; NULL = not
                           * recorded */
    f64 *loss;      /* [ngrain]: the loss op writes the micro-batch's sum of losses (not divided) */
    f32 loss_scale; /* 1 / number of target cells that are present in the batch */
    u64 seed;
    u32 step;   /* counter for dropout: a recomputation sees the same mask */
    bool warm;  /* rows continue the sequences of the previous step, or their final states were loaded: slices start from these */
    u64 serial; /* number of this step since binding, from 1: base of the flags of teams */
    bool train;
};

#endif
