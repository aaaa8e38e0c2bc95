/* build_times.c - the time of every row, from one or several columns; --since and --until; merging of duplicate times. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/build.h"
#include "data/mend.h"

enum unit {
    UNIT_YEAR, UNIT_MONTH, UNIT_DAY, UNIT_HOUR, UNIT_MINUTE, UNIT_SECOND,
    UNIT_QUARTER, UNIT_WEEK, UNIT_YEARDAY, UNIT_HHMM, UNIT_PERIOD, UNITS
};

static const struct {
    const char *names;
    i32 least, most;
    const char *none; /* no such part of a time */
} units[UNITS] = {{" year yr yyyy y jahr annee année ano año anno ", 1000, 2999, "no year with four digits"},
                  {" month mon mnth mo mm monat mois mes mese ", 1, 12, "no month"},
                  {" day dy dd dom mday d tag jour dia día giorno ", 1, 31, "no day"},
                  {" hour hr hh h stunde heure hora ora ", 0, 24, "no hour"},
                  {" minute min mi minuto ", 0, 59, "no minute"},
                  {" second sec ss s sekunde seconde segundo ", 0, 60, "no second"},
                  {" quarter qtr q quartal trimestre ", 1, 4, "no quarter"},
                  {" week wk isoweek w woche kw kalenderwoche semaine semana ", 1, 53, "no week"},
                  {" doy yday dayofyear yearday j ", 1, 366, "no day of the year"},
                  {" hhmm ", 0, 2400, "no time of day as 1330"},
                  {"", 1, 12, "the average of a year, no part of it"}};
static const char clock_names[] = " time clock hhmm tod uhrzeit ";

static bool has_name(const char *names, const char *name) {
    char word[24];
    snprintf(word, sizeof word, " %.20s ", name);
    for (char *p = word; *p; p++) *p = (char)tolower((u8)*p);
    return strstr(names, word) != NULL;
}

/* Unit with this name, or UNITS. */
static enum unit unit_named(const char *name) {
    for (i32 u = 0; u < UNITS; u++)
        if (has_name(units[u].names, name)) return (enum unit)u;
    return UNITS;
}

/* True for hhmm numbers (0, 30, 1330). *hours: none has three digits, so they are hours, or one of them is wrong. */
static bool is_clock(const struct column *c, i64 nrow, bool *hours) {
    f64 most = 0;
    for (i64 i = 0; i < nrow; i++) {
        const f64 v = c->number[i];
        if (!(v >= 0 && v <= units[UNIT_HHMM].most) || v != floor(v) || fmod(v, 100) >= 60) return false;
        most = fmax(most, v);
    }
    *hours = most < 100;
    return nrow > 0;
}

static err bad_part(const struct build *b, i64 row, i32 col, const char *why) {
    const struct column *c = &b->t->col[col];
    char where[256], cell[64];
    table_where(b->t, row, c, where);
    if (c->type == COL_CATEGORY ? c->code[row] < 0 : isnan(c->number[row]))
        return FAIL_AT(E205, where, "repair the line", "time column \"%s\" is empty here", c->name);
    if (c->type == COL_CATEGORY) snprintf(cell, sizeof cell, "\"%.40s\"", c->word[c->code[row]]);
    else snprintf(cell, sizeof cell, "%.15g", c->number[row]);
    return FAIL_AT(E205, where, "--time-format row   (rows are the time)   or   another --time", "%s in time column \"%s\": %s",
                   cell, c->name, why);
}

/* A period that is the average of its year, among those that are parts of it. */
static err average(const struct build *b, i64 row, const struct column *c) {
    char where[256], fix[2 * MEND_PATH + 80], from[MEND_PATH], to[MEND_PATH];
    const char *word = c->word[c->code[row]];
    i64 n = 0;
    for (i64 i = 0; i < b->t->nrow; i++) n += c->code[i] >= 0 && !strcmp(c->word[c->code[i]], word);
    table_where(b->t, row, c, where);
    snprintf(fix, sizeof fix, "leave out the rows of %s", word);
    if (table_is_file(b->t))
        snprintf(fix, sizeof fix, "grep -vw %s %s > %s", word, mend_from(b->t->path, from), mend_to(b->t->path, "periods", to));
    return FAIL_AT(E205, where, fix, "\"%s\" in time column \"%s\": %s; %lld such row%s", word, c->name,
                   units[UNIT_PERIOD].none, (long long)n, n == 1 ? "" : "s");
}

