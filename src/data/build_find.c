/* build_find.c - finds the time among the columns if --time does not name it.
 *
 *     dates as texts      2021-01-05                 the first such column
 *     numbers             20210105, 1609804800, 2021   by name, or by their values alone if these leave no doubt
 *     parts               year, month, day, hour      by name
 *     date and clock      2021-01-05, 13              a date that repeats and a column named hour, or clock times
 *
 * A column that looks like a time and cannot be read is refused: to ignore it would hide the mistake. */
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/build.h"
#include "data/mend.h"
#include "data/names.h"

enum { ROWS_LEAST = 5, CLOCK_LEAST = 60 }; /* without a name: rows; seconds between rows of a number that counts seconds */

enum { STRANGE_WORDS = 64, DIGITS = 24, NAME_WORDS = 300 };

/* The layouts that read the words of a column, or the first of its numbers; false = there are none. */
static bool advice_of(const struct column *c, i64 nrow, char fix[TIME_ADVICE]) {
    const char *word[STRANGE_WORDS];
    char number[STRANGE_WORDS][DIGITS];
    i32 len[STRANGE_WORDS], n = 0;
    for (i64 i = 0; c->type == COL_NUMBER && i < nrow && n < STRANGE_WORDS; i++) {
        if (isnan(c->number[i])) continue;
        snprintf(number[n], DIGITS, "%.15g", c->number[i]);
        word[n] = number[n];
        n++;
    }
    for (; c->type == COL_CATEGORY && n < imin(c->nword, STRANGE_WORDS); n++) word[n] = c->word[n];
    for (i32 k = 0; k < n; k++) len[k] = (i32)strlen(word[k]);
    return time_advice(word, len, n, fix) > 0;
}

/* True if the layout reads a word of the column, or all of its first numbers. */
static bool fits_layout(const struct column *c, i64 nrow, const char *layout) {
    const struct time_parser p = {.kind = TIME_CUSTOM, .format = layout};
    i64 t, n = 0;
    for (i32 k = 0; c->type == COL_CATEGORY && k < c->nword; k++)
        if (time_parse(&p, c->word[k], strlen(c->word[k]), &t)) return true;
    for (i64 i = 0; c->type == COL_NUMBER && i < nrow && n < STRANGE_WORDS; i++) {
        if (isnan(c->number[i])) continue;
        n++;
        if (!build_time_of(layout, c->number[i], &t)) return false;
    }
    return n > 0;
}

/* Refuses a --time-format that no column has. */
static err refuse_layout(const struct build *b, const u8 *role) {
    const char *layout = b->o->of_model ? NULL : b->o->time_format; /* of a model: a hint */
    const struct column *best = NULL;
    char where[256], fix[TIME_ADVICE], known[TIME_ADVICE];
    bool told = false;
    for (i32 i = 0; i < b->t->ncol && layout; i++) {
        const struct column *c = &b->t->col[i];
        if (c->type == COL_TIME) return 0;
        if (role[i] != NO_ROLE || told || c->type != COL_CATEGORY || c->nword == 0) continue;
        told = !b->t->map && advice_of(c, b->t->nrow, known); /* a cache has its times, no layout gives it others */
        if (told || !best) best = c;
    }
    if (!layout) return 0;
    snprintf(fix, sizeof fix, "%s", told ? known : "--time-format row   (rows are the time)   or   --time-format auto");
    if (!best)
        return FAIL_AT(E205, b->t->path, fix, "no column fits --time-format '%s'", layout);
    table_where(b->t, 0, best, where);
    return FAIL_AT(E205, where, fix, "\"%s\" in column \"%s\" does not fit --time-format '%s', nor does any other column",
                   best->word[0], best->name, layout);
}

/* Takes the first numbers that --time-format reads; refuses words of which it reads only some. */
static err find_layout(struct build *b, const u8 *role) {
    const char *layout = b->o->time_format;
    char fix[MEND_PATH + 20], name[MEND_PATH];
    for (i32 i = 0; i < b->t->ncol && layout && b->ntime == 0; i++) {
        const struct column *c = &b->t->col[i];
        if (role[i] != NO_ROLE || c->type == COL_TIME || !fits_layout(c, b->t->nrow, layout)) continue;
        snprintf(fix, sizeof fix, "--time %s", mend_word(c->name, name));
        if (c->type == COL_CATEGORY && !b->o->of_model)
            return FAIL_AT(E205, b->t->path, fix, "--time-format '%s' fits cells of column \"%s\", which was read as words",
                           layout, c->name);
        if (c->type == COL_NUMBER && !table_lists(b->t, b->o->target, i)) b->time_col[b->ntime++] = i;
    }
    return 0;
}

