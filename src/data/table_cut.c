/* table_cut.c - a table that ends early: a copy of its first rows in a drawn order, for searches that must not see the others. */
#include <math.h>

#include "base/rng.h"
#include "base/spill.h"
#include "data/table.h"

enum { CUT_EPOCH = 0xfff0 }; /* of rng_shuffle: an order that no training draws */

/* to [rows] = from at the drawn places; NULL stays NULL. */
#define COPY(to, from)                                                                                                           \
    do {                                                                                                                         \
        (to) = NULL;                                                                                                             \
        if (!(from)) break;                                                                                                      \
        NEW_SPILL(to, rows);                                                                                                     \
        for (i64 i = 0; i < rows; i++) (to)[i] = (from)[rng_shuffle(seed, CUT_EPOCH, rows, i)];                                  \
    } while (0)

static err copy_column(const struct column *from, i64 rows, u64 seed, struct column *to) {
    *to = *from;
    to->offset = NULL;
    to->number = NULL;
    to->time = NULL;
    to->code = NULL;
    COPY(to->number, from->number);
    COPY(to->time, from->time);
    COPY(to->code, from->code);
    to->missing = 0;
    for (i64 i = 0; i < rows; i++) to->missing += (to->number && isnan(to->number[i])) || (to->code && to->code[i] < 0);
    return 0;
}

static err copy_rows(const struct table *t, i64 rows, u64 seed, struct table *to) {
    NEW(to->col, t->ncol + 1);
    for (i32 c = 0; c < t->ncol; c++) TRY(copy_column(&t->col[c], rows, seed, &to->col[c]));
    NEW_SPILL(to->line, rows);
    for (i64 i = 0; i < rows; i++) to->line[i] = table_line(t, rng_shuffle(seed, CUT_EPOCH, rows, i));
    return 0;
}

err table_before(const struct table *t, i64 rows, u64 seed, struct table **out) {
    struct table *to;
    *out = NULL;
    NEW(to, 1);
    *to = *t;
    to->nrow = rows < t->nrow ? rows : t->nrow;
    to->col = NULL;
    to->line = NULL;
    to->map = NULL;
    to->index = (struct vocab){0};
    to->names = (struct arena){0};
    const err e = copy_rows(t, to->nrow, seed, to);
    if (e < 0) table_free(to);
    else *out = to;
    return e;
}
