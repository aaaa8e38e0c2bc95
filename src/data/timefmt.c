/* timefmt.c - times in a layout that the user spells out with --time-format, in the letters of strptime. */
#define _GNU_SOURCE
#include "data/timefmt.h"

#include <string.h>
#include <strings.h>

#include "data/time.h"

struct fields {
    i64 year, month, day, hour, minute, second, epoch, zone, day_of_year;
    bool pm, half, has_epoch;
};

static const char *const months[] = {"january", "february", "march",     "april",   "may",      "june",
                                     "july",    "august",   "september", "october", "november", "december"};

/* A month's name, in full or its first three letters. */
static const char *read_month(const char *s, const char *end, i64 *month) {
    for (i32 m = 0; m < 12; m++) {
        size_t full = strlen(months[m]), left = (size_t)(end - s);
        size_t n = left >= full && !strncasecmp(s, months[m], full) ? full : 3;
        if (left < 3 || strncasecmp(s, months[m], n) != 0) continue;
        *month = m + 1;
        return s + n;
    }
    return NULL;
}

static const char *read_half(const char *s, const char *end, struct fields *f) {
    if (end - s < 2 || (s[1] | 32) != 'm' || ((s[0] | 32) != 'a' && (s[0] | 32) != 'p')) return NULL;
    f->half = true;
    f->pm = (s[0] | 32) == 'p';
    return s + 2;
}

/* One conversion letter. */
static const char *read_letter(char letter, const char *s, const char *end, struct fields *f) {
    i64 v = 0;
    const char *p;
    switch (letter) {
    case 'Y': return time_digits(s, end, 4, 4, &f->year);
    case 'y':
        p = time_digits(s, end, 2, 2, &v);
        f->year = v + (v < 69 ? 2000 : 1900);
        return p;
    case 'm': return time_digits(s, end, 1, 2, &f->month);
    case 'd': return time_digits(s, end, 1, 2, &f->day);
    case 'H':
    case 'I': return time_digits(s, end, 1, 2, &f->hour);
    case 'M': return time_digits(s, end, 1, 2, &f->minute);
    case 'S': return time_digits(s, end, 1, 2, &f->second);
    case 'f': return time_digits(s, end, 1, 12, &v);
    case 'j': return time_digits(s, end, 1, 3, &f->day_of_year);
    case 'b':
    case 'B': return read_month(s, end, &f->month);
    case 'p': return read_half(s, end, f);
    case 'q':
        p = time_digits(s, end, 1, 1, &v);
        f->month = 3 * v - 2;
        return p;
    case 's':
        f->has_epoch = true;
        return time_digits(s, end, 1, 15, &f->epoch);
    case 'z': return time_zone(s, end, &f->zone);
    case '%': return s < end && *s == '%' ? s + 1 : NULL;
    default: return NULL;
    }
}

const char *time_read_format(const char *format, const char *s, const char *end, i64 *out) {
    struct fields f = {.year = 1970, .month = 1, .day = 1};
    for (const char *c = format; *c; c++) {
        if (*c == '%' && c[1]) {
            s = read_letter(*++c, s, end, &f);
            if (!s) return NULL;
        } else if (*c == ' ') {
            while (s < end && *s == ' ') s++;
        } else {
            if (s == end || *s != *c) return NULL;
            s++;
        }
    }
    if (f.has_epoch) {
        *out = f.epoch;
        return s;
    }
    if (f.half) f.hour = f.hour % 12 + (f.pm ? 12 : 0);
    if (f.hour > 24 || f.minute > 59 || f.second > 60 || !time_date(f.year, f.month, f.day, out)) return NULL;
    if (f.day_of_year > 366) return NULL;
    if (f.day_of_year > 0) *out += (f.day_of_year - 1) * 86400;
    *out += f.hour * 3600 + f.minute * 60 + f.second - f.zone;
    return s;
}