static err strange_time(const struct build *b, const struct column *c) {
    static const char row[] = "--time-format row   (rows are the time)";
    char where[256], fix[TIME_ADVICE + 340], known[TIME_ADVICE], name[MEND_PATH], number[DIGITS];
    const bool words = c->type == COL_CATEGORY;
    const char *serial = words ? NULL : time_serial(c->number, b->t->nrow);
    const bool told = serial || advice_of(c, b->t->nrow, known);
    if (serial) snprintf(known, sizeof known, "--time %s --time-format %s   (days since %s)", mend_word(c->name, name), serial,
                         *serial == 'e' ? "1899-12-30" : "4713 BC");
    table_where(b->t, 0, c, where);
    snprintf(fix, sizeof fix, "%s%s%s   or   --ignore %s", told ? known : row, told || words ? "   or   " : "",
             told ? row : words ? "--time-format '%Y-%m-%d'   (spelt like the cells)" : "", mend_word(c->name, name));
    if (!words) snprintf(number, sizeof number, "%.15g", c->number[0]);
    return FAIL_AT(E205, where, fix, "\"%s\" in column \"%s\" is not in a known date or time format", words ? c->word[0] : number,
                   c->name);
}

/* True for two groups of digits whose first is no year: 555 1234. */
static bool like_code(const char *w) {
    const size_t first = strspn(w, "0123456789");
    return first > 0 && first < 4 && w[first] == ' ' && strspn(w + first + 1, "0123456789") == strlen(w + first + 1);
}

/* True for three groups of digits with one mark between them: 01.01.24. */
static bool like_date(const char *w) {
    const size_t a = strspn(w, "0123456789"), b = a && w[a] ? strspn(w + a + 1, "0123456789") : 0;
    const char mark = w[a], *rest = b ? w + a + 1 + b : "";
    if (!mark || !strchr("-/.", mark) || *rest != mark || a > 4 || b > 2) return false;
    return rest[1] && strspn(rest + 1, "0123456789") == strlen(rest + 1);
}

/* Refuses a text column that looks like a time, by its name or its digits and marks, or that a layout reads: silently ignoring
 * it would hide the mistake. */
static err refuse_strange_time(struct build *b, const u8 *role) {
    static const char *const names[] = {"date", "time",    "datetime", "timestamp", "month", "day",
                                        "year", "quarter", "week",     "period",    "ds",    "datum", "fecha"};
    for (i32 i = 0; i < b->t->ncol; i++) {
        const struct column *c = &b->t->col[i];
        if (c->type != COL_CATEGORY || role[i] != NO_ROLE || c->nword == 0) continue;
        bool like = false;
        for (size_t k = 0; k < COUNT(names); k++) like |= !strcasecmp(c->name, names[k]);
        const char *w = c->word[0];
        like |= strspn(w, "0123456789") > 0 && strspn(w, "0123456789-/.: ") == strlen(w) && 2 * (i64)c->nword > b->t->nrow &&
                !like_code(w);
        like |= like_date(w) && like_date(c->word[c->nword - 1]);
        char unused[TIME_ADVICE];
        like |= c->nword >= ROWS_LEAST && !like_code(w) && advice_of(c, 0, unused);
        if (!like) continue;
        return strange_time(b, c);
    }
    return 0;
}

/* True if words come in the order of times: each row has the word of the row before, a new one, or begins again. */
static bool in_order(const struct column *c, i64 nrow) {
    i64 jumps = 0;
    for (i64 i = 1; i < nrow; i++) jumps += c->code[i] > c->code[i - 1] + 1;
    return 10 * jumps <= nrow;
}

