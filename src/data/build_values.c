/* build_values.c - values of a series: missing targets, implausible values, gap policies; converts table columns to f32. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/build.h"
#include "data/mend.h"

enum { SAMPLE = 4096, NAME_BYTES = 430, EARLY = 16 };
static const f64 FAR = 1e6, HUGE_CELL = 1e30, CLOSE = 64;

/* The table rows behind row i of column c; in a panel they are numbers in its order. */
static i64 first_row(const struct build *b, i32 c, i64 i, i64 *n) {
    const struct panel *p = b->panel;
    *n = b->same ? b->same[i] : 1;
    if (!p) return b->row[i];
    const i32 g = build_group(b, c, i);
    if (g < 0) return -1;
    *n = p->group[g + 1] - p->group[g];
    return p->group[g];
}

/* Value of column c at row i: NaN if absent or missing, the mean of duplicates; of targets the sum with --resample STEP:sum. */
static f64 cell(const struct build *b, i32 c, i64 i) {
    i64 n, row = first_row(b, c, i, &n), present = 0;
    if (row < 0) return (f64)NAN;
    const f64 *v = b->t->col[build_column(b, c)].number;
    const i64 *order = b->panel ? b->panel->order : NULL;
    if (n < 2) return v[order ? order[row] : row];
    f64 sum = 0;
    for (i64 k = row; k < row + n; k++) {
        const f64 x = v[order ? order[k] : k];
        if (!isnan(x)) sum += x, present++;
    }
    if (b->sums && present && c < b->ntarget * build_width(b)) return sum;
    return present ? sum / (f64)present : (f64)NAN;
}

/* True if each series ends with its own last target: in a panel, and where a file has a series per row, padded at its end. */
static bool ends_apart(const struct build *b) { return b->panel || (b->t->turned && b->ntarget > 1); }

/* First row after the last value of targets [from, to): future rows of known columns. */
static i64 future_from(const struct build *b, i32 from, i32 to) {
    i64 n = b->n;
    if (b->nknown == 0 && b->ncat == 0 && !ends_apart(b)) return n;
    for (; n > 0; n--)
        for (i32 c = from; c < to; c++)
            if (!isnan(cell(b, c, n - 1))) return n;
    return 0;
}

/* The first row after the targets of column c, or of its series. */
static i64 future_of(const struct build *b, i32 c) {
    const i32 target = b->panel ? c % b->panel->n : c;
    return ends_apart(b) ? future_from(b, target, target + 1) : future_from(b, 0, b->ntarget);
}

/* The name of column c for messages. */
static const char *name_of(const struct build *b, i32 c, char name[NAME_BYTES]) {
    const char *column = b->t->col[build_column(b, c)].name;
    if (b->panel)
        snprintf(name, NAME_BYTES, "%.200s\" of \"%.200s", column, b->panel->name[c % b->panel->n]);
    else
        snprintf(name, NAME_BYTES, "%.420s", column);
    return name;
}

static void where_of(const struct build *b, i32 c, i64 i, char where[256]) {
    table_where(b->t, build_row(b, c, i), &b->t->col[build_column(b, c)], where);
}

/* "line 12", or the file and the line of a table of several files. */
static const char *line_of(const struct build *b, i32 c, i64 i, char where[256]) {
    table_line_where(b->t, table_line(b->t, build_row(b, c, i)), where);
    return where;
}

static void row_time(const struct build *b, i64 i, char out[40]) {
    out[0] = 0;
    if (!b->time) return;
    char text[32];
    time_format(b->time[i], &b->freq, text);
    snprintf(out, 40, " (%s)", text);
}

/* Missing cells of a target in rows [0, n), counted in runs. */
struct missing {
    i64 cells, rows, runs;
    i64 first, first_run, longest, longest_at;
};

static struct missing count_missing(const struct build *b, i32 c, i64 n) {
    struct missing m = {.first = -1};
    i64 run = 0;
    for (i64 i = 0; i < n; i++) {
        if (build_row(b, c, i) < 0) continue; /* inserted by --gaps, or outside of its series */
        m.rows++;
        if (!isnan(cell(b, c, i))) {
            run = 0;
            continue;
        }
        m.cells++;
        if (run++ == 0) m.runs++;
        if (m.first < 0) m.first = i;
        if (m.runs == 1) m.first_run = run;
        if (run > m.longest) m.longest = run, m.longest_at = i + 1 - run;
    }
    return m;
}

