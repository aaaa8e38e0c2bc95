/* build.h - private state of series_build; only the build_*.c files include it. */
#ifndef STRETTO_DATA_BUILD_H
#define STRETTO_DATA_BUILD_H

#include "data/series_build.h"
#include "data/time.h"

enum gaps { GAPS_ERROR, GAPS_MASK, GAPS_INTERPOLATE, GAPS_ZERO };
enum dups { DUPS_ERROR, DUPS_MEAN, DUPS_FIRST, DUPS_LAST };

enum { TIME_PARTS = 8, NO_ROLE = 0 };

struct build {
    const struct table *t;
    const struct series_options *o;
    struct findings *found;       /* NULL: the first problem ends the build */
    bool bad;                     /* a problem was added to found */
    enum gaps gaps;
    enum dups dups;
    i32 ntime, time_col[TIME_PARTS];
    i32 ntarget, npast, nknown, ncat;
    i32 *col, *cat;               /* table columns: targets, past, known; categories */
    i64 n;                        /* rows (time steps) of the series */
    i64 merged;                   /* rows merged into others of the same time */
    i64 *time;                    /* [n], NULL = the row number is the time */
    i64 *row;                     /* [n] first table row, -1 = inserted for an absent time step */
    i32 *same;                    /* [n] number of table rows with that time (duplicates); NULL = one each */
    struct freq freq;
    char roles[ROLES_TEXT];
};

/* Records the error that was just set with FAIL, for the cells of a table column or NO_COLUMN. Returns it unless problems are
 * collected. */
err build_problem(struct build *b, i32 column, err e);

void build_free(struct build *b);
void sort_values(f64 *v, i64 n); /* ascending; no NaN */

err build_roles(struct build *b);    /* build_roles.c */
/* build_find.c: finds the time without --time: sets time_col, or ntime 0. role: [table columns], NO_ROLE = could be the time. */
err build_find_time(struct build *b, const u8 *role);
/* build_times.c: the columns named year, month (or quarter, week, day of the year), day, hour, .. in this order; clock_only: from
 * the hour on. Returns their number, 0 if that is no time. */
i32 build_time_parts(const struct build *b, const u8 *role, bool clock_only, i32 *col);
/* build_target.c: how likely a numeric column is the target: 0 = constant or empty, else higher is likelier. gaps: target_gaps(),
 * the numeric columns with missing cells. The only one is likelier: what is measured has gaps, a calendar or a plan has
 * none. */
i32 target_score(const struct build *b, const struct column *c, i32 gaps);
i32 target_gaps(const struct build *b);
err build_times(struct build *b);    /* build_times.c: time, row, same; duplicates, since, until */
err build_order(struct build *b);    /* build_order.c: refuses decreasing times, and duplicates that --dups must not merge */
err build_grid(struct build *b);     /* build_gaps.c: frequency, absent rows */
err build_values(struct build *b, struct series *s); /* build_values.c: columns, missing cells, absurd values */

static inline const char *text_or(const char *s, const char *otherwise) { return s && *s ? s : otherwise; }

#endif
