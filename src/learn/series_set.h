/* series_set.h - the data kind `series`: columns in order of time, from a table or from memory. */
#ifndef STRETTO_LEARN_SERIES_SET_H
#define STRETTO_LEARN_SERIES_SET_H

#include "data/series_build.h"
#include "learn/learner.h"

struct series_set {
    struct dataset set;
    struct series *s;
    bool scaled;
    i64 scale_rows;         /* number of first rows (the training split) that the scale was computed from; -1 = the scale
                             * comes from a model */
    const char *doubt, *doubt_fix; /* doubtful number format in the file, for the user; NULL = none */
    char decimal;           /* decimal mark found, if other files must be read with the same; 0 = detect it in each file */
};

extern const struct data_kind data_series;

/* The series of a data set of this kind. */
static inline struct series_set *series_set_of(const struct dataset *d) { return (struct series_set *)(uintptr_t)d; }
static inline struct series *series_of(const struct dataset *d) { return series_set_of(d)->s; }

struct read_options read_options_of(const struct options *o);
struct series_options series_options_of(const struct options *o);

/* of_model: see series_options */
err series_set_read(const struct options *o, bool of_model, const char *path, struct dataset **out);
err series_set_make(struct series *s, const char *path, struct series_set **out); /* takes s */
/* Scales by the first rows, those of the training split: a trainer on fewer rows must not know rows that it will be tested
 * on. */
err series_set_scale(struct series_set *d, i64 rows);
/* Reports doubtful number formats. Sets --decimal to the mark found, so that later files are read with the same. */
err series_set_marks(const struct series_set *d, struct options *o, const struct events *to);

#endif