static err missing_target(const struct build *b, i32 c, i64 n) {
    const struct missing m = count_missing(b, c, n);
    const struct column *col = &b->t->col[build_column(b, c)];
    char where[256], from[40], at[40], word[40] = "no value", name[NAME_BYTES], start[310], line[256];
    if (m.cells == 0)
        return m.rows || !ends_apart(b) ? 0
                                   : FAIL_AT(E207, b->t->path, "--gaps mask   (such series are no targets)",
                                             "target \"%s\" has no values at all", name_of(b, c, name));
    where_of(b, c, m.first, where);
    row_time(b, m.first, from);
    row_time(b, m.longest_at, at);
    if (col->missing_text && col->missing_text[0]) snprintf(word, sizeof word, "\"%.16s\"", col->missing_text);
    if (m.cells == m.rows)
        return FAIL_AT(E207, where, "another --target", "target \"%s\" has no values at all", name_of(b, c, name));
    if (m.first == 0)
        snprintf(start, sizeof start, "at the start");
    else
        snprintf(start, sizeof start, "from %s%s", line_of(b, c, m.first, line), from);
    return FAIL_AT(
        E207, where,
        "--gaps mask   (skip them in the loss: recommended)   or   --gaps interpolate   (fill, only inside a series)",
        "%s in target \"%s\" (%lld of %lld rows, %.1f%%, in %lld run%s)\nfirst run: %lld row%s %s; longest: %lld row%s from "
        "%s%s",
        word, name_of(b, c, name), (long long)m.cells, (long long)m.rows, 100.0 * (f64)m.cells / (f64)m.rows, (long long)m.runs,
        m.runs == 1 ? "" : "s", (long long)m.first_run, m.first_run == 1 ? "" : "s", start, (long long)m.longest,
        m.longest == 1 ? "" : "s", line_of(b, c, m.longest_at, line), at);
}

/* Median and median absolute deviation of at most SAMPLE cells. */
static void middle(const struct build *b, i32 c, f64 *buf, f64 *median, f64 *spread) {
    i64 stride = lmax(1, b->n / SAMPLE);
    i32 n = 0;
    for (i64 i = 0; i < b->n && n < SAMPLE; i += stride) {
        buf[n] = cell(b, c, i);
        n += isfinite(buf[n]);
    }
    *median = *spread = 0;
    if (n == 0) return;
    sort_values(buf, n);
    *median = buf[n / 2];
    for (i32 i = 0; i < n; i++) buf[i] = fabs(buf[i] - *median);
    sort_values(buf, n);
    *spread = buf[n / 2];
}

static err absurd(const struct build *b, i32 c, f64 *buf) {
    f64 median, spread;
    i64 first = -1, count = 0;
    middle(b, c, buf, &median, &spread);
    for (i64 i = 0; i < b->n; i++) {
        f64 v = cell(b, c, i);
        if (isnan(v) || (fabs(v) <= HUGE_CELL && (spread == 0 || fabs(v - median) <= FAR * spread))) continue;
        if (!count++) first = i;
    }
    if (count == 0) return 0;
    char where[256], fix[100], many[48] = "", name[NAME_BYTES], text[32];
    f64 v = cell(b, c, first), back = 0;
    where_of(b, c, first, where);
    snprintf(text, sizeof text, "%.15g", v);
    if (!str_to_f64(text, strlen(text), '.', &back) || back != v) str_from_f64(text, v); /* of a file without texts: the number */
    snprintf(fix, sizeof fix, "--na %s   (it means missing)   or repair the line", text);
    if (fabs(median) > HUGE_CELL) snprintf(fix, sizeof fix, "the column in another unit: values to %.0e can be used", HUGE_CELL);
    if (count > 1) snprintf(many, sizeof many, "; %lld such cells", (long long)count);
    return FAIL_AT(E208, where, fix, "%.15g in column \"%s\": the median is %.6g, half of the cells lie within %.6g of it%s", v,
                   name_of(b, c, name), median, spread, many);
}

