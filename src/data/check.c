/* check.c - the findings of `stretto check`: errors of building the series, then doubtful columns.
 *
 * W034  a numeric column, or the sum or difference of two, equals the target in (nearly) every row; a line through it does
 * W035  numbers that may be fractions or thousands
 * W031  zeros although all other values stay away from zero; one constant value for a whole day */
#include "data/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/build.h"
#include "data/mend.h"
#include "data/names.h"

enum { LEAK_COLUMNS = 200, SUSPECTS = 6, LINE_ROWS = 32 };

/* Numeric columns that could leak the target: not targets, times, --past or --ignore. */
static err leak_columns(const struct build *b, i32 *list, i32 *n) {
    const char *ignore = b->o->ignore;
    char name[256];
    bool *out;
    NEW(out, b->t->ncol);
    while (name_next(&ignore, name)) {
        const i32 col = table_find(b->t, name);
        if (col >= 0) out[col] = true;
    }
    for (i32 k = 0; k < b->ntarget + b->npast; k++) out[b->col[k]] = true;
    for (i32 k = 0; k < b->ntime; k++) out[b->time_col[k]] = true;
    *n = 0;
    for (i32 i = 0; i < b->t->ncol && *n < LEAK_COLUMNS; i++)
        if (b->t->col[i].type == COL_NUMBER && !out[i]) list[(*n)++] = i;
    mem_free(out);
    return 0;
}

/* Counts rows with x + sign * y equal to the target; stops early if the first rows differ. y NULL: x alone. */
static i64 equal_rows(const struct build *b, i32 target, const f64 *x, const f64 *y, f64 sign, i64 *rows) {
    const f64 *t = b->t->col[target].number;
    i64 equal = 0;
    *rows = 0;
    bool nonzero = false;
    for (i64 i = 0; i < b->t->nrow; i++) {
        f64 v = y ? x[i] + sign * y[i] : x[i];
        if (isnan(v) || isnan(t[i])) continue;
        ++*rows;
        equal += fabs(v - t[i]) <= 1e-9 * fmax(fabs(t[i]), 1e-3);
        nonzero |= y ? x[i] != 0 && y[i] != 0 : t[i] != 0;
        if (*rows == 32 && equal < 30) return 0;
    }
    return nonzero && *rows >= 10 && (f64)equal >= 0.99 * (f64)*rows ? equal : 0;
}

/* A column, or the sum or difference of two, that equals the target in `equal` of `rows` rows. */
struct leak {
    const struct column *x, *y; /* y NULL: x alone */
    char sign;
    i64 equal, rows;
};

static void report_leak(const struct build *b, struct findings *f, i32 target, const struct leak *k, const struct freq *freq) {
    char text[900], fix[600], unit[32], names[MEND_PATH], second[130] = "";
    const char *word = "row";
    struct str list = {0};
    freq_span(freq, 1, unit);
    if (!strncmp(unit, "1 ", 2) && strcmp(unit, "1 step") != 0 && !strstr(unit, "step")) word = unit + 2;
    if (k->y) snprintf(second, sizeof second, " %c %.120s", k->sign, k->y->name);
    snprintf(text, sizeof text, "%.120s%s = %.120s in %lld of %lld rows: as input%s of the same %s %s the target", k->x->name,
             second, b->t->col[target].name, (long long)k->equal, (long long)k->rows, k->y ? "s" : "", word,
             k->y ? "they leak" : "it leaks");
    str_list_add(&list, k->x->name);
    if (k->y) str_list_add(&list, k->y->name);
    snprintf(fix, sizeof fix, "--past %s   or   --ignore %s", mend_words(str_text(&list), names), names);
    str_free(&list);
    findings_warn(f, 34, NO_COLUMN, fix, text);
}

/* The line through the rows of x and the target t: t = a x + b. Returns the rows, or 0 where it leaves more than a millionth of
 * the variance (rounding leaves less). */
