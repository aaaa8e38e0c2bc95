/* sequence_set.h - the data kind `sequences`: sequences of numbers in one or more channels, of any lengths, with labels.
 *
 *     id  t  x    y    class         a table in long form: --id names the sequence of a row, --target the label, --time orders;
 *     a   0  0.1  5.0  run           every other column of numbers is a channel.  A .ts file says all this itself
 *     a   1  0.2  6.0  run
 *     b   0  0.3  8.0  walk
 *
 * A record is a sequence: set.nrow = sequences.  Labels that are equal in each sequence belong to the whole of it; where one
 * changes, every step has its own (per_step).  Rows behind the last that has a value are padding and no steps.
 *
 * Record k is sequence at[k]: sequence_set_split draws an order in which every range of records has its share of each class, and
 * a split cuts that order.  A missing value is NaN, a missing class -1. */
#ifndef STRETTO_LEARN_SEQUENCE_SET_H
#define STRETTO_LEARN_SEQUENCE_SET_H

#include "data/table.h"
#include "learn/learner.h"

struct sequence_set {
    struct dataset set; /* first; ntarget = 1 with labels, else 0; column 0 is the label if there is one, channels follow */
    struct table *t;
    bool classes; /* labels are words; else numbers */
    bool per_step;
    i32 target; /* column of the label, -1 = none */
    i32 nchannel;
    i32 *channel;  /* [nchannel] columns of t */
    i32 *id;       /* [nid] columns that name a sequence */
    i32 nid, time; /* time: the column that orders steps, -1 = the order of the file */
    i64 nstep;     /* of all sequences */
    i64 *row;      /* [t->nrow] rows of t by sequence and step */
    i64 *first;    /* [nrow + 1] place in row of the first step of sequence i; padding lies behind the steps */
    i32 *length;   /* [nrow] steps of sequence i */
    i64 *at;       /* [nrow] sequence of record k */
    i64 change;    /* per_step: a row whose label differs from the one before */
    bool cut;      /* by data_kind.before: the table is another set's, and the order of records stays */
};

extern const struct data_kind data_sequences;

static inline struct sequence_set *sequence_set_of(const struct dataset *d) { return (struct sequence_set *)(uintptr_t)d; }

/* Reads a file for training by the options time, id, target, cat, ignore.  E105 without --id or --target, E204 for a channel of
 * words, E207 for a sequence without a value, E209 for an id whose rows lie apart, E211 for equal times. */
err sequence_set_read(const struct options *o, const char *path, struct dataset **out);
/* The same for a model that was trained on these channels; the label may be absent.  E903. */
err sequence_set_read_as(const struct options *o, const char *path, i32 n, const char *const *channel, struct dataset **out);

/* Draws the order of records by the seed and splits it by --validation and --test; a split that is set stays. */
err sequence_set_split(const struct options *o, struct sequence_set *s, struct split *out);

/* The place in the file of a sequence, or of one of its steps. */
void sequence_where(const struct sequence_set *s, i64 sequence, i32 step, char where[256]);
/* The name of a sequence; several columns are joined by "/". */
const char *sequence_name(const struct sequence_set *s, i64 sequence, char out[256]);
i32 sequence_class(const struct sequence_set *s, i64 sequence, i32 step);  /* code of the label column's word, -1 = missing */
f64 sequence_number(const struct sequence_set *s, i64 sequence, i32 step); /* label, NaN = missing */
static inline f64 sequence_value(const struct sequence_set *s, i64 sequence, i32 step, i32 channel) {
    return s->t->col[s->channel[channel]].number[s->row[s->first[sequence] + step]];
}
i32 sequence_longest(const struct sequence_set *s, i64 from, i64 to); /* of records [from, to); at least 1 */

#endif
