/* schema.c - what a model remembers of its data, and the check that new data fit. */
#include <stdio.h>
#include <string.h>

#include "learn/forecast.h"

static err copy_names(struct schema *c, const struct series *s) {
    ARENA_NEW(&c->arena, c->name, s->ncol + 1);
    ARENA_NEW(&c->arena, c->cat_name, s->ncat + 1);
    for (i32 i = 0; i < s->ncol; i++)
        if (!(c->name[i] = arena_strdup(&c->arena, s->name[i]))) return -E601;
    for (i32 i = 0; i < s->ncat; i++)
        if (!(c->cat_name[i] = arena_strdup(&c->arena, s->cat_name[i]))) return -E601;
    return 0;
}

static err copy_words(struct schema *c, const struct series *s) {
    ARENA_NEW(&c->arena, c->word, s->ncat + 1);
    ARENA_NEW(&c->arena, c->nword, s->ncat + 1);
    for (i32 i = 0; i < s->ncat; i++) {
        c->nword[i] = s->nword[i];
        ARENA_NEW(&c->arena, c->word[i], s->nword[i] + 1);
        for (i32 k = 0; k < s->nword[i]; k++)
            if (!(c->word[i][k] = arena_strdup(&c->arena, s->word[i][k]))) return -E601;
    }
    return 0;
}

static err fill(const struct series *s, struct schema *c) {
    TRY(copy_names(c, s));
    TRY(copy_words(c, s));
    ARENA_NEW(&c->arena, c->mean, s->ncol + 1);
    ARENA_NEW(&c->arena, c->dev, s->ncol + 1);
    memcpy(c->mean, s->mean, sizeof(f64) * (size_t)s->ncol);
    memcpy(c->dev, s->dev, sizeof(f64) * (size_t)s->ncol);
    return 0;
}

err schema_of(const struct series *s, struct schema *out) {
    *out = (struct schema){.ncol = s->ncol, .ntarget = s->ntarget, .npast = s->npast, .nknown = s->nknown, .ncat = s->ncat,
                           .freq = s->freq};
    err e = fill(s, out);
    if (e < 0) schema_free(out);
    return e;
}

void schema_free(struct schema *c) {
    arena_free(&c->arena);
    *c = (struct schema){0};
}

void schema_limit_words(struct series *s, i64 train) {
    for (i32 c = 0; c < s->ncat; c++) {
        i32 known = 0; /* words are numbered as they appear */
        for (i64 i = 0; i < train; i++) known = imax(known, s->code[c][i] + 1);
        for (i64 i = train; i < s->nrow; i++)
            if (s->code[c][i] >= known) s->code[c][i] = -1;
        s->nword[c] = imin(s->nword[c], known);
    }
}

static err same_columns(const struct schema *c, const struct series *s) {
    if (s->ncol != c->ncol || s->ntarget != c->ntarget || s->ncat != c->ncat)
        return FAIL_AT(E903, NULL, "the same columns as in training (stretto info MODEL lists them)",
                       "the data give %d targets of %d columns and %d categories, the model was trained on %d of %d and %d",
                       s->ntarget, s->ncol, s->ncat, c->ntarget, c->ncol, c->ncat);
    for (i32 i = 0; i < c->ncol; i++)
        if (strcmp(c->name[i], s->name[i]) != 0)
            return FAIL_AT(E903, NULL, "the same columns as in training (stretto info MODEL lists them)",
                           "column \"%s\" stands where the model was trained on \"%s\"", s->name[i], c->name[i]);
    if (s->freq.step != c->freq.step || s->freq.months != c->freq.months)
        return FAIL_AT(E903, NULL, "data of the same frequency", "the data are %s, the model was trained on %s data",
                       s->freq.name, c->freq.name);
    return 0;
}

/* Codes of new data follow the vocabulary of training; words never seen become "missing". */
static void translate(const struct schema *c, struct series *s, i32 cat) {
    for (i64 i = 0; i < s->nrow; i++) {
        i32 code = s->code[cat][i], found = -1;
        for (i32 k = 0; code >= 0 && k < c->nword[cat] && found < 0; k++)
            if (strcmp(c->word[cat][k], s->word[cat][code]) == 0) found = k;
        s->code[cat][i] = found;
    }
    s->nword[cat] = c->nword[cat];
}

err schema_apply(const struct schema *c, struct series *s) {
    TRY(same_columns(c, s));
    for (i32 k = 0; k < c->ncol; k++) {
        f32 *v = s->v + (i64)k * s->nrow;
        for (i64 i = 0; i < s->nrow; i++) v[i] = (f32)(((f64)v[i] * s->dev[k] + s->mean[k] - c->mean[k]) / c->dev[k]);
        s->mean[k] = c->mean[k];
        s->dev[k] = c->dev[k];
    }
    for (i32 k = 0; k < c->ncat; k++) translate(c, s, k);
    return 0;
}