/* The values of a column that are there; *first: one of them.  -1 = they differ. */
static i64 same_values(const struct build *b, i32 c, f64 *first) {
    i64 n = 0;
    *first = (f64)NAN;
    for (i64 i = 0; i < b->n; i++) {
        f64 v = cell(b, c, i);
        if (isnan(v)) continue;
        if (n++ && v != *first) return -1;
        *first = v;
    }
    return n;
}

static err constant_target(const struct build *b, i32 c) {
    const i32 col = build_column(b, c);
    f64 first;
    const i64 n = same_values(b, c, &first);
    if (n <= 0) return 0; /* missing_target reports that there are none */
    char fix[600], word[MEND_PATH], where[256];
    i64 row = 0;
    while (isnan(cell(b, c, row))) row++;
    where_of(b, c, row, where);
    snprintf(fix, sizeof fix, "another --target   or   --target all --ignore %s", mend_word(b->t->col[col].name, word));
    return FAIL_AT(E212, where, fix, "target \"%s\" is %.15g in all %lld rows", b->t->col[col].name, first,
                   (long long)n);
}

/* A panel may have series that stay the same, but not all of them. */
static err constant_panel(const struct build *b) {
    i32 constant = 0, which = 0;
    f64 first, value = (f64)NAN;
    for (i32 c = 0; c < b->panel->n; c++) {
        const i64 n = same_values(b, c, &first);
        if (n < 0) return 0;
        if (n == 0) continue;
        value = first, which = c;
        constant++;
    }
    if (constant == 0) return 0; /* missing_target reports it */
    return FAIL_AT(E212, b->t->path, "another --target",
                   "target \"%s\" stays the same in each of the %d series (%.15g in \"%s\")", b->t->col[build_column(b, 0)].name,
                   constant, value, b->panel->name[which]);
}

static err check_cells(struct build *b) {
    f64 *buf;
    NEW(buf, SAMPLE);
    err e = 0;
    const i32 width = build_width(b), ncol = build_ncol(b);
    for (i32 c = 0; c < ncol && e >= 0; c++) {
        const i32 col = build_column(b, c);
        const bool target = c < b->ntarget * width;
        if (target && b->gaps == GAPS_ERROR) e = build_problem(b, col, missing_target(b, c, future_of(b, c)));
        if (e >= 0) e = build_problem(b, col, absurd(b, c, buf));
        if (e >= 0 && target && !b->panel && !b->o->of_model) e = build_problem(b, col, constant_target(b, c));
    }
    mem_free(buf);
    if (e >= 0 && b->panel && !b->o->of_model) e = build_problem(b, build_column(b, 0), constant_panel(b));
    return e;
}

/* Offset to subtract before conversion to f32, since 1e9 + 3 would lose the 3: the first value if the others are closer to it
 * than it is to zero, else 0. The first value, so that appended rows change no earlier cell; 0 with --gaps zero, so that zero
 * stays exact. Only early values decide, those of the first two fifths of the rows or a few: how training rows are rounded must
 * not depend on the test part. */
static f64 offset(const struct build *b, i32 c) {
    f64 first = (f64)NAN, distance = 0;
    i64 n = 0;
    for (i64 i = 0; i < b->n && (5 * i < 2 * b->n || n < EARLY); i++) {
        f64 v = cell(b, c, i);
        if (isnan(v)) continue;
        if (n++ == 0) first = v;
        distance += fabs(v - first);
    }
    const bool far = n && fabs(first) > CLOSE * distance / (f64)n;
    return far ? b->gaps == GAPS_ZERO ? (f64)(f32)first : first : 0;
}

/* Interpolates missing cells linearly, never before the first or after the last value; filled (may be NULL) marks them. */
static bool interpolate(f32 *v, u8 *filled, i64 n) {
    i64 before = -1;
    bool any = false;
    for (i64 i = 0; i < n; i++) {
        if (isnan(v[i])) continue;
        for (i64 k = before + 1; before >= 0 && k < i; k++) {
            f64 share = (f64)(k - before) / (f64)(i - before);
            v[k] = (f32)((f64)v[before] * (1 - share) + (f64)v[i] * share);
            if (filled) filled[k] = 1;
            any |= filled != NULL;
        }
        before = i;
    }
    return any;
}

