/* series_pick.c - see series_pick.h. */
#include "data/series_pick.h"

#include <string.h>

#include "base/mem.h"

/* Columns of covariate k: one for each target of a panel, else one. */
static i32 width(const struct series *s) { return s->panel ? s->ntarget : 1; }

static f32 *column(const struct series *s, i32 c) { return s->v + (i64)c * s->nrow; }

static void copy_column(const struct series *s, i32 from, struct series *out, i32 to) {
    memcpy(column(out, to), series_col(s, from), sizeof(f32) * (size_t)s->nrow);
    if (s->filled) memcpy(out->filled + (i64)to * s->nrow, s->filled + (i64)from * s->nrow, (size_t)s->nrow);
    out->name[to] = s->name[from];
    out->mean[to] = s->mean[from];
    out->dev[to] = s->dev[from];
}

static err new_columns(const struct series *s, struct arena *a, struct series *out) {
    ARENA_NEW(a, out->v, (i64)out->ncol * s->nrow);
    if (s->filled) ARENA_NEW(a, out->filled, (i64)out->ncol * s->nrow);
    ARENA_NEW(a, out->name, out->ncol);
    ARENA_NEW(a, out->mean, out->ncol);
    ARENA_NEW(a, out->dev, out->ncol);
    ARENA_NEW(a, out->of_model, out->ntarget);
    if (s->from) ARENA_NEW(a, out->from, out->ntarget);
    if (s->to) ARENA_NEW(a, out->to, out->ntarget);
    return 0;
}

static err copy_categories(const struct series *s, const i32 *target, struct arena *a, struct series *out) {
    const i32 wide = width(out);
    if (s->ncat == 0) return 0;
    ARENA_NEW(a, out->code, s->ncat);
    for (i32 k = 0; k < s->ncat; k++) {
        ARENA_NEW(a, out->code[k], (i64)wide * s->nrow);
        for (i32 i = 0; i < wide; i++)
            memcpy(out->code[k] + (i64)i * s->nrow, s->code[k] + (i64)(s->panel ? target[i] : 0) * s->nrow,
                   sizeof(i32) * (size_t)s->nrow);
    }
    return 0;
}

err series_pick(const struct series *s, const i32 *target, i32 n, struct arena *a, struct series *out) {
    *out = *s;
    out->names = (struct arena){0};
    out->ntarget = n;
    out->ncol = n + (s->npast + s->nknown) * (s->panel ? n : 1);
    out->filled = NULL;
    out->from = out->to = NULL;
    TRY(new_columns(s, a, out));
    for (i32 i = 0; i < n; i++) {
        copy_column(s, target[i], out, i);
        out->of_model[i] = s->of_model ? s->of_model[target[i]] : target[i];
        if (s->from) out->from[i] = s->from[target[i]];
        if (s->to) out->to[i] = s->to[target[i]];
    }
    for (i32 k = 0; k < s->npast + s->nknown; k++)
        for (i32 i = 0; i < width(out); i++) copy_column(s, series_past_of(s, k, target[i]), out, series_past_of(out, k, i));
    return copy_categories(s, target, a, out);
}

bool series_pick_fits(const struct series *s, i32 n) {
    const i64 limit = mem_limit(), bytes = s->nrow * (1 + s->npast + s->nknown + s->ncat) * n * (i64)sizeof(f32);
    return limit == 0 || bytes < (limit - mem_stats().live) / 4;
}

err series_alone(const struct series *s, i32 target, struct arena *a, struct series *out, bool *fits) {
    *fits = s->ntarget == 1 || series_pick_fits(s, 1);
    if (!*fits) return 0;
    if (s->ntarget > 1) return series_pick(s, &target, 1, a, out);
    *out = *s;
    out->names = (struct arena){0};
    return 0;
}

/* ------------------------------------------------------------------ columns of others --------------------------------------- */

i32 series_covariates(const struct series *s) { return s->npast + s->nknown + s->ncat; }

const char *series_covariate_name(const struct series *s, i32 k) {
    if (k >= s->npast + s->nknown) return s->cat_name[k - s->npast - s->nknown];
    return s->panel ? s->column[1 + k] : s->name[series_past_of(s, k, 0)];
}

static bool is_category(const struct series *s, i32 k) { return k >= s->npast + s->nknown; }

static i64 cells(const struct series *s) { return (i64)width(s) * s->nrow; }

static i32 *codes(const struct series *s, i32 k) { return s->code[k - s->npast - s->nknown]; }

err series_keep(const struct series *picked, i32 k, struct arena *a, struct series_kept *out) {
    *out = (struct series_kept){0};
    if (is_category(picked, k)) {
        ARENA_NEW(a, out->code, cells(picked));
        memcpy(out->code, codes(picked, k), sizeof(i32) * (size_t)cells(picked));
    } else {
        ARENA_NEW(a, out->v, cells(picked));
        memcpy(out->v, column(picked, series_past_of(picked, k, 0)), sizeof(f32) * (size_t)cells(picked));
    }
    return 0;
}

void series_turn(struct series *picked, i32 k, const struct series_kept *kept, i64 from, i64 to, i64 shift, i32 other) {
    const i32 wide = width(picked);
    f32 *v = is_category(picked, k) ? NULL : column(picked, series_past_of(picked, k, 0));
    for (i32 i = 0; i < wide; i++) {
        const i64 into = (i64)i * picked->nrow, of = (i64)((i + other) % wide) * picked->nrow;
        for (i64 r = from; r < to; r++) {
            const i64 at = from + (r - from + shift) % (to - from);
            if (v)
                v[into + r] = kept->v[of + at];
            else
                codes(picked, k)[into + r] = kept->code[of + at];
        }
    }
}

void series_restore(struct series *picked, i32 k, const struct series_kept *kept) {
    if (kept->code)
        memcpy(codes(picked, k), kept->code, sizeof(i32) * (size_t)cells(picked));
    else
        memcpy(column(picked, series_past_of(picked, k, 0)), kept->v, sizeof(f32) * (size_t)cells(picked));
}
