/* build_times.c - the time of every row, from one column or several; order, duplicates, --since and --until. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "data/build.h"

enum unit { UNIT_YEAR, UNIT_MONTH, UNIT_DAY, UNIT_HOUR, UNIT_MINUTE, UNIT_SECOND, UNITS };

static const struct {
    const char *names;
    i32 least, most;
} units[UNITS] = {{" year yr yyyy y ", 1000, 2999}, {" month mon mnth mo mm ", 1, 12}, {" day dy dd dom d ", 1, 31},
                  {" hour hr hh h ", 0, 24},        {" minute min mi ", 0, 59},        {" second sec ss s ", 0, 60}};

/* What a numeric part means: by its name, else the unit after the one before. */
static enum unit unit_of(const char *name, i32 next) {
    char word[24];
    snprintf(word, sizeof word, " %.20s ", name);
    for (char *p = word; *p; p++) *p = (char)tolower((u8)*p);
    for (i32 u = 0; u < UNITS; u++)
        if (strstr(units[u].names, word)) return (enum unit)u;
    return (enum unit)imin(next, UNIT_SECOND);
}

static void where_of(const struct build *b, i64 row, i32 col, char where[300]) {
    i64 line = table_line(b->t, row);
    if (col >= 0) snprintf(where, 300, "%.200s:%lld:%d", b->t->path, (long long)line, b->t->col[col].field);
    else snprintf(where, 300, "%.200s:%lld", b->t->path, (long long)line);
}

static err bad_part(const struct build *b, i64 row, i32 col, const char *why) {
    char where[300];
    where_of(b, row, col, where);
    f64 v = b->t->col[col].number[row];
    if (isnan(v)) return FAIL_AT(E205, where, "repair the line", "time column \"%s\" is empty here", b->t->col[col].name);
    return FAIL_AT(E205, where, "another --time   or   --time-format row --freq 1h   (rows are the time)",
                   "%.15g in time column \"%s\": %s", v, b->t->col[col].name, why);
}

/* A single column of numbers that was not read as times: years, or seconds since 1970. */
static err single_number(struct build *b, i32 col) {
    const f64 *v = b->t->col[col].number;
    for (i64 i = 0; i < b->t->nrow; i++) {
        if (!(v[i] >= 1000 && v[i] <= 2999) && !(v[i] > 1e8 && v[i] < 1e15))
            return bad_part(b, i, col, "no year and no seconds since 1970");
        if (v[i] <= 2999) b->time[i] = time_days((i64)v[i], 1, 1) * 86400;
        else b->time[i] = (i64)(v[i] > 1e11 ? v[i] / 1000 : v[i]);
    }
    return 0;
}

/* One row's time from its parts: date columns and clock columns add up, numbers fill in their unit. */
static err row_time(struct build *b, i64 row, const enum unit *unit) {
    struct civil c = {.year = 1970, .month = 1, .day = 1};
    i64 sum = 0;
    i32 *field[] = {NULL, &c.month, &c.day, &c.hour, &c.minute, &c.second};
    for (i32 k = 0; k < b->ntime; k++) {
        const struct column *col = &b->t->col[b->time_col[k]];
        if (col->type == COL_TIME) {
            sum += col->time[row];
            continue;
        }
        f64 v = col->number[row];
        enum unit u = unit[k];
        if (!(v >= units[u].least && v <= units[u].most) || v != floor(v)) {
            static const char *const why[] = {
                "no year with four digits", "no month", "no day", "no hour", "no minute", "no second"};
            return bad_part(b, row, b->time_col[k], why[u]);
        }
        if (u == UNIT_YEAR) c.year = (i64)v;
        else *field[u] = (i32)v;
    }
    if (c.day > time_month_days(c.year, c.month)) return bad_part(b, row, b->time_col[b->ntime - 1], "the month has no such day");
    b->time[row] = sum + time_make(&c);
    return 0;
}

