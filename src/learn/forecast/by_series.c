/* by_series.c - the scores of each series, or of each group of series that --by names.
 *
 *     metrics [series] --line_of--> sums of a series --groups--> sums of the series with the same words in the columns of --by
 *
 * A column of --by is one of --id, of --static, or a category that stays the same in each series. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/vocab.h"
#include "learn/forecast/forecast.h"

enum { BY_MOST = 8, TEXT = 256, GROUP_BYTES = BY_MOST * TEXT };
static const char missing[] = "(missing)";

/* A column of --by: a part of the id, a number that is static, or a category. */
struct key {
    enum { KEY_ID, KEY_STATIC, KEY_CATEGORY } kind;
    i32 at;    /* part of the id; covariate known ahead; category */
    i32 parts; /* of the id */
};

struct keys {
    struct key key[BY_MOST];
    i32 n;
    char by[GROUP_BYTES]; /* "region/kind" */
};

/* ------------------------------------------------------------------ columns of --by ----------------------------------------- */

/* Place of a name in a comma list, -1 = not there; *count: items of the list. */
static i32 place_in(const char *list, const char *name, i32 *count) {
    char item[TEXT];
    i32 at = -1;
    *count = 0;
    for (const char *p = list ? list : ""; str_list_next(&p, item, sizeof item); (*count)++)
        if (at < 0 && strcmp(item, name) == 0) at = *count;
    return at;
}

static bool find_key(const struct series *s, const char *name, struct key *out) {
    i32 parts;
    const i32 part = place_in(s->id_columns, name, &parts), fixed = s->nknown - s->nstatic;
    if (part >= 0) {
        *out = (struct key){.kind = KEY_ID, .at = part, .parts = parts};
        return true;
    }
    for (i32 k = fixed; k < s->nknown; k++)
        if (strcmp(s->column[1 + s->npast + k], name) == 0) {
            *out = (struct key){.kind = KEY_STATIC, .at = k};
            return true;
        }
    for (i32 k = 0; k < s->ncat; k++)
        if (strcmp(s->cat_name[k], name) == 0) {
            *out = (struct key){.kind = KEY_CATEGORY, .at = k};
            return true;
        }
    return false;
}

/* A remedy: columns that always describe a series. */
static const char *by_id(const struct series *s, char out[TEXT]) {
    snprintf(out, TEXT, "--by %.200s", s->id_columns);
    return out;
}

/* E214 where a category changes within a series. */
static err check_constant(const struct series *s, i32 cat, const char *name) {
    char fix[TEXT];
    for (i32 c = 0; c < s->ntarget; c++) {
        i32 first = -1;
        for (i64 i = s->from[c]; i < s->to[c]; i++) {
            const i32 code = series_code(s, cat, c, i);
            if (first >= 0 && code >= 0 && code != first)
                return FAIL_AT(E214, "--by", by_id(s, fix),
                               "column \"%s\" changes within series \"%s\": it makes no groups of series", name, s->name[c]);
            if (code >= 0) first = code;
        }
    }
    return 0;
}

static err add_key(const struct series *s, const char *name, struct keys *out) {
    char fix[TEXT];
    if (!s->panel) return FAIL_AT(E106, "--by", "no --by", "these data are no panel: --id names no series");
    if (out->n == BY_MOST) return FAIL_AT(E106, "--by", "fewer columns", "--by has more than %d columns", BY_MOST);
    struct key *k = &out->key[out->n++];
    if (!find_key(s, name, k))
        return FAIL_AT(E102, "--by", by_id(s, fix), "\"%s\" is no column of --id or --static, nor a category (%s)", name,
                       s->roles ? s->roles : "");
    return k->kind == KEY_CATEGORY ? check_constant(s, k->at, name) : 0;
}

static err find_keys(const struct series *s, const char *by, struct keys *out) {
    char name[TEXT];
    size_t fill = 0;
    *out = (struct keys){0};
    for (const char *p = by; str_list_next(&p, name, sizeof name);) {
        TRY(add_key(s, name, out));
        fill += (size_t)snprintf(out->by + fill, sizeof out->by - fill, "%s%s", fill ? "/" : "", name);
    }
    return 0;
}

err forecast_check_by(const struct options *o, const struct series *s) {
    struct keys keys;
    return o->by && *o->by ? find_keys(s, o->by, &keys) : 0;
}

/* ------------------------------------------------------------------ names of groups ----------------------------------------- */

/* Part of a series name: a single slash separates parts, two are a slash in a part. */
static void id_part(const char *name, i32 part, i32 parts, char out[TEXT]) {
    i32 fill = 0;
    for (const char *p = name; *p; p++) {
        const bool twice = p[0] == '/' && p[1] == '/';
        if (parts > 1 && *p == '/' && !twice) {
            if (part-- == 0) break;
            continue;
        }
        if (parts > 1 && twice) p++;
        if (part == 0 && fill < TEXT - 1) out[fill++] = *p;
    }
    out[fill] = 0;
}

