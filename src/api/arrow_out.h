/* arrow_out.h - predictions as columns of the Arrow C data interface. */
#ifndef STRETTO_API_ARROW_OUT_H
#define STRETTO_API_ARROW_OUT_H

#include "data/arrow_c.h"
#include "learn/learner.h"

struct arrow_column;

struct arrow_out {
    struct arrow_column *column; /* [ncol] */
    i32 ncol;
    i64 nrow, cap;
    bool lines; /* predictions are lines of text: one column "line" */
};

/* Takes the rows of a prediction. */
err arrow_out_head(void *self, i32 ncol, const struct prediction_column *column);
err arrow_out_row(void *self, i32 ncol, const struct prediction_cell *cell);
/* Gives the columns to the caller, who releases both, and leaves `self` empty. */
err arrow_out_give(struct arrow_out *self, struct ArrowArray *array, struct ArrowSchema *schema);
void arrow_out_free(struct arrow_out *self);

#endif
