/* schema.c - the columns, scales and words that a model remembers of its data, and the check that new data fit. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/series_build.h"
#include "data/vocab.h"
#include "learn/forecast/forecast.h"

static err copy_names(struct schema *c, const struct series *s) {
    ARENA_NEW(&c->arena, c->name, s->ncol + 1);
    ARENA_NEW(&c->arena, c->cat_name, s->ncat + 1);
    for (i32 i = 0; i < s->ncol; i++)
        if (!(c->name[i] = arena_strdup(&c->arena, s->name[i]))) return -E601;
    if (s->panel) ARENA_NEW(&c->arena, c->column, 1 + s->npast + s->nknown);
    for (i32 i = 0; s->panel && i < 1 + s->npast + s->nknown; i++) TRY(arena_keep(&c->arena, &c->column[i], s->column[i]));
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
    *out = (struct schema){.ncol = s->ncol,
                           .ntarget = s->ntarget,
                           .npast = s->npast,
                           .nknown = s->nknown,
                           .ncat = s->ncat,
                           .nstatic = s->nstatic,
                           .panel = s->panel,
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
    if (!s->panel && s->line && s->line[u->first] > 0)
        snprintf(line, sizeof line, ", first in line %lld", (long long)s->line[u->first]);
    event_note(to, EVENT_WARNING,
               "column \"%s\": %lld row%s hold%s a word that training has not seen (\"%.60s\"%s): taken for missing",
               s->cat_name[cat], (long long)u->rows, u->rows == 1 ? "" : "s", u->rows == 1 ? "s" : "", u->word, line);
}

/* Numbers the words of training rows anew, in order of time: the order of a panel's table may depend on later rows. place[w] =
 * the new number of word w, -1 = it comes later only. */
static i32 words_by_time(const struct series *s, i32 cat, i64 train, i32 *place) {
    i32 n = 0;
    for (i32 w = 0; w < s->nword[cat]; w++) place[w] = -1;
    for (i64 i = 0; i < lmin(train, s->nrow); i++)
        for (i32 t = 0; t < (s->panel ? s->ntarget : 1); t++) {
            const i32 code = series_code(s, cat, t, i);
            if (code >= 0 && place[code] < 0) place[code] = n++;
        }
    return n;
}

static err limit_words(struct series *s, i32 cat, i64 train, const struct events *to) {
    const i64 cells = s->nrow * (s->panel ? s->ntarget : 1);
    struct unseen u = {0};
    i32 *place, *code = s->code[cat];
    const char **word;
    NEW(place, s->nword[cat] + 1);
    const i32 n = words_by_time(s, cat, train, place);
    if (!(word = arena_array(&s->names, n + 1, sizeof *word))) {
        mem_free(place);
        return -E601;
    }
    for (i32 w = 0; w < s->nword[cat]; w++)
        if (place[w] >= 0) word[place[w]] = s->word[cat][w];
    for (i64 i = 0; i < cells; i++) {
        if (code[i] < 0) continue;
        if (place[code[i]] < 0 && u.rows++ == 0) u.first = i % s->nrow, u.word = s->word[cat][code[i]];
        if (!s->code_borrowed) code[i] = place[code[i]];
    }
    mem_free(place);
    s->word[cat] = word;
    s->nword[cat] = n;
    tell_unseen(s, cat, &u, to);
    return 0;
}

err schema_limit_words(struct series *s, i64 train, const struct events *to) {
    for (i32 c = 0; c < s->ncat; c++) TRY(limit_words(s, c, train, to));
    return 0;
}

static err same_panel(const struct schema *c, const struct series *s) {
    static const char fix[] = "the columns of the training (stretto info MODEL lists them)";
    if (!s->panel || s->npast != c->npast || s->nknown != c->nknown || s->nstatic != c->nstatic || s->ncat != c->ncat)
        return FAIL_AT(E903, NULL, fix,
                       "the model is of a panel with %d past and %d known covariates and %d categories, the data "
                       "%s %d, %d and %d",
                       c->npast, c->nknown, c->ncat, s->panel ? "have" : "are one series with", s->npast, s->nknown, s->ncat);
    for (i32 i = 0; i < 1 + c->npast + c->nknown; i++)
        if (strcmp(c->column[i], s->column[i]) != 0)
            return FAIL_AT(E903, NULL, fix, "column \"%s\" stands where the model was trained on \"%s\"", s->column[i],
                           c->column[i]);
    return 0;
}

static err same_step(const struct schema *c, const struct series *s) {
    if (s->freq.step == c->freq.step && s->freq.months == c->freq.months) return 0;
    if (c->panel && s->nrow == 1) return 0; /* a single row has no step */
    const char *data = s->freq.name, *model = c->freq.name;
    return FAIL_AT(E903, NULL, "data of the same frequency", "the data are %s, the model was trained on data that are %s",
                   *data ? data : "without times", *model ? model : "without times");
}

static err same_columns(const struct schema *c, const struct series *s) {
    if (c->panel) {
        TRY(same_panel(c, s));
        return same_step(c, s);
    }
    if (s->ncol != c->ncol || s->ntarget != c->ntarget || s->ncat != c->ncat)
        return FAIL_AT(E903, NULL, "the same columns as in training (stretto info MODEL lists them)",
                       "the data give %d targets of %d columns and %d categories, the model was trained on %d of %d and %d",
                       s->ntarget, s->ncol, s->ncat, c->ntarget, c->ncol, c->ncat);
    for (i32 i = 0; i < c->ncol; i++)
        if (strcmp(c->name[i], s->name[i]) != 0)
            return FAIL_AT(E903, NULL, "the same columns as in training (stretto info MODEL lists them)",
                           "column \"%s\" stands where the model was trained on \"%s\"", s->name[i], c->name[i]);
    return same_step(c, s);
}

