/* csv_report.c - builds one error message for a file: first place, count, fix. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/check.h"
#include "data/csv.h"
#include "data/first_bytes.h"
#include "data/mend.h"
#include "data/number.h"

void csv_clean(char *to, size_t size, const char *s, i64 n) {
    bool cut = n > (i64)size - 1;
    i64 most = cut ? (i64)size - 4 : n;
    while (cut && most > 0 && ((u8)s[most] & 0xC0) == 0x80) most--; /* not inside a character */
    for (i64 i = 0; i < most; i++) to[i] = (u8)s[i] < 32 ? ' ' : s[i];
    memcpy(to + most, cut ? "..." : "", cut ? 4 : 1);
}

void csv_where(const struct csv *c, i64 line, i32 field, char where[256]) {
    const struct csv_part *part = csv_part_of(&c->src, line, &line);
    table_where_at(c->t, part ? part->src.name : c->src.name, line, field, where);
}

err csv_fail_encoding(struct csv *c, const struct csv_chunk *k, i64 line) {
    char *p;
    TRY(csv_read(&c->src, &c->buffer[0], k->from, k->from + k->bad_byte + 1, &p));
    return csv_fail_text(c, k, p, line);
}

err csv_fail_text(const struct csv *c, const struct csv_chunk *k, const char *p, i64 line) {
    char where[256];
    i64 start = 0;
    for (i64 i = 0; i < k->bad_byte; i++)
        if (p[i] == '\n') line++, start = i + 1;
    csv_where(c, line, 0, where);
    if (k->bad_kind == 1)
        return FAIL_AT(E202, where, NULL, "a zero byte (the %lld. byte of the line): this is binary, not a text table",
                       (long long)(k->bad_byte - start + 1));
    return FAIL_AT(E202, where, "iconv -f LATIN1 -t UTF-8 OLD > NEW   (or the encoding that it really has)",
                   "byte 0x%02X (the %lld. of the line) is not UTF-8", (u8)p[k->bad_byte], (long long)(k->bad_byte - start + 1));
}

/* The file name with another extension. */
static const char *as_type(const char *path, const char *type, char to[MEND_PATH]) {
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    const size_t stem = dot && dot > path && (!slash || dot > slash + 1) ? (size_t)(dot - path) : strlen(path);
    snprintf(to, MEND_PATH, "%.*s.%s", (int)(stem < MEND_PATH / 2 ? stem : MEND_PATH / 2), path, type);
    return to;
}

/* True for a list of JSON objects; objects a line have a reader. */
static bool is_json(const char *head, i64 n) {
    static const char space[] = " \t\r\n";
    i64 i = 0;
    while (i < n && strchr(space, head[i]) && head[i]) i++;
    if (i == n || head[i++] != '[') return false;
    while (i < n && strchr(space, head[i]) && head[i]) i++;
    return i < n && head[i] == '{';
}

static err fail_json(const struct csv *c) {
    char fix[768], from[MEND_PATH], csv[MEND_PATH], to[MEND_PATH];
    snprintf(fix, sizeof fix,
             "python3 -c 'import json, sys; [print(json.dumps(o)) for o in json.load(sys.stdin)]' < %s > %s   (an object a line)",
             mend_from(c->src.name, from), mend_to(as_type(c->src.name, "jsonl", csv), "lines", to));
    return FAIL_AT(E202, c->src.name, fix, "this is a list of JSON, not JSON lines");
}

static err fail_zip(const struct csv *c) {
    char fix[768], from[MEND_PATH], csv[MEND_PATH], to[MEND_PATH];
    snprintf(fix, sizeof fix, "unzip -p %s > %s   (a table that was zipped)   or   write the data as CSV   (a spreadsheet)",
             mend_from(c->src.name, from), mend_to(as_type(c->src.name, "csv", csv), "table", to));
    return FAIL_AT(E202, c->src.name, fix, "this is a zip file (perhaps a spreadsheet), not a text table");
}