/* The --time-format as layout for numbers; NULL = there is none, or another reader's. */
static const char *number_layout(const struct build *b, f64 first) {
    const char *layout = text_or(b->o->time_format, NULL);
    i64 t;
    return layout && build_time_of(layout, first, &t) ? layout : NULL;
}

bool build_time_of(const char *layout, f64 v, i64 *t) {
    const struct time_parser p = {.kind = TIME_CUSTOM, .format = layout};
    char text[32];
    snprintf(text, sizeof text, "%.15g", v);
    return !isnan(v) && time_parse(&p, text, strlen(text), t);
}

/* A single numeric time column. */
static err single_number(struct build *b, i32 col) {
    const f64 *v = b->t->col[col].number;
    const char *layout = number_layout(b, v[0]);
    enum time_kind kind = layout ? TIME_CUSTOM : time_guess_numbers(v, b->t->nrow);
    if (kind == TIME_NONE) kind = time_guess_numbers(v, 1); /* to report the first row of another kind */
    for (i64 i = 0; i < b->t->nrow; i++)
        if (isnan(v[i]) || !(layout ? build_time_of(layout, v[i], &b->time[i]) : time_of_number(kind, v[i], &b->time[i])))
            return bad_part(b, i, col, "no year, no date as 20110102, and no seconds since 1970");
    return 0;
}

/* Periods of a year as statistical offices write them: M01, Q01, S01 (half years), A01. *v: the month in which the period begins,
 * or 13 for M13, Q05 and S03, which are averages of the year. */
static bool read_period(const char *word, i64 *v) {
    static const char letters[] = "MQSA";
    static const i32 periods[] = {12, 4, 2, 1};
    const char *at = word[0] ? strchr(letters, word[0]) : NULL;
    i64 n;
    if (!at || strlen(word) != 3 || !str_to_i64(word + 1, 2, &n)) return false;
    const i32 most = periods[at - letters];
    *v = n == most + 1 ? 13 : 12 / most * (n - 1) + 1;
    return n >= 1 && n <= most + (most > 1);
}

/* Words that are part of a time: 05:00 or 5:00 PM (seconds), Jan or March (number of the month), Q1, W05, M01. */
static bool read_word(const char *word, enum unit *u, i64 *v) {
    const struct time_parser clock = {.kind = TIME_CLOCK}, month = {.kind = TIME_CUSTOM, .format = "%b"};
    struct civil c;
    const size_t n = strlen(word);
    const int letter = word[0] | 32;
    *u = UNIT_PERIOD;
    if (read_period(word, v)) return true;
    *u = letter == 'q' ? UNIT_QUARTER : UNIT_WEEK;
    if (n > 1 && n < 4 && (letter == 'q' || letter == 'w') && str_to_i64(word + 1, n - 1, v)) /* Q1, W05 */
        return *v >= units[*u].least && *v <= units[*u].most;
    *u = UNIT_HOUR;
    if (time_parse(&clock, word, strlen(word), v)) return true;
    if (!time_parse(&month, word, strlen(word), v)) return false;
    time_split(*v, &c);
    *u = UNIT_MONTH;
    *v = c.month;
    return true;
}

