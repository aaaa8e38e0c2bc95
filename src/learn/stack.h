/* stack.h - recurrent layers over rows of unlike length, in one direction or both.
 *
 *     one      x -> NAME.k -> x
 *     both     x -turn.k-> NAME.k.reverse -back.k-+
 *              x --------> NAME.k ----------------+-both.k-> x [T][B][2 H] */
#ifndef STRETTO_LEARN_STACK_H
#define STRETTO_LEARN_STACK_H

#include "model/net.h"

struct stack_layer {
    const char *name; /* of the cell: "lstm" */
    i32 k;            /* number of the layer */
    bool both;        /* both directions */
    i32 length;       /* input with the steps of each row, longest first */
};
/* Adds the layer behind *x.  top: the ops of both directions, -1 = none; may be NULL. */
err stack_add(struct net *n, const struct stack_layer *layer, i32 *x, i32 top[2]);

#endif
