/* fingerprint_compare.c - the first difference between a series and the fingerprint of an earlier read, and whether training
 * can go on with it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/fingerprint_blocks.h"
#include "data/time.h"

enum { TRAINING, VALIDATION, TEST, BEYOND, NO_PART = 9 };
enum { LINES = 160 };

static const char other_columns[] = "the network was built for the columns, their roles and the sampling interval of the run";
static const char rows_gone[] = "rows of the training or validation part are gone, so the test part would move into rows that "
                                "the network was trained on";
static const char rows_moved[] = "rows of the training or validation part were added, removed or shifted, so the parts would no "
                                 "longer be those that the network was trained and chosen on";

struct comparison {
    const struct fingerprint *was;
    const struct series *s;
    struct fingerprint now; /* rows, split and blocks of was */
    struct data_change *out;
};

static err lost(struct data_change *out, const char *why) {
    out->verdict = DATA_LOST;
    out->why = why;
    return 0;
}

static bool differs(const struct comparison *c, i32 column, i64 block) {
    const struct print_range r = fingerprint_range(c->was, block);
    return r.hi <= c->s->nrow && c->was->column[column].block[block].hash != c->now.column[column].block[block].hash;
}

/* First part in which a column differs, or NO_PART. */
static i32 first_part(const struct comparison *c, i32 column) {
    for (i64 b = 0; b < c->was->nblock; b++)
        if (differs(c, column, b)) return fingerprint_range(c->was, b).part;
    return NO_PART;
}

/* ------------------------------------------------------------------ columns ------------------------------------------------- */

/* True if columns and sampling interval are those of the run, apart from names. */
static bool same_shape(const struct comparison *c) {
    const struct fingerprint *a = c->was, *b = &c->now;
    char *text = c->out->text;
    const size_t size = sizeof c->out->text;
    if (a->ncolumn != b->ncolumn) {
        snprintf(text, size, "the run began with %d columns, there are %d", a->ncolumn, b->ncolumn);
        return false;
    }
    for (i32 i = 0; i < a->ncolumn; i++)
        if (strcmp(a->column[i].role, b->column[i].role) != 0) {
            snprintf(text, size, "column %d was \"%.80s\" (%s), is \"%.80s\" (%s)", i + 1, a->column[i].name, a->column[i].role,
                     b->column[i].name, b->column[i].role);
            return false;
        }
    if (strcmp(a->freq, b->freq) == 0) return true;
    snprintf(text, size, "the sampling interval was %s, is %s", a->freq, b->freq);
    return false;
}

