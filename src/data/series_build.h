/* series_build.h - from a table to a series: which column is what, times in order, gaps and missing cells as the user says.
 *
 *     table --roles--> columns --times--> ascending rows --freq--> grid --gaps--> series --scale--> z-scores
 *
 * A column without a role (target, past, known, cat) is left out; nothing becomes an input that was not named.  The target is
 * never chosen silently: it is named, or it is the only numeric column left.  Every refusal says line, count and remedy. */
#ifndef STRETTO_DATA_SERIES_BUILD_H
#define STRETTO_DATA_SERIES_BUILD_H

#include "data/series.h"

/* All texts may be NULL or "".  Lists are comma-separated. */
struct series_options {
    const char *target;      /* names; "all" = every numeric column without another role */
    const char *past, *known, *cat, *ignore;
    const char *time;        /* one or several columns; none = the first column of times, if there is one */
    const char *time_format; /* "row" = rows are the time */
    const char *freq;        /* "auto" or a step */
    const char *gaps;        /* error mask interpolate zero: for absent rows and for missing target cells */
    const char *dups;        /* error mean first last */
    const char *since, *until; /* times; until counts whole days, months, years; numbers where rows have none */
    bool of_model;           /* the lists are those of a trained model: columns stand in their order, and a flat target is news */
};

enum { ROLES_TEXT = 700 }; /* which columns are what, in a line */
struct findings;

err series_build(const struct table *t, const struct series_options *o, struct series **out);
/* The same, but problems are collected in *found; *out stays NULL when one of them is an error. */
err series_inspect(const struct table *t, const struct series_options *o, struct findings *found, struct series **out);
void series_free(struct series *s); /* NULL is fine */

/* From memory: values [ncol][nrow], one column after the other; step_seconds 0 = rows are the time. */
err series_wrap(const f64 *values, i64 nrow, i32 ncol, const char *const *names, i64 first_time, i64 step_seconds,
                const struct series_options *o, struct series **out);

/* Z-scores of every numeric column from rows [0, train_rows): population deviation, missing cells left out; sets mean and dev.
 * E212 when a target is constant there; a constant input keeps dev 1. */
err series_scale(struct series *s, i64 train_rows);

#endif
