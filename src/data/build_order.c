/* build_order.c - refuses decreasing and duplicate times: guesses the cause from the file and gives the command that repairs
 * it.
 *
 *     time decreases, but increases within each value of a text column    several series, concatenated: a column for each
 *     time decreases otherwise                                            sort, if a sort command can order these cells
 *     duplicate times with different text                                 several series, interleaved: a column for each
 *     most dates come again, with the hour in a column                    --time DATE,HOUR
 *     duplicate times otherwise                                           --dups decides */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/build.h"
#include "data/check.h"
#include "data/mend.h"
#include "data/names.h"

enum { FIX_BYTES = 1200, SERIES_COLUMNS = 6 };

/* Text columns whose values together identify a series. */
struct key {
    i32 n;
    const struct column *c[SERIES_COLUMNS];
};

/* True for a text column that could identify series of at least two rows each; --ignore excludes it. */
static bool could_name(const struct build *b, const struct column *c) {
    if (name_listed(b->o->ignore, c->name)) return false;
    return c->type == COL_CATEGORY && c->nword > 1 && 2 * (i64)c->nword <= b->n + 1;
}

static bool differ(const struct build *b, const struct column *c, i64 i) { return c->code[b->row[i]] != c->code[b->row[i - 1]]; }

/* *yes: time never decreases within any series of the key; *series: number of series. */
static err rises(const struct build *b, const struct key *k, bool *yes, i64 *series) {
    i64 size = 1, *last;
    *yes = false;
    *series = 0;
    for (i32 j = 0; j < k->n; j++) {
        size *= k->c[j]->nword + 1;
        if (size > 8 * b->n + 4096) return 0; /* far more than rows: a shuffled file */
    }
    NEW_SPILL(last, size);
    for (i64 g = 0; g < size; g++) last[g] = INT64_MIN;
    bool up = true;
    for (i64 i = 0; i < b->n && up; i++) {
        i64 g = 0;
        for (i32 j = 0; j < k->n; j++) g = g * (k->c[j]->nword + 1) + k->c[j]->code[b->row[i]] + 1;
        *series += last[g] == INT64_MIN;
        up = b->time[i] >= last[g];
        last[g] = b->time[i];
    }
    mem_free(last);
    *yes = up && 2 * *series <= b->n + 1;
    return 0;
}

/* Finds the key of the concatenated series where time decreases at row `at`: one column, else several together. k->n = 0 if
 * none. */
static err find_series(const struct build *b, i64 at, struct key *k, i64 *series) {
    struct key all = {0};
    bool yes = false;
    for (i32 i = 0; i < b->t->ncol; i++) {
        const struct column *c = &b->t->col[i];
        if (!could_name(b, c)) continue;
        if (all.n < SERIES_COLUMNS) all.c[all.n++] = c;
        if (!differ(b, c, at)) continue;
        *k = (struct key){1, {c}};
        TRY(rises(b, k, &yes, series));
        if (yes) return 0;
    }
    if (all.n > 1) TRY(rises(b, &all, &yes, series));
    *k = yes ? all : (struct key){0};
    return 0;
}

/* The separator as awk and sort need it; a literal tab would be invisible in a message. */
static const char *awk_sep(const struct build *b, char text[4]) {
    snprintf(text, 4, b->t->sep == '\t' ? "\\t" : "%c", b->t->sep);
    return text;
}

/* Number of lines above the first data row. */
static i64 lines_above(const struct build *b) { return table_line(b->t, 0) - 1; }

/* Command that extracts one series: the one of the row before `at`. */
static void cut_series(const struct build *b, const struct key *k, i64 at, char fix[FIX_BYTES]) {
    char from[MEND_PATH], to[MEND_PATH], test[200] = "", sep[4], head[40] = "";
    i32 fill = 0;
    for (i32 j = 0; j < k->n; j++) {
        const i32 code = k->c[j]->code[b->row[at - 1]];
        const char *word = code < 0 ? "" : k->c[j]->word[code];
        const i32 n = snprintf(test + fill, sizeof test - (size_t)fill, "%s$%d==\"%s\"", j ? " && " : "", k->c[j]->field, word);
        fill += n;
        if (fill >= (i32)sizeof test || strpbrk(word, "'\"\\") || !table_is_file(b->t)) {
            snprintf(fix, FIX_BYTES, "one series a file: the rows of one word of \"%.200s\"", k->c[j]->name);
            return;
        }
    }
    const i64 above = lines_above(b);
    if (above) snprintf(head, sizeof head, "NR%s=%lld || ", above > 1 ? "<" : "=", (long long)above);
    snprintf(fix, FIX_BYTES, "awk -F'%s' '%s%s%s%s' %s > %s   (one series a file)", awk_sep(b, sep), head,
             above && k->n > 1 ? "(" : "", test, above && k->n > 1 ? ")" : "", mend_from(b->t->path, from),
             mend_to(b->t->path, "one", to));
}