/* True if there is a column of another name; *values: its values differ too. */
static bool renamed(const struct comparison *c, bool *values) {
    for (i32 i = 0; i < c->was->ncolumn; i++) {
        const char *was = c->was->column[i].name, *is = c->now.column[i].name;
        if (strcmp(was, is) == 0) continue;
        *values = first_part(c, i) != NO_PART;
        snprintf(c->out->text, sizeof c->out->text, "column \"%.80s\" was called \"%.80s\" when the run began%s", is, was,
                 *values ? ", and has other values" : "");
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------ rows ---------------------------------------------------- */

const char *fingerprint_file(const struct series *s, i64 *line) {
    i32 k = s->npart - 1;
    while (k > 0 && s->part[k].line > *line) k--;
    if (k < 0) return NULL;
    *line += s->part[k].own - s->part[k].line;
    return s->part[k].path;
}

/* "lines 98 to 113" of the file for rows [lo, hi), where it begins in *out; "" if --gaps inserted all of them, or a row is no
 * line: in a panel it is one of each series. */
static void find_lines(const struct series *s, i64 lo, i64 hi, struct data_change *out, char text[LINES]) {
    i64 first = 0, last = 0;
    text[0] = 0;
    for (i64 i = lo; i < hi && s->line && s->lines; i++) {
        if (s->line[i] < 1) continue;
        if (!first) first = s->line[i];
        last = s->line[i];
    }
    if (!first) return;
    const char *file = fingerprint_file(s, &first), *end = fingerprint_file(s, &last);
    if (!out->line) out->file = file;
    if (!out->line) out->line = first;
    if (file != end) snprintf(text, LINES, "from line %lld to line %lld of %.80s", (long long)first, (long long)last, end);
    else if (first == last) snprintf(text, LINES, "line %lld", (long long)last);
    else snprintf(text, LINES, "lines %lld to %lld", (long long)first, (long long)last);
}

static void cell_text(const struct print_block *b, char text[32]) {
    if (b->missing) snprintf(text, 32, "missing");
    else snprintf(text, 32, "%.9g", b->mean);
}

/* What a block of one cell was, and what it is. */
static void add_cell(const struct print_block *a, const struct print_block *b, char *text, size_t size) {
    char was[32], is[32];
    cell_text(a, was);
    cell_text(b, is);
    snprintf(text, size, ": %s, now %s", was, is);
}

/* What the block was, and what it is. */
static void add_values(const struct comparison *c, i32 column, i64 block, struct print_range r, char *text, size_t size) {
    const struct print_block *a = &c->was->column[column].block[block], *b = &c->now.column[column].block[block];
    const char *role = c->was->column[column].role;
    if (r.hi == r.lo + 1 && strcmp(role, "time") != 0 && strcmp(role, "category") != 0) {
        add_cell(a, b, text, size);
        return;
    }
    char label[32];
    row_label(c->s, r.lo, label);
    const bool begins = block == 0 || fingerprint_range(c->was, block - 1).part != r.part; /* the part */
    int n = 0;
    if (a->missing != b->missing)
        n = snprintf(text, size, ": %lld missing, now %lld", (long long)a->missing, (long long)b->missing);
    else if (strcmp(role, "time") == 0 && begins && strcmp(c->was->first[r.part], label) != 0)
        n = snprintf(text, size, ": the %s part began at %s, now at %s", fingerprint_part(r.part), c->was->first[r.part], label);
    if (strcmp(role, "time") == 0 || strcmp(role, "category") == 0 || a->mean == b->mean || n < 0 || (size_t)n >= size) return;
    str_print(text + n, size - (size_t)n, "%s mean %.9g, now %.9g", n ? "," : ":", a->mean, b->mean);
}

static void block_text(const struct comparison *c, i32 column, i64 block) {
    const struct print_range r = fingerprint_range(c->was, block);
    const bool one = r.hi == r.lo + 1;
    const i32 number = column - (c->s->time != NULL);
    c->out->column = number < c->s->ncol ? number : -1;
    c->out->from = r.lo;
    c->out->to = r.hi;
    char what[120], place[LINES] = "", span[72] = "", values[200] = "";
    if (strcmp(c->was->column[column].role, "time") == 0) snprintf(what, sizeof what, "the time%s", one ? "" : "s");
    else snprintf(what, sizeof what, "the value%s of column \"%.80s\"", one ? "" : "s", c->was->column[column].name);
    if (c->s->time && one) row_label(c->s, r.lo, span);
    else if (c->s->time) span_label(c->s, r.lo, r.hi, span);
    find_lines(c->s, r.lo, r.hi, c->out, place);
    if (!*place && *span) {
        memcpy(place, span, sizeof span);
        *span = 0;
    }
    if (!*place && one) snprintf(place, sizeof place, "row %lld", (long long)r.lo);
    if (!*place) snprintf(place, sizeof place, "rows %lld to %lld", (long long)r.lo, (long long)r.hi - 1);
    add_values(c, column, block, r, values, sizeof values);
    snprintf(c->out->text, sizeof c->out->text, "%s %s when the run began, in %s (%s%s%s part)%s", what,
             one ? "is not as it was" : "are not as they were", place, span, *span ? ", " : "", fingerprint_part(r.part), values);
}

/* The first block of rows with a difference: its part, or NO_PART; with `name` it becomes the text. */
static i32 changed_rows(const struct comparison *c, bool name) {
    for (i64 b = 0; b < c->was->nblock; b++)
        for (i32 i = 0; i < c->was->ncolumn; i++) {
            if (!differs(c, i, b)) continue;
            if (name) block_text(c, i, b);
            return fingerprint_range(c->was, b).part;
        }
    return NO_PART;
}

/* The number of rows; added to the text of another difference. */
static void count_text(const struct comparison *c) {
    const i64 n = c->s->nrow, was = c->was->rows;
    char *text = c->out->text, first[48] = "", last[48] = "", end[32], lines[LINES] = "";
    const size_t at = strlen(text), left = sizeof c->out->text - at;
    i32 k = FINGERPRINT_PARTS;
    while (k > 1 && !*c->was->last[k - 1]) k--;
    row_label(c->s, n - 1, end);
    if (c->s->time) snprintf(first, sizeof first, " up to %s", c->was->last[k - 1]);
    if (c->s->time) snprintf(last, sizeof last, " up to %s", end);
    find_lines(c->s, was, n, c->out, lines);
    snprintf(text + at, left, "%sthere were %lld rows%s when the run began, there are %lld%s: %lld %s%s%s", at ? "; " : "",
             (long long)was, first, (long long)n, last, (long long)(n > was ? n - was : was - n), n > was ? "more" : "fewer",
             *lines ? ", " : "", lines);
}

static err compare_rows(struct comparison *c) {
    const struct split *p = &c->was->split;
    const i64 n = c->s->nrow, end = series_end(c->s);
    const bool counted = n != c->was->rows;
    bool values = false;
    if (n < p->validation) {
        count_text(c);
        return lost(c->out, rows_gone);
    }
    const bool other_name = renamed(c, &values);
    if (other_name && values) return lost(c->out, other_columns);
    const i32 part = changed_rows(c, !other_name);
    if (counted) count_text(c);
    if (end < p->validation) return lost(c->out, rows_gone);
    if (c->s->time && first_part(c, 0) < TEST) return lost(c->out, rows_moved);
    if (!c->s->time && counted && part < TEST) return lost(c->out, rows_moved);
    c->out->split.test = lmin(p->test, end);
    if (other_name || part < BEYOND || end < p->test) c->out->verdict = DATA_CHANGED;
    else if (counted || part != NO_PART) c->out->verdict = DATA_BEYOND;
    return 0;
}

err fingerprint_compare(const struct fingerprint *was, const struct series *s, struct data_change *out) {
    struct comparison c = {.was = was, .s = s, .out = out};
    *out = (struct data_change){.split = was->split, .column = -1};
    c.now = (struct fingerprint){.rows = was->rows, .step = was->step, .nblock = was->nblock, .split = was->split};
    err e = fingerprint_columns(s, &c.now);
    if (e >= 0) e = same_shape(&c) ? compare_rows(&c) : lost(out, other_columns);
    fingerprint_free(&c.now);
    return e;
}