/* Rows [*from, *to) of column c in which a missing target means zero. */
static void zero_rows(const struct build *b, i32 c, i64 *from, i64 *to) {
    *from = 0;
    *to = future_of(b, c);
    while (b->panel && *from < *to && build_row(b, c, *from) < 0) ++*from;
}

/* What is constant in a series holds for all rows, those without a record, too. */
static void spread_static(f32 *v, i64 n) {
    i64 i = 0;
    while (i < n && isnan(v[i])) i++;
    const f32 value = i < n ? v[i] : (f32)NAN;
    for (i64 k = 0; k < n; k++) v[k] = value;
}

static void spread_static_code(i32 *code, i64 n) {
    i64 i = 0;
    while (i < n && code[i] < 0) i++;
    const i32 value = i < n ? code[i] : -1;
    for (i64 k = 0; k < n; k++) code[k] = value;
}

/* True if cells were filled that a forecast must not see or score. Known columns do not count: their interpolated values are
 * known too. */
static bool fill_column(const struct build *b, struct series *s, i32 c) {
    f32 *v = s->v + (i64)c * s->nrow;
    f64 zero = s->mean[c] = offset(b, c);
    for (i64 i = 0; i < s->nrow; i++) v[i] = (f32)(cell(b, c, i) - zero);
    bool known = c >= series_first_ahead(s), made = false;
    if (b->gaps == GAPS_INTERPOLATE) made = interpolate(v, known ? NULL : s->filled + (i64)c * s->nrow, s->nrow);
    if (s->nstatic > 0 && c >= series_ahead_of(s, s->nknown - s->nstatic, 0)) spread_static(v, s->nrow);
    i64 from = 0, to = 0;
    if (b->gaps == GAPS_ZERO && c < s->ntarget) zero_rows(b, c, &from, &to);
    for (i64 i = from; i < to; i++)
        if (isnan(v[i])) v[i] = (f32)-zero;
    return made;
}

static err fill_categories(const struct build *b, struct series *s) {
    const i32 width = build_width(b);
    s->ncat = b->ncat;
    ARENA_NEW(&s->names, s->code, b->ncat + 1);
    ARENA_NEW(&s->names, s->nword, b->ncat + 1);
    ARENA_NEW(&s->names, s->word, b->ncat + 1);
    ARENA_NEW(&s->names, s->cat_name, b->ncat + 1);
    for (i32 k = 0; k < b->ncat; k++) {
        const struct column *c = &b->t->col[b->cat[k]];
        TRY(arena_keep(&s->names, &s->cat_name[k], c->name));
        NEW_SPILL(s->code[k], width * s->nrow + 1);
        for (i32 t = 0; t < width; t++)
            for (i64 i = 0; i < s->nrow; i++) {
                const i64 row = build_row(b, t, i);
                s->code[k][t * s->nrow + i] = row < 0 ? -1 : c->code[row];
            }
        const bool constant = b->panel && build_is_static(b, b->cat[k]);
        for (i32 t = 0; t < width && constant; t++) spread_static_code(s->code[k] + t * s->nrow, s->nrow);
        s->nword[k] = c->nword;
        ARENA_NEW(&s->names, s->word[k], c->nword + 1);
        for (i32 w = 0; w < c->nword; w++) TRY(arena_keep(&s->names, &s->word[k][w], c->word[w]));
    }
    return 0;
}

/* The names of the columns: in a panel the targets have those of their series. */
static err name_columns(const struct build *b, struct series *s) {
    ARENA_NEW(&s->names, s->name, s->ncol);
    for (i32 c = 0; c < s->ncol; c++) {
        const char *column = b->t->col[build_column(b, c)].name, *series = b->panel ? b->panel->name[c % b->panel->n] : NULL;
        if (series && c >= s->ntarget)
            s->name[c] = arena_printf(&s->names, "%s of %s", column, series);
        else
            TRY(arena_keep(&s->names, &s->name[c], series ? series : column));
    }
    if (!b->panel) return 0;
    const i32 n = 1 + s->npast + s->nknown;
    ARENA_NEW(&s->names, s->column, n);
    for (i32 k = 0; k < n; k++) TRY(arena_keep(&s->names, &s->column[k], b->t->col[b->col[k]].name));
    return 0;
}

