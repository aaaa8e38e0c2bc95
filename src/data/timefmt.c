/* timefmt.c - zones, clock times, times with month names, and times in a --time-format layout (letters of strptime). */
#define _GNU_SOURCE
#include "data/timefmt.h"

#include <ctype.h>
#include <string.h>

#include "data/time.h"

/* Abbreviations of zones, each with the offset that it stands for in most files. Not IST: India, Israel and Ireland have it. */
static const struct {
    char name[5];
    i32 hours;
} zones[] = {{"Z", 0},     {"UTC", 0},  {"GMT", 0},  {"WET", 0},   {"WEST", 1}, {"BST", 1},  {"CET", 1},  {"CEST", 2},
             {"MEZ", 1},   {"MESZ", 2}, {"EET", 2},  {"EEST", 3},  {"MSK", 3},  {"JST", 9},  {"KST", 9},  {"EST", -5},
             {"EDT", -4},  {"CST", -6}, {"CDT", -5}, {"MST", -7},  {"MDT", -6}, {"PST", -8}, {"PDT", -7}};

/* Reads the name of a zone: Z, UTC, CET, EDT; NULL if there is none. */
static const char *read_zone_name(const char *s, const char *end, i64 *seconds) {
    i64 n = 0;
    while (s + n < end && n < 6 && isalpha((u8)s[n])) n++;
    for (size_t k = 0; k < COUNT(zones) && n > 0; k++) {
        if ((i64)strlen(zones[k].name) != n || (strncmp(s, zones[k].name, (size_t)n) && (n > 1 || *s != 'z'))) continue;
        *seconds = 3600 * zones[k].hours;
        return s + n;
    }
    return NULL;
}

/* Reads Z, UTC, CET, +01:00, -0500, UTC+01:00. */
static const char *read_zone(const char *s, const char *end, i64 *seconds) {
    i64 h, m = 0;
    const char *name = read_zone_name(s, end, seconds);
    const bool more = name && name > s + 1 && *seconds == 0 && name < end && (*name == '+' || *name == '-');
    if (name && !more) return name;
    if (name) s = name;
    if (s == end || (*s != '+' && *s != '-')) return NULL;
    i64 sign = *s == '-' ? -1 : 1;
    const char *p = time_digits(s + 1, end, 2, 2, &h);
    if (!p) return NULL;
    const char *q = time_digits(p + (p < end && *p == ':'), end, 2, 2, &m);
    if (h > 18 || m > 59) return NULL;
    *seconds = sign * (h * 3600 + m * 60);
    return q ? q : p;
}

bool time_offset(const struct time_parser *parser, const char *s, i64 n, i32 *zone) {
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
    /* of a layout, the text of a zone is only text */
    if (parser->kind == TIME_CUSTOM && seconds != 0 && !strstr(parser->format, "%z")) return false;
    const char *clock = memchr(s, ':', (size_t)(p - s)), *letter = memchr(s, 'T', (size_t)(p - s));
    return clock || (letter && letter + 1 < p && isdigit((u8)letter[1])) || (isalpha((u8)*p) && parser->kind != TIME_CUSTOM);
}

/* Reads what follows the minutes of 11h40: 11h40m, 11h40min, 11h40m05s. */
static const char *after_minutes(const char *p, const char *end, i64 *sec) {
    if (p == end || *p != 'm') return p;
    p += end - p > 2 && p[1] == 'i' && p[2] == 'n' ? 3 : 1;
    const char *q = time_digits(p, end, 2, 2, sec);
    return q ? q + (q < end && *q == 's') : p;
}

/* Reads 5:00, 05:00, 05:00:00, 05:00:00.123, 17.24.00 (dots only with seconds), 11h40, optionally " AM" or " PM". */
const char *time_clock(const char *s, const char *end, i64 *out) {
    i64 h, m, sec = 0, unused;
    const char *p = time_digits(s, end, 1, 2, &h);
    if (!p || p == end || (*p != ':' && *p != '.' && *p != 'h')) return NULL;
    char mark = *p;
    p = time_digits(p + 1, end, 2, 2, &m);
    if (!p) return NULL;
    if (mark == 'h') {
        p = after_minutes(p, end, &sec);
    } else if (p < end && *p == mark) {
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

/* English, German, French, Spanish, Portuguese, Italian, Dutch and Polish, full and abbreviated, lower case. */
static const char *const months[12] = {
    "january januar januari jan jänner jän janvier janv enero ene janeiro gennaio gen styczeń stycznia sty",
    "february februar februari feb février fevrier févr fevr fév fev febrero fevereiro febbraio luty lutego lut",
    "march märz mar mär mrz mars marzo março marco maart mrt marzec marca",
    "april apr avril avr abril abr aprile kwiecień kwietnia kwi",
    "may mai mayo maio maggio mag mei maj maja",
    "june juni jun juin junio junho giugno giu czerwiec czerwca cze",
    "july juli jul juillet juil julio julho luglio lug lipiec lipca lip",
    "august aug août aout agosto ago augustus sierpień sierpnia sie",
    "september sept sep septembre septiembre setiembre setembro settembre set wrzesień września wrz",
    "october oktober oct okt octobre octubre outubro out ottobre ott październik października paź",
    "november nov novembre noviembre novembro listopad listopada lis",
    "december dezember dec dez décembre decembre déc diciembre dicembre dic dezembro grudzień grudnia gru"};

/* Lower case of byte i, including those of UTF-8 in the names of months: Ä, É, Û, Ç; Ń, Ś, Ź. */
static int small(const char *s, i64 i) {
    const int c = (u8)s[i], lead = i > 0 ? (u8)s[i - 1] : 0;
    if (c >= 'A' && c <= 'Z') return c | 32;
    if (lead == 0xC3 && c >= 0x80 && c <= 0x9E) return c | 32;
    return lead == 0xC5 && (c == 0x83 || c == 0x9A || c == 0xB9) ? c + 1 : c;
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

/* Skips marks, and the words between the parts of a date: 1st of March 2020, 2 de enero de 2020, 1er janvier 2020. */
static const char *skip_marks(const char *s, const char *end) {
    static const char *const words[] = {"de", "del", "of", "st", "nd", "rd", "th", "er"};
    for (size_t k = 0; k < COUNT(words);) {
        while (s < end && *s && strchr(" -/.,", *s)) s++;
        for (k = 0; k < COUNT(words); k++) {
            const i64 n = (i64)strlen(words[k]);
            if (end - s <= n || !begins(s, end - s, words[k], n) || isalpha((u8)s[n])) continue;
            s += n;
            break;
        }
    }
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
        p = time_digits(s, end, 1, 19, &v);
        f->has_epoch = true;
        return time_of_number(TIME_EPOCH, (f64)v, &f->epoch) ? p : NULL;
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
    bool serial;
    const char *after = time_read_serial(c, s, end, &serial, out);
    if (serial) return after;
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

