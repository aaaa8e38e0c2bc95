/* time.c - parses times. Every reader takes [s, end) and returns the position after what it consumed, or NULL. */
#define _GNU_SOURCE
#include "data/time.h"

#include <ctype.h>
#include <string.h>

#include "data/timefmt.h"

/* Fast path for 2011-01-02[ 05:00:00]; NULL = use the general reader. */
static const char *read_fixed(const char *s, const char *end, i64 *out) {
    if (end - s < 10 || s[4] != '-' || s[7] != '-') return NULL;
    u32 d[8] = {(u8)(s[0] - '0'), (u8)(s[1] - '0'), (u8)(s[2] - '0'), (u8)(s[3] - '0'),
                (u8)(s[5] - '0'), (u8)(s[6] - '0'), (u8)(s[8] - '0'), (u8)(s[9] - '0')};
    for (i32 i = 0; i < 8; i++)
        if (d[i] > 9) return NULL;
    if (!time_date(d[0] * 1000 + d[1] * 100 + d[2] * 10 + d[3], d[4] * 10 + d[5], d[6] * 10 + d[7], out)) return NULL;
    return s + 10;
}

static const char *read_ymd(const char *s, const char *end, i64 *out) {
    const char *p = read_fixed(s, end, out);
    if (p) return time_rest(p, end, out);
    i64 y, m, d = 1;
    p = time_digits(s, end, 4, 4, &y);
    if (!p || p == end || (*p != '-' && *p != '/' && *p != '.')) return NULL;
    char mark = *p;
    p = time_digits(p + 1, end, 1, 2, &m);
    if (!p) return NULL;
    bool day = p < end && *p == mark;
    if (!day && mark == '.') return NULL; /* 2011.5 is a number */
    if (day) p = time_digits(p + 1, end, 1, 2, &d);
    if (!p || !time_date(y, m, d, out)) return NULL;
    return day ? time_rest(p, end, out) : p;
}

static const char *read_dmy(const char *s, const char *end, bool month_first, i64 *out) {
    i64 d, m, y;
    const char *p = time_digits(s, end, 1, 2, &d);
    if (!p || p == end || (*p != '.' && *p != '/' && *p != '-')) return NULL;
    char mark = *p;
    p = time_digits(p + 1, end, 1, 2, &m);
    if (!p || p == end || *p != mark) return NULL;
    p = time_digits(p + 1, end, 4, 4, &y);
    if (!p || !time_date(y, month_first ? d : m, month_first ? m : d, out)) return NULL;
    return time_rest(p, end, out);
}

/* Q1 2011, Q1-2011, H2/2011: the part in front of its year. */
static const char *read_part_first(const char *s, const char *end, i64 *out) {
    i64 y, n;
    const int letter = s < end ? *s | 32 : 0, months = letter == 'q' ? 3 : letter == 'h' ? 6 : 0;
    const char *p = months ? time_digits(s + 1, end, 1, 1, &n) : NULL;
    if (!p || p == end || (*p != ' ' && *p != '-' && *p != '/')) return NULL;
    p = time_digits(p + 1, end, 4, 4, &y);
    return p && n >= 1 && n <= 12 / months && time_date(y, months * (n - 1) + 1, 1, out) ? p : NULL;
}

static const char *read_period(const char *s, const char *end, i64 *out) {
    i64 y, n, day = 1;
    if (s < end && (u8)(*s - '0') > 9) return read_part_first(s, end, out);
    const char *p = time_digits(s, end, 4, 4, &y);
    while (p && p < end && (*p == '-' || *p == ' ')) p++;
    if (!p || p == end) return NULL;
    const int letter = *p | 32, months = letter == 'q' ? 3 : letter == 'h' ? 6 : letter == 'm' ? 1 : 0;
    if (!months && letter != 'w') return NULL;
    p = time_digits(p + 1, end, 1, 2, &n);
    if (!p) return NULL;
    if (months) return n >= 1 && n <= 12 / months && time_date(y, months * (n - 1) + 1, 1, out) ? p : NULL;
    const char *q = time_digits(p + (p < end && *p == '-'), end, 1, 1, &day);
    return time_week(y, n, q ? day : 1, out) ? q ? q : p : NULL;
}

/* A whole number with digits behind the point, which only seconds may have: 1949.0, 1293944400.25. */
static const char *read_number(enum time_kind kind, const char *s, const char *end, i64 *out) {
    const bool negative = s < end && *s == '-';
    i64 v, rest;
    const char *p = time_digits(s + negative, end, 1, 19, &v);
    if (!p) return NULL;
    const char *q = end - p > 1 && *p == '.' ? time_digits(p + 1, end, 1, 9, &rest) : NULL;
    if (q && (kind == TIME_EPOCH || rest == 0)) p = q;
    return time_of_number(kind, negative ? -(f64)v : (f64)v, out) ? p : NULL;
}