/* Remedies for several series in one file: the one that keeps all rows first. */
static void part_series(const struct build *b, const struct key *k, i64 at, char fix[FIX_BYTES]) {
    char one[FIX_BYTES], word[MEND_PATH];
    struct str ids = {0};
    for (i32 j = 0; j < k->n && j < ID_PARTS; j++) str_list_add(&ids, k->c[j]->name);
    cut_series(b, k, at, one);
    const i32 n = snprintf(fix, FIX_BYTES, "--id %s   (a panel: each series keeps its rows)", mend_words(str_text(&ids), word));
    str_free(&ids);
    if (n + (i32)strlen(one) + 2 < (i32)sizeof err_last()->fix) snprintf(fix + n, (size_t)(FIX_BYTES - n), "\n%s", one);
}

static enum time_order order_of(const struct column *c) { return c->type == COL_TIME ? (enum time_order)c->order : ORDER_NUMBER; }

/* Sorts by numbers parsed from the cells: prefixes each row with year, month, day and clock, and cuts them off after the sort. */
static bool sort_numbers(const struct build *b, char sort[300]) {
    static const char *const parts[] = {[ORDER_TEXT] = "a[1],a[2],a[3]", [ORDER_YMD] = "a[1],a[2],a[3]",
                                        [ORDER_DMY] = "a[3],a[2],a[1]", [ORDER_MDY] = "a[3],a[1],a[2]"};
    const struct column *date = &b->t->col[b->time_col[0]], *clock = b->ntime > 1 ? &b->t->col[b->time_col[1]] : NULL;
    if (clock && order_of(date) == ORDER_CLOCK) {
        const struct column *swap = date;
        date = clock;
        clock = swap;
    }
    const enum time_order o = order_of(date);
    if (b->ntime > 2 || (clock && order_of(clock) != ORDER_CLOCK)) return false;
    if (o != ORDER_TEXT && o != ORDER_YMD && o != ORDER_DMY && o != ORDER_MDY) return false;
    char more[24] = "", sep[4];
    if (clock) snprintf(more, sizeof more, "\" \"$%d", clock->field);
    snprintf(sort, 300, "awk -F'%s' '{k=$%d%s;gsub(/[^0-9]+/,\" \",k);split(k,a,\" \");"
             "printf \"%%04d%%02d%%02d%%02d%%02d%%02d\\t%%s\\n\",%s,a[4],a[5],a[6],$0}' | sort -s -n -k 1,1 | cut -f 2-",
             awk_sep(b, sep), date->field, more, parts[o]);
    return true;
}

/* Command that sorts rows from a pipe by time as this program reads it; false: none does. */
static bool sort_rows(const struct build *b, char sort[300]) {
    const struct column *c = &b->t->col[b->time_col[0]];
    const enum time_order o = order_of(c);
    char sep[4];
    if (!table_is_file(b->t)) return false;
    if (b->ntime > 1 || (o != ORDER_TEXT && o != ORDER_NUMBER)) return sort_numbers(b, sort);
    snprintf(sort, 300, "sort -s %s-t %s'%s' -k %d,%d", o == ORDER_NUMBER ? "-n " : "", b->t->sep == '\t' ? "$" : "",
             awk_sep(b, sep), c->field, c->field);
    return true;
}

