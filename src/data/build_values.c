/* build_values.c - values of a series: missing targets, implausible values, gap policies; converts table columns to f32. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/build.h"
#include "data/mend.h"

enum { SAMPLE = 4096 };
static const f64 FAR = 1e6, HUGE_CELL = 1e30, CLOSE = 64;

/* Value of a table column at series row i: NaN if absent or missing, the mean of duplicates. */
static f64 cell(const struct build *b, i32 col, i64 i) {
    i64 row = b->row[i];
    if (row < 0) return (f64)NAN;
    const f64 *v = b->t->col[col].number + row;
    if (!b->same || b->same[i] < 2) return *v;
    f64 sum = 0;
    i32 n = 0;
    for (i32 k = 0; k < b->same[i]; k++)
        if (!isnan(v[k])) sum += v[k], n++;
    return n ? sum / n : (f64)NAN;
}

/* First row after the last target value: future rows of known columns. */
static i64 future_from(const struct build *b) {
    i64 n = b->n;
    if (b->nknown == 0 && b->ncat == 0) return n;
    for (; n > 0; n--)
        for (i32 c = 0; c < b->ntarget; c++)
            if (!isnan(cell(b, b->col[c], n - 1))) return n;
    return 0;
}

static void row_time(const struct build *b, i64 i, char out[40]) {
    out[0] = 0;
    if (!b->time) return;
    char text[32];
    time_format(b->time[i], &b->freq, text);
    snprintf(out, 40, " (%s)", text);
}

/* Reports missing cells of a target in rows [0, n), counted in runs. */
static err missing_target(const struct build *b, i32 col, i64 n) {
    i64 missing = 0, rows = 0, runs = 0, run = 0, first = -1, first_run = 0, longest = 0, longest_at = 0;
    for (i64 i = 0; i < n; i++) {
        if (b->row[i] < 0) continue; /* inserted by --gaps */
        rows++;
        if (!isnan(cell(b, col, i))) {
            run = 0;
            continue;
        }
        missing++;
        if (run++ == 0) runs++;
        if (first < 0) first = i;
        if (runs == 1) first_run = run;
        if (run > longest) longest = run, longest_at = i + 1 - run;
    }
    if (missing == 0) return 0;
    const struct column *c = &b->t->col[col];
    char where[256], from[40], at[40], word[40] = "no value";
    table_where(b->t, b->row[first], &b->t->col[col], where);
    row_time(b, first, from);
    row_time(b, longest_at, at);
    if (c->missing_text && c->missing_text[0]) snprintf(word, sizeof word, "\"%.16s\"", c->missing_text);
    if (missing == rows) return FAIL_AT(E207, where, "another --target", "target \"%s\" has no values at all", c->name);
    char start[80];
    if (first == 0) snprintf(start, sizeof start, "at the start");
    else snprintf(start, sizeof start, "from line %lld%s", (long long)table_line(b->t, b->row[first]), from);
    return FAIL_AT(
        E207, where,
        "--gaps mask   (skip them in the loss: recommended)   or   --gaps interpolate   (fill, only inside a series)",
        "%s in target \"%s\" (%lld of %lld rows, %.1f%%, in %lld run%s)\nfirst run: %lld row%s %s; longest: %lld row%s from "
        "line %lld%s",
        word, c->name, (long long)missing, (long long)rows, 100.0 * (f64)missing / (f64)rows, (long long)runs,
        runs == 1 ? "" : "s", (long long)first_run, first_run == 1 ? "" : "s", start, (long long)longest,
        longest == 1 ? "" : "s", (long long)table_line(b->t, b->row[longest_at]), at);
}

