/* csv_header.c - decides whether the first record of a text table holds the names of the columns.
 *
 *     date,load         word above values                                      names
 *     Letter,1,2,3      numbers that count up beside a word                    names
 *     date,2021-01-01   times in most cells, numbers below (a series per row)  names
 *     ,773869,767541    no time above times                                    names
 *     773869,767541     whole numbers, all far from those below                the user is asked
 *     1.5,2.5           anything else                                          values */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/csv.h"

enum { LOOK_ROWS = 50, LOOK_CELLS = 4000 };

static enum time_kind time_of(const char *s, i32 n) {
    bool unused;
    return n > 0 ? time_guess(&s, &n, 1, false, &unused) : TIME_NONE;
}

/* True for a header with column numbers ("Letter,1,2,3"): words that do not reappear, and numbers that count up by one. */
static bool counts_up(const struct csv_sample *s, char mark) {
    i32 numbers = 0;
    f64 v, before = 0;
    for (i32 f = 0; f < s->nfield; f++) {
        const char *head = csv_cells(s, 0)[f];
        i32 n = csv_lens(s, 0)[f];
        if (n > 0 && str_to_f64(head, (size_t)n, mark, &v)) {
            if (numbers++ > 0 && v != before + 1) return false;
            before = v;
            continue;
        }
        for (i32 r = 1; r < s->rows; r++)
            if (csv_lens(s, r)[f] == n && !memcmp(csv_cells(s, r)[f], head, (size_t)n)) return false;
    }
    return numbers > 2 && numbers < s->nfield && s->rows > 2;
}

/* True for words, or for text above numbers. */
static bool has_words(const struct csv *c, const struct csv_sample *s) {
    bool all_words = true;
    for (i32 f = 0; f < s->nfield; f++) {
        const char *head = csv_cells(s, 0)[f];
        i32 n = csv_lens(s, 0)[f];
        const enum time_kind time = time_of(head, n);
        const bool month = time == TIME_WORDS; /* "Jan 2024" may be a column name */
        bool word = n > 0 && !csv_is_number(c, head, n) && (month || time == TIME_NONE) && !csv_is_missing(c, head, n);
        if (!word && n > 0) all_words = false;
        i32 values = 0, others = 0;
        for (i32 r = 1; word && r < s->rows; r++) {
            const char *cell = csv_cells(s, r)[f];
            i32 len = csv_lens(s, r)[f];
            if (csv_is_missing(c, cell, len)) continue;
            if (csv_is_number(c, cell, len) || (!month && time_of(cell, len) != TIME_NONE)) values++;
            else others++;
        }
        if (values > 0 && others == 0) return true;
        if (month && others > 0) all_words = false;
    }
    return all_words;
}

/* True for times above numbers in most columns. */
static bool has_times(const struct csv *c, const struct csv_sample *s) {
    i32 times = 0;
    for (i32 f = 0; f < s->nfield && s->rows > 1; f++)
        times += time_of(csv_cells(s, 0)[f], csv_lens(s, 0)[f]) != TIME_NONE &&
                 csv_is_number(c, csv_cells(s, 1)[f], csv_lens(s, 1)[f]);
    return times > 2 && 2 * times >= s->nfield;
}

/* True for a cell that is no time above cells that are all times. */
static bool above_times(const struct csv_sample *s, i32 f) {
    if (time_of(csv_cells(s, 0)[f], csv_lens(s, 0)[f]) != TIME_NONE || s->rows < 3) return false;
    for (i32 r = 1; r < imin(s->rows, LOOK_ROWS); r++)
        if (time_of(csv_cells(s, r)[f], csv_lens(s, r)[f]) == TIME_NONE) return false;
    return true;
}

/* True if the number is far outside those below it, or if these have fractions and do not reach it. */
static bool is_apart(const struct csv *c, const struct csv_sample *s, i32 f, f64 head) {
    f64 least = 0, most = 0, v;
    i32 n = 0, fractions = 0;
    for (i32 r = 1; r < imin(s->rows, LOOK_ROWS); r++) {
        const char *cell = csv_cells(s, r)[f];
        if (!str_to_f64(cell, (size_t)csv_lens(s, r)[f], c->mark, &v)) continue;
        least = n ? dmin(least, v) : v;
        most = n ? dmax(most, v) : v;
        fractions += v != floor(v);
        n++;
    }
    const f64 margin = 2 * fractions > n ? 0 : most - least;
    return n > 1 && (head < least - margin || head > most + margin);
}

static int ascending(const void *a, const void *b) {
    const f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return (x > y) - (x < y);
}

/* True for whole numbers, each once, that are apart from the numbers below them in nearly all columns. */
static err has_numbers(const struct csv *c, const struct csv_sample *s, bool *yes) {
    f64 *number;
    i32 n = 0, apart = 0, looked = 0;
    bool whole = s->nfield > 1 && s->rows > 2;
    *yes = false;
    NEW(number, s->nfield);
    for (i32 f = 0; f < s->nfield && whole; f++) {
        const i32 len = csv_lens(s, 0)[f];
        const char *head = csv_cells(s, 0)[f];
        if (len == 0) continue;
        whole = str_to_f64(head, (size_t)len, c->mark, &number[n]) && number[n] >= 0 && number[n] == floor(number[n]) &&
                !memchr(head, '.', (size_t)len) && !memchr(head, ',', (size_t)len);
        if (!whole || looked == LOOK_CELLS) continue;
        looked++;
        apart += is_apart(c, s, f, number[n]);
        n++;
    }
    if (whole && n > 1) qsort(number, (size_t)n, sizeof *number, ascending);
    for (i32 i = 1; i < n && whole; i++) whole = number[i] > number[i - 1];
    mem_free(number);
    *yes = whole && n > 1 && 10 * apart >= 9 * looked;
    return 0;
}

err csv_find_header(const struct csv *c, const struct csv_sample *s, bool *header) {
    *header = c->o->header == 1;
    if (c->o->header >= 0) return 0;
    *header = has_words(c, s) || counts_up(s, c->mark) || has_times(c, s);
    for (i32 f = 0; f < s->nfield && !*header; f++) *header = above_times(s, f);
    bool ask = false;
    if (!*header) TRY(has_numbers(c, s, &ask));
    if (!ask) return 0;
    char first[60];
    i32 f = 0;
    while (csv_lens(s, 0)[f] == 0) f++;
    csv_clean(first, sizeof first, csv_cells(s, 0)[f], csv_lens(s, 0)[f]);
    return FAIL_AT(E105, c->src.name, "--header yes   (they are names)   or   --header no   (they are values)",
                   "the first line holds whole numbers (%s, ...) far from those below: names of the columns, or values?", first);
}
