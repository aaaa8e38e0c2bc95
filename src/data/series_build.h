/* series_build.h - builds a series from a table: roles of columns, order of times, gaps and missing cells, as the options say.
 *
 *     table --roles--> columns --times--> ascending rows --freq--> grid --gaps--> series --scale--> z-scores
 *
 * A column without a role (target, past, known, cat) is left out; only named columns become inputs. The target is never
 * guessed: it is named, or it is the only numeric column left. Every refusal gives line, count and fix. */
#ifndef STRETTO_DATA_SERIES_BUILD_H
#define STRETTO_DATA_SERIES_BUILD_H

#include "data/series.h"

/* All texts may be NULL or "".  Lists are comma-separated. */
struct series_options {
    const char *id;     /* columns that together name the series of a row: a panel; none = one series */
    const char *fixed;  /* covariates that are constant in each series of a panel */
    i32 least_rows;     /* of a panel: series with fewer rows are left out; -1 = a series of one row is refused */
    const char *target; /* names; "all" = every numeric column without another role */
    const char *past, *known, *cat, *ignore;
    const char *time;        /* one or several columns; none = the first time column, if any */
    const char *time_format; /* "row" = the row number is the time */
    bool columns;            /* a column is a series even if its name is a time */
    const char *freq;        /* "auto" or a step */
    const char *season;      /* "auto" or one or two numbers of rows */
    const char *gaps;        /* error mask interpolate zero: for absent rows and for missing target cells */
    const char *dups;        /* error mean first last */
    const char *resample;    /* "1h", "1d:sum": rows become rows of this step */
    bool time_delta;         /* rows are the steps, the time between them an input (build_delta.c) */
    const char *since, *until; /* times; until includes the whole day, month or year; row numbers if rows have no time */
    i32 lines_of;            /* of a panel: series.line has the lines of this series, numbered from 1; 0 = of no one */
    bool of_model;           /* the lists come from a trained model: columns keep their order, and a constant target is allowed */
};

enum { ROLES_TEXT = 700 }; /* roles of the columns in one line */
struct findings;

err series_build(const struct table *t, const struct series_options *o, struct series **out);
/* The same, but collects problems in *found; *out is NULL if one of them is an error. */
err series_inspect(const struct table *t, const struct series_options *o, struct findings *found, struct series **out);
void series_free(struct series *s); /* NULL is allowed */
/* series_cut.c: a copy in which no value is known from row `rows` on; its number of rows stays.  It borrows names and words of s,
 * which must outlive it. E601. */
err series_before(const struct series *s, i64 rows, struct series **out);

/* share.h; *s is zeroed for the taker. */
struct share;
void series_share(struct share *x, struct series *s);

/* From memory: values [ncol][nrow], column-major; step_seconds 0 = the row number is the time. */
err series_wrap(const f64 *values, i64 nrow, i32 ncol, const char *const *names, i64 first_time, i64 step_seconds,
                const struct series_options *o, struct series **out);

/* First row at or after a bound as of --since: a date, or a row number if rows have no times; nrow if there is none. E103. */
err series_since(const struct series *s, const char *since, i64 *row);

/* series_scale.c: scales every numeric column to z-scores over rows [0, train_rows): population deviation, without missing cells;
 * sets mean and dev. E212 if a target is constant there; a constant input keeps dev 1. Each series of a panel has a scale of its
 * own, completed by what the series have in common. E601. */
err series_scale(struct series *s, i64 train_rows);

/* What the series of a panel have in common: the means of their means, of their deviations, and of
 * deviation / |mean|. */
struct scale_common {
    f64 mean, dev, ratio;
};
/* From n means (NaN = not known) and deviations (0 = not known) in original units. */
struct scale_common series_common(const f64 *mean, const f64 *dev, i32 n);
/* Scales a column of one series of a panel by its rows [0, rows). */
void series_scale_like(struct series *s, i32 c, i64 rows, const struct scale_common *all);

#endif
