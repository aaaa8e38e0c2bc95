/* bins.h - cells of a table as bins of one byte, column by column: what a forest learns from and what it reads in a prediction.
 *
 *     column of numbers   cut 0.5 | 1.5 | ..        bin = 1 + cuts below the value       at most 254 cuts: quantiles
 *     column of words     words in the order of the mean target, then as numbers         a word of no bin: missing
 *     missing cell        bin 0
 *
 * Words are ordered once, by the share of class 1, or by the first principal component of the class shares where there are more
 * classes (Coppersmith, Hong, Hosking: Partitioning nominal attributes in decision trees, 1999), or by the mean of numbers. */
#ifndef STRETTO_LEARN_FOREST_BINS_H
#define STRETTO_LEARN_FOREST_BINS_H

#include "base/arena.h"
#include "base/pool.h"
#include "data/cuts.h"
#include "learn/table_set.h"

enum { BINS = 256 };
#define NO_TARGET 0xffffffffu

struct bins {
    i32 n;                 /* inputs; columns with one value are left out */
    const char **name;     /* [n] */
    bool *words;           /* [n] */
    i32 *cut_at;           /* [n + 1] first cut of an input in `cut` */
    f64 *cut;              /* ascending within an input */
    i32 *word_at;          /* [n + 1] first word of an input in `word`, `word_bin` */
    const char **word;
    u8 *word_bin;
    struct arena arena;    /* owns all of the above */
};

/* The targets of rows: classes 0.., or numbers in fixed point, so that sums are exact and have no order. */
struct bin_target {
    i32 nclass;            /* 0 = numbers */
    u32 *value;            /* [rows] class, or number: (value - low) / unit; NO_TARGET = missing */
    f64 low, unit;         /* low + unit * v; v < 2^24 */
};

/* Cuts and orders from the first `rows` rows.  constant: names of the inputs that were left out, for the user. */
err bins_make(const struct table_set *s, i64 rows, const struct bin_target *target, struct pool *pool, struct bins *out,
              struct str *constant);
void bins_free(struct bins *b);
i32 bins_count(const struct bins *b, i32 input); /* bins of an input, that of missing cells included */

/* The inputs of `b` in a table: column [n].  E903. */
err bins_find(const struct bins *b, const struct table_set *s, const struct column **column);
/* Bins of rows [from, to) of these columns: out [n][to - from].  A column without any cell may have another type. */
err bins_fill(const struct bins *b, const struct column *const *column, i64 from, i64 to, struct pool *pool, u8 *out);

#endif
