/* text.h - numbers and names as text, independent of the locale, with escaping for XML and JSON. */
#ifndef STRETTO_REPORT_TEXT_H
#define STRETTO_REPORT_TEXT_H

#include "base/str.h"

/* s escaped for XML text and attributes; bytes that are no UTF-8 become U+FFFD, control characters become spaces. */
void text_xml(struct str *b, const char *s);
/* s as a JSON string, quotes included. */
void text_json(struct str *b, const char *s);
/* v as a JSON number with all its digits; null unless finite. */
void text_json_number(struct str *b, f64 v);

/* Numbers for users; non-finite values become a dash. */
void text_fixed(struct str *b, f64 v, i32 decimals);
void text_digits(struct str *b, f64 v, i32 digits); /* significant digits: 15.8, 0.0263, 1.2e-07 */
void text_si(struct str *b, f64 v);                 /* 950, 12.4k, 1.84M */
void text_seconds(struct str *b, f64 s);            /* 0.42 s, 12 s, 6m10s, 2h05m */
void text_clock(struct str *b, f64 s);              /* 00:12, 1:02:03 */
void text_skill(struct str *b, f64 share);          /* .674 -> +67%, .0312 -> +3.1% */

/* A point in time, seconds since 1970-01-01: 1959-01 when `step` (seconds between points) is a month or more, 1959-01-31 for
 * days, 1959-01-31 05:00 below. */
void text_time(struct str *b, f64 t, f64 step);

/* Days since 1970-01-01 of a date of the Gregorian calendar, and back. */
i64 date_to_days(i64 year, i32 month, i32 day);
void date_of_days(i64 days, i64 *year, i32 *month, i32 *day);

/* Bytes of the UTF-8 sequence at s, 0 = none. */
i32 text_utf8(const char *s);

#endif