static void key_text(const struct series *s, const struct key *k, i32 c, char out[TEXT]) {
    if (k->kind == KEY_ID) {
        id_part(s->name[c], k->at, k->parts, out);
    } else if (k->kind == KEY_STATIC) {
        const f64 v = series_raw(s, series_ahead_of(s, k->at, c), s->from[c]);
        if (isnan(v))
            snprintf(out, TEXT, "%s", missing);
        else
            str_print(out, TEXT, "%.6g", v);
    } else {
        const i32 code = series_code(s, k->at, c, s->from[c]);
        snprintf(out, TEXT, "%s", code < 0 ? missing : s->word[k->at][code]);
    }
}

static void group_name(const struct series *s, const struct keys *keys, i32 c, char out[GROUP_BYTES]) {
    char text[TEXT];
    size_t fill = 0;
    for (i32 k = 0; k < keys->n; k++) {
        key_text(s, &keys->key[k], c, text);
        fill += (size_t)snprintf(out + fill, GROUP_BYTES - fill, "%s%s", k ? "/" : "", text);
    }
}

/* ------------------------------------------------------------------ sums ---------------------------------------------------- */

/* Sums of a column; step -1 = of all steps. */
static void line_of(const struct forecast_scores *s, i32 c, i32 step, bool original, struct score_line *out) {
    struct score v;
    i32 naive = 0;
    metrics_score(s->row[SCORE_MODEL], step, c, original, &v);
    const f64 n = (f64)v.n;
    *out = (struct score_line){.n = v.n};
    if (v.n == 0) return;
    out->ae = v.mae * n;
    out->ee = v.mse * n;
    if (v.nd > 0 || v.mae > 0) out->ay = isnan(v.nd) ? 0 : out->ae / v.nd;
    out->pin = s->nband > 0 ? v.pinball * n : 0;
    out->inside = v.nband > 0 && isfinite(v.pinball) ? v.coverage[0] * n : (f64)NAN; /* no band was measured */
    if (!isnan(v.mase)) out->mase = v.mase * n, out->nmase = n;
    for (i32 r = SCORE_NAIVE; r < SCORE_ROWS; r++) {
        if (!s->row[r]) continue;
        metrics_score(s->row[r], step, c, original, &v);
        out->naive[naive++] = v.mae * n;
    }
}

static err all_lines(const struct forecast_scores *s, const struct series *x, i32 step, bool original, struct arena *a,
                     struct score_lines *l) {
    l->by = "series";
    l->n = x->ntarget;
    l->band = s->nband > 0;
    for (i32 r = SCORE_NAIVE; r < SCORE_ROWS; r++)
        if (s->row[r]) l->naive[l->nnaive++] = s->name[r];
    ARENA_NEW(a, l->line, l->n);
    for (i32 c = 0; c < l->n; c++) {
        line_of(s, c, step, original, &l->line[c]);
        TRY(arena_keep(a, &l->line[c].name, x->name[c]));
    }
    return 0;
}

/* The group of each series: code [ntarget]. */
static err group_series(const struct series *s, const struct keys *keys, struct vocab *names, i32 *code) {
    char name[GROUP_BYTES];
    for (i32 c = 0; c < s->ntarget; c++) {
        group_name(s, keys, c, name);
        TRY(vocab_code(names, name, (i64)strlen(name), &code[c]));
    }
    return 0;
}

static err make_groups(const struct series *s, const struct keys *keys, struct arena *a, struct score_lines *l) {
    struct vocab names = {0};
    struct score_line *group;
    i32 *code;
    ARENA_NEW(a, code, s->ntarget);
    ARENA_NEW(a, group, s->ntarget);
    err e = group_series(s, keys, &names, code);
    for (i32 g = 0; g < names.n && e >= 0; g++) e = arena_keep(a, &group[g].name, vocab_word(&names, g));
    for (i32 c = 0; c < s->ntarget && e >= 0; c++)
        lines_add(&(struct score_lines){.n = 1, .line = &group[code[c]]}, &(struct score_lines){.n = 1, .line = &l->line[c]});
    l->line = group;
    l->n = names.n;
    l->groups = true;
    vocab_free(&names);
    TRY(e);
    return arena_keep(a, &l->by, keys->by);
}

err forecast_lines(const struct forecast_scores *s, const struct series *x, const char *by, i32 step, bool original,
                   struct arena *a, struct score_lines **out) {
    struct keys keys = {0};
    struct score_lines *l;
    if (by && *by) TRY(find_keys(x, by, &keys));
    ARENA_NEW(a, l, 1);
    TRY(all_lines(s, x, step, original, a, l));
    if (keys.n > 0) TRY(make_groups(x, &keys, a, l));
    *out = l;
    return 0;
}
