/* column_rank.h - which columns of a series help to predict its first target, by a random forest on rows of lags.
 *
 *     series --origins--> table: last two values, the value a season before, mean of a season, known values, calendar | target
 *            --forest--> importance of its inputs --sums by column--> ranks
 *
 * Inputs of random numbers stand among them: what ranks below them helps no more than chance.  The importance is the decrease of
 * the squared error by splits at an input (Breiman, 2001); it favours inputs of many values, and columns that say the same share
 * it. */
#ifndef STRETTO_LEARN_COLUMN_RANK_H
#define STRETTO_LEARN_COLUMN_RANK_H

#include "base/arena.h"
#include "data/series.h"
#include "learn/learner.h"

struct column_rank {
    const char *name; /* of the series' column; "calendar"; "random numbers" */
    f64 share;        /* of the importance of all; they sum to 1 */
    bool chance;      /* at most the share of the best input of random numbers for each of its own inputs */
};

struct column_ranks {
    struct column_rank *of; /* [n] in descending order */
    i32 n;
    i64 rows, horizon;      /* origins in the table; steps ahead */
    i32 trees;
    f64 r2;                 /* out of bag */
    struct arena arena;
};

/* From the rows [0, rows) of a series, `horizon` steps ahead.  o: --trees, --seed.  E301 where the rows are too few, E212 for a
 * constant target. */
err column_ranks_make(const struct series *s, i64 rows, i64 horizon, const struct options *o, const struct resources *use,
                      struct column_ranks *out);
void column_ranks_free(struct column_ranks *r);

#endif
