/* time.h - times as seconds since 1970-01-01 00:00 (no zone, no leap seconds), their parsing and formatting, and the step
 * between rows.
 *
 *     "2011-01-02 05:00"  --time_read-->  1293944400  --freq_infer-->  {step 3600, season 24, "hourly"}  --time_format-->  text
 *
 * A text with a zone (Z, +01:00) is converted to UTC; one without is taken as is. */
#ifndef STRETTO_DATA_TIME_H
#define STRETTO_DATA_TIME_H

#include "base/clock.h"
#include "data/series.h"

enum time_kind {
    TIME_NONE,
    TIME_YMD,     /* 2011-01-02, 2011/1/2, 2011.01.02, 2011-01; with or without a clock time, T, fraction, zone */
    TIME_DMY,     /* 02.01.2011, 02/01/2011, 2-1-2011; clock time as above */
    TIME_MDY,     /* 01/02/2011 */
    TIME_PERIOD,  /* 2011-Q1, 2011Q1, 2011M01, 2011-H2, Q1 2011; ISO weeks: 2011-W05, 2011W05, 2011-W05-1 (its Monday) */
    TIME_WORDS,   /* 2 Jan 2011, January 2, 2011, Jan 2011, 2. März 2011; clock time as above */
    TIME_CLOCK,   /* 05:00, 05:00:00, 17.24.00: added to a date in another column */
    TIME_YEAR,    /* 2011; bare numbers, like the next two */
    TIME_COMPACT, /* 201101, 20110102, 2011010205, .. up to seconds; as text 20110102T0500 too */
    TIME_TICKS,    /* 100 ns since year 1 (.NET), 637134336000000000; from 1970 to 2100, as the next */
    TIME_FILETIME, /* 100 ns since 1601 (Windows), 132223104000000000 */
    TIME_EPOCH,   /* seconds since 1970; milli-, micro-, nanoseconds when above 10^11, 10^14, 10^17 */
    TIME_CUSTOM   /* --time-format */
};

struct time_parser {
    enum time_kind kind;
    const char *format; /* TIME_CUSTOM only: %Y %y %m %d %H %I %p %M %S %f %b %B %j %G %V %u %s %q %a %A %z %%;
                         * A|B reads A or B; excel and julian read numbers of days */
};

/* Parses the start of [s, end); returns the position after the last character used, or NULL if there is no time. */
const char *time_read(const struct time_parser *p, const char *s, const char *end, i64 *out);
bool time_parse(const struct time_parser *p, const char *s, size_t n, i64 *out); /* the whole text */

/* True if a text that p reads ends with an offset from UTC: Z, UTC, CET, +02:00, -0530, +09; *zone in seconds east. */
bool time_offset(const struct time_parser *p, const char *s, i64 n, i32 *zone);

/* Like time_read, with a fast path for 2011-01-02 05:00:00 in rows with the date of the previous row. It may stop before a
 * fraction or zone, so the caller checks that the cell ends there. Start with {0}; one thread. 20 bytes must be readable at s. */
struct time_memory {
    u64 date[2]; /* the ten bytes of the date */
    i64 seconds;
    bool set;
};
const char *time_read_again(const struct time_parser *p, struct time_memory *m, const char *s, const char *end, i64 *out);

/* Advice for ambiguous texts such as 01.02.24, and for texts in several layouts: up to two --time-format layouts that read all
 * of them. Returns their number; 0 = "". */
enum { TIME_ADVICE = 640 };
i32 time_advice(const char *const *s, const i32 *len, i32 n, char fix[TIME_ADVICE]);

/* True for a date with two digits of a year: 3/1/21, 01.03.21, Mar-21. It is too short to be read as a time without being asked
 * for; as the name of a column among others of its kind it is one. */
bool time_short(const char *s, i32 len);

bool time_week(i64 year, i64 week, i64 day, i64 *out); /* day 1..7 of an ISO week; false = the year has no such week */
/* A number as YEAR, COMPACT, TICKS, FILETIME or EPOCH; false = none. */
bool time_of_number(enum time_kind kind, f64 v, i64 *out);
/* The first of these kinds that fits all numbers [n] except NaN, or TIME_NONE. */
enum time_kind time_guess_numbers(const f64 *v, i64 n);

/* The layout, "excel" or "julian", that may count days in all of the numbers [n] except NaN; NULL = neither. */
const char *time_serial(const f64 *v, i64 n);
/* time_like.c: true if the texts look like times, though no reader may know them. */
bool time_like(const char *const *s, const i32 *len, i32 n);

/* The kind that reads all texts, or TIME_NONE. named: the column was given as the time, so bare numbers count too. Day and
 * month are distinguished by a number above 12 or by ascending order; *ambiguous if neither helps. */
enum time_kind time_guess(const char *const *s, const i32 *len, i32 n, bool named, bool *ambiguous);
/* The kind that reads two thirds of the texts of a column that nobody named; the reader reports the others with their line. */
enum time_kind time_guess_most(const char *const *s, const i32 *len, i32 n, bool *ambiguous);
i32 time_count(const struct time_parser *p, const char *const *s, const i32 *len, i32 n); /* texts that it reads */

/* How a sort command can order texts of a kind, for the advice in a message. */
enum time_order {
    ORDER_NONE,
    ORDER_TEXT,   /* fixed-width texts sort as they are: 2011-01-02 05:00, 2011-Q1, 20110102T0500 */
    ORDER_NUMBER, /* 1293944400, 20110102 */
    ORDER_YMD,    /* 2011-1-2 5:00: by the numbers in them, year first */
    ORDER_DMY,
    ORDER_MDY,
    ORDER_CLOCK
};
enum time_order time_order(enum time_kind kind, const char *const *s, const i32 *len, i32 n);

/* True for a Sunday night hour at which daylight saving time may start (the hour is absent) or end (the hour repeats)
 * somewhere. */
bool time_clocks_change(i64 t, bool forward);
static inline i32 time_month_days(i64 year, i32 month) {
    static const i32 days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}
static inline i32 time_year_days(i64 year) { return 337 + time_month_days(year, 2); }

/* "1h", "hourly", "15min", "D", "1month", "quarterly", ...; E103. */
err freq_parse(const char *text, struct freq *out);
/* The most frequent step of an ascending sequence, in calendar units if it follows the calendar; step and months 0 with fewer
 * than two distinct times. */
void freq_infer(const i64 *t, i64 n, struct freq *out);
i32 freq_day(const i64 *t, i64 n); /* freq.day of rows that are months apart */
i64 time_add(i64 t, const struct freq *f, i64 n);
i64 time_steps(i64 from, i64 to, const struct freq *f); /* steps between from and to, -1 if `to` is not on the grid */
void time_zone_text(i32 zone, char out[8]); /* seconds east of UTC as "+02:00", "Z" for 0 */
int time_format(i64 t, const struct freq *f, char out[32]); /* "1949-01", "2011-01-02", "2011-01-02 05:00"; returns the length */
void freq_span(const struct freq *f, i64 n, char out[32]); /* "1 hour", "36 hours", "3 steps of 15min" */

/* Rows of a series; a row outside [0, nrow) has the time that follows from the step. */
i64 series_time(const struct series *s, i64 row);                        /* the series has times and rows */
void row_label(const struct series *s, i64 row, char out[32]);           /* its date, or "row 17" */
void span_label(const struct series *s, i64 from, i64 to, char out[72]); /* rows [from, to): "1960-01..1960-12" or "none" */

#endif
