/* series_quality.c - see series_quality.h. */
#include "learn/series_quality.h"

#include <math.h>

#include "data/time.h"
#include "report/report.h"
#include "report/text.h"

/* The longest run of rows of any target with some property. */
struct run {
    i64 rows, from;
    i32 col;
};

struct quality {
    i64 cells, missing, filled;     /* of targets, between the first and the last row of each */
    i64 other_cells, other_missing; /* of covariates */
    i64 inserted;                   /* rows that the file lacks */
    i64 most;                       /* missing cells of the series that lacks most */
    i32 most_col;
    struct run gap, constant;
};

static void end_run(struct run *longest, i64 rows, i64 end, i32 col) {
    if (rows > longest->rows) *longest = (struct run){rows, end - rows, col};
}

/* Rows of a column that belong to it: those of its series, up to its last target. */
static void rows_of(const struct series *s, i32 c, i64 end, i64 *from, i64 *to) {
    const bool apart = s->panel || c < s->ntarget;
    *from = s->from && apart ? s->from[c % s->ntarget] : 0;
    *to = s->to && apart ? s->to[c % s->ntarget] : end;
}

static void look_at_target(const struct series *s, i32 c, i64 end, struct quality *q) {
    const f32 *v = series_col(s, c);
    i64 from, to, absent = 0, same = 0, missing = 0;
    rows_of(s, c, end, &from, &to);
    for (i64 i = from; i < to; i++) {
        const bool seen = series_is_target(s, c, i);
        if (!seen) {
            missing += isnan(v[i]);
            q->filled += series_filled(s, c, i);
            end_run(&q->constant, same, i, c);
            absent++;
            same = 0;
            continue;
        }
        end_run(&q->gap, absent, i, c);
        if (same > 0 && v[i] != v[i - 1]) {
            end_run(&q->constant, same, i, c);
            same = 0;
        }
        same++;
        absent = 0;
    }
    end_run(&q->constant, same, to, c);
    q->cells += lmax(0, to - from);
    q->missing += missing;
    if (missing > q->most) q->most = missing, q->most_col = c;
}

static void look_at_covariate(const struct series *s, i32 c, i64 end, struct quality *q) {
    const f32 *v = series_col(s, c);
    i64 from, to;
    rows_of(s, c, end, &from, &to);
    for (i64 i = from; i < to; i++) q->other_missing += isnan(v[i]);
    q->other_cells += lmax(0, to - from);
}

static const char *share(struct arena *a, i64 n, i64 of) {
    if (n == 0) return "none";
    return arena_printf(a, "%lld of %lld (%s %%)", (long long)n, (long long)of,
                        text_digits(100 * (f64)n / (f64)lmax(1, of), 2).s);
}

/* "36 rows from 2011-01-02 05:00, series COAST" */
static const char *run_text(const struct series *s, const struct run *r, struct arena *a) {
    char label[32];
    row_label(s, r->from, label);
    const char *where = s->ntarget > 1 ? arena_printf(a, ", %s", s->name[r->col]) : "";
    return arena_printf(a, "%lld row%s from %s%s", (long long)r->rows, r->rows == 1 ? "" : "s", label, where);
}

i32 series_quality(const struct series *s, struct arena *a, struct report_fact *fact) {
    struct quality q = {0};
    const i64 end = series_end(s);
    i32 n = 0;
    for (i32 c = 0; c < s->ntarget; c++) look_at_target(s, c, end, &q);
    for (i32 c = s->ntarget; c < s->ncol; c++) look_at_covariate(s, c, end, &q);
    for (i64 i = 0; s->line && i < s->nrow; i++) q.inserted += s->line[i] < 0;
    const char *most = q.most > 0 && s->ntarget > 1 ? arena_printf(a, ", most in %s", s->name[q.most_col]) : "";
    fact[n++] = (struct report_fact){"missing targets", arena_printf(a, "%s%s", share(a, q.missing, q.cells), most)};
    if (q.filled > 0) fact[n++] = (struct report_fact){"interpolated targets", share(a, q.filled, q.cells)};
    if (q.gap.rows > 0) fact[n++] = (struct report_fact){"longest gap", run_text(s, &q.gap, a)};
    if (q.inserted > 0) fact[n++] = (struct report_fact){"rows that the file lacks", share(a, q.inserted, s->nrow)};
    if (q.other_cells > 0) fact[n++] = (struct report_fact){"missing covariates", share(a, q.other_missing, q.other_cells)};
    if (s->merged > 0)
        fact[n++] =
            (struct report_fact){"rows of a time that came before", arena_printf(a, "%lld, merged", (long long)s->merged)};
    if (q.constant.rows > 1)
        fact[n++] = (struct report_fact){"longest constant run",
                                         arena_printf(a, "%s, value %s", run_text(s, &q.constant, a),
                                                      text_digits(series_raw(s, q.constant.col, q.constant.from), 4).s)};
    return n;
}
