/* zone.c - see zone.h. */
#include "data/zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

enum { FILE_MOST = 1 << 20, HEAD = 44, COUNTS = 6, TYPE = 6, HOUR = 3600, DAY = 86400 };
enum { IS_UT, IS_STANDARD, LEAPS, TIMES, TYPES, CHARS }; /* the counts of a header, in its order */

/* A day of the year at which the clocks change: weekday (0 = Sunday) of a week of a month (5 = the last). */
struct change {
    i32 month, week, day, second; /* second: of the day, by the clock before the change */
};

struct zone {
    i64 n;
    i64 *time;   /* [n] ascending */
    i32 *offset; /* [n] from that time on */
    i32 first;   /* offset before time[0] */
    bool rule;   /* behind time[n - 1]: */
    i32 standard, summer;
    bool has_summer;
    struct change begin, end;
};

void zone_free(struct zone *z) {
    if (!z) return;
    mem_free(z->time);
    mem_free(z->offset);
    mem_free(z);
}

static i64 big_endian(const u8 *p, i32 bytes) {
    u64 v = p[0] & 0x80 ? ~(u64)0 : 0;
    for (i32 i = 0; i < bytes; i++) v = v << 8 | p[i];
    return (i64)v;
}

/* ------------------------------------------------------------------ the rule behind the last transition --------------------- */

