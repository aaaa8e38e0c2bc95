/* recurrent_pass.h - the boundary states of the forward or backward pass of a sliced recurrent layer, row by row. */
#ifndef STRETTO_MODEL_LAYER_RECURRENT_PASS_H
#define STRETTO_MODEL_LAYER_RECURRENT_PASS_H

#include "model/layer/recurrent.h"

/* Pointers and strides of one pass. A state of all rows: plane 0 is h (or its gradient), plane 1 is c. In backward the initial
 * state of a row is the gradient of its last step's state, and its final state the gradient of its first step's. */
struct pass {
    const struct op *op;
    const struct run *r;
    const struct recurrence *layer;
    bool back;
    i32 states, chunk, chunks;  /* chunk: steps per chunk */
    i32 width[2];               /* floats per row of h, of c */
    i32 head;                   /* backward: steps run to guess a row's final state; 0 = none */
    bool recompute;             /* gates are not stored; a chunk's are recomputed from the state before it when needed */
    bool one_chunk;             /* only one chunk's dz is stored; with a head, dW usually needs no more */
    bool dw_last;               /* compute dW once after the last round: without a head most rows are rerun */
    i64 plane, state;           /* offset from h to c; floats of a state of all rows */
    f32 *initial, *mark;        /* initial states of rows; states after (backward: gradients before) each chunk */
    f32 *final;                 /* the last chunk's mark */
    f32 *initial_fwd;           /* initial and mark of the forward pass */
    const f32 *mark_fwd;
    f32 *rerun;                 /* state after the chunk that is rerun */
    const i32 *prev;            /* [whole] the slice that each slice continues */
    i32 *next, *active;         /* [B]; next: slice that continues the row; active: the row runs */
    i32 *done;                  /* [B] backward: number of chunks from the end with dz; negative: and rerun */
    i32 *live;                  /* [B][T+1] */
    f32 *dw;                    /* [grains][ntheta] */
    i32 rank;                   /* number of directions of the low-rank correction; 0 = none */
    f32 *basis, *response;      /* [rank] states: directions V of initial states, and responses U of final states */
    f32 *component;             /* [rank][B] components of the changes of initial states in this sweep */
    f32 *remote, *remote_component;        /* data of remote rows, stored at the row that continues them */
    f32 *probe_act, *probe_y, *probe_state; /* for runs without stored gates: act and y of a chunk, two states */
    const f32 *given;           /* initial state of rows without prev: in[1], or the gradient of the final state; NULL = zero */
    i32 ngiven;                 /* planes of `given` (1 if only h is passed on) */
};

/* The source of a row's initial state: the final state of a local row, or of a remote row as received. directions: [rank]
 * states, in which the next row's initial state changes (responses; backward: basis). component: component i of a row at
 * [i * B + row]. */
struct origin {
    f32 *final, *directions, *component;
    i32 row;
};
enum { REMOTE = -1 };
/* Source `slice` of the batch, or REMOTE, for local row `row`. */
struct origin pass_origin(const struct pass *w, i32 slice, i32 row);
/* Source of the initial state of slice k. */
struct origin pass_source(const struct pass *w, i32 k);

/* The pass of a chain: backward if c->back. */
struct pass pass_of(const struct chain *c);
/* Kernel arguments of rows k0..k1, each from its forward initial state. */
struct cell_args pass_args(const struct pass *w, i32 k0, i32 k1);
static inline void pass_fwd(const struct pass *w, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    w->layer->fwd(w->op, w->r, w->op->spec.precision, x, (struct part){.b0 = b0, .b1 = b1, .t0 = t0, .t1 = t1, .n = 1});
}
static inline void pass_bwd(const struct pass *w, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    w->layer->bwd(w->op, w->r, x, (struct part){.b0 = b0, .b1 = b1, .t0 = t0, .t1 = t1, .n = 1});
}

/* Local row of a slice. */
static inline i32 pass_row(const struct pass *w, i32 slice) { return slice - w->r->row0; }
static inline f32 *pass_mark(const struct pass *w, i32 chunk) { return w->mark + chunk * w->state; }
/* Plane c of a state (NULL if none); offset of row `row` in plane s. */
static inline f32 *state_c(const struct pass *w, const f32 *state) { return w->states > 1 ? (f32 *)state + w->plane : NULL; }
static inline i64 state_at(const struct pass *w, i32 s, i32 row) { return s * w->plane + (i64)row * w->width[s]; }

/* Row `row` of state `to` = row from_row of `from` (NULL = zero); state_give: = the same row of w->given. */
void state_copy(const struct pass *w, f32 *to, i32 row, const f32 *from, i32 from_row);
void state_give(const struct pass *w, f32 *to, i32 row);
/* Adds row k of w->given to row k of `to`. */
void state_add_given(const struct pass *w, f32 *to, i32 k);
/* Largest |a - b| of two rows; given: of |a + given - b|, with the row of w->given that b has. NaN if any value is. */
f32 state_distance(const struct pass *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row, bool given);
f32 state_largest(const struct pass *w, const f32 *a, i32 row);

/* Low-rank correction (recurrent_lowrank.c): initial basis of row k; responses of rows that ran; corrected initial states. */
void lowrank_begin(const struct pass *w, i32 k);
void lowrank_clear(const struct pass *w, i32 k); /* row k has run from its initial state: no pending change */
void lowrank_responses(const struct chain *c, i32 k0, i32 k1, const u8 *todo);
f32 lowrank_carry(const struct chain *c, i32 k, f32 tol);

#endif
