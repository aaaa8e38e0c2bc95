/* findings.c - collects the problems and doubts that reading a table and building a series meet. */
#include "data/build.h"
#include "data/check.h"

void findings_add(struct findings *f, bool warning, i32 column, const struct err_record *r) {
    if (f->n == FINDINGS_MAX) {
        f->more++;
        return;
    }
    f->item[f->n++] = (struct finding){warning, column, *r};
}

err build_problem(struct build *b, i32 column, err e) {
    if (e >= 0 || !b->found || e == -E601) return e;
    findings_add(b->found, false, column, err_last());
    b->bad = true;
    return 0;
}