static void mend_order(const struct build *b, bool descending, char fix[FIX_BYTES]) {
    char from[MEND_PATH], to[MEND_PATH], sort[300] = "awk 1 | tac"; /* awk adds a missing final newline, which tac alone would
                                                                     * drop */
    mend_from(b->t->path, from);
    mend_to(b->t->path, "sorted", to);
    const bool can = (descending && table_is_file(b->t)) || sort_rows(b, sort);
    const long long above = lines_above(b);
    if (above) snprintf(fix, FIX_BYTES, "(head -n %lld %s; tail -n +%lld %s | %s) > %s", above, from, above + 1, from, sort, to);
    else snprintf(fix, FIX_BYTES, "cat %s | %s > %s", from, sort, to);
    if (can && strlen(fix) < sizeof err_last()->fix) return; /* the command must not be truncated */
    snprintf(fix, FIX_BYTES, "sort the rows by time%s",
             b->t->map ? " in the file that this cache was made from"
             : b->t->records ? " before the table is written"
             : "   (a plain sort does not follow these cells)");
}

/* Hint for a duplicated hour. */
#define GO_BACK "\nas where clocks go back from summer time: times in UTC do not"

static void place(const struct build *b, i64 i, char where[256], char now[32]) {
    struct freq none = {0};
    table_where(b->t, b->row[i], NULL, where);
    time_format(b->time[i], &none, now);
}

/* Where columns with numbers name the series: *e becomes the error, with a remedy that keeps all rows. */
static err numbered(const struct build *b, i64 at, i32 code, err *e) {
    char where[256], now[32], before[32], fix[FIX_BYTES], word[MEND_PATH];
    struct str ids = {0};
    i32 series;
    *e = 0;
    TRY(build_find_ids(b, &ids, &series));
    if (series > 0) {
        place(b, at - 1, where, before);
        place(b, at, where, now);
        snprintf(fix, sizeof fix, "--id %s   (a panel: each series keeps its rows)", mend_words(str_text(&ids), word));
        *e = code == E209 ? FAIL_AT(E209, where, fix, "time goes back from %s to %s: several series in one file (%d by \"%s\")",
                                    before, now, series, str_text(&ids))
                          : FAIL_AT(E211, where, fix, "time %s comes again: several series in one file (%d by \"%s\")", now,
                                    series, str_text(&ids));
    }
    str_free(&ids);
    return 0;
}

static err unsorted(const struct build *b, i64 at, i64 backs, bool descending) {
    char where[256], now[32], before[32], fix[FIX_BYTES];
    struct key k;
    i64 series;
    place(b, at - 1, where, before);
    place(b, at, where, now);
    TRY(find_series(b, at, &k, &series));
    if (k.n) {
        part_series(b, &k, at, fix);
        return FAIL_AT(E209, where, fix,
                       "time goes back from %s to %s where \"%s\"%s changes: several series in one file (%lld of them)", before,
                       now, k.c[0]->name, k.n > 1 ? ", with others," : "", (long long)series);
    }
    err e;
    TRY(numbered(b, at, E209, &e));
    if (e < 0) return e;
    mend_order(b, descending, fix);
    return FAIL_AT(E209, where, fix,
                   descending ? "the newest row comes first: %s, then %s (%lld such place%s)%s"
                              : "time goes back from %s to %s (%lld such place%s)%s",
                   before, now, (long long)backs, backs == 1 ? "" : "s",
                   b->time[at - 1] - b->time[at] < 3600 && time_clocks_change(b->time[at], false) ? GO_BACK : "");
}

/* Rows that have the same time as the previous row, but another word in a column. */
struct unlike {
    i64 n, first;
};

static struct unlike count_unlike(const struct build *b, const struct column *c) {
    struct unlike u = {0};
    for (i64 i = b->n - 1; i > 0; i--)
        if (b->time[i] == b->time[i - 1] && differ(b, c, i)) u.n++, u.first = i;
    return u;
}

/* Rows that have the same time as the previous row. */
struct again {
    i64 count, first;
    bool clocks;            /* all at a possible end of daylight saving time */
    const struct column *c; /* the column that most often differs between them, or NULL */
    struct unlike unlike;   /* in c */
};

static struct again look_at(const struct build *b) {
    struct again a = {.clocks = true};
    for (i64 i = b->n - 1; i > 0; i--) {
        if (b->time[i] != b->time[i - 1]) continue;
        a.count++;
        a.first = i;
        a.clocks &= time_clocks_change(b->time[i], false);
    }
    for (i32 k = 0; a.count && k < b->t->ncol; k++) {
        const struct column *c = &b->t->col[k];
        if (!could_name(b, c)) continue;
        const struct unlike u = count_unlike(b, c);
        if (u.n > a.unlike.n) a.c = c, a.unlike = u;
    }
    return a;
}

