/* timefmt.c - times with words for months, and times in a layout that the user spells out with --time-format, in the letters of
 * strptime. */
#define _GNU_SOURCE
#include "data/timefmt.h"

#include <stdio.h>
#include <string.h>

#include "data/time.h"

struct fields {
    i64 year, month, day, hour, minute, second, epoch, zone, day_of_year;
    bool pm, half, has_epoch;
};

/* In English and German, in full and cut, small letters. */
static const char *const months[12] = {"january januar jan jänner jän", "february februar feb", "march märz mar mär mrz",
                                       "april apr", "may mai", "june juni jun", "july juli jul", "august aug",
                                       "september sept sep", "october oktober oct okt", "november nov",
                                       "december dezember dec dez"};

/* Bytes of a letter in small: of UTF-8, those of the one umlaut that a month has. */
static int small(const char *s, i64 i) {
    const int c = (u8)s[i];
    return c >= 'A' && c <= 'Z' ? c | 32 : c == 0x84 && i > 0 && (u8)s[i - 1] == 0xC3 ? 0xA4 : c;
}

static bool begins(const char *s, i64 left, const char *word, i64 n) {
    for (i64 i = 0; i < n; i++)
        if (i >= left || small(s, i) != (u8)word[i]) return false;
    return true;
}

/* A month's name: the longest that fits. */
static const char *read_month(const char *s, const char *end, i64 *month) {
    i64 longest = 0;
    for (i32 m = 0; m < 12; m++)
        for (const char *w = months[m]; *w;) {
            const i64 n = (i64)strcspn(w, " ");
            if (n > longest && begins(s, end - s, w, n)) longest = n, *month = m + 1;
            w += n + (w[n] == ' ');
        }
    return longest ? s + longest : NULL;
}

static const char *skip_marks(const char *s, const char *end) {
    while (s < end && *s && strchr(" -/.,", *s)) s++;
    return s;
}

static bool digit_at(const char *s, const char *end) { return s < end && (u8)(*s - '0') < 10; }

/* What follows the month where the year does not come first: 15, 2024 or only 2024. */
static const char *read_day_year(const char *p, const char *end, bool day, i64 *d, i64 *y) {
    const char *q = skip_marks(p, end), *r = day ? NULL : time_digits(q, end, 1, 2, d);
    if (r && !digit_at(r, end)) q = skip_marks(r, end);
    else if (!day) *d = 1;
    return time_digits(q, end, 4, 4, y);
}

const char *time_read_words(const char *s, const char *end, i64 *out) {
    i64 y, m, d = 1;
    const char *p = time_digits(s, end, 4, 4, &y), *q;
    if (p) {
        p = read_month(skip_marks(p, end), end, &m);
        q = p ? skip_marks(p, end) : NULL;
        if (q > p && digit_at(q, end)) p = time_digits(q, end, 1, 2, &d);
    } else {
        p = time_digits(s, end, 1, 2, &d);
        const bool day = p != NULL;
        p = read_month(skip_marks(day ? p : s, end), end, &m);
        if (p) p = read_day_year(p, end, day, &d, &y);
    }
    return p && !digit_at(p, end) && time_date(y, m, d, out) ? time_rest(p, end, out) : NULL;
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

/* Layouts that nobody can tell for sure, for the advice of a message. */
static const char *const layouts[] = {"%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%y-%m-%d", "%y/%m/%d", "%d-%m-%y", "%b-%y",
                                      "%b %y",    "%d-%b-%y", "%d %b %y", "%b %d %y", "%m/%Y",    "%m.%Y",    "%m-%Y",
                                      "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y-%m-%d",
                                      "%Y%m%d"};
static const char *const clocks[] = {"", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %I:%M %p", " %H", "%H", "%H%M"};

static bool reads_all(const char *format, const char *const *s, const i32 *len, i32 n) {
    struct time_parser p = {.kind = TIME_CUSTOM};
    i64 t;
    snprintf(p.format, sizeof p.format, "%s", format);
    for (i32 i = 0; i < n; i++)
        if (!time_parse(&p, s[i], (size_t)len[i], &t)) return false;
    return n > 0;
}

i32 time_advice(const char *const *s, const i32 *len, i32 n, char fix[TIME_ADVICE]) {
    char format[64];
    i32 found = 0, fill = 0;
    fix[0] = 0;
    for (size_t c = 0; c < COUNT(clocks) && found == 0; c++)
        for (size_t k = 0; k < COUNT(layouts) && found < 2; k++) {
            snprintf(format, sizeof format, "%s%s", layouts[k], clocks[c]);
            if (!reads_all(format, s, len, n)) continue;
            fill += snprintf(fix + fill, (size_t)(TIME_ADVICE - fill), "%s--time-format '%s'", found++ ? "   or   " : "", format);
        }
    return found;
}

/* Digits and marks alone, or a zone that is UTC: neither AM nor another zone. */
static bool plain_numbers(const char *s, i32 n) {
    bool clock = false;
    for (i32 i = 0; i < n; i++) {
        if ((u8)(s[i] - '0') < 10 || strchr(" /.,", s[i])) continue;
        clock |= s[i] == ':';
        if (clock ? s[i] != ':' && s[i] != 'Z' : s[i] != '-' && s[i] != 'T') return false;
    }
    return true;
}

enum time_order time_order(enum time_kind kind, const char *const *s, const i32 *len, i32 n) {
    bool plain = n > 0, equal = true;
    for (i32 i = 0; i < n; i++) {
        plain = plain && plain_numbers(s[i], len[i]);
        equal = equal && len[i] == len[0];
    }
    switch (kind) {
    case TIME_QUARTER: return equal && n > 0 ? ORDER_TEXT : ORDER_NONE;
    case TIME_YEAR:
    case TIME_COMPACT:
    case TIME_EPOCH: return ORDER_NUMBER;
    case TIME_YMD: return !plain ? ORDER_NONE : equal ? ORDER_TEXT : ORDER_YMD;
    case TIME_DMY: return plain ? ORDER_DMY : ORDER_NONE;
    case TIME_MDY: return plain ? ORDER_MDY : ORDER_NONE;
    case TIME_CLOCK: return plain ? ORDER_CLOCK : ORDER_NONE;
    default: return ORDER_NONE;
    }
}
