/* build_panel.c - the rows of a panel: which series each belongs to, their order, and the axis of times that all series share.
 *
 *     rows of the table   A 1 | A 2 | B 2 | A 3 | B 3 | B 4        series, time
 *     order               A 1, A 2, A 3 | B 2, B 3, B 4            by series, then time: the file may hold them in any order
 *     axis                1 2 3 4                                  A is absent at 4, B at 1
 *
 * Before its first and after its last row a series has no values, and needs none; a row that is absent in between is a gap. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/build.h"
#include "data/check.h"
#include "data/names.h"

enum { ID_BYTES = 512 };

void panel_free(struct panel *p) {
    if (!p) return;
    mem_free(p->series);
    mem_free(p->order);
    mem_free(p->group);
    mem_free(p->time);
    mem_free(p->first);
    mem_free(p->at);
    arena_free(&p->names);
    mem_free(p);
}

/* ------------------------------------------------------------------ names --------------------------------------------------- */

/* The text of a cell of an id column, cut to `size`; false where it is empty. */
static bool id_text(const struct column *c, i64 row, char *out, size_t size) {
    if (c->type == COL_CATEGORY && c->code[row] >= 0)
        snprintf(out, size, "%s", c->word[c->code[row]]);
    else if (c->type == COL_NUMBER && !isnan(c->number[row]))
        snprintf(out, size, "%.15g", c->number[row]);
    else
        return false;
    return true;
}

/* Appends a part to a series name of `fill` bytes and returns the new length.  `twice` doubles the slashes of the part, because
 * a single slash separates parts: "a/b" with "c" and "a" with "b/c" are different series. */
static size_t add_part(char name[ID_BYTES], size_t fill, const char *part, bool twice) {
    for (; *part && fill < ID_BYTES - 1; part++) {
        name[fill++] = *part;
        if (twice && *part == '/' && fill < ID_BYTES - 1) name[fill++] = '/';
    }
    name[fill] = 0;
    return fill;
}

/* The name of the series of a row: its ids, with a slash between them. */
static err name_row(const struct build *b, i64 row, char name[ID_BYTES]) {
    size_t fill = 0;
    for (i32 k = 0; k < b->nid; k++) {
        const struct column *c = &b->t->col[b->id_col[k]];
        char part[ID_BYTES], where[256];
        if (!id_text(c, row, part, sizeof part)) {
            table_where(b->t, row, c, where);
            return FAIL_AT(E205, where, "the name of the series in every row", "column \"%s\" given by --id is empty here",
                           c->name);
        }
        if (k) fill = add_part(name, fill, "/", false);
        fill = add_part(name, fill, part, b->nid > 1);
        if (fill < ID_BYTES - 1) continue;
        table_where(b->t, row, c, where);
        return FAIL_AT(E214, where, "a shorter name", "the name of a series, given by --id, has %d bytes or more", ID_BYTES - 1);
    }
    return 0;
}

static err name_series(const struct build *b, struct panel *p) {
    struct vocab v = {0};
    char name[ID_BYTES];
    err e = 0;
    for (i64 k = 0; k < b->n && e >= 0; k++) {
        e = name_row(b, b->row[k], name);
        if (e >= 0) e = vocab_code(&v, name, (i64)strlen(name), &p->series[b->row[k]]);
    }
    p->n = v.n;
    if (e >= 0 && !(p->name = arena_array(&p->names, v.n, sizeof *p->name))) e = -E601;
    for (i32 s = 0; s < v.n && e >= 0; s++) e = arena_keep(&p->names, &p->name[s], vocab_word(&v, s));
    vocab_free(&v);
    return e;
}

/* ------------------------------------------------------------------ series with few rows ------------------------------------ */

static err too_few(const struct build *b, const struct panel *p, const i64 *rows) {
    char where[256];
    i32 count = 0;
    i64 k = 0;
    for (i32 s = 0; s < p->n; s++) count += rows[s] < 2;
    while (rows[p->series[b->row[k]]] >= 2) k++;
    table_where(b->t, b->row[k], NULL, where);
    return FAIL_AT(E301, where, count < p->n ? "--least-rows 2   (leave such series out)" : "more rows of each series",
                   "series \"%s\" has one row (%d such series of %d): nothing can be learned from it",
                   p->name[p->series[b->row[k]]], count, p->n);
}