static void doubt(struct build *b, i32 col, const char *cell, const char *layout) {
    const struct column *c = &b->t->col[col];
    char name[MEND_PATH];
    b->doubt_col = col;
    snprintf(b->doubt, DOUBT_TEXT, "column \"%.200s\" is left out and the rows are counted, though its cells look like times "
             "(\"%.60s\", ...)", c->name, cell);
    mend_word(c->name, name);
    snprintf(b->doubt_fix, DOUBT_TEXT, "--time %s --time-format '%s'   (spelt like the cells)   or   --time-format row   "
             "(rows are the time)   or   --ignore %s", name, layout, name);
}

/* Numbers that may be years with a month or a fraction, 2020.01, or dates that do not begin with the year, 31012020: no name
 * gives them away, and their digits are not enough to take them for times. */
static const char *like_parts(const struct column *c, i64 nrow) {
    static const char *const layouts[] = {"%d%m%Y", "%m%d%Y"};
    bool years = nrow >= ROWS_LEAST && c->missing == 0, up[] = {years, years};
    i64 t = 0, before[] = {INT64_MIN, INT64_MIN}, fractions = 0;
    for (i64 i = 0; i < nrow && (years || up[0] || up[1]); i++) {
        const f64 v = c->number[i];
        char digits[DIGITS];
        years = years && v >= 1600 && v < 2101 && (i == 0 || (v > c->number[i - 1] && v < c->number[i - 1] + 2));
        fractions += v != floor(v);
        snprintf(digits, sizeof digits, "%08.0f", v);
        for (i32 k = 0; k < 2; k++) {
            const struct time_parser p = {.kind = TIME_CUSTOM, .format = layouts[k]};
            up[k] = up[k] && v == floor(v) && v > 1e6 && time_parse(&p, digits, strlen(digits), &t) && t > before[k] &&
                    t < 7289654400 && (i == 0 || t - before[k] <= 366 * 86400); /* 2201 */
            before[k] = t;
        }
    }
    return up[0] ? layouts[0] : up[1] ? layouts[1] : years && 2 * fractions > nrow ? "%Y.%m" : NULL;
}

static void doubt_numbers(struct build *b, const u8 *role) {
    i32 others = -1;
    char cell[DIGITS];
    for (i32 i = 0; i < b->t->ncol; i++) others += b->t->col[i].type == COL_NUMBER;
    for (i32 i = 0; i < b->t->ncol && others > 0 && !b->o->of_model && !b->doubt[0]; i++) {
        const struct column *c = &b->t->col[i];
        const char *layout = c->type == COL_NUMBER && role[i] == NO_ROLE ? like_parts(c, b->t->nrow) : NULL;
        if (!layout || table_lists(b->t, b->o->target, i)) continue;
        snprintf(cell, sizeof cell, "%.15g", c->number[0]);
        doubt(b, i, cell, layout);
    }
}

/* No reader knows them: a warning names the first column of words that look like times. */
static void doubt_words(struct build *b, const u8 *role) {
    for (i32 i = 0; i < b->t->ncol && !b->o->of_model && !b->doubt[0]; i++) {
        const struct column *c = &b->t->col[i];
        i32 len[STRANGE_WORDS], n = 0;
        if (c->type != COL_CATEGORY || role[i] != NO_ROLE || c->nword < ROWS_LEAST || !in_order(c, b->t->nrow)) continue;
        for (; n < imin(c->nword, STRANGE_WORDS); n++) len[n] = (i32)strlen(c->word[n]);
        if (time_like(c->word, len, n)) doubt(b, i, c->word[0], "%Y-%m-%d");
    }
}

/* Splits a name into words in lower case, each between blanks: "pickupDate_2" gives " pickup date ". */
static void words_of(const char *name, char out[NAME_WORDS]) {
    i32 n = 0;
    out[n++] = ' ';
    for (const char *p = name; *p && n < NAME_WORDS - 3; p++) {
        const bool hump = isupper((u8)*p) && p > name && (islower((u8)p[-1]) || (isupper((u8)p[-1]) && islower((u8)p[1])));
        const bool letter = isalpha((u8)*p) || (u8)*p >= 0x80;
        if ((hump || !letter) && out[n - 1] != ' ') out[n++] = ' ';
        if (letter) out[n++] = (char)tolower((u8)*p);
    }
    if (out[n - 1] != ' ') out[n++] = ' ';
    out[n] = 0;
}

