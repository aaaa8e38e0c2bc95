/* split.c - splits a series into training, validation and test part. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "data/time.h"

static err not_understood(const char *flag, const char *text) {
    char fix[120];
    snprintf(fix, sizeof fix, "%s 168   (rows)   or   %s 20%%   or   %s 2016-07-01   (where it begins)", flag, flag, flag);
    return FAIL_AT(E103, NULL, fix, "%s %s: no number of rows, share or date", flag, text);
}

/* First row at or after a time. */
static i64 row_of(const struct series *s, i64 t) {
    i64 low = 0, high = s->nrow;
    while (low < high) {
        i64 mid = low + (high - low) / 2;
        if (s->time[mid] < t) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* First row of a part that ends at row `end`. */
static err part(const struct series *s, const char *flag, const char *text, i64 end, i64 *begin) {
    size_t n = strlen(text);
    struct time_parser date = {.kind = TIME_YMD};
    i64 rows, t;
    f64 share;
    if (str_to_i64(text, n, &rows) && rows >= 0) {
        *begin = end - rows;
    } else if (n > 1 && text[n - 1] == '%' && str_to_f64(text, n - 1, '.', &share) && share >= 0 && share < 100) {
        *begin = end - (i64)floor(share / 100 * (f64)s->nrow + 1e-9);
    } else if (str_to_f64(text, n, '.', &share) && share >= 0 && share < 1) {
        *begin = end - (i64)floor(share * (f64)s->nrow + 1e-9);
    } else if (time_parse(&date, text, n, &t)) {
        if (!s->time) return FAIL(E106, "%s %s is a date, but the rows have no times", flag, text);
        i32 zone;
        *begin = row_of(s, t + (time_offset(&date, text, (i64)n, &zone) ? s->freq.zone : 0));
        if (*begin >= end) {
            char last[32], fix[40];
            row_label(s, lmax(0, end - 1), last);
            snprintf(fix, sizeof fix, "%s 20%%", flag);
            return FAIL_AT(E103, NULL, fix, "%s %s leaves no row: its part ends at %s", flag, text, last);
        }
    } else {
        return not_understood(flag, text);
    }
    return 0;
}

err split_make(const struct series *s, i64 end, const char *validation, const char *test, struct split *out) {
    i64 test_begin, valid_begin;
    TRY(part(s, "--test", test && *test ? test : "0", end, &test_begin));
    TRY(part(s, "--validation", validation && *validation ? validation : "0", lmax(test_begin, 0), &valid_begin));
    if (test_begin < 0 || valid_begin < 1) {
        char fix[120];
        i64 third = end / 5;
        snprintf(fix, sizeof fix, "--validation %lld --test %lld", (long long)third, (long long)third);
        return FAIL_AT(E301, NULL, fix, "--validation %s and --test %s leave no row of %lld for training",
                       validation && *validation ? validation : "0", test && *test ? test : "0", (long long)end);
    }
    *out = (struct split){.train = valid_begin, .validation = test_begin, .test = end};
    return 0;
}