/* Takes the rows of series with fewer than `least` out of use, and numbers the other series anew. */
static err leave_out(struct build *b, struct panel *p, const i64 *rows, i64 least) {
    i32 *number, n = 0;
    i64 kept = 0;
    NEW(number, p->n);
    for (i32 s = 0; s < p->n; s++) {
        number[s] = rows[s] < least ? -1 : n;
        if (number[s] >= 0) p->name[n++] = p->name[s];
    }
    for (i64 k = 0; k < b->n; k++) {
        const i64 row = b->row[k];
        const i32 to = number[p->series[row]];
        p->series[row] = to;
        if (to < 0) continue;
        if (b->time) b->time[kept] = b->time[k];
        b->row[kept++] = row;
    }
    mem_free(number);
    b->n = kept;
    p->n = n;
    return n ? 0 : FAIL_AT(E301, b->t->path, "a smaller --least-rows", "no series has %lld rows", (long long)least);
}

static err check_lengths(struct build *b, struct panel *p) {
    i64 *rows, fewest = INT64_MAX;
    err e = 0;
    NEW(rows, p->n);
    for (i64 k = 0; k < b->n; k++) rows[p->series[b->row[k]]]++;
    for (i32 s = 0; s < p->n; s++) fewest = lmin(fewest, rows[s]);
    if (fewest < b->o->least_rows)
        e = leave_out(b, p, rows, b->o->least_rows);
    else if (fewest < 2 && b->o->least_rows < 0 && !b->o->of_model)
        e = too_few(b, p, rows);
    mem_free(rows);
    return e;
}

/* ------------------------------------------------------------------ order --------------------------------------------------- */

struct sorted {
    const struct build *b;
    const struct panel *p;
};

/* k and l: numbers of rows in use.  Rows of equal time stay in the order of the file. */
static int by_series_and_time(const void *k, const void *l, void *self) {
    const struct sorted *s = self;
    const i64 a = *(const i64 *)k, z = *(const i64 *)l;
    const i32 sa = s->p->series[s->b->row[a]], sz = s->p->series[s->b->row[z]];
    const i64 ta = s->b->time ? s->b->time[a] : a, tz = s->b->time ? s->b->time[z] : z;
    if (sa != sz) return sa < sz ? -1 : 1;
    if (ta != tz) return ta < tz ? -1 : 1;
    return a < z ? -1 : a > z;
}

static err again(const struct build *b, const struct panel *p, i64 k, i64 before) {
    const struct freq none = {0};
    char where[256], now[32], line[256];
    table_where(b->t, b->row[k], NULL, where);
    table_line_where(b->t, table_line(b->t, b->row[before]), line);
    time_format(b->time[k], &none, now);
    return FAIL_AT(E211, where, "--dups mean   or   --dups first   or   --dups last",
                   "time %s comes again in series \"%s\": %s has it, too", now, p->name[p->series[b->row[k]]], line);
}

/* Groups of sorted rows; order then holds table rows. */
static err group_rows(const struct build *b, struct panel *p) {
    i64 n = 0;
    i32 series = -1;
    NEW(p->group, b->n + 1);
    NEW(p->first, p->n + 1);
    if (b->time) NEW(p->time, b->n);
    for (i64 k = 0; k < b->n; k++) {
        const i64 at = p->order[k], last = k ? p->order[k - 1] : -1;
        const i32 own = p->series[b->row[at]];
        const bool same = own == series && b->time && b->time[at] == b->time[last];
        if (same && b->dups == DUPS_ERROR) TRY(again(b, p, at, last));
        while (series < own) p->first[++series] = n;
        if (same) continue;
        if (b->time) p->time[n] = b->time[at];
        p->group[n++] = k;
    }
    p->first[p->n] = n;
    p->group[n] = b->n;
    for (i64 k = 0; k < b->n; k++) p->order[k] = b->row[p->order[k]];
    return 0;
}

/* Keeps one row of each group for --dups first and last. */
static void choose_duplicates(struct build *b, struct panel *p) {
    const i64 groups = p->first[p->n];
    b->merged = b->n - groups;
    if (b->merged == 0 || b->dups == DUPS_MEAN) return;
    for (i64 g = 0; g < groups; g++) p->order[g] = p->order[b->dups == DUPS_LAST ? p->group[g + 1] - 1 : p->group[g]];
    for (i64 g = 0; g <= groups; g++) p->group[g] = g;
}

/* ------------------------------------------------------------------ the axis ------------------------------------------------ */

