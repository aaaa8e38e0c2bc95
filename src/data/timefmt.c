/* timefmt.c - times with month names, and times in a --time-format layout (conversion letters of strptime). */
#define _GNU_SOURCE
#include "data/timefmt.h"

#include <ctype.h>
#include <string.h>

#include "data/time.h"

/* Reads Z, UTC, +01:00, -0500. */
static const char *read_zone(const char *s, const char *end, i64 *seconds) {
    i64 h, m = 0;
    if (s < end && (*s == 'Z' || *s == 'z')) return s + 1;
    if (end - s >= 3 && !strncmp(s, "UTC", 3)) return s + 3;
    if (end - s >= 3 && !strncmp(s, "GMT", 3)) return s + 3;
    if (s == end || (*s != '+' && *s != '-')) return NULL;
    i64 sign = *s == '-' ? -1 : 1;
    const char *p = time_digits(s + 1, end, 2, 2, &h);
    if (!p) return NULL;
    const char *q = time_digits(p + (p < end && *p == ':'), end, 2, 2, &m);
    if (h > 18 || m > 59) return NULL;
    *seconds = sign * (h * 3600 + m * 60);
    return q ? q : p;
}

bool time_offset(const char *s, i64 n, i32 *zone) {
    const char *end = s + n, *p;
    i64 seconds = 0;
    while (end > s && end[-1] == ' ') end--;
    for (p = end; p > s && (isalnum((u8)p[-1]) || p[-1] == ':') && end - p < 6;) { /* back to a sign, or to the letters */
        p--;
        if (isalpha((u8)*p) && p > s && !isalpha((u8)p[-1])) break;
    }
    if (p > s && (p[-1] == '+' || p[-1] == '-')) p--;
    if (p == s || (!isdigit((u8)p[-1]) && p[-1] != ' ') || read_zone(p, end, &seconds) != end) return false;
    *zone = (i32)seconds;
    const char *clock = memchr(s, ':', (size_t)(p - s)), *letter = memchr(s, 'T', (size_t)(p - s));
    return clock || (letter && letter + 1 < p && isdigit((u8)letter[1]));
}

/* Reads 5:00, 05:00, 05:00:00, 05:00:00.123, 17.24.00 (dots only with seconds), optionally " AM" or " PM". */
const char *time_clock(const char *s, const char *end, i64 *out) {
    i64 h, m, sec = 0, unused;
    const char *p = time_digits(s, end, 1, 2, &h);
    if (!p || p == end || (*p != ':' && *p != '.')) return NULL;
    char mark = *p;
    p = time_digits(p + 1, end, 2, 2, &m);
    if (!p) return NULL;
    if (p < end && *p == mark) {
        p = time_digits(p + 1, end, 2, 2, &sec);
        if (!p) return NULL;
        if (end - p > 1 && *p == '.' && isdigit((u8)p[1])) p = time_digits(p + 1, end, 1, 12, &unused);
    } else if (mark == '.') {
        return NULL;
    }
    const char *half = p + (p < end && *p == ' ');
    if (end - half >= 2 && (half[0] | 32) != 'z' && (half[1] | 32) == 'm' && ((half[0] | 32) == 'a' || (half[0] | 32) == 'p')) {
        if (h < 1 || h > 12) return NULL;
        h = h % 12 + ((half[0] | 32) == 'p' ? 12 : 0);
        p = half + 2;
    }
    if (h > 24 || m > 59 || sec > 60 || (h == 24 && (m || sec))) return NULL;
    *out = h * 3600 + m * 60 + sec;
    return p;
}

const char *time_zone(const char *p, const char *end, i64 *t) {
    i64 zone = 0;
    const char *z = read_zone(p + (p < end && *p == ' '), end, &zone);
    *t -= zone;
    return z ? z : p;
}

const char *time_rest(const char *p, const char *end, i64 *t) {
    if (p == end || (*p != ' ' && *p != 'T' && *p != 't')) return p;
    const char *q = p + 1;
    while (q < end && *q == ' ') q++;
    i64 clock;
    q = time_clock(q, end, &clock);
    if (!q) return p;
    *t += clock;
    return time_zone(q, end, t);
}