err csv_fail_first_bytes(const struct csv *c, const char *head, i64 n) {
    const char *name = c->src.name;
    if (n == 0) return FAIL_AT(E201, name, NULL, "the file is empty");
    i64 even = 0, odd = 0, seen = lmin(n, 4096);
    for (i64 i = 0; i < seen; i++)
        if (head[i] == 0) *(i % 2 ? &odd : &even) += 1;
    bool wide = (odd > seen / 4 && even == 0) || (even > seen / 4 && odd == 0);
    if (wide)
        return FAIL_AT(E202, name, even ? "iconv -f UTF-16BE -t UTF-8 OLD > NEW" : "iconv -f UTF-16LE -t UTF-8 OLD > NEW",
                       "the text is UTF-16 without a mark at its start that says so");
    if (n >= 4 && !memcmp(head, "PK\3\4", 4)) return fail_zip(c);
    if (is_json(head, n)) return fail_json(c);
    TRY(first_bytes_check(name, head, n, "a text table", "write the data as CSV"));
    if (even + odd > 0) return FAIL_AT(E202, name, NULL, "this is a binary file, not a text table (zero bytes at the start)");
    if (!memchr(head, '\n', (size_t)n) && memchr(head, '\r', (size_t)n))
        return FAIL_AT(E202, name, "tr '\\r' '\\n' < OLD > NEW", "lines end with carriage returns only (old Mac)");
    return 0;
}

static i32 by_row(const void *a, const void *b) {
    const struct csv_problem *x = a, *y = b;
    return x->row != y->row ? (x->row < y->row ? -1 : 1) : x->field - y->field;
}

/* Line numbers of the first five matching problems: "4127, 4130, ..."; of a folder, those in the file of the first. */
static void line_list(const struct csv *c, const struct csv_problem *p, i32 n, i32 field, i64 total, char *to, size_t size) {
    size_t fill = 0;
    i32 shown = 0;
    const struct csv_part *first = NULL;
    to[0] = 0;
    for (i32 i = 0; i < n && shown < 5; i++) {
        i64 line;
        if (p[i].field != field) continue;
        const struct csv_part *part = csv_part_of(&c->src, p[i].line, &line);
        if (shown && part != first) break;
        first = part;
        fill += (size_t)snprintf(to + fill, size - fill, "%s%lld", shown++ ? ", " : "", (long long)line);
    }
    if (shown < total) snprintf(to + fill, size - fill, ", ...");
}

/* A row as the reader split it: "a | b | c". */
static void show_row(const struct csv *c, const char *row, char *to, size_t size) {
    size_t fill = 0;
    for (; *row && fill + 4 < size; row++) {
        if (*row == c->sep) fill += (size_t)snprintf(to + fill, size - fill, " | ");
        else to[fill++] = *row;
    }
    to[fill] = 0;
}

static bool digit(char c) { return c >= '0' && c <= '9'; }

/* True for a comma between two digits in a comma-separated table. */
static bool like_decimal_comma(const struct csv *c, const char *row) {
    for (const char *p = row; c->sep == ',' && *p; p++)
        if (*p == ',' && p > row && digit(p[-1]) && digit(p[1])) return true;
    return false;
}

static err fail_ragged(const struct csv *c, const struct csv_problem *p, i32 n, i64 ragged, i64 longer) {
    char where[256], row[400], lines[120], fix[700], from[MEND_PATH], to[MEND_PATH];
    csv_where(c, p[0].line, 0, where);
    show_row(c, p[0].text, row, sizeof row);
    line_list(c, p, n, 0, ragged, lines, sizeof lines);
    bool comma = longer == ragged && c->nfield > 1 && like_decimal_comma(c, p[0].text);
    i64 all = c->t->nrow + c->t->has_header;
    bool title = ragged > 4 && longer == ragged && 10 * ragged >= 9 * c->t->nrow; /* the first line is the odd one */
    title = title && !c->src.npart;
    if (ragged == 1) snprintf(fix, sizeof fix, "repair line %s", lines);
    else if (title)
        snprintf(fix, sizeof fix, "tail -n +2 %s > %s   (is there a title line above the header?)", mend_from(c->t->path, from),
                 mend_to(c->t->path, "table", to));
    else if (comma)
        snprintf(fix, sizeof fix, "write numbers with a point, or fields with another separator (;); lines %s", lines);
    else
        snprintf(fix, sizeof fix, "repair lines %s   or   another --sep (now \"%s\")", lines,
                 c->sep == '\t' ? "tab" : (char[]){c->sep, 0});
    return FAIL_AT(E203, where, fix, "%d field%s, the %s has %d: %s\n%s%lld such line%s in %lld", p[0].fields,
                   p[0].fields == 1 ? "" : "s", c->t->has_header ? "header" : "first line", c->nfield, row,
                   comma ? "a decimal comma? " : "", (long long)ragged, ragged == 1 ? "" : "s", (long long)all);
}

