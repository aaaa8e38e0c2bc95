/* calendar.h - errors by hour of the day, day of the week and month of the year, summed while windows are scored.
 *
 *     row of the data --bin--> month x weekday x hour: one of 2016 bins     a report adds up the bins of an hour, a day, a month
 */
#ifndef STRETTO_LEARN_FORECAST_CALENDAR_H
#define STRETTO_LEARN_FORECAST_CALENDAR_H

#include "data/series.h"

enum { CALENDAR_HOURS = 24, CALENDAR_DAYS = 7, CALENDAR_MONTHS = 12 };
enum { CALENDAR_BINS = CALENDAR_HOURS * CALENDAR_DAYS * CALENDAR_MONTHS };

struct calendar_sums {
    f64 absolute, square, scaled_absolute, scaled_square, n; /* in original units; of values scaled by the column */
};

/* Sums of several rows of the score table. */
struct calendar {
    i64 first, end;            /* rows that have a bin */
    u16 *bin;                  /* [end - first]; NULL = the rows have no times: nothing is summed */
    struct calendar_sums *sum; /* [rows of the table][CALENDAR_BINS] */
};

/* Bins for rows [first, end) of a series, sums for `rows` rows of the table, all in an arena.  E601. */
err calendar_new(const struct series *s, i64 first, i64 end, i32 rows, struct arena *a, struct calendar *out);
/* A window of column col: targets y [h] from row origin on, NaN = none, and forecasts f [h]. */
void calendar_add(struct calendar *c, const struct series *s, i32 row, i32 col, i64 origin, i32 h, const f32 *y, const f32 *f);

enum calendar_part { CALENDAR_HOUR, CALENDAR_DAY, CALENDAR_MONTH, CALENDAR_PARTS };
i32 calendar_size(enum calendar_part part);
const char *calendar_label(enum calendar_part part, i32 i); /* "13", "Tue", "Mar"; static text */
/* Sums of one hour, day (0 = Monday) or month (0 = January). */
struct calendar_sums calendar_of(const struct calendar *c, i32 row, enum calendar_part part, i32 i);
/* True if the part says something of rows of this frequency, and several of its values have targets. */
bool calendar_matters(const struct calendar *c, const struct freq *f, enum calendar_part part);

#endif
