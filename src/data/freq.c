/* freq.c - the time step between rows: inference, arithmetic, and formatting of times at its resolution.
 *
 * Steps up to days and weeks are seconds; months, quarters and years follow the calendar. A sequence of month ends (31 Jan, 28
 * Feb, ...) steps from end to end, so a calendar step depends on the day it starts from. A sequence on day 30 (30 Jan, 28 Feb,
 * 30 Mar) also contains month ends; freq.day tells them apart. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "data/time.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

static const struct {
    const char *name, *unit; /* unit for spans */
    i64 step;
    i32 months;
} known[] = {{"every second", "second", 1, 0}, {"minutely", "minute", MINUTE, 0}, {"hourly", "hour", HOUR, 0},
             {"daily", "day", DAY, 0},         {"weekly", "week", 7 * DAY, 0},    {"monthly", "month", 0, 1},
             {"quarterly", "quarter", 0, 3},   {"yearly", "year", 0, 12}};

/* Sets name and season of a step. */
static void complete(struct freq *f) {
    i64 s = f->step;
    f->season = 1;
    if (f->months > 0) f->season = 12 % f->months == 0 ? 12 / f->months : 1;
    else if (s > 0 && s <= MINUTE) f->season = (i32)((s == MINUTE ? HOUR : MINUTE) / s);
    else if (s > 0 && s < DAY && DAY % s == 0) f->season = (i32)(DAY / s);
    else if (s == DAY) f->season = 7;
    else if (s == 7 * DAY) f->season = 52;
    for (size_t i = 0; i < COUNT(known); i++)
        if (known[i].step == s && known[i].months == f->months) {
            snprintf(f->name, sizeof f->name, "%s", known[i].name);
            return;
        }
    i64 unit = s % DAY == 0 ? DAY : s % HOUR == 0 ? HOUR : s % MINUTE == 0 ? MINUTE : 1;
    const char *word = f->months > 0 ? "month" : unit == DAY ? "day" : unit == HOUR ? "h" : unit == MINUTE ? "min" : "s";
    char name[40];
    snprintf(name, sizeof name, "%lld%s", (long long)(f->months > 0 ? f->months : s / unit), word);
    snprintf(f->name, sizeof f->name, "%.15s", name);
}

static const struct {
    const char *word;
    i64 step;
    i32 months;
} units[] = {{"s", 1, 0},           {"sec", 1, 0},          {"second", 1, 0},     {"min", MINUTE, 0},   {"t", MINUTE, 0},
             {"minute", MINUTE, 0}, {"minutely", MINUTE, 0}, {"h", HOUR, 0},       {"hour", HOUR, 0},    {"hourly", HOUR, 0},
             {"d", DAY, 0},         {"day", DAY, 0},        {"daily", DAY, 0},    {"w", 7 * DAY, 0},    {"week", 7 * DAY, 0},
             {"weekly", 7 * DAY, 0}, {"m", 0, 1},           {"ms", 0, 1},         {"me", 0, 1},         {"month", 0, 1},
             {"monthly", 0, 1},     {"q", 0, 3},            {"qs", 0, 3},         {"quarter", 0, 3},    {"quarterly", 0, 3},
             {"y", 0, 12},          {"a", 0, 12},           {"year", 0, 12},      {"yearly", 0, 12}};

err freq_parse(const char *text, struct freq *out) {
    char word[24] = "";
    i64 n = 0;
    const char *p = text;
    for (; isdigit((u8)*p) && n < 100000000; p++) n = n * 10 + (*p - '0');
    if (p == text) n = 1;
    while (*p == ' ') p++;
    if (strcmp(p, "ms") == 0) /* pandas: MS is the start of a month, ms are milliseconds */
        return FAIL_AT(E103, NULL, "--freq 1s   or   --freq MS   (months)", "--freq %s: a step is at least a second", text);
    size_t len = strlen(p);
    for (size_t i = 0; i < len && len < sizeof word; i++) word[i] = (char)tolower((u8)p[i]);
    for (i32 plural = 0; plural < 2; plural++) {
        for (size_t i = 0; n > 0 && i < COUNT(units); i++) {
            if (strcmp(word, units[i].word) != 0) continue;
            *out = (struct freq){.step = n * units[i].step, .months = (i32)(n * units[i].months)};
            complete(out);
            return 0;
        }
        if (len > 1 && len < sizeof word && word[len - 1] == 's') word[len - 1] = 0; /* hours, days */
    }
    return FAIL_AT(E103, NULL, "--freq 15min   or   --freq 1h   or   --freq 1month", "--freq %s: unknown step", text);
}

/* The most frequent positive difference. At most a few hundred distinct ones are counted; more are no regular series. */
static i64 commonest_step(const i64 *t, i64 n) {
    enum { MOST = 256 };
    i64 diff[MOST], count[MOST];
    i32 kinds = 0, last = 0;
    for (i64 i = 1; i < n; i++) {
        i64 d = t[i] - t[i - 1];
        if (d <= 0) continue;
        i32 k = last;
        if (k >= kinds || diff[k] != d)
            for (k = 0; k < kinds && diff[k] != d;) k++;
        if (k == kinds && kinds == MOST) continue;
        if (k == kinds) {
            diff[k] = d;
            count[k] = 0;
            kinds++;
        }
        count[k]++;
        last = k;
    }
    i64 best = 0, most = 0;
    for (i32 k = 0; k < kinds; k++)
        if (count[k] > most || (count[k] == most && diff[k] < best)) best = diff[k], most = count[k];
    return best;
}

/* Counts the times that are not on the grid of f that starts at the first. */
static i64 off_grid(const i64 *t, i64 n, const struct freq *f) {
    i64 off = 0;
    for (i64 i = 1; i < n; i++) off += t[i] > t[i - 1] && time_steps(t[i - 1], t[i], f) < 0;
    return off;
}