struct fields {
    i64 year, month, day, hour, minute, second, epoch, zone, day_of_year, week, weekday;
    bool pm, half, has_epoch;
};

/* English and German, full and abbreviated, lower case. */
static const char *const months[12] = {"january januar jan jänner jän", "february februar feb", "march märz mar mär mrz",
                                       "april apr", "may mai", "june juni jun", "july juli jul", "august aug",
                                       "september sept sep", "october oktober oct okt", "november nov",
                                       "december dezember dec dez"};

/* Lower case of byte i, including the UTF-8 umlaut of "März". */
static int small(const char *s, i64 i) {
    const int c = (u8)s[i];
    return c >= 'A' && c <= 'Z' ? c | 32 : c == 0x84 && i > 0 && (u8)s[i - 1] == 0xC3 ? 0xA4 : c;
}

static bool begins(const char *s, i64 left, const char *word, i64 n) {
    for (i64 i = 0; i < n; i++)
        if (i >= left || small(s, i) != (u8)word[i]) return false;
    return true;
}

/* Reads a month name: the longest match. */
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

/* Reads what follows the month if the year is not first: "15, 2024" or "2024". */
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

static const char *read_letters(const char *s, const char *end) {
    const char *p = s;
    while (p < end && (isalpha((u8)*p) || (u8)*p >= 0x80)) p++;
    return p > s ? p : NULL;
}

/* Reads one conversion. */
static const char *read_letter(char letter, const char *s, const char *end, struct fields *f) {
    i64 v = 0;
    const char *p;
    switch (letter) {
    case 'G': /* the year of an ISO week */
    case 'Y': return time_digits(s, end, 4, 4, &f->year);
    case 'V': return time_digits(s, end, 1, 2, &f->week);
    case 'u': return time_digits(s, end, 1, 1, &f->weekday);
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
    case 'j':
        p = time_digits(s, end, 1, 3, &f->day_of_year);
        return f->day_of_year > 0 ? p : NULL;
    case 'b':
    case 'B': return read_month(s, end, &f->month);
    case 'a':
    case 'A': return read_letters(s, end); /* a weekday says nothing new */
    case 'p': return read_half(s, end, f);
    case 'q':
        p = time_digits(s, end, 1, 1, &v);
        f->month = 3 * v - 2;
        return p;
    case 's':
        f->has_epoch = true;
        return time_digits(s, end, 1, 15, &f->epoch);
    case 'z': return read_zone(s, end, &f->zone);
    case '%': return s < end && *s == '%' ? s + 1 : NULL;
    default: return NULL;
    }
}

bool time_week(i64 y, i64 week, i64 day, i64 *out) {
    const i64 first = time_days(y, 1, 4), next = time_days(y + 1, 1, 4); /* 4 January is in week 1; day 0 was a Thursday */
    const i64 monday = first - (first + 3 + 7 * 700000) % 7, end = next - (next + 3 + 7 * 700000) % 7;
    *out = (monday + 7 * (week - 1) + day - 1) * 86400;
    return week >= 1 && day >= 1 && day <= 7 && monday + 7 * (week - 1) < end;
}

/* Reads one layout, up to its end or a |. */
static const char *read_layout(const char *c, const char *s, const char *end, i64 *out) {
    struct fields f = {.year = 1970, .month = 1, .day = 1, .week = -1, .weekday = 1};
    for (; *c && *c != '|'; c++) {
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
    if (f.week >= 0 && !time_week(f.year, f.week, f.weekday, out)) return NULL;
    if (f.day_of_year > time_year_days(f.year)) return NULL;
    if (f.day_of_year > 0) *out += (f.day_of_year - 1) * 86400;
    *out += f.hour * 3600 + f.minute * 60 + f.second - f.zone;
    return s;
}

const char *time_read_format(const char *format, const char *s, const char *end, i64 *out) {
    const char *longest = NULL;
    for (const char *c = format, *bar; c; c = bar ? bar + 1 : NULL) {
        bar = strchr(c, '|');
        i64 t;
        const char *p = read_layout(c, s, end, &t);
        if (p && (!longest || p > longest)) longest = p, *out = t;
    }
    return longest;
}

