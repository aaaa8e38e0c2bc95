/* series_cut.c - a series that ends early: a copy in which nothing is known from a row on, for searches that must not see it. */
#include <string.h>

#include "base/spill.h"
#include "data/series_build.h"

static err copy_rows(void **out, const void *from, i64 n, size_t size) {
    *out = NULL;
    if (!from) return 0;
    TRY(spill_new(out, n, size));
    memcpy(*out, from, (size_t)n * size);
    return 0;
}

/* The codes of all categories, and the arrays that schema_limit_words replaces. */
static err copy_codes(const struct series *s, i64 rows, struct series *t) {
    const i32 blocks = s->panel ? s->ntarget : 1;
    ARENA_NEW(&t->names, t->code, s->ncat + 1);
    ARENA_NEW(&t->names, t->nword, s->ncat + 1);
    ARENA_NEW(&t->names, t->word, s->ncat + 1);
    for (i32 c = 0; c < s->ncat; c++) {
        NEW_SPILL(t->code[c], blocks * s->nrow + 1);
        memcpy(t->code[c], s->code[c], sizeof *t->code[c] * (size_t)(blocks * s->nrow));
        for (i32 b = 0; b < blocks; b++)
            for (i64 i = rows; i < s->nrow; i++) t->code[c][b * s->nrow + i] = -1;
        t->nword[c] = s->nword[c];
        t->word[c] = s->word[c];
    }
    return 0;
}

static err copy_ends(const struct series *s, i64 rows, struct series *t) {
    ARENA_NEW(&t->names, t->mean, s->ncol);
    ARENA_NEW(&t->names, t->dev, s->ncol);
    memcpy(t->mean, s->mean, sizeof *t->mean * (size_t)s->ncol);
    memcpy(t->dev, s->dev, sizeof *t->dev * (size_t)s->ncol);
    if (!s->to) return 0;
    ARENA_NEW(&t->names, t->from, s->ntarget);
    ARENA_NEW(&t->names, t->to, s->ntarget);
    for (i32 k = 0; k < s->ntarget; k++) {
        t->from[k] = lmin(s->from[k], rows);
        t->to[k] = lmin(s->to[k], rows);
    }
    return 0;
}

static err fill(const struct series *s, i64 rows, struct series *t) {
    TRY(copy_rows((void **)&t->v, s->v, s->ncol * s->nrow, sizeof *s->v));
    TRY(copy_rows((void **)&t->filled, s->filled, s->ncol * s->nrow, sizeof *s->filled));
    TRY(copy_rows((void **)&t->time, s->time, s->nrow, sizeof *s->time));
    TRY(copy_rows((void **)&t->line, s->line, s->nrow, sizeof *s->line));
    for (i32 c = 0; c < s->ncol; c++)
        for (i64 i = rows; i < s->nrow; i++) {
            t->v[c * s->nrow + i] = (f32)NAN;
            if (t->filled) t->filled[c * s->nrow + i] = 0;
        }
    TRY(copy_ends(s, rows, t));
    return copy_codes(s, rows, t);
}

err series_before(const struct series *s, i64 rows, struct series **out) {
    struct series *t;
    *out = NULL;
    NEW(t, 1);
    *t = *s;
    t->names = (struct arena){0};
    t->v = NULL;
    t->filled = NULL;
    t->time = t->line = NULL;
    t->code = NULL;
    t->v_borrowed = t->code_borrowed = false;
    t->part = NULL; /* of a model's rows nobody asks for the place */
    t->npart = 0;
    const err e = fill(s, lmax(0, lmin(rows, s->nrow)), t);
    if (e < 0) series_free(t);
    else *out = t;
    return e;
}