/* Median and median absolute deviation of at most SAMPLE cells. */
static void middle(const struct build *b, i32 col, f64 *buf, f64 *median, f64 *spread) {
    i64 stride = lmax(1, b->n / SAMPLE);
    i32 n = 0;
    for (i64 i = 0; i < b->n && n < SAMPLE; i += stride) {
        buf[n] = cell(b, col, i);
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

static err absurd(const struct build *b, i32 col, f64 *buf) {
    f64 median, spread;
    i64 first = -1, count = 0;
    middle(b, col, buf, &median, &spread);
    for (i64 i = 0; i < b->n; i++) {
        f64 v = cell(b, col, i);
        if (isnan(v) || (fabs(v) <= HUGE_CELL && (spread == 0 || fabs(v - median) <= FAR * spread))) continue;
        if (!count++) first = i;
    }
    if (count == 0) return 0;
    char where[256], fix[100], many[48] = "";
    f64 v = cell(b, col, first);
    table_where(b->t, b->row[first], &b->t->col[col], where);
    snprintf(fix, sizeof fix, "--na %.15g   (it means missing)   or repair the line", v);
    if (fabs(median) > HUGE_CELL) snprintf(fix, sizeof fix, "the column in another unit: values to %.0e can be used", HUGE_CELL);
    if (count > 1) snprintf(many, sizeof many, "; %lld such cells", (long long)count);
    return FAIL_AT(E208, where, fix, "%.15g in column \"%s\": the median is %.6g, half of the cells lie within %.6g of it%s", v,
                   b->t->col[col].name, median, spread, many);
}

static err constant_target(const struct build *b, i32 col) {
    f64 first = (f64)NAN;
    i64 n = 0;
    for (i64 i = 0; i < b->n; i++) {
        f64 v = cell(b, col, i);
        if (isnan(v)) continue;
        if (n++ && v != first) return 0;
        first = v;
    }
    if (n == 0) return 0; /* missing_target reports it */
    char fix[600], word[MEND_PATH];
    snprintf(fix, sizeof fix, "another --target   or   --target all --ignore %s", mend_word(b->t->col[col].name, word));
    return FAIL_AT(E212, b->t->path, fix, "target \"%s\" is %.15g in all %lld rows", b->t->col[col].name, first,
                   (long long)n);
}

static err check_cells(struct build *b, i64 future) {
    f64 *buf;
    NEW(buf, SAMPLE);
    err e = 0;
    i32 ncol = b->ntarget + b->npast + b->nknown;
    for (i32 c = 0; c < ncol && e >= 0; c++) {
        if (c < b->ntarget && b->gaps == GAPS_ERROR) e = build_problem(b, b->col[c], missing_target(b, b->col[c], future));
        if (e >= 0) e = build_problem(b, b->col[c], absurd(b, b->col[c], buf));
        if (e >= 0 && c < b->ntarget && !b->o->of_model) e = build_problem(b, b->col[c], constant_target(b, b->col[c]));
    }
    mem_free(buf);
    return e;
}

/* Offset to subtract before conversion to f32, since 1e9 + 3 would lose the 3: the first value if the others are closer to it
 * than it is to zero, else 0. The first value, so that appended rows change no earlier cell; 0 with --gaps zero, so that zero
 * stays exact. */
static f64 offset(const struct build *b, i32 col) {
    f64 first = (f64)NAN, distance = 0;
    i64 n = 0;
    for (i64 i = 0; i < b->n; i++) {
        f64 v = cell(b, col, i);
        if (isnan(v)) continue;
        if (n++ == 0) first = v;
        distance += fabs(v - first);
    }
    return n && distance > 0 && fabs(first) > CLOSE * distance / (f64)n ? b->gaps == GAPS_ZERO ? (f64)(f32)first : first : 0;
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

/* True if cells were filled that a forecast must not see or score. Known columns do not count: their interpolated values are
 * known too. */
static bool fill_column(const struct build *b, struct series *s, i32 c, i64 future) {
    f32 *v = s->v + (i64)c * s->nrow;
    f64 zero = s->mean[c] = offset(b, b->col[c]);
    for (i64 i = 0; i < s->nrow; i++) v[i] = (f32)(cell(b, b->col[c], i) - zero);
    bool known = c >= b->ntarget + b->npast, made = false;
    if (b->gaps == GAPS_INTERPOLATE) made = interpolate(v, known ? NULL : s->filled + (i64)c * s->nrow, s->nrow);
    for (i64 i = 0; b->gaps == GAPS_ZERO && c < b->ntarget && i < future; i++)
        if (isnan(v[i])) v[i] = (f32)-zero;
    return made;
}

static err fill_categories(const struct build *b, struct series *s) {
    s->ncat = b->ncat;
    ARENA_NEW(&s->names, s->code, b->ncat + 1);
    ARENA_NEW(&s->names, s->nword, b->ncat + 1);
    ARENA_NEW(&s->names, s->word, b->ncat + 1);
    ARENA_NEW(&s->names, s->cat_name, b->ncat + 1);
    for (i32 k = 0; k < b->ncat; k++) {
        const struct column *c = &b->t->col[b->cat[k]];
        TRY(arena_keep(&s->names, &s->cat_name[k], c->name));
        ARENA_SPILL(&s->names, s->code[k], s->nrow + 1);
        for (i64 i = 0; i < s->nrow; i++) s->code[k][i] = b->row[i] < 0 ? -1 : c->code[b->row[i]];
        s->nword[k] = c->nword;
        ARENA_NEW(&s->names, s->word[k], c->nword + 1);
        for (i32 w = 0; w < c->nword; w++) TRY(arena_keep(&s->names, &s->word[k][w], c->word[w]));
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

err build_values(struct build *b, struct series *s) {
    i64 future = future_from(b);
    TRY(check_cells(b, future));
    if (b->bad) return 0;
    s->nrow = b->n;
    s->merged = b->merged;
    s->ntarget = b->ntarget;
    s->npast = b->npast;
    s->nknown = b->nknown;
    s->ncol = b->ntarget + b->npast + b->nknown;
    s->freq = b->freq;
    ARENA_NEW(&s->names, s->name, s->ncol);
    ARENA_NEW(&s->names, s->mean, s->ncol);
    ARENA_NEW(&s->names, s->dev, s->ncol);
    NEW_SPILL(s->v, s->ncol * s->nrow);
    NEW_SPILL(s->line, s->nrow);
    if (b->gaps == GAPS_INTERPOLATE) NEW_SPILL(s->filled, s->ncol * s->nrow);
    bool made = false;
    for (i32 c = 0; c < s->ncol; c++) {
        TRY(arena_keep(&s->names, &s->name[c], b->t->col[b->col[c]].name));
        s->dev[c] = 1;
        made |= fill_column(b, s, c, future);
    }
    if (!made) {
        mem_free(s->filled);
        s->filled = NULL;
    }
    TRY(arena_keep(&s->names, &s->roles, b->roles));
    TRY(keep_time_columns(b, s));
    for (i64 i = 0; i < s->nrow; i++) s->line[i] = b->row[i] < 0 ? -1 : table_line(b->t, b->row[i]);
    TRY(fill_categories(b, s));
    s->time = b->time;
    b->time = NULL;
    return 0;
}
