/* results.c - turns the sums of forecast_score into a table of scores for the user and for JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/time.h"
#include "learn/forecast/ops.h"
#include "learn/series_set.h"

/* ------------------------------------------------------------------ the table ----------------------------------------------- */

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
    if (bands) v[n++] = s.wql; /* only rows with bands have one */
    if (step < 0) return;
    v[n++] = s.rse;
    v[n++] = s.corr;
}

/* The forecast step that the scores describe: -1 = all. */
static i32 step_of(const struct options *o, const struct forecast_scores *s) {
    return strcmp(o->score_steps, "last") == 0 ? s->horizon - 1 : -1;
}

static bool raw(const struct options *o) { return strcmp(o->score_scale, "z") != 0; }

static i32 score_best(const struct forecaster *f, const struct forecast_scores *s, const struct options *o) {
    return forecast_best_naive(f, s, step_of(o, s), raw(o));
}

/* Coverage of forecast steps [from, to). */
static f64 coverage_of(const struct metrics *m, i32 from, i32 to) {
    f64 inside = 0, n = 0;
    for (i32 k = from; k < to; k++) {
        struct score in;
        metrics_score(m, k, -1, true, &in);
        if (in.n == 0) continue;
        inside += in.coverage[0] * (f64)in.n;
        n += (f64)in.n;
    }
    return n > 0 ? inside / n : (f64)NAN;
}

static err band_of(const struct forecaster *f, const struct forecast_scores *s, struct arena *arena, struct score_band *out) {
    const struct forecast_spec *spec = &f->spec;
    struct score in;
    metrics_score(s->row[SCORE_MODEL], -1, -1, true, &in);
    if (in.nband == 0 || !isfinite(in.pinball)) return 0;
    struct score_band b = {.from = spec->quantiles.v[0], .to = spec->quantiles.v[spec->nband - 1], .coverage = in.coverage[0]};
    b.npart = s->horizon > 1 ? imin(BAND_PARTS, s->horizon) : 0;
    for (i32 k = 0; k < b.npart; k++) {
        b.last[k] = (k + 1) * s->horizon / b.npart;
        b.part[k] = coverage_of(s->row[SCORE_MODEL], k ? b.last[k - 1] : 0, b.last[k]);
    }
    f64 *step;
    ARENA_NEW(arena, step, s->horizon);
    for (i32 k = 0; k < s->horizon; k++) step[k] = coverage_of(s->row[SCORE_MODEL], k, k + 1);
    b.nstep = s->horizon;
    b.step = step;
    *out = b;
    return 0;
}

static void say(const struct score_band *band, char *said, size_t size) {
    i32 n = 0;
    said[0] = 0;
    if (band->from > 0)
        n = snprintf(said, size, "bands: %.0f%% of the scored cells lie between the quantiles %g and %g (%.0f%% should)",
                     100 * band->coverage, band->from, band->to, 100 * (band->to - band->from));
    for (i32 k = 0; k < band->npart && n > 0 && n < (i32)size; k++) {
        const i32 first = k ? band->last[k - 1] + 1 : 1;
        n += snprintf(said + n, size - (size_t)n, k ? ", " : "; steps ");
        if (n < (i32)size && first < band->last[k]) n += snprintf(said + n, size - (size_t)n, "%d-", first);
        if (n < (i32)size) n += snprintf(said + n, size - (size_t)n, "%d %.0f%%", band->last[k], 100 * band->part[k]);
    }
}

/* Column of the metric that skill is measured in: MSE is RMSE's column in original units. */
static i32 skill_column(const struct forecaster *f, bool original) {
    bool mse = forecast_squares(&f->spec);
    return original ? (mse ? 1 : 0) : (mse ? 0 : 1);
}

static err fill(const struct forecaster *f, const struct series *x, const struct forecast_scores *s, const struct options *o,
                const char *title, struct scores *v) {
    bool original = raw(o);
    i32 step = step_of(o, s);
    struct score_row *rows;
    struct score_table *t;
    ARENA_NEW(&v->arena, t, 1);
    ARENA_NEW(&v->arena, rows, SCORE_ROWS);
    v->table = t;
    t->title = arena_strdup(&v->arena, title);
    t->nmetric = metric_names(original, s->nband > 0, step >= 0, t->metric);
    t->row = rows;
    t->skill_metric = skill_column(f, original);
    t->best_naive = -1;
    t->windows = s->windows;
    TRY(band_of(f, s, &v->arena, &t->band));
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
    if (!t->title) return -E601;
    if (x->ntarget < 2 && !(o->scores && *o->scores)) return 0;
    struct score_lines *lines;
    TRY(forecast_lines(s, x, o->by, step, original, &v->arena, &lines));
    t->lines = lines;
    return 0;
}

/* ------------------------------------------------------------------ what is scored ------------------------------------------ */

