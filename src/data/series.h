/* series.h - a time series, or a panel of them: the columns of a model with their roles, in order of time; windows are strided
 * views of them.
 *
 *            context C            horizon h
 *     ----[===================|===========]------> rows (time steps)
 *         o-C                 o           o+h        o = origin: the first row to forecast
 *
 * Values are column-major, so a window of one column is C consecutive floats. A window is (series, origin, column) and owns no
 * memory. NaN = missing.
 *
 *     one series, several targets     targets | past | known                 every target has the same covariates
 *     panel of S series               target of series 0..S-1 | past 0 of series 0..S-1 | .. | known 0 of series 0..S-1 | ..
 *
 * The series of a panel share the axis of times; rows before the first and after the last one of a series are NaN. */
#ifndef STRETTO_DATA_SERIES_H
#define STRETTO_DATA_SERIES_H

#include <math.h>

#include "data/table.h"

struct freq {
    i64 step;        /* seconds between rows; 0 if months > 0 or unknown */
    i32 months;      /* 1, 3, 12: calendar steps */
    i32 day;         /* day of month (28..30) to return to after a shorter month; 0 = the day of the starting row */
    i32 season;      /* rows per season by convention (hourly 24, monthly 12, daily 7, weekly 52, ...); 1 = none */
    i32 season2;     /* rows of a second one (--season 24,168), or of a week of rows within days; 0 = none */
    char name[16];   /* "hourly", "monthly", "5min" */
    bool zoned;      /* times are those of a zone, which labels show */
    i32 zone;        /* seconds east of UTC */
};

struct series {
    i64 nrow;
    i64 merged;                 /* file rows merged into the previous row, which has the same time or step (resampled) */
    bool resampled;             /* by --resample */
    i32 ncol;                   /* targets first, then past-only, then known-future numeric columns */
    i32 ntarget, npast, nknown; /* covariates: of each target, in a panel */
    bool panel;
    i32 nstatic;         /* of a panel: so many of the known ones, the last, are constant in each series */
    const char **column; /* of a panel: [1 + npast + nknown] columns of the file: the target, the covariates */
    i64 *from, *to;          /* [ntarget] the first row of a series, and one past its last target, where series end apart: in a
                              * panel, and in a file with a series per row; else NULL */
    i32 *of_model;       /* of a panel: [ntarget] number of a series in the model, -1 = new to it; NULL = the same numbers */
    const char **name;   /* [ncol] */
    f32 *v;              /* [ncol][nrow]; x = v * dev + mean, see series_raw */
    u8 *filled;          /* [ncol][nrow] 1 = interpolated cell of a target or past-only column (--gaps interpolate); or NULL */
    i64 *time;           /* [nrow] seconds, or NULL if rows have no time */
    i64 *line;           /* [nrow] line in the file, -1 = inserted by a gap policy */
    bool lines;          /* each row is one line of the file: false for panels, and for files with a series per line */
    i32 npart;           /* input files; 0 = the data have one source */
    struct table_part *part; /* [npart] */
    i32 ncat;            /* categorical known/past columns */
    i32 **code;          /* [ncat][nrow]; of a panel: [ncat][ntarget][nrow] */
    i32 *nword;          /* [ncat] */
    const char ***word;  /* [ncat][nword] vocabulary */
    const char **cat_name;
    struct freq freq;
    bool v_borrowed, code_borrowed; /* of another process of the host, which changes them (share.h) */
    const char *roles; /* "target units; time date; left out: ..." for messages */
    const char *doubt, *doubt_fix; /* a column left out although it looks like the time; NULL = none */
    const char *time_columns; /* "date,hour", as for --time; "" = the row number is the time, or a name has a comma */
    const char *id_columns; /* of a panel: "shop,item", as for --id; else "" */
    f64 *mean, *dev; /* [ncol] scale: v = (x - mean) / dev. Before series_scale dev is 1 and mean is 0, or the first value if
                      * values are far from zero relative to their spread (1e9 + 3) */
    struct arena names;
};

static inline const f32 *series_col(const struct series *s, i32 c) { return s->v + (i64)c * s->nrow; }

/* Columns of covariate k of a target: of the past ones, of those known ahead. */
static inline i32 series_past_of(const struct series *s, i32 k, i32 target) {
    return s->ntarget + (s->panel ? k * s->ntarget + target : k);
}
static inline i32 series_ahead_of(const struct series *s, i32 k, i32 target) { return series_past_of(s, s->npast + k, target); }
/* The first column that is known ahead. */
static inline i32 series_first_ahead(const struct series *s) { return series_ahead_of(s, 0, 0); }
static inline i32 series_code(const struct series *s, i32 cat, i32 target, i64 row) {
    return s->code[cat][(s->panel ? target * s->nrow : 0) + row];
}

/* Value at row i of column c in original units. */
static inline f64 series_raw(const struct series *s, i32 c, i64 i) { return (f64)series_col(s, c)[i] * s->dev[c] + s->mean[c]; }

/* --- cells filled by --gaps interpolate ---
 *
 *     v      5 ------.------.------ 11      interpolated up to row 11: not observed, so neither scored nor learned
 *     filled 0   1      1      1    0       a forecast from an origin inside or at the end of the run sees 5 5 5 */
static inline bool series_filled(const struct series *s, i32 c, i64 i) { return s->filled && s->filled[(i64)c * s->nrow + i]; }

/* True if observed: may be scored and used for training. */
static inline bool series_is_target(const struct series *s, i32 c, i64 i) {
    return !isnan(series_col(s, c)[i]) && !series_filled(s, c, i);
}

/* Target at row i: NaN if not observed. */
static inline f32 series_target(const struct series *s, i32 c, i64 i) {
    return series_filled(s, c, i) ? (f32)NAN : series_col(s, c)[i];
}

/* A forecast from origin sees rows [0, series_known) as they are; the rows from there to the origin were interpolated with
 * later values. */
static inline i64 series_known(const struct series *s, i32 c, i64 origin) {
    while (s->filled && origin > 0 && s->filled[(i64)c * s->nrow + origin - 1]) origin--;
    return origin;
}

/* One past the last row with any target. Rows of known columns may continue up to the end of the horizon. */
static inline i64 series_end(const struct series *s) {
    for (i64 i = s->v ? s->nrow : 0; i > 0; i--)
        for (i32 c = 0; c < s->ntarget; c++)
            if (!isnan(series_col(s, c)[i - 1])) return i;
    return s->v ? 0 : s->nrow; /* shape only, no values */
}

/* Row ranges of a split, half-open, in order: train [0,train), validation [train,validation), test [validation,test). */
struct split {
    i64 train, validation, test;
};
/* Splits rows [0, end). Each text is a number of rows ("168"), a fraction of all rows ("0.2", "20%"), the date on which the part
 * starts ("2016-07-01"), or "0". The test part ends at row end, the validation part precedes it. E103, E301. */
err split_make(const struct series *s, i64 end, const char *validation, const char *test, struct split *out);

#endif
