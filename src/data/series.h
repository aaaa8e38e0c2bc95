/* series.h - the columns a model works on, in order of time, with their roles; and windows as strided views of them.
 *
 *            context C            horizon h
 *     ----[===================|===========]------> rows
 *         o-C                 o           o+h        o = origin: the first row to be forecast
 *
 * Values are column-major so that a window of one column is C consecutive floats: a window is (series, origin, column) and owns
 * nothing.  NaN = missing. */
#ifndef STRETTO_DATA_SERIES_H
#define STRETTO_DATA_SERIES_H

#include <math.h>

#include "data/table.h"

struct freq {
    i64 step;        /* seconds between rows; 0 when months > 0 or unknown */
    i32 months;      /* 1, 3, 12: calendar steps */
    i32 day;         /* of the month, 28..30, that they go on at after a shorter month; 0 = the day of the row they start from */
    i32 season;      /* rows per season by convention (hourly 24, monthly 12, daily 7, weekly 52, ...); 1 = none */
    char name[16];   /* "hourly", "monthly", "5min" */
};

struct series {
    i64 nrow;
    i64 merged;              /* rows of the file that had the time of the row before, and went into it */
    i32 ncol;                /* targets first, then past-only, then known-future numeric columns */
    i32 ntarget, npast, nknown;
    const char **name;       /* [ncol] */
    f32 *v;                  /* [ncol][nrow]; x = v * dev + mean, see series_raw */
    u8 *filled; /* [ncol][nrow] 1 = a cell of a target or past-only column that --gaps interpolate made up; or NULL */
    i64 *time;               /* [nrow] seconds, or NULL when rows have no time */
    i64 *line;               /* [nrow] line in the file, -1 for a row that was inserted by a gap policy */
    i32 ncat;                /* categorical known/past columns */
    i32 **code;              /* [ncat][nrow] */
    i32 *nword;              /* [ncat] */
    const char ***word;      /* [ncat][nword] vocabulary */
    const char **cat_name;
    struct freq freq;
    const char *roles; /* "target units; time date; left out: ..." for people */
    f64 *mean, *dev; /* [ncol] the scale applied: v = (x - mean) / dev.  Before series_scale dev is 1, and mean is 0 or, for
                      * values that lie far from zero against their spread (1e9 + 3), the first of them */
    struct arena names;
};

static inline const f32 *series_col(const struct series *s, i32 c) { return s->v + (i64)c * s->nrow; }

/* The value at row i of column c in original units. */
static inline f64 series_raw(const struct series *s, i32 c, i64 i) { return (f64)series_col(s, c)[i] * s->dev[c] + s->mean[c]; }

/* --- cells that --gaps interpolate made up ---
 *
 *     v      5 ------.------.------ 11      a line whose end is row 11: no truth to be scored or learnt, and not known before
 *     filled 0   1      1      1    0       row 11 is, so a forecast from an origin inside the run (or at its end) sees 5 5 5 */
static inline bool series_filled(const struct series *s, i32 c, i64 i) { return s->filled && s->filled[(i64)c * s->nrow + i]; }

/* Observed: may be scored and learnt from. */
static inline bool series_is_target(const struct series *s, i32 c, i64 i) {
    return !isnan(series_col(s, c)[i]) && !series_filled(s, c, i);
}

/* The target at row i: NaN when it was not observed. */
static inline f32 series_target(const struct series *s, i32 c, i64 i) {
    return series_filled(s, c, i) ? (f32)NAN : series_col(s, c)[i];
}

/* A forecast from origin sees rows [0, series_known) as they are; those from there to the origin lie on a line that was not known
 * then. */
static inline i64 series_known(const struct series *s, i32 c, i64 origin) {
    while (s->filled && origin > 0 && s->filled[(i64)c * s->nrow + origin - 1]) origin--;
    return origin;
}

/* The value at row i < origin as a forecast from origin sees it: the last observed one where the line was not known. */
static inline f32 series_seen(const struct series *s, i32 c, i64 i, i64 origin) {
    i64 known = series_known(s, c, origin);
    return series_col(s, c)[i < known ? i : known - 1];
}

/* The row after the last one that has any target: rows of known columns may go on behind it, up to where forecasts reach. */
static inline i64 series_end(const struct series *s) {
    for (i64 i = s->v ? s->nrow : 0; i > 0; i--)
        for (i32 c = 0; c < s->ntarget; c++)
            if (!isnan(series_col(s, c)[i - 1])) return i;
    return s->v ? 0 : s->nrow; /* a shape without values */
}

/* Row ranges of a split, half-open, in order: train [0,train), validation [train,validation), test [validation,test). */
struct split {
    i64 train, validation, test;
};

#endif
