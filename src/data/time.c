/* time.c - reading times.  Every reader takes [s, end) and returns the place after what it used, or NULL. */
#define _GNU_SOURCE
#include "data/time.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "data/timefmt.h"

enum { DAY = 86400 };

i64 time_days(i64 y, i32 m, i32 d) { /* Hinnant, chrono-compatible date algorithms: years begin in March */
    y -= m <= 2;
    i64 era = (y >= 0 ? y : y - 399) / 400, in_era = y - era * 400;
    i64 in_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

i64 time_make(const struct civil *c) {
    return time_days(c->year, c->month, c->day) * DAY + c->hour * 3600 + c->minute * 60 + c->second;
}

bool time_clocks_change(i64 t, bool forward) {
    struct civil c;
    time_split(t, &c);
    const bool sunday = (time_days(c.year, c.month, c.day) % 7 + 11) % 7 == 0; /* 1970-01-01 was a Thursday */
    const bool north = forward ? c.month == 3 : c.month == 10 || c.month == 11;
    const bool south = forward ? c.month == 9 || c.month == 10 : c.month == 4;
    return sunday && c.hour < 4 && (north || south);
}

void time_split(i64 t, struct civil *c) {
    i64 days = (t >= 0 ? t : t - (DAY - 1)) / DAY, rest = t - days * DAY;
    *c = (struct civil){.hour = (i32)(rest / 3600), .minute = (i32)(rest / 60 % 60), .second = (i32)(rest % 60)};
    days += 719468;
    i64 era = (days >= 0 ? days : days - 146096) / 146097, in_era = days - era * 146097;
    i64 y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    i64 in_year = in_era - (365 * y + y / 4 - y / 100), march = (5 * in_year + 2) / 153;
    c->day = (i32)(in_year - (153 * march + 2) / 5 + 1);
    c->month = (i32)(march < 10 ? march + 3 : march - 9);
    c->year = y + era * 400 + (c->month <= 2);
}

i32 time_month_days(i64 year, i32 month) {
    static const i32 days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

const char *time_digits(const char *s, const char *end, i32 least, i32 most, i64 *out) {
    i64 v = 0;
    i32 n = 0;
    for (; s < end && n < most && (u8)(*s - '0') < 10; s++, n++) v = v * 10 + (*s - '0');
    *out = v;
    return n >= least ? s : NULL;
}

const char *time_zone(const char *s, const char *end, i64 *seconds) {
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

/* 5:00, 05:00, 05:00:00, 05:00:00.123, 17.24.00 (dots only with seconds), then perhaps " AM" or " PM". */
static const char *read_clock(const char *s, const char *end, i64 *out) {
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

const char *time_rest(const char *p, const char *end, i64 *t) {
    if (p == end || (*p != ' ' && *p != 'T' && *p != 't')) return p;
    const char *q = p + 1;
    while (q < end && *q == ' ') q++;
    i64 clock, zone = 0;
    q = read_clock(q, end, &clock);
    if (!q) return p;
    const char *z = time_zone(q + (q < end && *q == ' '), end, &zone);
    *t += clock - zone;
    return z ? z : q;
}

bool time_date(i64 y, i64 m, i64 d, i64 *t) {
    if (m < 1 || m > 12 || d < 1 || y > 9999) return false;
    if (d > 28 && d > time_month_days(y, (i32)m)) return false;
    *t = time_days(y, (i32)m, (i32)d) * DAY;
    return true;
}

/* The common fixed layout 2011-01-02[ 05:00:00] without a loop; NULL sends the text to the general reader. */
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

static const char *read_quarter(const char *s, const char *end, i64 *out) {
    i64 y, q;
    const char *p = time_digits(s, end, 4, 4, &y);
    if (!p) return NULL;
    while (p < end && (*p == '-' || *p == ' ')) p++;
    if (p == end || (*p | 32) != 'q') return NULL;
    p = time_digits(p + 1, end, 1, 1, &q);
    return p && q >= 1 && q <= 4 && time_date(y, 3 * q - 2, 1, out) ? p : NULL;
}

static const char *read_number(enum time_kind kind, const char *s, const char *end, i64 *out) {
    bool negative = s < end && *s == '-';
    i64 v;
    const char *p = time_digits(s + negative, end, 1, 15, &v);
    if (!p) return NULL;
    if (end - p > 1 && *p == '.') { /* 1949.0, 1293944400.25 */
        i64 unused;
        const char *q = time_digits(p + 1, end, 1, 9, &unused);
        if (q && (kind == TIME_EPOCH || unused == 0)) p = q;
    }
    if (kind == TIME_YEAR) return !negative && v >= 1000 && v <= 2999 && time_date(v, 1, 1, out) ? p : NULL;
    if (kind == TIME_COMPACT) {
        if (negative || v < 10000101 || v > 29991231) return NULL;
        return time_date(v / 10000, v / 100 % 100, v % 100, out) ? p : NULL;
    }
    *out = v > 100000000000 ? v / 1000 : v;
    if (negative) *out = -*out;
    return p;
}

const char *time_read(const struct time_parser *p, const char *s, const char *end, i64 *out) {
    switch (p->kind) {
    case TIME_YMD: return read_ymd(s, end, out);
    case TIME_DMY: return read_dmy(s, end, false, out);
    case TIME_MDY: return read_dmy(s, end, true, out);
    case TIME_QUARTER: return read_quarter(s, end, out);
    case TIME_CLOCK: return read_clock(s, end, out);
    case TIME_WORDS: return time_read_words(s, end, out);
    case TIME_CUSTOM: return time_read_format(p->format, s, end, out);
    case TIME_NONE: return NULL;
    default: return read_number(p->kind, s, end, out);
    }
}

/* Eight characters "?05:00:0" and one more: the separator, then the clock. */
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
    if (p->kind == TIME_WORDS) return NULL; /* its comma may as well be the next cell's: the caller cuts the cell out */
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
    if (q && q < end && *q == ',' && q[-1] != ',') /* a fraction behind a comma; in a row it could be the next cell */
        for (q++; q < end && isdigit((u8)*q);) q++;
    return q == end;
}

/* Are all texts of this kind, and do they never go back? */
static bool all_are(enum time_kind kind, const char *const *s, const i32 *len, i32 n, bool *ascending) {
    struct time_parser p = {.kind = kind};
    i64 t = 0, before = INT64_MIN;
    *ascending = true;
    for (i32 i = 0; i < n; i++) {
        if (!time_parse(&p, s[i], (size_t)len[i], &t)) return false;
        if (t < before) *ascending = false;
        before = t;
    }
    return n > 0;
}

enum time_kind time_guess(const char *const *s, const i32 *len, i32 n, bool named, bool *ambiguous) {
    static const enum time_kind words[] = {TIME_YMD, TIME_QUARTER, TIME_WORDS}, numbers[] = {TIME_YEAR, TIME_COMPACT, TIME_EPOCH};
    bool up, up_month_first;
    *ambiguous = false;
    for (size_t k = 0; k < COUNT(words); k++)
        if (all_are(words[k], s, len, n, &up)) return words[k];
    bool day_first = all_are(TIME_DMY, s, len, n, &up), month_first = all_are(TIME_MDY, s, len, n, &up_month_first);
    if (day_first && month_first && !memchr(s[0], '.', 3)) {
        if (up != up_month_first) return up ? TIME_DMY : TIME_MDY;
        *ambiguous = true;
    }
    if (day_first) return TIME_DMY;
    if (month_first) return TIME_MDY;
    if (all_are(TIME_CLOCK, s, len, n, &up)) return TIME_CLOCK;
    for (size_t k = 0; named && k < COUNT(numbers); k++)
        if (all_are(numbers[k], s, len, n, &up)) return numbers[k];
    return TIME_NONE;
}
