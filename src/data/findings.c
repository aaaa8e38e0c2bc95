/* findings.c - collects the problems and doubts of reading a table and building a series; helpers of both. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "data/build.h"
#include "data/check.h"

void findings_add(struct findings *f, bool warning, i32 column, const struct err_record *r) {
    if (f->n == FINDINGS_MAX) {
        f->more++;
        return;
    }
    f->item[f->n++] = (struct finding){warning, column, *r};
}

void findings_warn(struct findings *f, i32 code, i32 column, const char *fix, const char *text) {
    struct err_record r = {.code = code};
    snprintf(r.text, sizeof r.text, "%s", text);
    snprintf(r.fix, sizeof r.fix, "%s", fix);
    findings_add(f, true, column, &r);
}

err build_problem(struct build *b, i32 column, err e) {
    if (e >= 0 || !b->found || e == -E601) return e;
    findings_add(b->found, false, column, err_last());
    b->bad = true;
    return 0;
}

static i32 by_value(const void *a, const void *b) {
    f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return x < y ? -1 : x > y;
}

void sort_values(f64 *v, i64 n) { qsort(v, (size_t)n, sizeof *v, by_value); }
