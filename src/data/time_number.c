/* time_number.c - numbers as times.
 *
 *     2011, 20110102050000                        digits of a date
 *     1293944400, 1293944400000                   seconds since 1970, and smaller units
 *     634295016000000000, 129384180000000000      units of 100 ns since year 1 (.NET) and since 1601 (Windows)
 *     44256.5, 2459275                            days since 1899-12-30 (excel) and since 4713 BC (julian): only if asked for */
#include <math.h>
#include <string.h>

#include "data/timefmt.h"

/* 201101, 20110102, 2011010205, 201101020500, 20110102050000. */
static bool compact(f64 v, i64 *out) {
    i64 clock = 0, t;
    if (v != floor(v) || v < 100001 || v > 29991231235959) return false;
    i64 n = (i64)v, digits = 6;
    for (i64 k = n; k > 999999; k /= 10) digits++;
    if (digits % 2) return false;
    if (digits == 6) return n >= 160001 && n <= 210012 && time_date(n / 100, n % 100, 1, out); /* 210213 is a day, yymmdd */
    static const i64 cut[] = {[8] = 1, [10] = 100, [12] = 10000, [14] = 1000000};
    static const i64 second[] = {[8] = 0, [10] = 3600, [12] = 60, [14] = 1};
    i64 rest = n % cut[digits];
    for (i64 unit = second[digits]; unit > 0 && unit <= 3600; unit *= 60, rest /= 100) {
        if (rest % 100 > (unit == 3600 ? 23 : 59)) return false;
        clock += unit * (rest % 100);
    }
    n /= cut[digits];
    if (n < 10000101 || n > 29991231 || !time_date(n / 10000, n / 100 % 100, n % 100, &t)) return false;
    *out = t + clock;
    return true;
}

/* Units of 100 ns since a year, from 1970 to 2100. An f64 has 13 us of them. */
static bool hundreds(f64 v, i64 year, i64 *out) {
    if (!(v > 1e17 && v < 1e18)) return false;
    *out = (i64)floor(v / 1e7 + 1e-4) + time_days(year, 1, 1) * 86400;
    return *out >= 0 && *out < time_days(2100, 1, 1) * 86400;
}

bool time_of_number(enum time_kind kind, f64 v, i64 *out) {
    const f64 size = fabs(v), unit = size < 1e11 ? 1 : size < 1e14 ? 1e3 : size < 1e17 ? 1e6 : 1e9;
    if (kind == TIME_COMPACT) return compact(v, out);
    if (kind == TIME_YEAR) return v == floor(v) && v >= 1000 && v <= 2999 && time_date((i64)v, 1, 1, out);
    if (kind == TIME_TICKS || kind == TIME_FILETIME) return hundreds(v, kind == TIME_TICKS ? 1 : 1601, out);
    if (kind != TIME_EPOCH || !(size < 1e20)) return false;
    *out = (i64)floor(v / unit + 1e-6); /* nanoseconds have more digits than an f64 */
    return true;
}

/* Days that are counted: from 1899-12-30 in spreadsheets, from a noon 4713 BC in astronomy. */
static const struct {
    const char *word; /* as a --time-format */
    f64 epoch;        /* day of 1970-01-01 */
    i64 least, most;  /* from 1927 and 1600, to 2119 */
} serials[] = {{"excel", 25569, 10000, 80000}, {"julian", 2440587.5, 2305448, 2495000}};
/* A fraction is rounded to what its digits can tell: 0.0417 is an hour. Seconds. */
static const i64 grid_of[] = {1, 10800, 1800, 300, 60};

/* True if the layout, up to its end or a |, is this word. */
static bool is_word(const char *layout, const char *word) {
    const size_t n = strlen(word);
    return !strncmp(layout, word, n) && (!layout[n] || layout[n] == '|');
}

/* Reads 44256.5 as a day and its fraction. */
static const char *read_serial(size_t k, const char *s, const char *end, i64 *out) {
    i64 day, part = 0, scale = 1;
    const char *p = time_digits(s, end, 1, 8, &day), *q = NULL;
    if (!p || day < serials[k].least || day > serials[k].most) return NULL;
    if (end - p > 1 && *p == '.') q = time_digits(p + 1, end, 1, 15, &part);
    const i64 digits = q ? q - p - 1 : 0, grid = digits < (i64)COUNT(grid_of) ? grid_of[digits] : 1;
    for (i64 i = 0; i < digits; i++) scale *= 10;
    const f64 t = ((f64)day - serials[k].epoch + (f64)part / (f64)scale) * 86400;
    *out = (i64)floor(t / (f64)grid + 0.5) * grid;
    return q ? q : p;
}

const char *time_read_serial(const char *layout, const char *s, const char *end, bool *is, i64 *out) {
    *is = true;
    for (size_t k = 0; k < COUNT(serials); k++)
        if (is_word(layout, serials[k].word)) return read_serial(k, s, end, out);
    *is = false;
    return NULL;
}

const char *time_serial(const f64 *v, i64 n) {
    for (size_t k = 0; k < COUNT(serials); k++) {
        i64 fits = 0, bad = 0;
        for (i64 i = 0; i < n; i++) {
            const bool in = v[i] >= (f64)(k == 0 ? 20000 : serials[k].least) && v[i] <= (f64)serials[k].most;
            fits += in;
            bad += !in && !isnan(v[i]);
        }
        if (fits > 0 && bad == 0) return serials[k].word;
    }
    return NULL;
}