i32 freq_day(const i64 *t, i64 n) {
    enum { FIRST = 28, LAST = 31 };
    i64 count[LAST + 1] = {0};
    struct civil c;
    for (i64 i = 0; i < n; i++) {
        time_split(t[i], &c);
        const i32 end = time_month_days(c.year, c.month);
        for (i32 day = FIRST; day <= LAST; day++) count[day] += c.day == imin(day, end);
    }
    i32 best = LAST; /* also if all days fit: month ends */
    for (i32 day = LAST - 1; day >= FIRST; day--)
        if (count[day] > count[best]) best = day;
    return best < LAST ? best : 0;
}

void freq_infer(const i64 *t, i64 n, struct freq *out) {
    static const struct {
        i64 least, most;
        i32 months;
    } calendar[] = {{28, 31, 1}, {59, 62, 2}, {89, 92, 3}, {181, 184, 6}, {365, 366, 12}};
    i64 step = commonest_step(t, n);
    *out = (struct freq){.season = 1};
    if (step == 0) return;
    for (size_t i = 0; i < COUNT(calendar); i++) {
        if (step < calendar[i].least * DAY || step > calendar[i].most * DAY) continue;
        struct freq f = {.months = calendar[i].months};
        if (off_grid(t, n, &f) * 10 > n) break; /* every 28 or 30 days, perhaps */
        complete(&f);
        f.day = freq_day(t, n);
        *out = f;
        return;
    }
    out->step = step;
    complete(out);
}

i64 time_add(i64 t, const struct freq *f, i64 n) {
    if (f->months == 0) return t + n * f->step;
    struct civil c;
    time_split(t, &c);
    const i32 most = f->day > 0 ? f->day : 31;
    const bool shortened = c.day > 27 && c.day == imin(most, time_month_days(c.year, c.month));
    i64 months = c.year * 12 + (c.month - 1) + n * f->months;
    c.year = (months >= 0 ? months : months - 11) / 12;
    c.month = (i32)(months - c.year * 12) + 1;
    c.day = imin(shortened ? most : c.day, time_month_days(c.year, c.month));
    return time_make(&c);
}

i64 time_steps(i64 from, i64 to, const struct freq *f) {
    if (f->months == 0) return f->step > 0 && (to - from) % f->step == 0 ? (to - from) / f->step : -1;
    struct civil a, b;
    time_split(from, &a);
    time_split(to, &b);
    i64 months = (b.year - a.year) * 12 + (b.month - a.month);
    if (months % f->months != 0) return -1;
    i64 n = months / f->months;
    bool same_day = a.day == b.day && a.hour == b.hour && a.minute == b.minute && a.second == b.second;
    return same_day || time_add(from, f, n) == to || time_add(to, f, -n) == from ? n : -1;
}

void time_zone_text(i32 zone, char out[8]) {
    const i32 minutes = zone < 0 ? -zone / 60 : zone / 60;
    if (zone == 0) snprintf(out, 8, "Z");
    else snprintf(out, 8, "%c%02d:%02d", zone < 0 ? '-' : '+', minutes / 60 % 24, minutes % 60);
}

int time_format(i64 t, const struct freq *f, char out[32]) {
    char zone[8] = "";
    struct civil c;
    time_split(t, &c);
    bool midnight = c.hour == 0 && c.minute == 0 && c.second == 0;
    long long y = (long long)c.year;
    if (f->zoned) time_zone_text(f->zone, zone);
    if (f->zoned) midnight = false; /* a day of a zone is shown with its hour */
    if (f->months >= 12 && midnight && c.day == 1 && c.month == 1) return snprintf(out, 32, "%04lld", y);
    if (f->months > 0 && midnight && c.day == 1) return snprintf(out, 32, "%04lld-%02d", y, c.month);
    if (midnight && (f->months > 0 || (f->step > 0 && f->step % DAY == 0)))
        return snprintf(out, 32, "%04lld-%02d-%02d", y, c.month, c.day);
    if (c.second == 0 && (f->step == 0 || f->step % MINUTE == 0))
        return snprintf(out, 32, "%04lld-%02d-%02d %02d:%02d%s", y, c.month, c.day, c.hour, c.minute, zone);
    return snprintf(out, 32, "%04lld-%02d-%02d %02d:%02d:%02d%s", y, c.month, c.day, c.hour, c.minute, c.second, zone);
}

void freq_span(const struct freq *f, i64 n, char out[32]) {
    for (size_t i = 0; i < COUNT(known); i++)
        if (known[i].step == f->step && known[i].months == f->months) {
            snprintf(out, 32, "%lld %s%s", (long long)n, known[i].unit, n == 1 ? "" : "s");
            return;
        }
    if (f->name[0]) snprintf(out, 32, "%lld step%s of %s", (long long)n, n == 1 ? "" : "s", f->name);
    else snprintf(out, 32, "%lld row%s", (long long)n, n == 1 ? "" : "s");
}

i64 series_time(const struct series *s, i64 row) {
    const i64 i = lmin(lmax(row, 0), s->nrow - 1);
    return row == i ? s->time[i] : time_add(s->time[i], &s->freq, row - i);
}

void row_label(const struct series *s, i64 row, char out[32]) {
    if (s->time && s->nrow > 0) time_format(series_time(s, row), &s->freq, out);
    else snprintf(out, 32, "row %lld", (long long)row);
}

void span_label(const struct series *s, i64 from, i64 to, char out[72]) {
    char a[32], b[32];
    row_label(s, from, a);
    row_label(s, to - 1, b);
    snprintf(out, 72, to > from ? "%s..%s" : "none", a, b);
}