/* True if the file contains several series, which --dups must not merge. A few percent of the rows may differ in text without
 * that: genuine duplicates. */
static bool is_several(const struct build *b, const struct again *a) {
    return a->c && (4 * a->unlike.n >= b->n || (100 * a->unlike.n >= b->n && !a->clocks));
}

/* Text columns that differ in 1 % of the rows or more between rows of one time, as a list for --ignore. */
static void unlike_columns(const struct build *b, struct str *list) {
    for (i32 k = 0; k < b->t->ncol; k++)
        if (could_name(b, &b->t->col[k]) && 100 * count_unlike(b, &b->t->col[k]).n >= b->n) str_list_add(list, b->t->col[k].name);
}

static err several(const struct build *b, const struct again *a) {
    char where[256], now[32], fix[FIX_BYTES], one[FIX_BYTES], word[MEND_PATH];
    const struct key k = {1, {a->c}};
    struct str ignore = {0};
    place(b, a->unlike.first, where, now);
    if (4 * a->unlike.n >= b->n) {
        part_series(b, &k, a->unlike.first, fix);
        return FAIL_AT(E211, where, fix, "time %s comes again with another \"%s\": several series in one file (%d of them)", now,
                       a->c->name, a->c->nword);
    }
    cut_series(b, &k, a->unlike.first, one);
    unlike_columns(b, &ignore);
    snprintf(fix, sizeof fix, "--dups %s --ignore %s   (it is one series)\n%.700s", b->dups == DUPS_FIRST ? "first" :
             b->dups == DUPS_LAST ? "last" : "mean", mend_words(str_text(&ignore), word), one);
    str_free(&ignore);
    return FAIL_AT(E211, where, fix, "time %s comes again with another \"%s\" (%lld such row%s): several series in one file?",
                   now, a->c->name, (long long)a->unlike.n, a->unlike.n == 1 ? "" : "s");
}

/* A numeric column with the hours of dates that come again: integers from 0 to 23, ascending within each date. NULL = none. */
static const struct column *hours_of(const struct build *b) {
    for (i32 k = 0; k < b->t->ncol; k++) {
        const struct column *c = &b->t->col[k];
        bool fits = c->type == COL_NUMBER && c != &b->t->col[b->col[0]];
        for (i64 i = 0; i < b->n && fits; i++) {
            const f64 v = c->number[b->row[i]];
            fits = v >= 0 && v < 24 && v == floor(v) && b->time[i] % 86400 == 0;
            if (fits && i > 0 && b->time[i] == b->time[i - 1]) fits = v > c->number[b->row[i - 1]];
        }
        if (fits) return c;
    }
    return NULL;
}

static err duplicates(const struct build *b, const struct again *a) {
    char where[256], now[32], word[MEND_PATH], fix[FIX_BYTES] = "--dups mean   or   --dups first   or   --dups last\n"
                                                                 "--time DATE,CLOCK   (when two columns make the time)";
    const struct column *hours = b->ntime == 1 && 2 * a->count > b->n ? hours_of(b) : NULL;
    struct str columns = {0};
    err e = 0;
    if (!hours) TRY(numbered(b, a->first, E211, &e));
    if (e < 0) return e;
    place(b, a->first, where, now);
    if (hours) {
        str_list_add(&columns, b->t->col[b->time_col[0]].name);
        str_list_add(&columns, hours->name);
        snprintf(fix, sizeof fix, "--time %s   (date and hour)\n--dups mean   (one row a date)",
                 mend_words(str_text(&columns), word));
        str_free(&columns);
    }
    return FAIL_AT(E211, where, fix, "time %s comes again: %lld row%s the time of the row before%s", now, (long long)a->count,
                   a->count == 1 ? " has" : "s have", a->clocks ? GO_BACK : "");
}

err build_order(struct build *b) {
    i64 backs = 0, back = 0, rest = 0;
    for (i64 i = b->n - 1; i > 0; i--) {
        if (b->time[i] < b->time[i - 1]) backs++, back = i;
        rest += b->time[i] > b->time[i - 1];
    }
    if (backs) return unsorted(b, back, backs, rest == 0 && b->n > 2);
    const struct again a = look_at(b);
    if (is_several(b, &a)) return build_problem(b, NO_COLUMN, several(b, &a));
    return a.count && b->dups == DUPS_ERROR ? build_problem(b, NO_COLUMN, duplicates(b, &a)) : 0;
}