/* True if the last word of a name is one of these, or, unless last, any of its words. `of`: words between blanks. */
static bool has_word(const char *words, const char *of, bool last) {
    char word[NAME_WORDS];
    for (const char *p = words + 1; *p;) {
        const i32 n = (i32)strcspn(p, " ");
        snprintf(word, sizeof word, " %.*s ", n, p);
        p += n + (p[n] == ' ');
        if ((!last || !*p) && strstr(of, word)) return true;
    }
    return false;
}

/* How much a name says: 2 = it is that of a time, 1 = it has the word for one in it, -1 = it is that of an id or a counter.
 * *years: it may be that of years, not of a smaller part of a time. */
static i32 like_time(const char *name, bool *years) {
    static const char *const names[] = {"ts",   "ds",    "date",      "time",   "datetime", "timestamp", "year",
                                        "yr",   "month", "yearmonth", "yyyymm", "yyyymmdd", "day",       "period",
                                        "yyyy", "epoch", "seconds",   "ms",     "unix",     "week",      "datum",
                                        "fecha"};
    static const char parts[] = " time date datetime stamp timestamp epoch unix year month yearmonth yearweek datum fecha ";
    static const char others[] = " id ids no nr num number sample code zip key counter count step "
                                 "timestep runtime uptime lifetime ";
    static const char smaller[] = " month yearmonth yyyymm yyyymmdd day epoch seconds ms unix week yearweek stamp ";
    char words[NAME_WORDS];
    words_of(name, words);
    *years = !has_word(words, smaller, false);
    for (size_t k = 0; k < COUNT(names); k++)
        if (!strcasecmp(name, names[k])) return 2;
    if (has_word(words, others, true)) return -1;
    return has_word(words, parts, false);
}

/* True for numbers that may be years as far as the name of their column says. */
static bool plausible_years(const struct column *c, i64 nrow, i32 name, bool years) {
    const bool year = !strcasecmp(c->name, "year") || !strcasecmp(c->name, "yr") || !strcasecmp(c->name, "yyyy");
    for (i64 i = 0; i < nrow && !year; i++)
        if (c->number[i] < (name > 0 ? 1600 : 1800) || c->number[i] > 2100) return false;
    return years;
}

/* True for times that never decrease, with one step between most of them. */
static bool steady(enum time_kind kind, const i64 *t, i64 n) {
    struct freq f;
    i64 steps = 0;
    freq_infer(t, n, &f);
    for (i64 i = 1; i < n; i++) {
        if (t[i] < t[i - 1]) return false;
        steps += time_steps(t[i - 1], t[i], &f) == 1;
    }
    const bool second = kind == TIME_EPOCH && f.months == 0 && f.step < CLOCK_LEAST; /* codes that count up */
    return n >= ROWS_LEAST && t[n - 1] > t[0] && !second && 10 * steps >= (kind == TIME_COMPACT ? 0 : 9) * (n - 1);
}

/* *yes: the column has numbers that are times. */
static err is_numbers(const struct table *t, const struct column *c, bool *yes) {
    bool years;
    const i32 name = like_time(c->name, &years);
    const enum time_kind kind = c->missing < t->nrow ? time_guess_numbers(c->number, t->nrow) : TIME_NONE;
    i64 *time, n = 0, ups = 0;
    *yes = false;
    if (kind == TIME_NONE || t->nrow == 0 || name < 0) return 0;
    if (kind == TIME_YEAR && !plausible_years(c, t->nrow, name, years)) return 0;
    NEW_SPILL(time, t->nrow);
    for (i64 i = 0; i < t->nrow; i++) {
        if (isnan(c->number[i]) || !time_of_number(kind, c->number[i], &time[n])) continue;
        ups += n == 0 || time[n] >= time[n - 1];
        n++;
    }
    *yes = name == 2 || (name == 1 && ups == n) || (c->missing == 0 && steady(kind, time, n));
    mem_free(time);
    return 0;
}

