/* input.h - the inputs of a forecaster's net, by role: net.c declares them, the batch fills them.
 *
 *     INPUT(role, name, ids)      ids: numbers of categories, columns or rows instead of values
 *
 * buf.role holds the role, buf.item the number of the category or the recurrent layer.  The name is for messages and plans. */
#ifndef STRETTO_LEARN_FORECAST_INPUT_H
#define STRETTO_LEARN_FORECAST_INPUT_H

#include "model/net.h"

#define FORECAST_INPUTS(INPUT)                                                                                                   \
    INPUT(X, "x", false)                     /* the context */                                                                   \
    INPUT(CATEGORY, "category", true)        /* item: its number; one code a time step */                                        \
    INPUT(COLUMN, "column", true)            /* the target column of a sample */                                                 \
    INPUT(FUTURE, "future", false)           /* known features of the horizon */                                                 \
    INPUT(FIRST, "first", false)             /* last values of the context, for the autoregressive decoder */                    \
    INPUT(Y, "y", false)                     /* targets; NaN = missing */                                                        \
    INPUT(BASE, "base", false)               /* forecasts of the base */                                                         \
    INPUT(LENGTH, "length", true)            /* the four below place a slice: its steps, */                                      \
    INPUT(AFTER, "after", true)              /* the row that it continues, */                                                    \
    INPUT(BEFORE, "before", true)            /* the row that it continues when the window is read backward, */                   \
    INPUT(FIRST_SLICE, "first_slice", true)  /* the row of the window's first slice */                                           \
    INPUT(STATE, "state", false)             /* item: its layer; the state that the last chunk left */

enum input_role {
    INPUT_NONE, /* no input */
#define INPUT(role, name, ids) INPUT_##role,
    FORECAST_INPUTS(INPUT)
#undef INPUT
};

/* Declares input `role` of T steps and F features; the name of a role with several items ends in ".item". */
err forecast_input(struct net *n, enum input_role role, i32 item, i32 T, i32 F, i32 *out);
i32 forecast_find_input(const struct net *n, enum input_role role); /* the first buffer of this role; -1 = none */

#endif
