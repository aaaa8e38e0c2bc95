/* fit.h - private to this folder: the fit of boosted trees on rows of a series, and how much work it may be. */
#ifndef STRETTO_BASES_TREES_FIT_H
#define STRETTO_BASES_TREES_FIT_H

#include "bases/trees/trees.h"

/* Rows are drawn evenly from all (origin, column, step). */
struct trees_effort {
    i64 rows, valid_rows; /* at most, of training and of validation */
    i32 trees;            /* at most */
    i32 patience;         /* trees without a better loss on validation rows before the end; validation chooses their number */
    struct trees_growth growth;
};
struct trees_effort trees_effort_of(bool absolute, bool probe);

/* Origins [from, to) whose rows a fit may use, all their steps inside of the range's end. */
struct trees_range {
    i64 from, to;
};

/* What a fit found. */
struct trees_found {
    i32 ntree; /* best number of trees */
    i64 rows, valid_rows;
    f64 loss; /* mean on validation rows: absolute or squared error, scaled units; NaN = no such rows */
};

/* Fits `shape` on windows inside [0, train); on windows with targets inside [train, valid), which may be empty, it chooses the
 * number of trees. exact > 0: this number of trees, and no validation. *out = NULL if there are too few rows. E601, E806. */
err trees_fit(const struct series *s, const struct base_spec *p, const struct trees_shape *shape, const struct trees_effort *work,
              i32 exact, struct trees_found *found, struct trees **out);

#endif
