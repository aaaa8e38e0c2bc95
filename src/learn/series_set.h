/* series_set.h - the data kind `series`: columns in order of time, from a table or from memory. */
#ifndef STRETTO_LEARN_SERIES_SET_H
#define STRETTO_LEARN_SERIES_SET_H

#include "data/series_build.h"
#include "learn/learner.h"

struct series_set {
    struct dataset set;
    struct series *s;
    bool scaled;
    i64 scale_rows;         /* first rows that the scale is of, those of a training; -1 = it is that of a model */
    char *doubt, *doubt_fix; /* of the numbers in the file, for people; NULL = none */
    char decimal;           /* the mark that was found, where other files must not be read otherwise; 0 = they find their own */
};

extern const struct data_kind data_series;

/* The series of a data set of this kind. */
static inline struct series_set *series_set_of(const struct dataset *d) { return (struct series_set *)(uintptr_t)d; }
static inline struct series *series_of(const struct dataset *d) { return series_set_of(d)->s; }

struct read_options read_options_of(const struct options *o);
struct series_options series_options_of(const struct options *o);

err series_set_read(const struct options *o, bool of_model, const char *path, struct dataset **out); /* of_model: see
                                                                                                      * series_options */
err series_set_make(struct series *s, const char *path, struct series_set **out); /* takes s */
/* By its first rows, those of the training: a trainer with fewer rows than the one before must not know what it is tested on. */
err series_set_scale(struct series_set *d, i64 rows);
/* Reports doubtful numbers; the mark that was found becomes the option's value, so that later files are read alike. */
err series_set_marks(const struct series_set *d, struct options *o, const struct events *to);

#endif