/* 20110102, 20110102T050000, 20110102 0500. */
static const char *read_compact(const char *s, const char *end, i64 *out) {
    i64 day, clock;
    const char *p = time_digits(s, end, 8, 8, &day), *q;
    if (!p || end - p < 3 || (*p != 'T' && *p != ' ')) return read_number(TIME_COMPACT, s, end, out);
    for (i32 digits = 6; digits > 0; digits -= 2) {
        q = time_digits(p + 1, end, digits, digits, &clock);
        if (q && (q == end || (*q != ':' && *q != 'h' && (u8)(*q - '0') > 9))) {
            for (i32 k = digits; k < 6; k += 2) clock *= 100;
            return time_of_number(TIME_COMPACT, (f64)(day * 1000000 + clock), out) ? time_zone(q, end, out) : NULL;
        }
    }
    return time_of_number(TIME_COMPACT, (f64)day, out) ? time_rest(p, end, out) : NULL;
}

const char *time_read(const struct time_parser *p, const char *s, const char *end, i64 *out) {
    switch (p->kind) {
    case TIME_YMD: return read_ymd(s, end, out);
    case TIME_DMY: return read_dmy(s, end, false, out);
    case TIME_MDY: return read_dmy(s, end, true, out);
    case TIME_PERIOD: return read_period(s, end, out);
    case TIME_COMPACT: return read_compact(s, end, out);
    case TIME_CLOCK: return time_clock(s, end, out);
    case TIME_WORDS: return time_read_words(s, end, out);
    case TIME_CUSTOM: return time_read_format(p->format, s, end, out);
    case TIME_NONE: return NULL;
    default: return read_number(p->kind, s, end, out);
    }
}

/* Reads eight characters "?05:00:0" and one more: the separator, then the clock. */
static inline bool read_plain_clock(const char *s, i64 *out) {
    u32 d[6] = {(u8)(s[1] - '0'), (u8)(s[2] - '0'), (u8)(s[4] - '0'), (u8)(s[5] - '0'), (u8)(s[7] - '0'), (u8)(s[8] - '0')};
    u32 h = d[0] * 10 + d[1], m = d[2] * 10 + d[3], sec = d[4] * 10 + d[5];
    bool digits = d[0] < 3 && d[1] < 10 && d[2] < 6 && d[3] < 10 && d[4] < 6 && d[5] < 10;
    if (!digits || h > 23 || s[3] != ':' || s[6] != ':' || (s[0] != ' ' && s[0] != 'T')) return false;
    *out = h * 3600 + m * 60 + sec;
    return true;
}

const char *time_read_again(const struct time_parser *p, struct time_memory *m, const char *s, const char *end, i64 *out) {
    i64 clock;
    u64 date[2] = {0, 0};
    if (p->kind == TIME_WORDS) return NULL; /* its comma may separate cells: the caller isolates the cell */
    if (p->kind != TIME_YMD || end - s < 20) return time_read(p, s, end, out);
    memcpy(date, s, 10);
    if (!m->set || date[0] != m->date[0] || date[1] != m->date[1]) {
        m->set = read_fixed(s, end, &m->seconds) != NULL;
        memcpy(m->date, date, sizeof date);
        if (!m->set) return time_read(p, s, end, out);
    }
    if (read_plain_clock(s + 10, &clock)) {
        *out = m->seconds + clock;
        return s + 19;
    }
    return time_read(p, s, end, out);
}

bool time_parse(const struct time_parser *p, const char *s, size_t n, i64 *out) {
    const char *end = s + n;
    while (s < end && *s == ' ') s++;
    while (end > s && end[-1] == ' ') end--;
    const char *q = s < end ? time_read(p, s, end, out) : NULL;
    if (q && q < end && *q == ',' && q[-1] != ',') /* a fraction after a comma; in a row it could be the next cell */
        for (q++; q < end && isdigit((u8)*q);) q++;
    return q == end;
}

bool time_clocks_change(i64 t, bool forward) {
    struct civil c;
    time_split(t, &c);
    const bool sunday = (time_days(c.year, c.month, c.day) % 7 + 11) % 7 == 0; /* 1970-01-01 was a Thursday */
    const bool north = forward ? c.month == 3 : c.month == 10 || c.month == 11;
    const bool south = forward ? c.month == 9 || c.month == 10 : c.month == 4;
    return sunday && c.hour < 4 && (north || south);
}
