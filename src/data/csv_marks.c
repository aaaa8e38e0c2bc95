/* csv_marks.c - infers from the cells whether point or comma is the decimal mark.
 *
 *     1.5   0.021   1,021,300   1,021.5     point is the decimal mark      1,5   0,021   1.021.300   1.021,5     comma is
 *     1.021   12.480                        ambiguous, unless values like 998 in the column show that they are thousands
 *
 * If it is known, the other mark may separate thousands. If not, table.doubt says so. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/csv.h"
#include "data/number.h"

bool csv_is_missing(const struct csv *c, const char *s, i64 n) { return missing_word(&c->na, s, n); }

bool csv_is_number(const struct csv *c, const char *s, i32 n) {
    f64 v;
    return n > 0 && (str_to_f64(s, (size_t)n, c->mark, &v) || number_grouped(s, n, c->mark, c->apart, &v));
}

/* Evidence from the numbers of a column, or of the file. */
struct marks {
    i32 point, comma;               /* cells that prove this decimal mark */
    i32 either_point, either_comma; /* ambiguous cells */
    i32 small, large;               /* integers of up to three digits, and longer ones without separators */
    i32 first;                      /* row of the first either_point cell, from 1 */
};

enum { GROUPS = 16 };

/* Lengths of the digit groups between marks; false = other characters. */
static bool groups_of(const char *s, i32 n, i32 *len, char *mark, i32 *count) {
    i32 k = 0;
    len[0] = 0;
    for (i32 i = n > 0 && (*s == '-' || *s == '+'); i < n; i++) {
        if ((u8)(s[i] - '0') < 10) {
            len[k]++;
        } else {
            if ((s[i] != '.' && s[i] != ',') || k + 1 == GROUPS) return false;
            mark[k++] = s[i];
            len[k] = 0;
        }
    }
    *count = k;
    return true;
}

static void look_at(struct marks *m, const char *s, i32 n, i32 row) {
    i32 len[GROUPS], k, end = 0;
    char mark[GROUPS];
    while (end < n && (s[end] | 32) != 'e') end++;
    if (n == 0 || !groups_of(s, end, len, mark, &k)) return;
    const bool zero = s[*s == '-' || *s == '+'] == '0';
    if (k == 0) {
        m->small += len[0] == 3 && !zero;
        m->large += len[0] > 3;
        return;
    }
    bool thousands = len[0] >= 1 && len[0] <= 3 && !zero; /* up to the last mark */
    for (i32 i = 1; i < k; i++) thousands = thousands && len[i] == 3 && mark[i - 1] == mark[0];
    const bool last = mark[k - 1] == mark[0], whole = thousands && last && len[k] == 3 && end == n;
    if (k == 1 && whole) {
        if (mark[0] == '.' && m->either_point++ == 0) m->first = row;
        m->either_comma += mark[0] == ',';
    } else if (k == 1 ? len[0] + len[1] > 0 : whole || (thousands && !last)) {
        const bool point = (mark[k - 1] == '.') == (k == 1 || !last);
        m->point += point;
        m->comma += !point;
    }
}

/* True for 998 and 1.021 but never 1021: read as thousands they are of similar size. */
static bool tells(const struct marks *m) { return m->point + m->comma == 0 && m->small > 0 && m->large == 0; }

static char decide(struct csv *c, const struct marks *col, i32 n) {
    struct marks all = {0};
    i32 commas = 0, points = 0;
    for (i32 f = 0; f < n; f++) {
        all.point += col[f].point;
        all.comma += col[f].comma;
        all.either_point += col[f].either_point;
        all.either_comma += col[f].either_comma;
        commas += tells(&col[f]) && col[f].either_point > 0;
        points += tells(&col[f]) && col[f].either_comma > 0;
    }
    c->apart = (all.point > 0) != (all.comma > 0);
    if (c->apart) return all.comma > 0 ? ',' : '.';
    if (all.point > 0) return c->sep != ',' && all.comma > all.point ? ',' : '.';
    c->apart = (commas > 0) != (points > 0);
    if (c->apart) return commas > 0 ? ',' : '.';
    return c->sep != ',' && all.either_comma > all.either_point ? ',' : '.';
}

