/* build_times.c - the time of every row, from one or several columns; --since and --until; merging of duplicate times. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/build.h"

enum unit { UNIT_YEAR, UNIT_MONTH, UNIT_DAY, UNIT_HOUR, UNIT_MINUTE, UNIT_SECOND, UNITS };

static const struct {
    const char *names;
    i32 least, most;
} units[UNITS] = {{" year yr yyyy y ", 1000, 2999}, {" month mon mnth mo mm ", 1, 12}, {" day dy dd dom d ", 1, 31},
                  {" hour hr hh h ", 0, 24},        {" minute min mi ", 0, 59},        {" second sec ss s ", 0, 60}};

/* Unit of a numeric time column: by its name, else the unit after the previous one. */
static enum unit unit_of(const char *name, i32 next) {
    char word[24];
    snprintf(word, sizeof word, " %.20s ", name);
    for (char *p = word; *p; p++) *p = (char)tolower((u8)*p);
    for (i32 u = 0; u < UNITS; u++)
        if (strstr(units[u].names, word)) return (enum unit)u;
    return (enum unit)imin(next, UNIT_SECOND);
}

static err bad_part(const struct build *b, i64 row, i32 col, const char *why) {
    const struct column *c = &b->t->col[col];
    const f64 v = c->number[row];
    char where[256];
    table_where(b->t, row, c, where);
    if (isnan(v)) return FAIL_AT(E205, where, "repair the line", "time column \"%s\" is empty here", c->name);
    return FAIL_AT(E205, where, "another --time   or   --time-format row --freq 1h   (rows are the time)",
                   "%.15g in time column \"%s\": %s", v, c->name, why);
}

/* A single numeric time column: years, or seconds since 1970. */
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

/* Time of one row from its columns: dates and clock times add up, numbers fill in their unit. */
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

/* Parses a bound with the span the user wrote: "1959" is a year, "1959-03" a month, "1959-03-01" a day. */
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

/* Parses a bound as a row number, if rows have no time. */
static err row_bound(const char *flag, const char *text, i64 *out) {
    if (str_to_i64(text, strlen(text), out) && *out >= 0) return 0;
    return FAIL_AT(E103, NULL, "a row number from 0   or   --time COLUMN", "%s %s: no row number, and the rows have no times",
                   flag, text);
}

static err cut_range(struct build *b) {
    const char *since = text_or(b->o->since, NULL), *until = text_or(b->o->until, NULL);
    i64 from = INT64_MIN, to = INT64_MAX, n = 0;
    if (!since && !until) return 0;
    if (since) TRY(b->time ? read_bound("--since", since, false, &from) : row_bound("--since", since, &from));
    if (until) TRY(b->time ? read_bound("--until", until, true, &to) : row_bound("--until", until, &to));
    for (i64 i = 0; i < b->n; i++) {
        const i64 at = b->time ? b->time[i] : i;
        if (at < from || at > to) continue;
        if (b->time) b->time[n] = at;
        b->row[n++] = b->row[i];
    }
    b->n = n;
    return n ? 0
             : FAIL_AT(E201, b->t->path, NULL, "no row lies between --since %s and --until %s", text_or(since, "(start)"),
                       text_or(until, "(end)"));
}

/* Merges rows of equal time: keeps the first or last, or a group whose mean is taken later. */
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
    err e = b->ntime ? combine(b) : 0;
    if (e < 0) { /* without valid times the cells cannot be checked */
        mem_free(b->time);
        b->time = NULL;
        return e;
    }
    TRY(cut_range(b));
    if (!b->time) return 0;
    TRY(build_order(b));
    return collapse(b);
}