static i64 line_rows(const f64 *x, const f64 *t, i64 n, f64 *a, f64 *b) {
    f64 mx = 0, mt = 0, xx = 0, tt = 0, xt = 0;
    i64 rows = 0;
    for (i64 i = 0; i < n; i++) {
        if (isnan(x[i]) || isnan(t[i])) continue;
        const f64 share = 1.0 / (f64)++rows, dx = x[i] - mx, dt = t[i] - mt; /* moments by Welford's update */
        mx += dx * share;
        mt += dt * share;
        xx += dx * (x[i] - mx);
        tt += dt * (t[i] - mt);
        xt += dx * (t[i] - mt);
    }
    if (rows < LINE_ROWS || !(xx > 0) || !(tt > 0) || xt * xt < (1 - 1e-6) * xx * tt) return 0;
    *a = xt / xx;
    *b = mt - *a * mx;
    return rows;
}

/* A column that is the target in another unit, or with a tax on it. */
static void report_line(const struct build *b, struct findings *f, i32 target, const struct column *x) {
    char text[600], fix[600], names[MEND_PATH];
    struct str list = {0};
    f64 slope, shift;
    const i64 rows = line_rows(x->number, b->t->col[target].number, b->t->nrow, &slope, &shift);
    if (rows == 0) return;
    snprintf(text, sizeof text,
             "%.120s = %.6g x %.120s %c %.6g in %lld rows, but for rounding: as input of the same row it leaks the target",
             b->t->col[target].name, slope, x->name, shift < 0 ? '-' : '+', fabs(shift), (long long)rows);
    str_list_add(&list, x->name);
    snprintf(fix, sizeof fix, "--past %s   or   --ignore %s", mend_words(str_text(&list), names), names);
    str_free(&list);
    findings_warn(f, 34, NO_COLUMN, fix, text);
}

static err find_leaks(const struct build *b, struct findings *f, const struct freq *freq) {
    i32 list[LEAK_COLUMNS], n;
    TRY(leak_columns(b, list, &n));
    for (i32 k = 0; k < b->ntarget; k++) {
        i32 target = b->col[k];
        for (i32 i = 0; i < n; i++) {
            struct leak one = {.x = &b->t->col[list[i]]};
            one.equal = equal_rows(b, target, one.x->number, NULL, 0, &one.rows);
            if (one.equal) report_leak(b, f, target, &one, freq);
            else report_line(b, f, target, one.x);
            for (i32 j = 0; j < n; j++) {
                struct leak two = {.x = one.x, .y = &b->t->col[list[j]], .sign = '+'};
                if (i == j) continue;
                if (i < j) two.equal = equal_rows(b, target, two.x->number, two.y->number, 1, &two.rows);
                if (!two.equal) {
                    two.sign = '-';
                    two.equal = equal_rows(b, target, two.x->number, two.y->number, -1, &two.rows);
                }
                if (two.equal) report_leak(b, f, target, &two, freq);
            }
        }
    }
    return 0;
}

/* Statistics of a column for W031. */
struct look {
    i64 zeros, first_zero, last_zero, fractions, present;
    f64 least, median, low, high; /* smallest and median magnitude of nonzero values; lowest and highest value */
};

static struct look look_at(const f64 *v, i64 n, f64 *buf) {
    struct look k = {.first_zero = -1, .low = INFINITY, .high = -INFINITY};
    i64 others = 0;
    for (i64 i = 0; i < n; i++) {
        if (isnan(v[i])) continue;
        k.present++;
        k.fractions += v[i] != floor(v[i]);
        k.low = fmin(k.low, v[i]);
        k.high = fmax(k.high, v[i]);
        if (v[i] != 0) {
            buf[others++] = fabs(v[i]);
            continue;
        }
        if (!k.zeros++) k.first_zero = i;
        k.last_zero = i;
    }
    if (others == 0) return k;
    sort_values(buf, others);
    k.least = buf[0];
    k.median = buf[others / 2];
    return k;
}

static i64 day_of(i64 t) { return (t >= 0 ? t : t - 86399) / 86400; }

