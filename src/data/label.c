/* label.c - see label.h. */
#include "data/label.h"

#include <stdio.h>

#include "data/time.h"

f64 row_seconds(const struct series *s, i64 row) {
    if (row < s->nrow) return (f64)s->time[row];
    return (f64)time_add(s->time[s->nrow - 1], &s->freq, row - s->nrow + 1);
}

void row_label(const struct series *s, i64 row, char out[32]) {
    if (s->time && s->nrow > 0) {
        i64 i = lmin(lmax(row, 0), s->nrow - 1);
        time_format(row == i ? s->time[i] : time_add(s->time[i], &s->freq, row - i), &s->freq, out);
    } else {
        snprintf(out, 32, "row %lld", (long long)row);
    }
}

void span_label(const struct series *s, i64 from, i64 to, char out[72]) {
    char a[32], b[32];
    if (to <= from) {
        snprintf(out, 72, "none");
        return;
    }
    row_label(s, from, a);
    row_label(s, to - 1, b);
    snprintf(out, 72, "%s..%s", a, b);
}