enum { CELL_FIX = 768, LINES_CUT = 12 };

/* Layouts that read the bad cells and the others. */
static bool several_layouts(const struct csv *c, const struct csv_problem *p, i32 n, i32 field, char fix[CELL_FIX]) {
    const char *cell[CSV_SEEN + CSV_PROBLEMS];
    i32 len[CSV_SEEN + CSV_PROBLEMS], k = 0;
    while (k < CSV_SEEN && c->field[field].seen[k]) cell[k] = c->field[field].seen[k], k++;
    for (i32 i = 0; i < n && k < CSV_SEEN + CSV_PROBLEMS; i++)
        if (p[i].field == field + 1) cell[k++] = p[i].text;
    for (i32 i = 0; i < k; i++) len[i] = (i32)strlen(cell[i]);
    return time_advice(cell, len, k, fix) > 0;
}

/* Command that removes lines with an unreadable time, often totals and notes; repeats --time-format only if the user gave one. */
static void without_lines(const struct csv *c, const struct csv_problem *p, i32 n, i32 field, i64 bad, char fix[CELL_FIX]) {
    char cut[260] = "", from[MEND_PATH], to[MEND_PATH];
    i32 fill = 0, found = 0;
    if (several_layouts(c, p, n, field, fix)) return;
    for (i32 i = 0; i < n && found < LINES_CUT; i++)
        if (p[i].field == field + 1)
            fill += snprintf(cut + fill, sizeof cut - (size_t)fill, "%s%lldd", found++ ? ";" : "", (long long)p[i].line);
    const char *other = c->field[field].time.kind == TIME_CUSTOM ? "   or   another --time-format" : "";
    if (c->src.npart) {
        snprintf(fix, CELL_FIX, "repair the file, or take such lines out (when they are totals or notes)%s", other);
        return;
    }
    if (found < bad || c->t->turned) {
        snprintf(fix, CELL_FIX, "repair these lines, or take them out (when they are totals or notes): %lld are too many for a "
                 "command here%s", (long long)bad, other);
        return;
    }
    const bool empty = !p[0].text[0];
    snprintf(fix, CELL_FIX, "sed '%s' %s > %s   (when %s)%s", cut, mend_from(c->t->path, from), mend_to(c->t->path, "clean", to),
             bad > 1 ? "the lines are totals or notes" : empty ? "the line is a total, a note, or units" :
             "the line is a total or a note", empty ? "" : other);
}

static err fail_cell(const struct csv *c, const struct csv_problem *p, i32 n, i32 field, i64 bad) {
    char where[256], lines[120], fix[CELL_FIX], many[180] = "";
    csv_where(c, p[0].line, field + 1, where);
    line_list(c, p, n, field + 1, bad, lines, sizeof lines);
    if (bad > 1) snprintf(many, sizeof many, "\n%lld such cells: lines %s", (long long)bad, lines);
    const char *name = c->name[field];
    if (c->field[field].kind == FIELD_TIME) {
        without_lines(c, p, n, field, bad, fix);
        if (!p[0].text[0]) return FAIL_AT(E205, where, fix, "time column \"%s\" is empty here%s", name, many);
        return FAIL_AT(E205, where, fix,
                       "\"%s\" in time column \"%s\" is no date or time in the layout of the rows before%s", p[0].text, name,
                       many);
    }
    bool comma = c->mark == '.' && strchr(p[0].text, ',') && !strpbrk(p[0].text, "abcdefghijklmnopqrstuvwxyz");
    f64 v;
    const bool apart = c->mark == '.' && number_grouped(p[0].text, (i64)strlen(p[0].text), ',', true, &v);
    if (apart) snprintf(fix, sizeof fix, "--decimal comma   (points stand between thousands, in all numbers of the file)");
    else if (comma) snprintf(fix, sizeof fix, "--decimal comma");
    else mend_cell(p[0].text, name, c->o->numbers, fix, sizeof fix);
    return FAIL_AT(E204, where, fix, "\"%s\" in column \"%s\" is not a number%s", p[0].text, name, many);
}

