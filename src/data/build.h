/* build.h - private state of series_build; only the build_*.c files include it. */
#ifndef STRETTO_DATA_BUILD_H
#define STRETTO_DATA_BUILD_H

#include "data/series_build.h"
#include "data/time.h"

enum gaps { GAPS_ERROR, GAPS_MASK, GAPS_INTERPOLATE, GAPS_ZERO };
enum dups { DUPS_ERROR, DUPS_MEAN, DUPS_FIRST, DUPS_LAST };

enum { TIME_PARTS = 8, ID_PARTS = 4, NO_ROLE = 0, DOUBT_TEXT = 800 };

/* The rows of a panel by series.  A group is the rows of one series and one time: one, or duplicates. */
struct panel {
    i32 n;             /* series, in order of appearance */
    const char **name; /* [n] */
    i32 *series;       /* [table rows] the series of a row */
    i64 *order;        /* [rows in use] table rows by series, then time */
    i64 *group;        /* [groups + 1] where the rows of a group begin in order */
    i64 *time;         /* [groups]; NULL = the number of the group in its series is the time */
    i64 *first;        /* [n + 1] the first group of each series */
    i32 *at;           /* [n][rows of the build] group of a series at a row, -1 = none; by build_panel_place */
    struct arena names;
};

struct build {
    const struct table *t;
    const struct series_options *o;
    struct findings *found;       /* NULL: the first problem ends the build */
    bool bad;                     /* a problem was added to found */
    enum gaps gaps;
    enum dups dups;
    bool resampled;               /* --resample: freq is its step */
    bool sums;                    /* the target of merged rows is their sum, not their mean */
    i32 ntime, time_col[TIME_PARTS];
    i32 nid, id_col[ID_PARTS]; /* columns that name the series of a row; 0 = one series */
    struct panel *panel;       /* NULL = one series; set by build_times */
    i32 ntarget, npast, nknown, ncat;
    i32 nstatic;    /* so many of the known ones, the last, are constant in each series */
    i32 *col, *cat; /* table columns: targets, past, known; categories */
    i64 n;          /* rows (time steps) of the series */
    i64 merged;     /* rows merged into others of the same time */
    i64 *time;      /* [n], NULL = the row number is the time */
    i64 *row;       /* [n] first table row, -1 = inserted for an absent time step */
    i32 *same;      /* [n] number of table rows with that time (duplicates); NULL = one each */
    struct freq freq;
    char roles[ROLES_TEXT];
    i32 doubt_col;              /* the column of these */
    char doubt[DOUBT_TEXT], doubt_fix[DOUBT_TEXT]; /* a column that is left out although it looks like the time; "" = none */
};

/* Records the error that was just set with FAIL, for the cells of a table column or NO_COLUMN. Returns it unless problems are
 * collected. */
err build_problem(struct build *b, i32 column, err e);

void build_free(struct build *b); /* build.c */
void sort_values(f64 *v, i64 n); /* ascending; no NaN */

/* --- cells of the series that is built, by its columns --- */
static inline i32 build_width(const struct build *b) { return b->panel ? b->panel->n : 1; } /* series */
static inline i32 build_ncol(const struct build *b) { return (b->ntarget + b->npast + b->nknown) * build_width(b); }
static inline i32 build_column(const struct build *b, i32 c) { return b->col[c / build_width(b)]; } /* of the table */
/* Of a panel: the group of rows behind row i of column c, -1 = there is none. */
static inline i32 build_group(const struct build *b, i32 c, i64 i) { return b->panel->at[(i64)(c % b->panel->n) * b->n + i]; }
/* The table row behind row i of column c: the first one of duplicates; -1 = there is none. */
static inline i64 build_row(const struct build *b, i32 c, i64 i) {
    if (!b->panel) return b->row[i];
    const i32 g = build_group(b, c, i);
    return g < 0 ? -1 : b->panel->order[b->panel->group[g]];
}

err build_roles(struct build *b); /* build_roles.c */
err build_panel(struct build *b); /* build_panel.c: groups the rows by series, and makes their common axis: time, row */
/* Places the groups on the axis; refuses absent rows inside of a series, mixed steps, and static columns that change. */
err build_panel_place(struct build *b);
/* True if --static names the column of the table. */
bool build_is_static(const struct build *b, i32 col);
void panel_free(struct panel *p);
/* build_find.c: finds the time without --time: sets time_col, or ntime 0. role: [table columns], NO_ROLE = could be the time. */
err build_find_time(struct build *b, const u8 *role);
/* build_times.c: the columns named year, month (or quarter, week, day of the year), day, hour, .. in this order; clock_only: from
 * the hour on. Returns their number, 0 if that is no time. */
i32 build_time_parts(const struct build *b, const u8 *role, bool clock_only, i32 *col);
/* Reads a number as the text that --time-format describes: 210331 for %y%m%d, 44256 for excel. */
bool build_time_of(const char *layout, f64 v, i64 *t);
/* build_target.c: how likely a numeric column is the target: 0 = constant or empty, else higher is likelier. gaps: target_gaps(),
 * the numeric columns with missing cells. The only one is likelier: what is measured has gaps, a calendar or a plan has
 * none. E601. */
err target_score(const struct build *b, const struct column *c, i32 gaps, i32 *score);
i32 target_gaps(const struct build *b);
err build_times(struct build *b);    /* build_times.c: time, row, same; duplicates, since, until */
err build_order(struct build *b);    /* build_order.c: refuses decreasing times, and duplicates that --dups must not merge */
struct str;
/* build_ids.c: one or two columns of words or whole numbers that tell series apart where times repeat: their names as for --id
 * are added to ids. *series: number of series; 0 = there are no such columns. E601. */
err build_find_ids(const struct build *b, struct str *ids, i32 *series);
/* build_resample.c: reads --resample into freq, dups and sums. E103, E106. */
err build_resample(struct build *b);
void build_floor_times(struct build *b); /* moves the times down to the steps of --resample; no effect without it */
/* A remedy for rows (two or more) that lie at no common step. */
enum { RESAMPLE_FIX = 80 };
err build_resample_fix(const struct build *b, char out[RESAMPLE_FIX]);
/* build_delta.c, --time-delta: a copy of b->t with a column DELTA_NAME, which shares all else with it and is released with
 * delta_free; build_delta fills it and makes records the steps. E106, E601. */
#define DELTA_NAME "time_delta"
err delta_table(const struct build *b, struct table *out);
void delta_free(struct table *t);
err build_delta(struct build *b);
err build_grid(struct build *b);     /* build_gaps.c: frequency, absent rows */
err build_values(struct build *b, struct series *s); /* build_values.c: columns, missing cells, absurd values */

static inline const char *text_or(const char *s, const char *otherwise) { return s && *s ? s : otherwise; }

#endif
