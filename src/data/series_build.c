/* series_build.c - runs the build stages in order; scaling; series from memory. */
#include "data/series_build.h"

#include <string.h>

#include "base/spill.h"
#include "data/build.h"
#include "data/check.h"

static err build(struct build *b, struct series *s) {
    TRY(build_roles(b));
    if (b->found) memcpy(b->found->roles, b->roles, sizeof b->roles);
    err e = build_times(b);
    if (e >= 0 && b->o->time_delta) e = build_delta(b);
    if (e >= 0) e = build_grid(b);
    if (e >= 0 && b->panel) e = build_panel_place(b);
    if (e < 0) TRY(build_problem(b, NO_COLUMN, e)); /* if problems are collected, those of cells follow */
    const bool unplaced = b->nid > 0 && (!b->panel || !b->panel->at);
    return e < 0 && (b->n == 0 || unplaced) ? 0 : build_values(b, s);
}

err series_inspect(const struct table *t, const struct series_options *o, struct findings *found, struct series **out) {
    *out = NULL;
    struct series *s;
    NEW(s, 1);
    struct build b = {.t = t, .o = o, .found = found};
    struct table longer = {0};
    err e = o->time_delta ? delta_table(&b, &longer) : 0;
    if (o->time_delta) b.t = &longer;
    if (e >= 0) e = build(&b, s);
    if (e < 0) e = build_problem(&b, NO_COLUMN, e); /* a problem that prevents further checks */
    bool bad = e < 0 || b.bad;
    if (found && b.doubt[0]) findings_warn(found, W38, b.doubt_col, b.doubt_fix, b.doubt);
    build_free(&b);
    delta_free(&longer);
    if (bad) series_free(s);
    else *out = s;
    return e;
}

err series_build(const struct table *t, const struct series_options *o, struct series **out) {
    return series_inspect(t, o, NULL, out);
}

void series_free(struct series *s) {
    if (!s) return;
    mem_free(s->v);
    mem_free(s->filled);
    mem_free(s->time);
    mem_free(s->line);
    for (i32 k = 0; s->code && k < s->ncat; k++) mem_free(s->code[k]);
    arena_free(&s->names);
    mem_free(s);
}

err series_wrap(const f64 *values, i64 nrow, i32 ncol, const char *const *names, i64 first_time, i64 step_seconds,
                const struct series_options *o, struct series **out) {
    *out = NULL;
    if (nrow < 1 || ncol < 1) return FAIL(E201, "%lld rows and %d columns hold no series", (long long)nrow, ncol);
    struct column *col;
    i64 *time = NULL;
    NEW(col, ncol + 1);
    struct table t = {.path = "memory", .ncol = ncol, .nrow = nrow, .col = col, .sep = ',', .decimal = '.'};
    for (i32 c = 0; c < ncol; c++) /* the table only reads them */
        col[c] = (struct column){.name = names[c], .field = c + 1, .number = (f64 *)(uintptr_t)(values + c * nrow)};
    err e = 0;
    if (step_seconds > 0) {
        e = spill_new((void **)&time, nrow, sizeof *time);
        for (i64 i = 0; e >= 0 && i < nrow; i++) time[i] = first_time + i * step_seconds;
        col[t.ncol++] = (struct column){.name = "(time)", .field = ncol + 1, .type = COL_TIME, .time = time};
    }
    if (e >= 0) e = series_build(&t, o, out);
    mem_free(time);
    mem_free(col);
    return e;
}
