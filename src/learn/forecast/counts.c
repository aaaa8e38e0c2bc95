/* counts.c - targets of a head of counts must be counts: whole numbers from 0 on. */
#include <math.h>
#include <stdio.h>

#include "data/time.h"
#include "learn/forecast/resolve.h"

/* Above, sums of a distribution of counts take seconds, and f32 tells no neighbours apart. */
static const f64 count_most = 1e9;

/* Values are f32, of a scale with this mean: a distance from a whole number below their rounding says nothing. */
static bool is_count(f64 v, f64 mean) {
    const f64 whole = floor(v + 0.5);
    return whole >= 0 && v <= count_most && fabs(v - whole) <= (fabs(v) + 2 * fabs(mean)) * 0x1p-22;
}

static err refuse(const struct options *o, const struct series *s, const char *path, i32 col, i64 row, i64 count) {
    char where[256], at[32], many[48] = "", text[32];
    const f64 v = series_raw(s, col, row);
    snprintf(where, sizeof where, "%.200s", path);
    if (!s->panel && s->line && s->line[row] > 0) file_where(path, s->line[row], 0, where);
    row_label(s, row, at);
    str_from_f32(text, (f32)v);
    if (count > 1) snprintf(many, sizeof many, "; %lld such cells", (long long)count);
    return FAIL_AT(E216, where, "--head student-t   or repair the cell",
                   "%s in %s \"%s\" at %s is no count%s, which --head %s needs%s", text, s->panel ? "series" : "column",
                   s->name[col], at, v > count_most ? " up to 1e9" : "", o->head, many);
}

err resolve_counts(const struct options *o, const struct series *s, const char *path) {
    i64 count = 0, row = 0;
    i32 col = 0;
    if (!head_counts(o->head)) return 0;
    for (i32 c = 0; c < s->ntarget; c++)
        for (i64 i = 0; i < s->nrow; i++) {
            if (!series_is_target(s, c, i) || is_count(series_raw(s, c, i), s->mean[c])) continue;
            if (count++ == 0) col = c, row = i;
        }
    return count > 0 ? refuse(o, s, path, col, row, count) : 0;
}