static int by_number(const void *a, const void *b) {
    const i64 x = *(const i64 *)a, y = *(const i64 *)b;
    return x < y ? -1 : x > y;
}

/* Row of the axis with this time, which it has. */
static i64 axis_row(const struct build *b, i64 time) {
    const i64 *at = bsearch(&time, b->time, (size_t)b->n, sizeof time, by_number);
    return at ? at - b->time : -1;
}

/* The times of all series, each once; row: a table row with that time. */
static err common_times(struct build *b, const struct panel *p) {
    const i64 groups = p->first[p->n];
    i64 n = 0;
    for (i64 g = 0; g < groups; g++) b->time[g] = p->time[g];
    qsort(b->time, (size_t)groups, sizeof *b->time, by_number);
    for (i64 g = 0; g < groups; g++)
        if (n == 0 || b->time[g] != b->time[n - 1]) b->time[n++] = b->time[g];
    b->n = n;
    for (i64 g = groups - 1; g >= 0; g--) b->row[axis_row(b, p->time[g])] = p->order[p->group[g]];
    return 0;
}

/* Without times, the rows of each series are numbered from its start. */
static err common_numbers(struct build *b, const struct panel *p) {
    i64 n = 0;
    for (i32 s = 0; s < p->n; s++) {
        const i64 rows = p->first[s + 1] - p->first[s];
        for (; n < rows; n++) b->row[n] = p->order[p->group[p->first[s] + n]];
    }
    b->n = n;
    return 0;
}

static err arrange(struct build *b, struct panel *p) {
    struct sorted s = {b, p};
    NEW(p->series, b->t->nrow);
    TRY(name_series(b, p));
    TRY(check_lengths(b, p));
    NEW(p->order, b->n);
    for (i64 k = 0; k < b->n; k++) p->order[k] = k;
    qsort_r(p->order, (size_t)b->n, sizeof *p->order, by_series_and_time, &s);
    build_floor_times(b);
    TRY(group_rows(b, p));
    choose_duplicates(b, p);
    return b->time ? common_times(b, p) : common_numbers(b, p);
}

err build_panel(struct build *b) {
    if (b->ntarget != 1)
        return FAIL_AT(E106, NULL, "--target with one column   or   no --id   (each target is a series)",
                       "--id names the series of a panel, which has one target; %d are given", b->ntarget);
    NEW(b->panel, 1);
    return arrange(b, b->panel);
}

/* ------------------------------------------------------------------ places on the axis -------------------------------------- */

static err absent(const struct build *b, i32 s, i64 steps, i64 row, i32 others) {
    const struct panel *p = b->panel;
    char where[256], from[32], more[64] = "";
    table_where(b->t, build_row(b, s, row), NULL, where);
    time_format(b->time[row], &b->freq, from);
    if (others > 0) snprintf(more, sizeof more, ", and such gaps in %d other series", others);
    return FAIL_AT(E210, where, "--gaps mask   (train on what is there)   or   --gaps zero   (no row means zero)",
                   "%s steps expected: series \"%s\" lacks %lld between its first and its last row, the first before %s%s",
                   b->freq.name, p->name[s], (long long)steps, from, more);
}

/* The step of a series as --resample takes it: "7d", "3h", "12month". */
static void step_text(const struct freq *f, i64 steps, char out[32]) {
    const i64 s = f->step * steps;
    const bool days = s % 86400 == 0, hours = s % 3600 == 0, minutes = s % 60 == 0;
    if (f->months > 0) snprintf(out, 32, "%lldmonth", (long long)(f->months * steps));
    else snprintf(out, 32, "%lld%s", (long long)(s / (days ? 86400 : hours ? 3600 : minutes ? 60 : 1)),
                  days ? "d" : hours ? "h" : minutes ? "min" : "s");
}

static err mixed(const struct build *b, i32 s, i64 step) {
    const struct panel *p = b->panel;
    char where[256], coarse[32], fix[160];
    step_text(&b->freq, step, coarse);
    snprintf(fix, sizeof fix, "--resample %s:mean   (all series to this step; or :sum, or :last)\n"
             "--gaps mask   (the steps between are not known)", coarse);
    table_where(b->t, p->order[p->group[p->first[s]]], NULL, where);
    return FAIL_AT(E210, where, fix,
                   "series \"%s\" has a row every %lld steps of the panel, which is %s: two frequencies", p->name[s],
                   (long long)step, b->freq.name);
}