err csv_find_mark(struct csv *c, char *const *cell, const i32 *len, i32 rows, i32 nfield) {
    struct marks *col;
    ARENA_NEW(&c->memory, col, nfield + 1);
    for (i32 r = 0; r < rows; r++)
        for (i32 f = 0; f < nfield; f++) {
            const i64 i = (i64)r * nfield + f;
            if (cell[i]) look_at(&col[f], cell[i], len[i], r + 1);
        }
    if (c->o->decimal) c->apart = true;
    c->mark = c->o->decimal ? c->o->decimal : decide(c, col, nfield);
    c->marks = col;
    return 0;
}

/* Number of digit groups separated by single spaces, 0 = other characters. thousands: 1 to 3 digits first, then always 3. */
static i32 spaced_groups(const char *s, i32 n, bool *thousands, bool *telling) {
    i32 groups = 0, i = 0, len = 0;
    *telling = true; /* evidence for a number: codes have groups of equal length more often, or start with a plus */
    if (n > 0 && *s == '+') i++, *telling = false;
    *thousands = i < n && s[i] != '0';
    for (i32 k = i; k <= n; k++) {
        if (k < n && (u8)(s[k] - '0') < 10) {
            len++;
            continue;
        }
        if (len == 0 || (k < n && s[k] != ' ')) return 0;
        *thousands = *thousands && (groups == 0 ? len <= 3 : len == 3);
        *telling = *telling && (groups > 0 || len < 3);
        groups++;
        len = 0;
    }
    return groups;
}

enum csv_spaced csv_spaced(const char *const *cell, const i32 *len, i32 n) {
    i32 codes = 0, spaced = 0, open = 0;
    for (i32 i = 0; i < n; i++) {
        bool thousands, telling;
        if (spaced_groups(cell[i], len[i], &thousands, &telling) < 2) continue;
        spaced++;
        codes += !thousands;
        open += thousands && !telling;
    }
    if (codes > 0 && 2 * spaced > n) return SPACED_CODE; /* fewer are typing errors, reported with their line */
    return open == n && n > 0 ? SPACED_EITHER : SPACED_NUMBER;
}

static err set_doubt(struct csv *c, const char *text, const char *fix) {
    TRY(arena_keep(&c->t->names, &c->t->doubt, text));
    return arena_keep(&c->t->names, &c->t->doubt_fix, fix);
}

/* Doubt for 1.021 where no number of the column decides between a fraction and thousands. */
static err doubt_mark(struct csv *c, i32 f, const char *s, i32 n) {
    char text[400], value[24];
    csv_clean(value, sizeof value, s, n);
    snprintf(text, sizeof text, "column \"%.200s\": %s is read as a fraction, and could be a number in the thousands", c->name[f],
             value);
    return set_doubt(c, text, "--decimal comma   (it is in the thousands)   or   --decimal point   (it is a fraction)");
}

/* Doubt for 555 123 in every cell, which is read as a number. */
static err doubt_code(struct csv *c, i32 f, const char *s, i32 n) {
    char text[400], fix[400], value[40];
    csv_clean(value, sizeof value, s, n);
    snprintf(text, sizeof text, "column \"%.200s\": %s is read as a number with a space between thousands, and could be a code",
             c->name[f], value);
    snprintf(fix, sizeof fix, "--cat %.200s   (it is a code)   or   --decimal %s   (it is a number)", c->name[f],
             c->mark == ',' ? "comma" : "point");
    return set_doubt(c, text, fix);
}

/* Sets the doubt for columns that are read as numbers. */
err csv_doubt(struct csv *c, char *const *cell, const i32 *len) {
    i32 points = 0;
    for (i32 f = 0; f < c->nfield; f++) points += c->marks[f].point;
    for (i32 f = 0; f < c->nfield && !c->o->decimal && c->mark == '.'; f++) {
        const struct marks *m = &c->marks[f];
        if (c->field[f].kind != FIELD_NUMBER || m->either_point == 0 || m->point + m->comma > 0 || m->large > 0) continue;
        if (points > 0 && !tells(m)) continue; /* the file has decimal points and no evidence against them here */
        const i64 at = (i64)(m->first - 1) * c->nfield + f;
        return doubt_mark(c, f, cell[at], len[at]);
    }
    for (i32 f = 0; f < c->nfield && !c->o->decimal; f++) {
        if (!c->field[f].either || c->field[f].kind != FIELD_NUMBER) continue;
        for (i64 r = c->t->has_header;; r++) /* terminates: a present cell exists */
            if (!csv_is_missing(c, cell[r * c->nfield + f], len[r * c->nfield + f]))
                return doubt_code(c, f, cell[r * c->nfield + f], len[r * c->nfield + f]);
    }
    return 0;
}