/* The rows of each series, where they end apart. */
static err keep_spans(const struct build *b, struct series *s) {
    if (!ends_apart(b)) return 0;
    ARENA_NEW(&s->names, s->from, s->ntarget);
    ARENA_NEW(&s->names, s->to, s->ntarget);
    for (i32 c = 0; c < s->ntarget; c++) {
        while (s->from[c] < s->nrow && build_row(b, c, s->from[c]) < 0) s->from[c]++;
        s->to[c] = future_of(b, c);
    }
    return 0;
}

static err keep_time_columns(const struct build *b, struct series *s) {
    struct str list = {0};
    bool commas = false;
    for (i32 i = 0; i < b->ntime; i++) {
        const char *name = b->t->col[b->time_col[i]].name;
        commas |= strchr(name, ',') != NULL;
        str_addf(&list, "%s%s", i > 0 ? "," : "", name);
    }
    err e = str_ok(&list);
    if (e >= 0) e = arena_keep(&s->names, &s->time_columns, commas ? "" : str_text(&list));
    str_free(&list);
    return e;
}

static err keep_id_columns(const struct build *b, struct series *s) {
    struct str list = {0};
    for (i32 i = 0; b->panel && i < b->nid; i++) str_list_add(&list, b->t->col[b->id_col[i]].name);
    err e = str_ok(&list);
    if (e >= 0) e = arena_keep(&s->names, &s->id_columns, str_text(&list));
    str_free(&list);
    return e;
}

/* Where the rows are in the files, for messages when the table is gone. */
static err keep_lines(const struct build *b, struct series *s) {
    const struct table *t = b->t;
    s->lines = !b->panel && !t->turned;
    for (i64 i = 0; i < s->nrow; i++) {
        const i64 row = b->panel && b->o->lines_of ? build_row(b, b->o->lines_of - 1, i) : b->row[i];
        s->line[i] = row < 0 ? -1 : table_line(t, row);
    }
    ARENA_NEW(&s->names, s->part, t->npart);
    for (i32 k = 0; k < t->npart; k++) {
        s->part[k] = t->part[k];
        TRY(arena_keep(&s->names, &s->part[k].path, t->part[k].path));
        s->npart++;
    }
    return 0;
}

err build_values(struct build *b, struct series *s) {
    TRY(check_cells(b));
    if (b->bad) return 0;
    s->nrow = b->n;
    s->merged = b->merged;
    s->resampled = b->resampled;
    s->panel = b->panel != NULL;
    s->ntarget = b->ntarget * build_width(b);
    s->npast = b->npast;
    s->nknown = b->nknown;
    s->nstatic = b->nstatic;
    s->ncol = build_ncol(b);
    s->freq = b->freq;
    TRY(name_columns(b, s));
    ARENA_NEW(&s->names, s->mean, s->ncol);
    ARENA_NEW(&s->names, s->dev, s->ncol);
    NEW_SPILL(s->v, s->ncol * s->nrow);
    NEW_SPILL(s->line, s->nrow);
    if (b->gaps == GAPS_INTERPOLATE) NEW_SPILL(s->filled, s->ncol * s->nrow);
    bool made = false;
    for (i32 c = 0; c < s->ncol; c++) {
        s->dev[c] = 1;
        made |= fill_column(b, s, c);
    }
    if (!made) {
        mem_free(s->filled);
        s->filled = NULL;
    }
    TRY(arena_keep(&s->names, &s->roles, b->roles));
    if (b->doubt[0]) TRY(arena_keep(&s->names, &s->doubt, b->doubt));
    if (b->doubt[0]) TRY(arena_keep(&s->names, &s->doubt_fix, b->doubt_fix));
    TRY(keep_time_columns(b, s));
    TRY(keep_id_columns(b, s));
    TRY(keep_spans(b, s));
    TRY(keep_lines(b, s));
    TRY(fill_categories(b, s));
    s->time = b->time;
    b->time = NULL;
    return 0;
}
