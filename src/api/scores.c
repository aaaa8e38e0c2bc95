/* scores.c - score tables for people and programs, from the sums of forecast_score. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"

static const enum role role_of[SCORE_ROWS] = {ROLE_MODEL, ROLE_BASE, ROLE_NAIVE, ROLE_SNAIVE, ROLE_RIDGE};

/* Metrics shown: in original units MAE RMSE MASE ND (wQL), of one step at a distance RSE CORR too; in deviations MSE MAE. */
static i32 metric_names(bool original, bool bands, bool distance, const char *name[METRICS_MAX]) {
    i32 n = 0;
    name[n++] = original ? "MAE" : "MSE";
    name[n++] = original ? "RMSE" : "MAE";
    if (!original) return n;
    name[n++] = "MASE";
    name[n++] = "ND";
    if (bands) name[n++] = "wQL";
    if (distance) name[n++] = "RSE";
    if (distance) name[n++] = "CORR";
    return n;
}

static void values(const struct metrics *m, bool original, bool bands, i32 step, f64 *v) {
    struct score s;
    metrics_score(m, step, -1, original, &s);
    i32 n = 0;
    v[n++] = original ? s.mae : s.mse;
    v[n++] = original ? s.rmse : s.mae;
    if (!original) return;
    v[n++] = s.mase;
    v[n++] = s.nd;
    if (bands) v[n++] = s.wql; /* of bands; a row that has none has none */
    if (step < 0) return;
    v[n++] = s.rse;
    v[n++] = s.corr;
}

/* The step that scores are about: -1 = all. */
static i32 step_of(const struct options *o, const struct forecast_scores *s) {
    return strcmp(o->score_steps, "last") == 0 ? s->horizon - 1 : -1;
}

static bool raw(const struct options *o) { return strcmp(o->score_scale, "z") != 0; }

i32 score_best(const struct forecaster *f, const struct forecast_scores *s, const struct options *o) {
    return forecast_best_naive(f, s, step_of(o, s), raw(o));
}

f64 score_skill(const struct forecaster *f, const struct forecast_scores *s, const struct options *o) {
    i32 best = score_best(f, s, o), step = step_of(o, s);
    if (best < 0) return (f64)NAN;
    return 1 - forecast_error(f, s->row[SCORE_MODEL], step, raw(o)) / forecast_error(f, s->row[best], step, raw(o));
}

struct score_band score_band(const struct forecaster *f, const struct forecast_scores *s) {
    const struct forecast_spec *spec = &f->spec;
    struct score in;
    metrics_score(s->row[SCORE_MODEL], -1, -1, true, &in);
    if (in.nband == 0 || !isfinite(in.pinball)) return (struct score_band){0};
    return (struct score_band){spec->band[0], spec->band[spec->nband - 1], in.coverage[0]};
}

const char *score_band_said(const struct score_band *band, char said[BAND_SAID]) {
    said[0] = 0;
    if (band->from > 0)
        snprintf(said, BAND_SAID, "bands: %.0f%% of the scored cells lie between the quantiles %g and %g (%.0f%% should)",
                 100 * band->coverage, band->from, band->to, 100 * (band->to - band->from));
    return said;
}

/* Column of the metric that skill is measured in: MSE is RMSE's column in original units. */
static i32 skill_column(const struct forecaster *f, bool original) {
    bool mse = strcmp(f->spec.loss, "mse") == 0;
    return original ? (mse ? 1 : 0) : (mse ? 0 : 1);
}

static err fill(const struct forecaster *f, const struct forecast_scores *s, const struct options *o, const char *title,
                struct score_view *v) {
    bool original = raw(o);
    i32 step = step_of(o, s);
    struct score_row *rows;
    ARENA_NEW(&v->arena, v->table, 1);
    ARENA_NEW(&v->arena, rows, SCORE_ROWS);
    struct score_table *t = v->table;
    t->title = arena_strdup(&v->arena, title);
    t->nmetric = metric_names(original, s->nband > 0, step >= 0, t->metric);
    t->row = rows;
    t->skill_metric = skill_column(f, original);
    t->best_naive = -1;
    t->windows = s->windows;
    t->band = score_band(f, s);
    i32 best = score_best(f, s, o);
    for (i32 r = 0; r < SCORE_ROWS; r++) {
        if (!s->row[r]) continue;
        struct score_row *row = &rows[t->nrow];
        *row = (struct score_row){.name = s->name[r], .role = role_of[r], .skill = (f64)NAN};
        values(s->row[r], original, s->nband > 0, step, row->value);
        if (best >= 0 && r < SCORE_NAIVE)
            row->skill = 1 - forecast_error(f, s->row[r], step, original) / forecast_error(f, s->row[best], step, original);
        if (r == best) t->best_naive = t->nrow;
        t->nrow++;
    }
    return t->title ? 0 : -E601;
}

err score_view(const struct forecaster *f, const struct forecast_scores *s, const struct options *o, const char *title,
               struct score_view *out) {
    *out = (struct score_view){0};
    err e = fill(f, s, o, title, out);
    if (e < 0) score_view_free(out);
    return e;
}

void score_view_free(struct score_view *v) { arena_free(&v->arena); }