static void suspect_zeros(const struct build *b, const struct column *c, const struct look *k, struct str *out) {
    static const struct freq daily = {.step = 86400};
    i64 a = k->first_zero, z = k->last_zero, n = b->t->nrow;
    str_addf(out, "%s: %lld cell%s of exactly 0", c->name, (long long)k->zeros, k->zeros == 1 ? "" : "s");
    bool run = z - a + 1 == k->zeros && k->zeros > 1;
    bool day = run && b->time && b->n == n && day_of(b->time[a]) == day_of(b->time[z]) &&
               (a == 0 || day_of(b->time[a - 1]) != day_of(b->time[a])) &&
               (z == n - 1 || day_of(b->time[z + 1]) != day_of(b->time[z]));
    char date[32];
    if (day) {
        time_format(day_of(b->time[a]) * 86400, &daily, date);
        str_addf(out, ", all rows of %s", date);
    }
    if (run) str_addf(out, " (lines %lld-%lld)", (long long)table_line(b->t, a), (long long)table_line(b->t, z));
    else str_addf(out, " (first in line %lld)", (long long)table_line(b->t, a));
}

/* Finds complete days of at least 12 rows with one constant value that is neither 0 nor the minimum or maximum. Few such days
 * are suspicious. */
static void suspect_days(const struct build *b, const struct column *c, const struct look *k, i64 step, struct str *out) {
    static const struct freq daily = {.step = 86400};
    i64 flat = 0, days = 0, at = 0, rows = 0, whole = step > 0 && step <= 7200 ? 86400 / step : INT64_MAX;
    for (i64 i = 0, from = 0; i < b->n; i++) {
        bool last = i + 1 == b->n || day_of(b->time[i + 1]) != day_of(b->time[i]);
        if (!last) continue;
        bool same = i - from + 1 >= whole;
        days++;
        for (i64 r = from; r <= i && same; r++) same = c->number[r] == c->number[from];
        if (same && c->number[from] != 0 && c->number[from] != k->low && c->number[from] != k->high && !flat++)
            at = from, rows = i - from + 1;
        from = i + 1;
    }
    if (flat == 0 || days < 20 || 50 * flat > days) return;
    char date[32];
    time_format(day_of(b->time[at]) * 86400, &daily, date);
    str_addf(out, "%s%s: %.10g in all %lld rows of %s", out->len ? "; " : "", c->name, c->number[at], (long long)rows, date);
    if (flat > 1) str_addf(out, " (and %lld more such day%s)", (long long)(flat - 1), flat == 2 ? "" : "s");
}

static err find_suspects(const struct build *b, struct findings *f, const struct freq *freq) {
    struct str text = {0};
    i32 said = 0;
    f64 *buf;
    NEW_SPILL(buf, b->t->nrow);
    for (i32 i = 0; i < b->t->ncol && said < SUSPECTS; i++) {
        const struct column *c = &b->t->col[i];
        bool time = false;
        for (i32 k = 0; k < b->ntime; k++) time |= b->time_col[k] == i;
        if (c->type != COL_NUMBER || time) continue;
        struct look k = look_at(c->number, b->t->nrow, buf);
        size_t before = text.len;
        if (2 * k.fractions < k.present) continue; /* counts and flags are often zero or constant */
        if (k.zeros > 0 && 10 * k.zeros < k.present && k.least >= 0.1 * k.median) {
            if (text.len) str_add(&text, "; ");
            suspect_zeros(b, c, &k, &text);
        }
        if (b->time && b->n == b->t->nrow) suspect_days(b, c, &k, freq->step, &text);
        said += text.len > before;
    }
    mem_free(buf);
    if (text.len) findings_warn(f, 31, NO_COLUMN, "", str_text(&text));
    err e = str_ok(&text);
    str_free(&text);
    return e;
}

err check_table(const struct table *t, const struct series_options *o, struct findings *out, struct series **s) {
    *out = (struct findings){0};
    struct series *made = NULL;
    TRY(series_inspect(t, o, out, &made));
    if (t->doubt) findings_warn(out, t->doubt_code ? t->doubt_code : 35, NO_COLUMN, t->doubt_fix, t->doubt);
    struct findings ignored = {0};
    struct build b = {.t = t, .o = o, .found = &ignored};
    struct freq freq = {.season = 1};
    err e = build_roles(&b);
    if (e >= 0) e = build_times(&b);
    if (e >= 0) { /* otherwise reported above */
        if (b.time) freq_infer(b.time, b.n, &freq);
        e = find_leaks(&b, out, &freq);
        if (e >= 0) e = find_suspects(&b, out, &freq);
    } else if (e != -E601) {
        e = 0;
    }
    build_free(&b);
    if (s && e >= 0) *s = made;
    else series_free(made);
    return e;
}
