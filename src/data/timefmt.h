/* timefmt.h - pieces that time.c and timefmt.c share; for nobody else. */
#ifndef STRETTO_DATA_TIMEFMT_H
#define STRETTO_DATA_TIMEFMT_H

#include "base/bits.h"

/* least..most digits as a number; NULL when there are fewer. */
const char *time_digits(const char *s, const char *end, i32 least, i32 most, i64 *out);
const char *time_zone(const char *s, const char *end, i64 *seconds); /* Z, UTC, +01:00, -0500 */
bool time_date(i64 y, i64 m, i64 d, i64 *t);                         /* false when there is no such day */
const char *time_rest(const char *s, const char *end, i64 *t);       /* after a date: a clock time and a zone, added to *t */
/* 1 Jan 2024, 1. März 2024, January 1, 2024, 2024-Jan-01, Jan 2024; clock time as after other dates. */
const char *time_read_words(const char *s, const char *end, i64 *out);
const char *time_read_format(const char *format, const char *s, const char *end, i64 *out);

#endif