static err combine(struct build *b) {
    enum unit unit[TIME_PARTS] = {0};
    NEW(b->time, b->t->nrow);
    i32 next = UNIT_YEAR;
    for (i32 k = 0; k < b->ntime; k++) {
        const struct column *col = &b->t->col[b->time_col[k]];
        if (col->type == COL_CATEGORY)
            return FAIL_AT(E205, b->t->path, "--time-format '%Y-%m-%d'   (spelt like the cells)",
                           "time column \"%s\" holds words (\"%s\")", col->name, col->nword ? col->word[0] : "");
        unit[k] = col->type == COL_TIME ? UNIT_DAY : unit_of(col->name, next);
        next = (i32)unit[k] + 1;
    }
    const struct column *only = &b->t->col[b->time_col[0]];
    if (b->ntime == 1 && only->type == COL_TIME) {
        memcpy(b->time, only->time, (size_t)b->t->nrow * sizeof *b->time);
        return 0;
    }
    if (b->ntime == 1) return single_number(b, b->time_col[0]);
    for (i64 i = 0; i < b->t->nrow; i++) TRY(row_time(b, i, unit));
    return 0;
}

/* The span of a time as the user wrote it: "1959" is a year, "1959-03" a month, "1959-03-01" a day. */
static err read_bound(const char *flag, const char *text, bool end, i64 *out) {
    struct time_parser date = {.kind = TIME_YMD}, year = {.kind = TIME_YEAR};
    size_t n = strlen(text);
    struct freq span = {0};
    if (time_parse(&year, text, n, out)) span.months = 12;
    else if (!time_parse(&date, text, n, out))
        return FAIL_AT(E103, NULL, "2016-07-01   or   '2016-07-01 05:00'", "%s %s: no date", flag, text);
    else if (n <= 7) span.months = 1;
    else if (n <= 10) span.step = 86400;
    else span.step = n <= 16 ? 60 : 1;
    if (end) *out = time_add(*out, &span, 1) - 1;
    return 0;
}

static err cut_range(struct build *b) {
    const char *since = text_or(b->o->since, NULL), *until = text_or(b->o->until, NULL);
    i64 from = INT64_MIN, to = INT64_MAX, n = 0;
    if (!since && !until) return 0;
    if (!b->time) return FAIL(E106, "%s needs a time column, here the rows are the time", since ? "--since" : "--until");
    if (since) TRY(read_bound("--since", since, false, &from));
    if (until) TRY(read_bound("--until", until, true, &to));
    for (i64 i = 0; i < b->n; i++) {
        if (b->time[i] < from || b->time[i] > to) continue;
        b->time[n] = b->time[i];
        b->row[n++] = b->row[i];
    }
    b->n = n;
    return n ? 0
             : FAIL_AT(E201, b->t->path, NULL, "no row lies between --since %s and --until %s", text_or(since, "(start)"),
                       text_or(until, "(end)"));
}

enum { FIX_BYTES = 700 };

/* A category of at most so many words that changes between two rows tells that there are several series in the file: the first
 * such column, or NULL. */
static const struct column *series_column(const struct build *b, i64 before, i64 row, i64 words) {
    for (i32 i = 0; i < b->t->ncol; i++) {
        const struct column *c = &b->t->col[i];
        if (c->type == COL_CATEGORY && c->code[row] != c->code[before] && c->nword <= words) return c;
    }
    return NULL;
}

/* How to cut one of them out: that of the row before. */
static void cut_series(const struct build *b, const struct column *c, i64 at, char fix[FIX_BYTES]) {
    snprintf(fix, FIX_BYTES, "awk -F'%c' 'NR==1 || $%d==\"%.60s\"' %.200s > one.csv   (one series a file)", b->t->sep, c->field,
             c->word[imax(0, c->code[b->row[at - 1]])], b->t->path);
}

/* What an hour that comes twice looks like. */
#define GO_BACK "\nas where clocks go back from summer time: times in UTC do not"

