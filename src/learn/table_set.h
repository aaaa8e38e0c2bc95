/* table_set.h - the data kind `table`: records in any order, columns of numbers and of words.
 *
 *     table --roles--> target (--target; "" = none), inputs (every other column but times and --ignore)
 *
 * The learner decides what to do with missing cells: NaN in numbers, -1 in words. */
#ifndef STRETTO_LEARN_TABLE_SET_H
#define STRETTO_LEARN_TABLE_SET_H

#include "data/table.h"
#include "learn/learner.h"

struct table_set {
    struct dataset set;     /* first; set.ntarget is 0 or 1; column 0 is the target if there is one, inputs follow */
    struct table *t;
    i32 target;             /* column of t, -1 = none */
    i32 ninput;
    i32 *input;             /* [ninput] columns of t in their order in the file */
    i32 ntime;              /* time columns, which are not inputs */
};

extern const struct data_kind data_table;

static inline struct table_set *table_set_of(const struct dataset *d) { return (struct table_set *)(uintptr_t)d; }
static inline const struct column *table_input(const struct table_set *s, i32 i) { return &s->t->col[s->input[i]]; }
static inline const struct column *table_target(const struct table_set *s) {
    return s->target < 0 ? NULL : &s->t->col[s->target];
}

/* Continues the hash of a data set with the name and the cells [nrow] of a column, and its words. */
u64 table_column_hash(u64 h, const struct column *c, i64 nrow);
/* Reads a file.  target: the name of the column, "" = none; optional: it may be absent (a model predicts), else E102. */
err table_set_read(const struct options *o, const char *path, const char *target, bool optional, struct dataset **out);
/* Makes `s` have exactly these inputs, in this order: the columns that a model was trained on.  words[i]: the column holds words.
 * E903 names the first that is absent or of another type. */
err table_set_inputs(struct table_set *s, i32 n, const char *const *name, const bool *words);
/* E204 with line, column, value and remedies: the first input of words, for learners that need numbers. */
err table_set_need_numbers(const struct table_set *s, const char *why);
/* The first missing cell of the inputs: E207 with its place, the number of them in its column, and `fix`. */
err table_set_need_all(const struct table_set *s, const char *fix);

#endif