/* The model's column of column k of a panel, whose scale it has: static columns share one; -1 = none. */
static i32 scale_of(const struct schema *c, const struct series *s, i32 k) {
    const i32 block = k / s->ntarget, own = s->of_model[k % s->ntarget];
    if (block >= 1 + s->npast + s->nknown - s->nstatic) return block * c->ntarget;
    return own < 0 ? -1 : block * c->ntarget + own;
}

/* True if this schema has scaled a panel: the series that it knows have their numbers and scales. */
static bool has_scaled(const struct schema *c, const struct series *s) {
    for (i32 k = 0; k < s->ntarget; k++) {
        const i32 own = s->of_model[k];
        if (own >= c->ntarget || (own >= 0 && strcmp(c->name[own], s->name[k]) != 0)) return false;
    }
    for (i32 k = 0; k < s->ncol; k++) {
        const i32 at = scale_of(c, s, k);
        if (at >= 0 && (c->mean[at] != s->mean[k] || c->dev[at] != s->dev[k])) return false;
    }
    return true;
}

err schema_fits(const struct schema *c, const struct series *s) {
    TRY(same_columns(c, s));
    const size_t bytes = sizeof(f64) * (size_t)c->ncol;
    const bool same = s->of_model
                          ? has_scaled(c, s)
                          : c->ncol == s->ncol && memcmp(c->mean, s->mean, bytes) == 0 && memcmp(c->dev, s->dev, bytes) == 0;
    if (same) return 0;
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
    for (i64 i = 0; e >= 0 && i < s->nrow * (s->panel ? s->ntarget : 1); i++) {
        const i32 code = s->code[cat][i];
        if (code < 0) continue;
        const bool known = place[code] < c->nword[cat];
        if (!known && u.rows++ == 0) u.first = i % s->nrow, u.word = s->word[cat][code];
        s->code[cat][i] = known ? place[code] : -1;
    }
    s->nword[cat] = c->nword[cat];
    if (e >= 0) tell_unseen(s, cat, &u, to);
    vocab_free(&v);
    mem_free(place);
    return e;
}

/* Column k in units of a mean and a deviation. */
static void column_apply(struct series *s, i32 k, f64 mean, f64 dev) {
    f32 *v = s->v + (i64)k * s->nrow;
    for (i64 i = 0; i < s->nrow; i++) v[i] = (f32)(((f64)v[i] * s->dev[k] + s->mean[k] - mean) / dev);
    s->mean[k] = mean;
    s->dev[k] = dev;
}

/* Numbers of the series of a panel in the model. */
static err find_series(const struct schema *c, struct series *s, i32 *strange) {
    struct vocab v = {0};
    i32 unused;
    err e = 0;
    *strange = 0;
    ARENA_NEW(&s->names, s->of_model, s->ntarget);
    for (i32 k = 0; k < c->ntarget && e >= 0; k++) e = vocab_code(&v, c->name[k], (i64)strlen(c->name[k]), &unused);
    for (i32 k = 0; k < s->ntarget && e >= 0; k++) {
        s->of_model[k] = vocab_find(&v, s->name[k], (i64)strlen(s->name[k]));
        *strange += s->of_model[k] < 0;
    }
    vocab_free(&v);
    return e;
}

/* A series that training has not seen is scaled by its own rows; covariates that are constant in each series have one scale. */
static err panel_apply(const struct schema *c, struct series *s, const struct events *to) {
    const i32 blocks = s->ncol / s->ntarget;
    i32 strange, first = 0;
    TRY(find_series(c, s, &strange));
    for (i32 b = 0; b < blocks; b++) {
        const struct scale_common all = series_common(c->mean + b * c->ntarget, c->dev + b * c->ntarget, c->ntarget);
        for (i32 k = 0; k < s->ntarget; k++) {
            const i32 col = b * s->ntarget + k, at = scale_of(c, s, col);
            if (at >= 0)
                column_apply(s, col, c->mean[at], c->dev[at]);
            else
                series_scale_like(s, col, s->nrow, &all);
        }
    }
    while (strange > 0 && s->of_model[first] >= 0) first++;
    if (strange > 0)
        event_note(to, EVENT_WARNING, "%d of %d series are new to the model (\"%s\"%s): scaled by their own rows", strange,
                   s->ntarget, s->name[first], strange > 1 ? ", .." : "");
    return 0;
}

err schema_apply(const struct schema *c, struct series *s, const struct events *to) {
    TRY(same_columns(c, s));
    if (c->freq.zoned && s->freq.zoned) { /* convert to the model's time zone, so that calendar features agree */
        for (i64 i = 0; i < s->nrow; i++) s->time[i] += c->freq.zone - s->freq.zone;
        s->freq.zone = c->freq.zone;
    }
    if (c->panel) TRY(panel_apply(c, s, to));
    for (i32 k = 0; k < c->ncol && !c->panel; k++) column_apply(s, k, c->mean[k], c->dev[k]);
    for (i32 k = 0; k < c->ncat; k++) TRY(translate(c, s, k, to));
    return 0;
}