/* True for numbers with one step between all of them: to ignore them hides nothing but the calendar. */
static bool counts(const struct column *c, i64 nrow) {
    const f64 step = nrow > 1 ? c->number[1] - c->number[0] : 0;
    for (i64 i = 2; i < nrow; i++)
        if (!(fabs(c->number[i] - c->number[i - 1] - step) <= 1e-6 * fabs(step))) return false; /* also an empty cell */
    return !isnan(step) && step != 0;
}

static bool ascends(const struct column *c, i64 nrow) {
    for (i64 i = 1; i < nrow; i++)
        if (!(c->number[i] >= c->number[i - 1])) return false;
    return true;
}

/* Refuses numbers that are named for a date and are none, or that a layout reads as one: 44256, 202109. */
static err refuse_strange_numbers(struct build *b, const u8 *role) {
    static const char *const dates[] = {"date", "datetime", "timestamp", "ds", "datum", "fecha"};
    char unused[TIME_ADVICE], words[NAME_WORDS];
    i32 others = -1;
    bool years;
    for (i32 i = 0; i < b->t->ncol; i++) others += b->t->col[i].type == COL_NUMBER;
    for (i32 i = 0; i < b->t->ncol && others > 0; i++) {
        const struct column *c = &b->t->col[i];
        if (c->type != COL_NUMBER || role[i] != NO_ROLE || c->missing == b->t->nrow || like_time(c->name, &years) <= 0) continue;
        words_of(c->name, words);
        bool like = !strcasecmp(c->name, "time") && !counts(c, b->t->nrow);
        for (size_t k = 0; k < COUNT(dates); k++)
            like |= !strcasecmp(c->name, dates[k]) && (c->number[0] > 1 || !counts(c, b->t->nrow));
        const bool serial = has_word(" date datum fecha ", words, false) && time_serial(c->number, b->t->nrow);
        like |= ascends(c, b->t->nrow) && (serial || advice_of(c, b->t->nrow, unused));
        if (like && !table_lists(b->t, b->o->target, i)) return strange_time(b, c);
    }
    return 0;
}

/* The first column of numbers that are times; another column must be left to forecast. */
static err find_numbers(struct build *b, const u8 *role) {
    i32 others = 0;
    for (i32 i = 0; i < b->t->ncol; i++) others += b->t->col[i].type == COL_NUMBER;
    for (i32 i = 0; i < b->t->ncol && others > 1 && b->ntime == 0; i++) {
        const struct column *c = &b->t->col[i];
        bool yes = false;
        if (c->type == COL_NUMBER && role[i] == NO_ROLE) TRY(is_numbers(b->t, c, &yes));
        if (yes && !table_lists(b->t, b->o->target, i)) b->time_col[b->ntime++] = i;
    }
    return 0;
}

/* Times of a found date at midnight that repeat: the clock is in other columns. */
static bool lacks_clock(const struct build *b) {
    const struct column *c = &b->t->col[b->time_col[0]];
    i64 again = 0, t, before = INT64_MIN;
    const enum time_kind kind = c->type == COL_NUMBER ? time_guess_numbers(c->number, b->t->nrow) : TIME_NONE;
    for (i64 i = 0; i < b->t->nrow; i++, before = t) {
        if (c->type == COL_TIME) t = c->time[i];
        else if (!time_of_number(kind, c->number[i], &t)) return false;
        if (t % 86400 != 0) return false;
        again += t == before;
    }
    return again > 0;
}

err build_find_time(struct build *b, const u8 *role) {
    for (i32 i = 0; i < b->t->ncol && b->ntime == 0; i++)
        if (b->t->col[i].type == COL_TIME && role[i] == NO_ROLE) b->time_col[b->ntime++] = i;
    if (b->ntime == 0) TRY(find_layout(b, role));
    if (b->ntime == 0) TRY(refuse_layout(b, role));
    if (b->ntime == 0) b->ntime = build_time_parts(b, role, false, b->time_col);
    if (b->ntime == 0) TRY(find_numbers(b, role));
    if (b->ntime == 1 && lacks_clock(b)) b->ntime += build_time_parts(b, role, true, b->time_col + 1);
    if (b->ntime == 0) TRY(refuse_strange_time(b, role));
    if (b->ntime == 0) TRY(refuse_strange_numbers(b, role));
    if (b->ntime == 0) doubt_words(b, role);
    if (b->ntime == 0) doubt_numbers(b, role);
    return 0;
}
