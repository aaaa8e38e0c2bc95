/* layer_args.h - kernel arguments of a recurrent layer with their own buffers and position-dependent inputs: the cell tests run
 * them with different partitions and compare bit by bit. */
#ifndef STRETTO_TESTS_KERN_LAYER_ARGS_H
#define STRETTO_TESTS_KERN_LAYER_ARGS_H

#include "kern/pack.h"

struct shape {
    i32 T, B, I, H;
    bool ragged, state, dend, no_dy, no_dx; /* state: h0, c0 given; dend: dhT, dcT given */
};

struct bench {
    struct cell_args box;
    enum cell_kind kind;
    f32 *w, *bias, *wt, *dw, *dbias;
    f32 *x, *y, *act, *h0, *c0, *hT, *cT, *dy, *dhT, *dcT, *dx, *dh0, *dc0, *carry;
    i32 *live;
    i64 dw_n, db_n;
};

extern const char *const kind_name[];

f32 *floats(i64 n);
/* Steps of row b: all, or sorted by length, longest first, the last row without any step. */
i32 steps_of(const struct shape *s, i32 b);
/* Allocates all buffers, zeroed; x rows are I + 3 apart, y and dx hold 7 so that unwritten values are visible. */
void bench_new(struct bench *e, const struct cell_kern *k, enum cell_kind kind, const struct shape *s);
void bench_fill(struct bench *e); /* fills every input with the test's random numbers; padding stays zero */
void bench_free(struct bench *e);
/* Compares everything that fwd, bwd and dw write, except act. `what` names the run in the message. */
void bench_same_bits(const char *what, const struct bench *a, const struct bench *b); /* all but the weight gradients: */
void bench_same_dw(const char *what, const struct bench *a, const struct bench *b);   /* dw and dbias */

#endif
