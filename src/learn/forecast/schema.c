/* schema.c - the columns, scales and words that a model remembers of its data, and the check that new data fit. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/vocab.h"
#include "learn/forecast/forecast.h"

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

/* Rows with a word that training has not seen; they count as missing. */
struct unseen {
    i64 rows, first; /* the first of them */
    const char *word;
};

static void tell_unseen(const struct series *s, i32 cat, const struct unseen *u, const struct events *to) {
    char line[48] = "";
    if (u->rows == 0) return;
    if (s->line && s->line[u->first] > 0) snprintf(line, sizeof line, ", first in line %lld", (long long)s->line[u->first]);
    event_note(to, EVENT_WARNING,
               "column \"%s\": %lld row%s hold%s a word that training has not seen (\"%.60s\"%s): taken for missing",
               s->cat_name[cat], (long long)u->rows, u->rows == 1 ? "" : "s", u->rows == 1 ? "s" : "", u->word, line);
}

void schema_limit_words(struct series *s, i64 train, const struct events *to) {
    for (i32 c = 0; c < s->ncat; c++) {
        struct unseen u = {0};
        i32 known = 0; /* words are numbered in order of appearance */
        for (i64 i = 0; i < train; i++) known = imax(known, s->code[c][i] + 1);
        for (i64 i = train; i < s->nrow; i++) {
            if (s->code[c][i] < known) continue;
            if (u.rows++ == 0) u.first = i, u.word = s->word[c][s->code[c][i]];
            s->code[c][i] = -1;
        }
        s->nword[c] = imin(s->nword[c], known);
        tell_unseen(s, c, &u, to);
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

err schema_fits(const struct schema *c, const struct series *s) {
    TRY(same_columns(c, s));
    const size_t bytes = sizeof(f64) * (size_t)c->ncol;
    if (memcmp(c->mean, s->mean, bytes) == 0 && memcmp(c->dev, s->dev, bytes) == 0) return 0;
    return FAIL_AT(E903, NULL, "the data opened, or wrapped, once more", "the data were scaled for another model");
}

/* place[k] = code of word k of the data in v, which starts with the training vocabulary; c->nword[cat] or more = unknown. */
static err places(const struct schema *c, const struct series *s, i32 cat, struct vocab *v, i32 *place) {
    i32 unused;
    for (i32 k = 0; k < c->nword[cat]; k++) TRY(vocab_code(v, c->word[cat][k], (i64)strlen(c->word[cat][k]), &unused));
    for (i32 k = 0; k < s->nword[cat]; k++) TRY(vocab_code(v, s->word[cat][k], (i64)strlen(s->word[cat][k]), &place[k]));
    return 0;
}

/* Replaces codes of new data by those of the training vocabulary; unknown words become "missing". */
static err translate(const struct schema *c, struct series *s, i32 cat, const struct events *to) {
    struct vocab v = {0};
    struct unseen u = {0};
    i32 *place;
    NEW(place, s->nword[cat] + 1);
    const err e = places(c, s, cat, &v, place);
    for (i64 i = 0; e >= 0 && i < s->nrow; i++) {
        const i32 code = s->code[cat][i];
        if (code < 0) continue;
        const bool known = place[code] < c->nword[cat];
        if (!known && u.rows++ == 0) u.first = i, u.word = s->word[cat][code];
        s->code[cat][i] = known ? place[code] : -1;
    }
    s->nword[cat] = c->nword[cat];
    if (e >= 0) tell_unseen(s, cat, &u, to);
    vocab_free(&v);
    mem_free(place);
    return e;
}

err schema_apply(const struct schema *c, struct series *s, const struct events *to) {
    TRY(same_columns(c, s));
    if (c->freq.zoned && s->freq.zoned) { /* convert to the model's time zone, so that calendar features agree */
        for (i64 i = 0; i < s->nrow; i++) s->time[i] += c->freq.zone - s->freq.zone;
        s->freq.zone = c->freq.zone;
    }
    for (i32 k = 0; k < c->ncol; k++) {
        f32 *v = s->v + (i64)k * s->nrow;
        for (i64 i = 0; i < s->nrow; i++) v[i] = (f32)(((f64)v[i] * s->dev[k] + s->mean[k] - c->mean[k]) / c->dev[k]);
        s->mean[k] = c->mean[k];
        s->dev[k] = c->dev[k];
    }
    for (i32 k = 0; k < c->ncat; k++) TRY(translate(c, s, k, to));
    return 0;
}
