/* recurrent_way.h - the boundary states of one direction (forward or backward) of a sliced recurrent layer, row by row. */
#ifndef STRETTO_MODEL_LAYER_RECURRENT_WAY_H
#define STRETTO_MODEL_LAYER_RECURRENT_WAY_H

#include "model/layer/recurrent.h"

/* Pointers and strides of one direction. A state of all rows: plane 0 is h (or its gradient), plane 1 is c. */
struct way {
    const struct op *op;
    const struct run *r;
    const struct recurrence *walk;
    bool back;
    i32 states, chunk, chunks; /* chunk: steps per chunk */
    i32 width[2];       /* floats per row of h, of c */
    i32 head;           /* backward: steps run to guess what a row passes on; 0 = none */
    bool recompute;     /* gates are not stored; a chunk's are recomputed from the state before it when needed */
    const f32 *forth;   /* marks of the forward direction */
    bool ring;          /* only one chunk's dz is stored; with a head, dW usually needs no more */
    bool late;          /* compute dW once after the last round: without a head most rows are rerun */
    i64 plane, state;   /* offset from h to c; floats of a state of all rows */
    f32 *begin, *mark;  /* initial states of rows; states after (backward: gradients before) each chunk */
    f32 *end;           /* the mark that is passed on */
    f32 *fresh;         /* state after the chunk that is rerun */
    const i32 *after;   /* [whole] the slice that each slice continues */
    i32 *next, *going;  /* [B]; next: slice that continues the row; going: active */
    i32 *walked;        /* [B] backward: number of chunks from the end with dz; negative: and rerun */
    i32 *live;          /* [B][T+1] */
    f32 *dw;            /* [grains][ntheta] */
    i32 rank;           /* number of directions of the low-rank correction; 0 = none */
    f32 *ask, *answer;  /* [rank] states: directions V of initial states, and responses U of final states */
    f32 *share;         /* [rank][B] components of the moves of initial states in this sweep */
    f32 *guest, *guest_share; /* data of remote rows, stored at the row that continues them */
    f32 *spare, *spare_y, *spare_state; /* for runs without stored gates: act and y of a chunk, two states */
    const f32 *given;   /* initial state of rows without predecessor: in[1], or the gradient of the final state; NULL = zero */
    i32 ngiven;         /* planes of `given` (1 if only h is passed on) */
};

/* The source of a row's initial state: the final state of a local row, or of a remote row as received. known: [rank] states,
 * directions in which the next row's initial state moves (responses; backward: directions). share: component i of a row at [i *
 * B + row]. */
struct origin {
    f32 *end, *known, *share;
    i32 row;
};
enum { ELSEWHERE = -1 };
/* Source `prev` (slice of the batch) for local row `row`. */
struct origin way_origin(const struct way *w, i32 prev, i32 row);

struct way way_of(const struct chain *c, bool backward);
/* Kernel arguments of rows k0..k1, each from its forward initial state. */
struct cell_args way_box(const struct way *w, const f32 *begin, i32 k0, i32 k1);
static inline void way_fwd(const struct way *w, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    w->walk->fwd(w->op, w->r, w->op->spec.precision, x, (struct part){.b0 = b0, .b1 = b1, .t0 = t0, .t1 = t1, .n = 1});
}
static inline void way_bwd(const struct way *w, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    w->walk->bwd(w->op, w->r, x, (struct part){.b0 = b0, .b1 = b1, .t0 = t0, .t1 = t1, .n = 1});
}

static inline f32 *way_mark(const struct way *w, i32 chunk) { return w->mark + chunk * w->state; }
/* Plane c of a state (NULL if none); offset of row `row` in plane s. */
static inline f32 *way_c(const struct way *w, const f32 *state) { return w->states > 1 ? (f32 *)state + w->plane : NULL; }
static inline i64 way_at(const struct way *w, i32 s, i32 row) { return s * w->plane + (i64)row * w->width[s]; }

/* Row `row` of state `to` = row from_row of `from` (NULL = zero); way_give: = the same row of w->given. */
void way_copy(const struct way *w, f32 *to, i32 row, const f32 *from, i32 from_row);
void way_give(const struct way *w, f32 *to, i32 row);
/* Adds row k of w->given to row k of `to`. */
void way_add_given(const struct way *w, f32 *to, i32 k);
/* Largest |a - b| of two rows; way_gap: largest |a + given - b|, with the row of w->given that b has. NaN if any value is. */
f32 way_distance(const struct way *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row);
f32 way_gap(const struct way *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row);
f32 way_largest(const struct way *w, const f32 *a, i32 row);

/* Low-rank correction (recurrent_answer.c): initial directions of row k; responses of rows that ran; resulting initial states. */
void way_ask_anything(const struct way *w, i32 k);
void way_at_rest(const struct way *w, i32 k); /* row k has run from its initial state: no pending move */
void way_answers(const struct chain *c, i32 k0, i32 k1, const u8 *todo);
f32 way_carry_fwd(const struct chain *c, i32 k, f32 tol);
f32 way_carry_bwd(const struct chain *c, i32 k, f32 tol);

#endif
