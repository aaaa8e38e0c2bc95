/* timefmt.h - parsing of parts of times, month names and --time-format layouts; private to the time*.c files. */
#ifndef STRETTO_DATA_TIMEFMT_H
#define STRETTO_DATA_TIMEFMT_H

#include "data/time.h"

/* Reads least..most digits, at most 19, as a number; NULL if there are fewer. */
static inline const char *time_digits(const char *s, const char *end, i32 least, i32 most, i64 *out) {
    u64 v = 0;
    i32 n = 0;
    for (; s < end && n < most && (u8)(*s - '0') < 10; s++, n++) v = v * 10 + (u64)(*s - '0');
    *out = v > INT64_MAX ? INT64_MAX : (i64)v;
    return n >= least ? s : NULL;
}
const char *time_clock(const char *s, const char *end, i64 *out);   /* 5:00, 05:00:00.123, 17.24.00, 5:00 PM */
/* False when there is no such day. */
static inline bool time_date(i64 y, i64 m, i64 d, i64 *t) {
    if (m < 1 || m > 12 || d < 1 || y > 9999) return false;
    if (d > 28 && d > time_month_days(y, (i32)m)) return false;
    *t = time_days(y, (i32)m, (i32)d) * 86400;
    return true;
}
const char *time_zone(const char *s, const char *end, i64 *t);     /* optional zone, subtracted from *t */
const char *time_rest(const char *s, const char *end, i64 *t);     /* optional clock time and zone after a date, added to *t */
/* 1 Jan 2024, 1. März 2024, January 1, 2024, 2024-Jan-01, Jan 2024; clock time as after other dates. */
const char *time_read_words(const char *s, const char *end, i64 *out);
/* time_number.c: a number of days, if the layout (up to its end or a |) is excel or julian; *is: it is. */
const char *time_read_serial(const char *layout, const char *s, const char *end, bool *is, i64 *out);
const char *time_read_format(const char *format, const char *s, const char *end, i64 *out);

#endif