/* Describes scored rows that include rows seen in training. */
static const char *seen_title(const struct series *s, i64 unseen) {
    if (!s->time) return "rows that training may have seen (no test!)";
    return unseen < series_end(s) ? "rows in part of the training period (no test!)" : "rows of the training period (no test!)";
}

/* --since: the windows that start at that row or later; their context may lie before it. */
static err windows_since(const char *since, const struct forecaster *f, const struct series *s, const struct events *to,
                         struct window_set *set, const char **what) {
    const i64 all = set->first, unseen = forecast_first_unseen(f, s);
    char label[32];
    i64 row;
    TRY(series_since(s, since, &row));
    set->first = lmax(all, row);
    if (window_origins(set) <= 0)
        return FAIL_AT(E301, NULL, "an earlier --since, or more rows",
                       "--since %s: %lld rows from there on, a horizon of %d does not fit", since,
                       (long long)(series_end(s) - row), f->spec.horizon);
    row_label(s, all, label);
    if (row < all)
        event_note(to, EVENT_NOTE, "--since %s: the context of %d rows does not fit before it; scores begin at %s", since,
                   f->spec.context, label);
    *what = set->first < unseen ? seen_title(s, unseen) : "eval";
    return 0;
}

/* The windows to score: from --since on, or else those after the rows seen in training, or all if there are none. */
static err unseen_windows(const struct forecaster *f, const struct series *s, i64 stride, const char *since,
                          const struct events *to, struct window_set *set, const char **what) {
    const struct forecast_spec *spec = &f->spec;
    *set = (struct window_set){.first = spec->context, .end = series_end(s) - spec->horizon + 1, .stride = stride};
    if (window_origins(set) <= 0)
        return FAIL_AT(E301, NULL, "the older rows, which the first forecast looks back on, before the new ones",
                       "context %d + horizon %d = %d rows are needed, the data have %lld",
                       spec->context, spec->horizon, spec->context + spec->horizon, (long long)series_end(s));
    if (since && *since) return windows_since(since, f, s, to, set, what);
    const i64 first = forecast_first_unseen(f, s);
    struct window_set unseen = *set;
    unseen.first = lmax(set->first, first);
    *what = window_origins(&unseen) > 0 ? "eval" : seen_title(s, first);
    if (window_origins(&unseen) > 0) *set = unseen;
    return 0;
}

static struct window_set windows_of(const struct forecaster *f, const struct scoring *q, i64 stride) {
    return (struct window_set){.first = lmax(q->from, f->spec.context),
                               .end = lmin(q->to, q->rows - f->spec.horizon + 1),
                               .stride = stride};
}

static void free_detail(void *detail) {
    forecast_scores_free(detail);
    mem_free(detail);
}

/* The numbers printed below the table. */
static void summarise(const struct forecaster *f, const struct forecast_scores *s, const struct options *show,
                      struct scores *out) {
    const i32 best = score_best(f, s, show);
    const bool original = raw(show);
    out->records = s->windows;
    out->cells = s->windows * s->horizon;
    out->skill = out->table->row[0].skill; /* row 0 is the model */
    out->error = out->baseline = (f64)NAN;
    say(&out->table->band, out->said, sizeof out->said);
    if (best < 0) return;
    out->best = s->name[best];
    out->error = forecast_error(f, s->row[SCORE_MODEL], -1, original);
    out->baseline = forecast_error(f, s->row[best], -1, original);
}

static err score_set(const struct forecaster *f, const struct series *s, const struct window_set *set, const char *title,
                     const struct options *show, const struct resources *use, struct scores *out) {
    struct forecast_scores *detail;
    NEW(detail, 1);
    err e = forecast_score(f, s, set, use, detail);
    if (e < 0) {
        mem_free(detail);
        return e;
    }
    out->detail = detail;
    out->free_detail = free_detail;
    TRY(fill(f, s, detail, show, title, out));
    summarise(f, detail, show, out);
    return 0;
}

err forecast_results(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
                     struct scores *out) {
    const struct forecaster *f = forecaster_in(m);
    const struct series *s = series_of(d);
    const i64 stride = opt_is_auto(q->show, OPT_stride) ? f->spec.stride : q->show->stride;
    struct window_set set;
    char span[72], title[160];
    const char *what = q->what;
    *out = (struct scores){.skill = (f64)NAN};
    TRY(forecast_check_by(q->show, s));
    if (!what) {
        TRY(unseen_windows(f, s, stride, q->since, use->events, &set, &what));
        span_label(s, set.first, series_end(s), span);
    } else {
        set = windows_of(f, q, stride);
        span_label(s, q->from, q->to, span);
        if (window_origins(&set) <= 0) {
            event_note(use->events, EVENT_WARNING, "no test window: the model is not scored (--test N with at least %d rows)",
                       f->spec.horizon);
            return 0;
        }
    }
    snprintf(title, sizeof title, "%s %s", what, span);
    err e = score_set(f, s, &set, title, q->show, use, out);
    if (e < 0) scores_free(out);
    return e;
}
