/* text.h - numbers and names as text, independent of the locale, with escaping for XML and JSON. */
#ifndef STRETTO_REPORT_TEXT_H
#define STRETTO_REPORT_TEXT_H

#include "base/str.h"

/* s escaped for XML text and attributes; bytes that are no UTF-8 become U+FFFD, control characters become spaces. */
void text_xml(struct str *b, const char *s);
/* str_addf that escapes every %s for XML; the only other directives are %d, %lld and %%. */
void text_xmlf(struct str *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* s as a JSON string, quotes included. */
void text_json(struct str *b, const char *s);

/* A number as text, returned by value: str_addf(b, "loss %s", text_digits(v, 3).s). */
struct figure {
    char s[40];
};

/* v as a JSON number with all its digits; null unless finite. */
struct figure text_json_number(f64 v);
/* Numbers for users; non-finite values become a dash. */
struct figure text_fixed(f64 v, i32 decimals);
struct figure text_digits(f64 v, i32 digits); /* significant digits: 15.8, 0.0263, 1.2e-07 */
struct figure text_si(f64 v);                 /* 950, 12.4k, 1.84M */
struct figure text_seconds(f64 s);            /* 0.42 s, 12 s, 6m10s, 2h05m */
struct figure text_clock(f64 s);              /* 00:12, 1:02:03 */
struct figure text_skill(f64 share);          /* .674 -> +67%, .0312 -> +3.1% */
/* A point in time, seconds since 1970-01-01: 1959-01 when `step` (seconds between points) is a month or more, 1959-01-31 for
 * days, 1959-01-31 05:00 below. */
struct figure text_time(f64 t, f64 step);

#endif