/* Time of one row from its columns: dates and clock times add up, numbers fill in their unit. */
static err row_time(struct build *b, i64 row, const enum unit *unit) {
    struct civil c = {.year = 1970, .month = 1, .day = 1};
    i64 sum = 0, week = 0, yearday = 1, t;
    i32 yearday_col = 0;
    i32 *field[] = {NULL, &c.month, &c.day, &c.hour, &c.minute, &c.second};
    for (i32 k = 0; k < b->ntime; k++) {
        const struct column *col = &b->t->col[b->time_col[k]];
        enum unit u = unit[k];
        f64 v = 0;
        if (col->type == COL_CATEGORY) {
            if (col->code[row] < 0 || !read_word(col->word[col->code[row]], &u, &t))
                return bad_part(b, row, b->time_col[k], "no time of day, month, quarter or week");
            if (u == UNIT_HOUR) sum += t;
            v = (f64)t;
        } else if (col->type == COL_NUMBER) {
            v = col->number[row];
        }
        if (col->type == COL_TIME) sum += col->time[row];
        else if (k == 0 && u == UNIT_DAY && time_of_number(TIME_COMPACT, v, &t)) sum += t; /* 20110102 */
        else if (col->type == COL_CATEGORY && u == UNIT_HOUR) continue;
        else if (u == UNIT_PERIOD && v > 12) return average(b, row, col);
        else if (!(v >= units[u].least && v <= units[u].most) || v != floor(v) || (u == UNIT_HHMM && fmod(v, 100) >= 60))
            return bad_part(b, row, b->time_col[k], units[u].none);
        else if (u == UNIT_YEAR) c.year = (i64)v;
        else if (u == UNIT_PERIOD) c.month = (i32)v;
        else if (u == UNIT_QUARTER) c.month = 3 * (i32)v - 2;
        else if (u == UNIT_WEEK) week = (i64)v;
        else if (u == UNIT_YEARDAY) yearday = (i64)v, yearday_col = b->time_col[k];
        else if (u == UNIT_HHMM) sum += (i64)v / 100 * 3600 + (i64)v % 100 * 60;
        else *field[u] = (i32)v;
    }
    if (c.day > time_month_days(c.year, c.month)) return bad_part(b, row, b->time_col[b->ntime - 1], "the month has no such day");
    if (yearday > time_year_days(c.year)) return bad_part(b, row, yearday_col, "the year has no such day");
    b->time[row] = sum + (yearday - 1) * 86400 + time_make(&c);
    if (!week) return 0;
    if (!time_week(c.year, week, 1, &t)) return bad_part(b, row, b->time_col[b->ntime - 1], "the year has no such week");
    b->time[row] += t - time_days(c.year, 1, 1) * 86400;
    return 0;
}