static bool skip_name(const char **p) {
    const char *from = *p;
    if (**p == '<') {
        while (**p && **p != '>') ++*p;
        return *(*p)++ == '>';
    }
    while ((**p | 32) >= 'a' && (**p | 32) <= 'z') ++*p;
    return *p - from >= 3;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool read_clock(const char **p, i32 *out) {
    const bool minus = **p == '-';
    i32 unit = HOUR;
    *out = 0;
    if (**p == '-' || **p == '+') ++*p;
    if (**p < '0' || **p > '9') return false;
    for (;; unit /= 60) {
        i32 v = 0;
        while (**p >= '0' && **p <= '9' && v < 1000) v = v * 10 + *(*p)++ - '0';
        *out += v * unit;
        if (**p != ':' || unit == 1) break;
        ++*p;
    }
    if (minus) *out = -*out;
    return abs(*out) <= 7 * DAY;
}

/* ,M3.5.0/2 */
static bool read_change(const char **p, struct change *c) {
    int used = 0;
    *c = (struct change){.second = 2 * HOUR};
    if (sscanf(*p, ",M%d.%d.%d%n", &c->month, &c->week, &c->day, &used) != 3 || used == 0) return false;
    *p += used;
    if (c->month < 1 || c->month > 12 || c->week < 1 || c->week > 5 || c->day < 0 || c->day > 6) return false;
    if (**p != '/') return true;
    ++*p;
    return read_clock(p, &c->second);
}

/* CET-1CEST,M3.5.0,M10.5.0/3: offsets count west of UTC. */
static bool read_rule(struct zone *z, const char *p) {
    i32 west;
    if (!skip_name(&p) || !read_clock(&p, &west)) return false;
    z->standard = -west;
    if (!*p) return true;
    z->has_summer = true;
    z->summer = z->standard + HOUR;
    if (!skip_name(&p)) return false;
    if (*p && *p != ',') {
        if (!read_clock(&p, &west)) return false;
        z->summer = -west;
    }
    return read_change(&p, &z->begin) && read_change(&p, &z->end) && !*p;
}

/* Seconds since 1970 of a change in a year, by the clock before it. */
static i64 change_at(const struct change *c, i64 year) {
    const i64 first = time_days(year, c->month, 1),
              next = c->month == 12 ? time_days(year + 1, 1, 1) : time_days(year, c->month + 1, 1);
    const i64 weekday = ((first + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
    i64 day = first + (c->day - weekday + 7) % 7 + 7 * (c->week - 1);
    while (day >= next) day -= 7;
    return day * DAY + c->second;
}

static i32 by_rule(const struct zone *z, i64 utc) {
    struct civil now;
    if (!z->has_summer) return z->standard;
    time_split(utc + z->standard, &now);
    const i64 begin = change_at(&z->begin, now.year) - z->standard, end = change_at(&z->end, now.year) - z->summer;
    const bool summer = begin < end ? utc >= begin && utc < end : utc >= begin || utc < end;
    return summer ? z->summer : z->standard;
}

/* ------------------------------------------------------------------ the file ------------------------------------------------ */

/* Bytes of the data behind a header. */
static i64 size_of(const i64 *count, i32 bytes) {
    return count[TIMES] * (bytes + 1) + count[TYPES] * TYPE + count[CHARS] + count[LEAPS] * (bytes + 4) + count[IS_STANDARD] +
           count[IS_UT];
}

static bool read_counts(const u8 *p, i64 n, i64 *count) {
    if (n < HEAD || memcmp(p, "TZif", 4) != 0) return false;
    for (i32 i = 0; i < COUNTS; i++) {
        count[i] = big_endian(p + 20 + 4 * i, 4);
        if (count[i] < 0 || count[i] > FILE_MOST) return false;
    }
    return true;
}

/* The transitions at p, whose times have 8 bytes; false = damaged. */
static bool read_times(struct zone *z, const u8 *p, const i64 *count) {
    const u8 *const index = p + 8 * count[TIMES], *const type = index + count[TIMES];
    z->n = count[TIMES];
    z->first = (i32)big_endian(type, 4);
    for (i64 i = 0; i < z->n; i++) {
        z->time[i] = big_endian(p + 8 * i, 8);
        if (index[i] >= count[TYPES] || (i > 0 && z->time[i] <= z->time[i - 1])) return false;
        z->offset[i] = (i32)big_endian(type + TYPE * index[i], 4);
        if (abs(z->offset[i]) > 2 * DAY) return false;
    }
    return abs(z->first) <= 2 * DAY;
}

static bool fill(struct zone *z, const u8 *p, i64 n, const i64 *count) {
    char rule[100];
    const i64 size = size_of(count, 8);
    if (!read_times(z, p, count)) return false;
    const char *from = (const char *)p + size + 1; /* between two line feeds */
    const char *end = n > size + 1 ? memchr(from, '\n', (size_t)(n - size - 1)) : NULL;
    if (!end || end - from >= (i64)sizeof rule) return true;
    memcpy(rule, from, (size_t)(end - from));
    rule[end - from] = 0;
    z->rule = read_rule(z, rule);
    return true;
}

err zone_read(const char *bytes, i64 n, struct zone **out) {
    const u8 *p = (const u8 *)bytes;
    i64 count[COUNTS], first[COUNTS];
    struct zone *z;
    *out = NULL;
    if (!read_counts(p, n, first) || p[4] < '2') return 0;
    const i64 skip = HEAD + size_of(first, 4); /* the first part has times of 4 bytes */
    if (skip > n || !read_counts(p + skip, n - skip, count) || count[TYPES] < 1) return 0;
    const i64 at = skip + HEAD;
    if (size_of(count, 8) > n - at) return 0;
    NEW(z, 1);
    err e = mem_new((void **)&z->time, count[TIMES] + 1, sizeof *z->time);
    if (e >= 0) e = mem_new((void **)&z->offset, count[TIMES] + 1, sizeof *z->offset);
    if (e >= 0 && fill(z, p + at, n - at, count))
        *out = z;
    else
        zone_free(z);
    return e;
}

err zone_load(const char *name, struct zone **out) {
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/";
    const char *const set = getenv("TZDIR");
    const char *const dir = set && *set ? set : "/usr/share/zoneinfo";
    char path[400], *bytes;
    i64 n;
    *out = NULL;
    if (!*name || *name == '/' || name[strspn(name, safe)] || strlen(name) > 100) return 0;
    snprintf(path, sizeof path, "%.250s/%s", dir, name);
    if (!file_exists(path)) return 0;
    const struct err_record before = *err_last();
    err e = file_load(path, FILE_MOST, &bytes, &n);
    if (e == -E601) return e;
    if (e < 0) {
        err_put(&before); /* as if the system had no such zone */
        return 0;
    }
    e = zone_read(bytes, n, out);
    mem_free(bytes);
    return e;
}

i32 zone_offset(const struct zone *z, i64 utc) {
    i64 lo = 0, hi = z->n;
    while (lo < hi) {
        const i64 mid = lo + (hi - lo) / 2;
        if (z->time[mid] <= utc)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == z->n && z->rule) return by_rule(z, utc);
    return lo ? z->offset[lo - 1] : z->first;
}