/* Merges the first problems of all threads, truncated to a number that does not depend on the threads. */
static i32 gather(const struct csv *c, bool rows, struct csv_problem *all) {
    i32 n = 0;
    for (i32 t = 0; t < c->nthread; t++) {
        const struct csv_problems *list = rows ? &c->tally[t].rows : &c->tally[t].cells;
        memcpy(all + n, list->p, (size_t)list->n * sizeof *all);
        n += list->n;
    }
    qsort(all, (size_t)n, sizeof *all, by_row);
    return imin(n, CSV_PROBLEMS);
}

/* Sums the counts of all threads: missing and bad cells. */
static void merge(struct csv *c, i64 *ragged, i64 *longer) {
    c->t->grouped = 0;
    for (i32 t = 0; t < c->nthread; t++) {
        const struct csv_tally *y = &c->tally[t];
        c->t->grouped += y->grouped;
        *ragged += y->ragged;
        *longer += y->longer;
        for (i32 i = 0; i < c->t->ncol; i++) {
            struct column *col = &c->t->col[i];
            if (y->missing[i] && (!col->first_missing_line || y->first_missing[i] < col->first_missing_line)) {
                col->first_missing_line = y->first_missing[i];
                col->missing_text = y->missing_text[i];
            }
            col->missing += y->missing[i];
            if (t > 0) c->tally[0].bad[i] += y->bad[i];
        }
    }
    for (i32 i = 0; i < c->t->ncol; i++) { /* the text moves from the tallies to the table; dropped if memory is refused */
        struct column *col = &c->t->col[i];
        if (col->missing_text) col->missing_text = arena_strdup(&c->t->names, col->missing_text);
    }
}

/* A record without a time (units, a total, a note) is not data: its other cells are not reported. */
static bool without_time(const struct csv *c, const struct csv_problem *all, i32 n, i64 row) {
    for (i32 i = 0; i < n; i++)
        if (all[i].row == row && c->field[all[i].field - 1].kind == FIELD_TIME) return true;
    return false;
}

static bool is_of_no_row(const struct csv *c, const struct csv_problem *all, i32 n, i32 field) {
    i64 seen = 0;
    for (i32 i = 0; i < n; i++)
        if (all[i].field == field + 1 && without_time(c, all, n, all[i].row)) seen++;
    return c->field[field].kind != FIELD_TIME && seen == c->tally[0].bad[c->field[field].col];
}

/* Collects a problem per column with bad cells; an unreadable time still ends the reading. */
static err collect_cells(struct csv *c, const struct csv_problem *all, i32 n) {
    err time = 0;
    for (i32 f = 0; f < c->nfield; f++) {
        i32 i = 0;
        while (i < n && all[i].field != f + 1) i++;
        if (i == n || is_of_no_row(c, all, n, f)) continue;
        const i32 col = c->field[f].col;
        const err e = fail_cell(c, all + i, n - i, f, c->tally[0].bad[col]);
        findings_add(c->o->found, false, col, err_last());
        if (c->field[f].kind == FIELD_TIME) time = e;
    }
    return time;
}

err csv_report(struct csv *c, bool *again) {
    struct csv_problem *all = arena_new(&c->t->names, (size_t)c->nthread * CSV_PROBLEMS * sizeof *all);
    if (!all) return -E601;
    i64 ragged = 0, longer = 0;
    merge(c, &ragged, &longer);
    *again = false;
    if (ragged) {
        const err e = fail_ragged(c, all, gather(c, true, all), ragged, longer);
        if (!c->o->found) return e;
        findings_add(c->o->found, false, NO_COLUMN, err_last());
        collect_cells(c, all, gather(c, false, all));
        return e;
    }
    for (i32 f = 0; f < c->nfield; f++) {
        struct csv_field *field = &c->field[f];
        if (field->kind != FIELD_NUMBER) continue;
        i64 bad = c->tally[0].bad[field->col], present = c->t->nrow - c->t->col[field->col].missing;
        if (2 * bad <= present) continue;
        field->kind = FIELD_TEXT; /* it had numbers only at the start of the file */
        *again = true;
    }
    i32 n = *again ? 0 : gather(c, false, all);
    if (n == 0) return 0;
    if (c->o->found) return collect_cells(c, all, n);
    i32 first = 0; /* the first bad cell of the file, or its first bad time, is reported */
    while (first + 1 < n && is_of_no_row(c, all, n, all[first].field - 1)) first++;
    const i32 f = all[first].field - 1;
    return fail_cell(c, all + first, n - first, f, c->tally[0].bad[c->field[f].col]);
}
