/* recurrent_way.h - one way (forward or backward) through the slices of a recurrent layer: its states, row by row. */
#ifndef STRETTO_MODEL_LAYER_RECURRENT_WAY_H
#define STRETTO_MODEL_LAYER_RECURRENT_WAY_H

#include "model/layer/recurrent.h"

/* Where a way (forward or backward) has its states.  A state of all rows: plane 0 is h (or its gradient), plane 1 c. */
struct way {
    const struct op *op;
    const struct run *r;
    const struct recurrence *walk;
    bool back;
    i32 states, chunk, chunks; /* chunk: steps of one */
    i32 width[2];       /* floats of a row of h, of c */
    i32 head;           /* backward: steps that were run to guess what a row hands on; 0 = none */
    bool recompute;     /* gates are not kept: those of a chunk are made anew from the states before it when they are needed */
    const f32 *forth;   /* the marks of the forward way */
    bool ring;          /* dz of a chunk only is kept: with a head, dW as a rule needs no more */
    bool late;          /* dW once, after the last round: no head, and most of what is walked back now will be so again */
    i64 plane, state;   /* floats from h to c; of a state of all rows */
    f32 *begin, *mark;  /* what rows began from; states after (backward: gradients before) each chunk */
    f32 *end;           /* the mark that is handed on */
    f32 *fresh;         /* of the chunk that runs again */
    const i32 *after;   /* [whole] the slice that each slice goes on from */
    i32 *next, *going;  /* [B]; next: a slice of the batch */
    i32 *walked;        /* [B] backward: chunks from the end on whose dz is there; negative: and that ran again */
    i32 *live;          /* [B][T+1] */
    f32 *dw;            /* [grains][ntheta] */
    i32 rank;           /* directions in which it is known how ends answer to begins; 0 = none */
    f32 *ask, *answer;  /* [rank] states: directions V of begins, and what they do to ends, U */
    f32 *share;         /* [rank][B] how far begins have moved in each direction, in this sweep */
    f32 *guest, *guest_share; /* of rows that another rank has, each in the place of the row that begins from it */
    f32 *spare, *spare_y, *spare_state; /* a walk that is not kept: act, y of a chunk, two states */
    const f32 *given;   /* begin of rows that follow none: in[1], or the gradient of the end; NULL = zero */
    i32 ngiven;         /* planes of it (a layer that hands on h alone has one) */
};

/* What a row begins from: the end of a row that is here, or of one that another rank has and has told us of.  known: directions
 * [rank] of states, in which begins of the next row move (answers; backward, directions); share: i-th of row at [i * B + row]. */
struct origin {
    f32 *end, *known, *share;
    i32 row;
};
enum { ELSEWHERE = -1 };
/* Of slice `prev` of the batch, for our row `row`. */
struct origin way_origin(const struct way *w, i32 prev, i32 row);

struct way way_of(const struct chain *c, bool backward);
/* The op over rows k0..k1, each from its begin of the forward way. */
struct cell_args way_box(const struct way *w, const f32 *begin, i32 k0, i32 k1);
static inline void way_fwd(const struct way *w, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    w->walk->fwd(w->op, w->r, w->op->spec.precision, x, (struct part){.b0 = b0, .b1 = b1, .t0 = t0, .t1 = t1, .n = 1});
}
static inline void way_bwd(const struct way *w, const struct cell_args *x, i32 b0, i32 b1, i32 t0, i32 t1) {
    w->walk->bwd(w->op, w->r, x, (struct part){.b0 = b0, .b1 = b1, .t0 = t0, .t1 = t1, .n = 1});
}

static inline f32 *way_mark(const struct way *w, i32 chunk) { return w->mark + chunk * w->state; }
/* Plane s of a state: h, or c (NULL where there is none); and what row `row` has there. */
static inline f32 *way_c(const struct way *w, const f32 *state) { return w->states > 1 ? (f32 *)state + w->plane : NULL; }
static inline i64 way_at(const struct way *w, i32 s, i32 row) { return s * w->plane + (i64)row * w->width[s]; }

/* State of row `row` of `to` = that of from_row of `from`; from NULL = zero.  The same of what is given to it. */
void way_copy(const struct way *w, f32 *to, i32 row, const f32 *from, i32 from_row);
void way_give(const struct way *w, f32 *to, i32 row);
/* What row k is given, added to the state of row k. */
void way_add_given(const struct way *w, f32 *to, i32 k);
/* The largest |a - b| of two states, and of a and what row b_row is given besides; NaN where one is. */
f32 way_distance(const struct way *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row);
f32 way_gap(const struct way *w, const f32 *a, i32 a_row, const f32 *b, i32 b_row);
f32 way_largest(const struct way *w, const f32 *a, i32 row);

/* Rank-r correction (recurrent_answer.c): first directions of row k; answers of rows that ran; begins that follow from them. */
void way_ask_anything(const struct way *w, i32 k);
void way_at_rest(const struct way *w, i32 k); /* row k has run from its begin: no move of it is left to carry over */
void way_answers(const struct chain *c, i32 k0, i32 k1, const u8 *todo);
f32 way_carry_fwd(const struct chain *c, i32 k, f32 tol);
f32 way_carry_bwd(const struct chain *c, i32 k, f32 tol);

#endif