static err unsorted(struct build *b, i64 at, i64 backs, bool descending) {
    char where[300], now[32], before[32], fix[FIX_BYTES];
    struct freq none = {0};
    where_of(b, b->row[at], -1, where);
    time_format(b->time[at], &none, now);
    time_format(b->time[at - 1], &none, before);
    const char *path = b->t->path;
    const struct column *c = series_column(b, b->row[at] - 1, b->row[at], b->t->nrow / 2);
    if (c) {
        cut_series(b, c, at, fix);
        return FAIL_AT(E209, where, fix,
                       "time goes back from %s to %s where \"%s\" changes: several series in one file (%d of them)", before,
                       now, c->name, c->nword);
    }
    if (descending) snprintf(fix, sizeof fix, "(head -n 1 %.200s; tail -n +2 %.200s | tac) > sorted.csv", path, path);
    else
        snprintf(fix, sizeof fix, "(head -n 1 %.200s; tail -n +2 %.200s | sort -t '%c' -k %d) > sorted.csv", path, path,
                 b->t->sep, b->t->col[b->time_col[0]].field);
    return FAIL_AT(E209, where, fix,
                   descending ? "the newest row comes first: %s, then %s (%lld such places)%s"
                              : "time goes back from %s to %s (%lld such places)%s",
                   before, now, (long long)backs,
                   b->time[at - 1] - b->time[at] < 3600 && time_clocks_change(b->time[at], false) ? GO_BACK : "");
}

static err duplicates(struct build *b, i64 first, i64 count) {
    char where[300], now[32], fix[FIX_BYTES];
    bool clocks = true;
    for (i64 i = 1; i < b->n; i++) clocks &= b->time[i] != b->time[i - 1] || time_clocks_change(b->time[i], false);
    struct freq none = {0};
    where_of(b, b->row[first], -1, where);
    time_format(b->time[first], &none, now);
    const bool many = count >= b->n / 4; /* rows that have the time of the one before */
    const struct column *c = many ? series_column(b, b->row[first - 1], b->row[first], INT64_MAX) : NULL;
    if (c) {
        cut_series(b, c, first, fix);
        return FAIL_AT(E211, where, fix, "time %s comes again with another \"%s\": several series in one file (%d of them)", now,
                       c->name, c->nword);
    }
    return FAIL_AT(
        E211, where, "--dups mean   or   --dups first   or   --dups last\n--time DATE,CLOCK   (when two columns make the time)",
        "time %s comes again: %lld row%s the time of the row before%s", now, (long long)count, count == 1 ? " has" : "s have",
        clocks ? GO_BACK : "");
}

/* Rows of equal time become one: the first, the last, or a group whose mean is taken later. */
static err collapse(struct build *b) {
    if (b->dups == DUPS_MEAN) NEW(b->same, b->n);
    i64 n = 0;
    for (i64 i = 0; i < b->n; i++) {
        bool again = n > 0 && b->time[i] == b->time[n - 1];
        if (!again) {
            b->time[n] = b->time[i];
            b->row[n] = b->row[i];
            if (b->same) b->same[n] = 1;
            n++;
        } else if (b->dups == DUPS_LAST) {
            b->row[n - 1] = b->row[i];
        } else if (b->same) {
            b->same[n - 1]++;
        }
    }
    b->merged = b->n - n;
    b->n = n;
    return 0;
}

err build_times(struct build *b) {
    b->n = b->t->nrow;
    NEW(b->row, b->n);
    for (i64 i = 0; i < b->n; i++) b->row[i] = i;
    if (b->ntime) TRY(combine(b));
    TRY(cut_range(b));
    if (!b->time) return 0;
    i64 backs = 0, back = 0, equals = 0, equal = 0;
    for (i64 i = b->n - 1; i > 0; i--) {
        if (b->time[i] < b->time[i - 1]) backs++, back = i;
        if (b->time[i] == b->time[i - 1]) equals++, equal = i;
    }
    if (backs) return unsorted(b, back, backs, backs + equals == b->n - 1 && b->n > 2);
    if (!equals) return 0;
    if (b->dups == DUPS_ERROR) TRY(build_problem(b, duplicates(b, equal, equals)));
    return collapse(b);
}
