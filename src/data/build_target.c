/* build_target.c - guesses which numeric column is the target, for advice: no series is built on a guess. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <strings.h>

#include "data/build.h"

enum { PARTS = 5, KEYS = 400 };

static bool has_name(const char *name, const char *const *words, size_t n, bool within) {
    bool found = false;
    for (size_t i = 0; i < n; i++) found |= within ? strcasestr(name, words[i]) != NULL : !strcasecmp(name, words[i]);
    return found;
}

static bool two_valued(const struct column *c, i64 nrow) {
    f64 value[2] = {(f64)NAN, (f64)NAN};
    for (i64 i = 0; i < nrow; i++) {
        if (isnan(c->number[i]) || c->number[i] == value[0] || c->number[i] == value[1]) continue;
        if (!isnan(value[1])) return false;
        value[isnan(value[0]) ? 0 : 1] = c->number[i];
    }
    return true;
}

/* True if the column counts its rows. */
static bool is_counter(const struct column *c, i64 nrow) {
    for (i64 i = 1; i < nrow; i++)
        if (c->number[i] - c->number[i - 1] != 1) return false;
    return nrow > 2;
}

static i32 calendar_key(i64 time, i32 part) {
    struct civil t;
    time_split(time, &t);
    const i32 key[PARTS] = {t.hour, (i32)(((time >= 0 ? time : time - 86399) / 86400 % 7 + 7) % 7), t.day, t.month,
                            (i32)(t.year % KEYS)};
    return key[part];
}

/* True if one part of the time (hour, weekday, day, month, year) determines the value. */
static bool follows(const struct column *c, const i64 *time, i64 nrow, i32 part) {
    f64 value[KEYS];
    i64 seen[KEYS] = {0}, keys = 0;
    for (i64 i = 0; i < nrow; i++) {
        const i32 k = calendar_key(time[i], part);
        if (!seen[k]++) value[k] = c->number[i], keys++;
        else if (c->number[i] != value[k]) return false;
    }
    return nrow >= 3 * keys;
}

static bool follows_calendar(const struct build *b, const struct column *c) {
    const struct column *time = b->ntime == 1 ? &b->t->col[b->time_col[0]] : NULL;
    bool any = is_counter(c, b->t->nrow);
    for (i32 part = 0; part < PARTS && time && time->type == COL_TIME && !any; part++)
        any = follows(c, time->time, b->t->nrow, part);
    return any;
}

/* True if the words of another column determine the value: it is a property of the series, as its size. */
static err is_property(const struct build *b, const struct column *c, bool *property) {
    const i64 nrow = b->t->nrow;
    *property = false;
    for (i32 i = 0; i < b->t->ncol && !*property; i++) {
        const struct column *word = &b->t->col[i];
        f64 *value;
        if (word->type != COL_CATEGORY || word->nword < 2 || 3 * (i64)word->nword > nrow) continue;
        NEW(value, word->nword);
        for (i32 w = 0; w < word->nword; w++) value[w] = (f64)NAN;
        i64 r = 0;
        for (; r < nrow; r++) {
            const i32 w = word->code[r];
            if (w < 0 || isnan(c->number[r])) continue;
            if (isnan(value[w])) value[w] = c->number[r];
            else if (value[w] != c->number[r]) break;
        }
        *property = r == nrow;
        mem_free(value);
    }
    return 0;
}

/* True if the column is empty in the last row, where others are filled: those are known ahead. */
static bool ends_first(const struct column *c, i64 nrow) { return isnan(c->number[nrow - 1]) && 4 * c->missing <= nrow; }

i32 target_gaps(const struct build *b) {
    i32 n = 0;
    for (i32 i = 0; i < b->t->ncol; i++) n += b->t->col[i].type == COL_NUMBER && b->t->col[i].missing > 0;
    return n;
}

err target_score(const struct build *b, const struct column *c, i32 gaps, i32 *score) {
    static const char *const target[] = {"y", "target", "value", "values"};
    static const char *const likely[] = {"load", "demand", "sales", "sold", "units", "quantity", "count", "consumption"};
    static const char *const ahead[] = {"forecast", "predict", "plan", "schedul", "holiday", "promo", "exog"};
    const i64 nrow = b->t->nrow;
    f64 value;
    bool property;
    *score = 0;
    if (column_constant(c, nrow, &value) || c->missing >= nrow) return 0;
    TRY(is_property(b, c, &property));
    const bool known_ahead = has_name(c->name, ahead, COUNT(ahead), true) || follows_calendar(b, c);
    const bool alone = gaps == 1 && c->missing > 0 && 4 * c->missing <= nrow;
    *score = 1 + alone + 2 * !two_valued(c, nrow) + 4 * !known_ahead + 8 * has_name(c->name, likely, COUNT(likely), false) +
             16 * ends_first(c, nrow) + 32 * has_name(c->name, target, COUNT(target), false) + 64 * !property;
    return 0;
}
