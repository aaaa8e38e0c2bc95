/* ridge.h - ridge regression (Hoerl, Kennard, Technometrics, 1970) from sums over samples, with an unpenalised constant.
 *
 *     minimise  sum |u W + w0 - y|^2 + PENALTY |D W|^2         D: deviations of the inputs u, so that their units do not matter
 */
#ifndef STRETTO_LEARN_SEQUENCE_RIDGE_H
#define STRETTO_LEARN_SEQUENCE_RIDGE_H

#include "base/arena.h"

struct ridge_sums {
    i32 n, K;     /* inputs, outputs */
    f64 count;    /* samples */
    f64 *u, *y;   /* [n], [K] the caller's, of the next sample */
    f64 *su, *sy; /* sums */
    f64 *uu, *uy; /* [n][n] upper triangle, [n][K] */
    struct arena arena;
};
err ridge_sums_new(i32 n, i32 K, struct ridge_sums *q); /* the caller frees q->arena, also after a failure */
void ridge_sums_add(struct ridge_sums *q);              /* adds the sample in q->u, q->y */
/* weight [n + 1][K], the last row the constant.  Changes the sums.  Without samples, zeros. */
void ridge_sums_solve(struct ridge_sums *q, f64 *weight);

#endif