static err combine(struct build *b) {
    enum unit unit[TIME_PARTS] = {0}, next = UNIT_YEAR;
    NEW_SPILL(b->time, b->t->nrow);
    for (i32 k = 0; k < b->ntime; k++) {
        const struct column *col = &b->t->col[b->time_col[k]];
        enum unit named = col->type == COL_TIME ? UNIT_DAY : unit_named(col->name);
        i64 t;
        if (col->type == COL_CATEGORY && (b->ntime == 1 || col->nword == 0 || !read_word(col->word[0], &named, &t)))
            return FAIL_AT(E205, b->t->path, "--time-format '%Y-%m-%d'   (spelt like the cells)",
                           "time column \"%s\" holds words (\"%s\")", col->name, col->nword ? col->word[0] : "");
        if (k == 0 && col->type == COL_NUMBER && time_of_number(TIME_COMPACT, col->number[0], &t)) named = UNIT_DAY;
        unit[k] = named < UNITS ? named : next;
        bool hours;
        if (unit[k] == UNIT_HOUR && col->type == COL_NUMBER && is_clock(col, b->t->nrow, &hours) && !hours)
            unit[k] = UNIT_HHMM;
        next = unit[k] >= UNIT_QUARTER ? UNIT_HOUR : (enum unit)imin((i32)unit[k] + 1, UNIT_SECOND);
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

/* True for words that are all of this unit. */
static bool all_words(const struct column *c, enum unit want) {
    for (i32 w = 0; w < c->nword; w++) {
        enum unit u;
        i64 t;
        if (!read_word(c->word[w], &u, &t) || u != want) return false;
    }
    return c->nword > 0;
}

/* A column without a role that is named for a unit (not by one letter: y is often a target), or holds its words; -1 = none. */
static i32 part_of(const struct build *b, const u8 *role, enum unit u) {
    for (i32 i = 0; i < b->t->ncol; i++) {
        const struct column *c = &b->t->col[i];
        if (role[i] != NO_ROLE || !c->name[0]) continue;
        bool hours;
        if (c->type == COL_NUMBER && c->name[1] && unit_named(c->name) == u) return i;
        const bool clock = c->type == COL_NUMBER && u == UNIT_HOUR && has_name(clock_names, c->name);
        if (clock && is_clock(c, b->t->nrow, &hours)) return i;
        if (c->type == COL_CATEGORY && all_words(c, u)) return i;
    }
    return -1;
}

i32 build_time_parts(const struct build *b, const u8 *role, bool clock_only, i32 *col) {
    static const enum unit chains[][6] = {{UNIT_YEAR, UNIT_PERIOD, UNITS},
                                          {UNIT_YEAR, UNIT_MONTH, UNIT_DAY, UNIT_HOUR, UNIT_MINUTE, UNIT_SECOND},
                                          {UNIT_YEAR, UNIT_YEARDAY, UNIT_HOUR, UNIT_MINUTE, UNIT_SECOND, UNITS},
                                          {UNIT_YEAR, UNIT_QUARTER, UNITS},
                                          {UNIT_YEAR, UNIT_WEEK, UNITS},
                                          {UNIT_HOUR, UNIT_MINUTE, UNIT_SECOND, UNITS}};
    for (size_t k = clock_only ? 5 : 0; k < (clock_only ? 6 : 5); k++) {
        i32 n = 0, c = 0;
        while (n < 6 && chains[k][n] < UNITS && (c = part_of(b, role, chains[k][n])) >= 0) col[n++] = c;
        if (n > 1 || (clock_only && n > 0)) return n;
    }
    return 0;
}

/* Parses a bound with the span the user wrote: "1959" is a year, "1959-03" a month, "1959-03-01" a day. */
static err read_bound(i32 zone, const char *flag, const char *text, bool end, i64 *out) {
    struct time_parser date = {.kind = TIME_YMD}, year = {.kind = TIME_YEAR};
    size_t n = strlen(text);
    struct freq span = {0};
    if (time_parse(&year, text, n, out)) span.months = 12;
    else if (!time_parse(&date, text, n, out))
        return FAIL_AT(E103, NULL, "2016-07-01   or   '2016-07-01 05:00'", "%s %s: no date", flag, text);
    else if (n <= 7) span.months = 1;
    else if (n <= 10) span.step = 86400;
    else span.step = n <= 16 ? 60 : 1;
    i32 own;
    if (time_offset(&date, text, (i64)n, &own)) *out += zone;
    if (end) *out = time_add(*out, &span, 1) - 1;
    return 0;
}

/* Parses a bound as a row number, if rows have no time. */
static err row_bound(const char *flag, const char *text, i64 *out) {
    if (str_to_i64(text, strlen(text), out) && *out >= 0) return 0;
    return FAIL_AT(E103, NULL, "a row number from 0   or   --time COLUMN", "%s %s: no row number, and the rows have no times",
                   flag, text);
}

err series_since(const struct series *s, const char *since, i64 *row) {
    i64 from;
    TRY(s->time ? read_bound(s->freq.zone, "--since", since, false, &from) : row_bound("--since", since, &from));
    for (*row = 0; *row < s->nrow && (s->time ? s->time[*row] : *row) < from;) ++*row;
    return 0;
}

static err cut_range(struct build *b) {
    const char *since = text_or(b->o->since, NULL), *until = text_or(b->o->until, NULL);
    i64 from = INT64_MIN, to = INT64_MAX, n = 0;
    if (!since && !until) return 0;
    i32 zone = 0;
    for (i32 k = 0; k < b->ntime; k++) zone += b->t->col[b->time_col[k]].zone;
    if (since) TRY(b->time ? read_bound(zone, "--since", since, false, &from) : row_bound("--since", since, &from));
    if (until) TRY(b->time ? read_bound(zone, "--until", until, true, &to) : row_bound("--until", until, &to));
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
    if (b->dups == DUPS_MEAN) NEW_SPILL(b->same, b->n);
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
    NEW_SPILL(b->row, b->n);
    for (i64 i = 0; i < b->n; i++) b->row[i] = i;
    err e = b->ntime ? combine(b) : 0;
    if (e < 0) { /* without valid times the cells cannot be checked */
        mem_free(b->time);
        b->time = NULL;
        return e;
    }
    TRY(cut_range(b));
    TRY(build_resample(b));
    if (b->nid > 0) return build_panel(b);
    if (!b->time) return 0;
    TRY(build_order(b));
    build_floor_times(b);
    return collapse(b);
}