/* What lies between the first and the last row of a series. */
struct holes {
    i64 steps, row; /* absent ones; the row after the first of them */
    i64 least;      /* the smallest distance between two rows */
};

static struct holes look_at(const struct build *b, i32 s) {
    const i32 *at = b->panel->at + (i64)s * b->n;
    struct holes h = {.least = INT64_MAX};
    i64 before = -1;
    for (i64 i = 0; i < b->n; i++) {
        if (at[i] < 0) continue;
        if (before >= 0) h.least = lmin(h.least, i - before);
        if (before >= 0 && i - before > 1 && h.steps == 0) h.row = i;
        if (before >= 0) h.steps += i - before - 1;
        before = i;
    }
    return h;
}

static err check_holes(struct build *b) {
    struct holes first = {0};
    i32 holed = 0, which = 0;
    for (i32 s = 0; s < b->panel->n; s++) {
        const struct holes h = look_at(b, s);
        const bool regular = h.least > 1 && h.least < INT64_MAX && b->panel->first[s + 1] - b->panel->first[s] > 2;
        if (regular) return mixed(b, s, h.least);
        if (h.steps > 0 && holed++ == 0) first = h, which = s;
    }
    return holed ? absent(b, which, first.steps, first.row, holed - 1) : 0;
}

/* ------------------------------------------------------------------ static columns ------------------------------------------ */

bool build_is_static(const struct build *b, i32 col) { return table_lists(b->t, b->o->fixed, col); }

static bool has_value(const struct column *c, i64 row) {
    return c->type == COL_CATEGORY ? c->code[row] >= 0 : !isnan(c->number[row]);
}

static err not_constant(const struct build *b, const struct column *c, i32 s, i64 row, i64 before) {
    char where[256], line[256], value[2][64], fix[340];
    const i64 rows[] = {row, before};
    for (i32 k = 0; k < 2; k++) {
        if (c->type == COL_CATEGORY) snprintf(value[k], sizeof value[k], "\"%.40s\"", c->word[c->code[rows[k]]]);
        else snprintf(value[k], sizeof value[k], "%.15g", c->number[rows[k]]);
    }
    table_where(b->t, row, c, where);
    table_line_where(b->t, table_line(b->t, before), line);
    if (c->type == COL_CATEGORY) snprintf(fix, sizeof fix, "--cat %.255s instead of --static   (its past is used)", c->name);
    else snprintf(fix, sizeof fix, "--past %.120s instead of --static   or   --known %.120s   (known ahead)", c->name, c->name);
    return FAIL_AT(E214, where, fix, "column \"%s\" given by --static changes in series \"%s\": %s here, %s in %s", c->name,
                   b->panel->name[s], value[0], value[1], line);
}

static err check_static(const struct build *b, i32 col) {
    const struct panel *p = b->panel;
    const struct column *c = &b->t->col[col];
    for (i32 s = 0; s < p->n; s++) {
        i64 first = -1;
        for (i64 k = p->group[p->first[s]]; k < p->group[p->first[s + 1]]; k++) {
            const i64 row = p->order[k];
            if (!has_value(c, row)) continue;
            if (first < 0) first = row;
            const bool same = c->type == COL_CATEGORY ? c->code[row] == c->code[first] : c->number[row] == c->number[first];
            if (!same) return not_constant(b, c, s, row, first);
        }
    }
    return 0;
}

static err check_statics(struct build *b) {
    const char *list = b->o->fixed;
    char name[256];
    while (name_next(&list, name)) {
        const i32 col = table_find(b->t, name);
        TRY(build_problem(b, col, check_static(b, col)));
    }
    return 0;
}

err build_panel_place(struct build *b) {
    struct panel *p = b->panel;
    const i64 cells = p->n * b->n;
    if (p->first[p->n] > INT32_MAX)
        return FAIL_AT(E601, b->t->path, "a file with fewer rows", "%lld rows in a panel", (long long)p->first[p->n]);
    NEW(p->at, cells);
    for (i64 k = 0; k < cells; k++) p->at[k] = -1;
    for (i32 s = 0; s < p->n; s++)
        for (i64 g = p->first[s]; g < p->first[s + 1]; g++)
            p->at[s * b->n + (p->time ? axis_row(b, p->time[g]) : g - p->first[s])] = (i32)g;
    TRY(check_statics(b));
    return b->gaps == GAPS_ERROR && b->time ? build_problem(b, NO_COLUMN, check_holes(b)) : 0;
}
