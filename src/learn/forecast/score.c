/* score.c - scores the model and the naive forecasts. Forecasts are streamed, and naive forecasts are computed for the same
 * windows in chunks, so only sums and a few windows for plots stay in memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/forecast/forecast.h"

enum { CHUNK = 256, WINDOWS_KEPT = 1 << 20 };

struct scorer {
    const struct forecaster *f;
    const struct series *s;
    struct forecast_scores *out;
    struct base *rule[SCORE_ROWS]; /* naive, snaive, ridge */
    const struct kern *kern;
    i64 *origin;                   /* [CHUNK] rows that the naive forecasts must follow */
    i32 *col;
    f32 *y, *pred;                 /* [CHUNK][horizon] */
    i32 n;
    i64 seen, total;
    struct workload work;
};

static err add_rule(struct scorer *c, i32 row, const char *name, struct base *rule) {
    c->rule[row] = rule;
    snprintf(c->out->name[row], sizeof c->out->name[row], "%s", name);
    return metrics_new(c->s, c->s->ntarget, c->f->spec.horizon, NULL, 0, &c->out->row[row]);
}

static err make_rules(struct scorer *c) {
    struct base *b = NULL;
    TRY(base_naive(0, &b));
    TRY(add_rule(c, SCORE_NAIVE, "naive", b));
    i32 season = c->s->freq.season;
    if (season > 1) {
        char name[32];
        snprintf(name, sizeof name, "snaive (%d)", season);
        TRY(base_naive(season, &b));
        TRY(add_rule(c, SCORE_SNAIVE, name, b));
    }
    /* the base is the ridge: reuse its forecasts */
    if (base_is_ridge(c->f->base)) return add_rule(c, SCORE_RIDGE, "ridge", NULL);
    return c->f->ridge ? add_rule(c, SCORE_RIDGE, "ridge", c->f->ridge) : 0;
}

/* A forecast of row r of the table, beside its targets y. */
static void add(struct scorer *c, i32 r, i32 col, i64 origin, const f32 *y, const f32 *forecast, const f32 *band) {
    metrics_add(c->out->row[r], col, y, forecast, band);
    calendar_add(&c->out->calendar, c->s, r, col, origin, c->f->spec.horizon, y, forecast);
}

static err flush(struct scorer *c) {
    i32 h = c->f->spec.horizon;
    for (i32 r = SCORE_NAIVE; r < SCORE_ROWS; r++) {
        if (!c->rule[r] || !c->out->row[r]) continue;
        TRY(base_predict_rows(c->rule[r], c->s, c->n, c->col, c->origin, h, c->pred, h, c->kern));
        for (i32 i = 0; i < c->n; i++) add(c, r, c->col[i], c->origin[i], c->y + (i64)i * h, c->pred + (i64)i * h, NULL);
    }
    c->n = 0;
    return 0;
}

err forecast_sample(const struct forecaster *f, const struct series *s, const struct forecast_row *row, struct arena *a,
                    struct forecast_sample *out) {
    const i32 h = f->spec.horizon, nq = f->spec.nband;
    const f64 mean = s->mean[row->col], dev = s->dev[row->col];
    *out = (struct forecast_sample){.origin = row->origin, .col = row->col};
    ARENA_NEW(a, out->mean, h);
    ARENA_NEW(a, out->base, h);
    if (row->band) ARENA_NEW(a, out->band, (i64)h * nq);
    for (i32 k = 0; k < h; k++) {
        out->mean[k] = (f64)row->mean[k] * dev + mean;
        out->base[k] = (f64)row->base[k] * dev + mean;
    }
    const bool whole = forecast_counts(&f->spec); /* less the rounding of the scale */
    for (i64 i = 0; row->band && i < (i64)h * nq; i++) {
        const f64 v = (f64)row->band[i] * dev + mean;
        out->band[i] = whole ? head_whole(v) : v;
    }
    return 0;
}

/* Mean absolute error of a window; NaN without a target. */
static f32 error_of(i32 h, const f32 *y, const f32 *forecast) {
    f64 sum = 0, n = 0;
    for (i32 k = 0; k < h; k++)
        if (!isnan(y[k])) sum += fabs((f64)y[k] - (f64)forecast[k]), n++;
    return (f32)(sum / n);
}

static err on_row(void *self, const struct forecast_row *row) {
    struct scorer *c = self;
    i32 h = c->f->spec.horizon;
    f32 *y = c->y + (i64)c->n * h;
    const bool begun = !c->s->panel || c->s->from[row->col] < row->origin; /* nothing can be known of a series before */
    for (i32 k = 0; k < h; k++)
        y[k] = begun && row->origin + k < c->s->nrow ? series_target(c->s, row->col, row->origin + k) : (f32)NAN;
    add(c, SCORE_MODEL, row->col, row->origin, y, row->mean, row->band);
    if (c->out->row[SCORE_BASE]) add(c, SCORE_BASE, row->col, row->origin, y, row->base, NULL);
    if (c->out->row[SCORE_RIDGE] && !c->rule[SCORE_RIDGE]) add(c, SCORE_RIDGE, row->col, row->origin, y, row->base, NULL);
    if (c->out->window) c->out->window[c->seen] = error_of(h, y, row->mean);
    i64 every = lmax(1, c->total / (SCORE_SAMPLES - 1));
    bool last = c->seen == c->total - 1;
    if (c->out->nsample < SCORE_SAMPLES && (c->seen % every == 0 || last)) {
        TRY(forecast_sample(c->f, c->s, row, &c->out->arena, &c->out->sample[c->out->nsample]));
        c->out->nsample++;
    }
    c->seen++;
    c->origin[c->n] = row->origin;
    c->col[c->n] = row->col;
    c->n++;
    TRY(workload_advance(&c->work, 1));
    return c->n == CHUNK ? flush(c) : 0;
}

/* The denominator of MASE; for a series that training has not seen, from its rows. */
static f64 mase_of(const struct scorer *c, i32 k) {
    const i32 own = forecast_column(c->s, k);
    return own >= 0 ? c->f->mase[own] : mase_scale(c->s, k, imax(1, c->s->freq.season), c->s->nrow);
}

static err score_all(struct scorer *c, const struct window_set *set, const struct resources *use) {
    const struct forecast_spec *spec = &c->f->spec;
    struct arena *a = &c->out->arena;
    i64 h = spec->horizon;
    ARENA_NEW(a, c->origin, CHUNK);
    ARENA_NEW(a, c->col, CHUNK);
    ARENA_NEW(a, c->y, CHUNK * h);
    ARENA_NEW(a, c->pred, CHUNK * h);
    TRY(calendar_new(c->s, set->first, set->end + h, SCORE_ROWS, a, &c->out->calendar));
    if (c->s->ntarget == 1 && c->total <= WINDOWS_KEPT) ARENA_NEW(a, c->out->window, c->total);
    TRY(metrics_new(c->s, c->s->ntarget, spec->horizon, spec->quantiles.v, spec->nband, &c->out->row[SCORE_MODEL]));
    snprintf(c->out->name[SCORE_MODEL], 32, "model");
    if (c->f->base && c->f->nmember > 0) {
        TRY(metrics_new(c->s, c->s->ntarget, spec->horizon, NULL, 0, &c->out->row[SCORE_BASE]));
        snprintf(c->out->name[SCORE_BASE], 32, "base");
    }
    TRY(make_rules(c));
    for (i32 r = 0; r < SCORE_ROWS; r++)
        for (i32 k = 0; c->out->row[r] && k < c->s->ntarget; k++) metrics_set_scale(c->out->row[r], k, mase_of(c, k));
    TRY(forecast_windows(c->f, c->s, set, use, on_row, c));
    return flush(c);
}

err forecast_score(const struct forecaster *f, const struct series *s, const struct window_set *set, const struct resources *use,
                   struct forecast_scores *out) {
    *out = (struct forecast_scores){
        .windows = window_origins(set) * s->ntarget, .horizon = f->spec.horizon, .nband = f->spec.nband, .set = *set};
    out->set.at = NULL;
    struct scorer c = {.f = f, .s = s, .out = out, .kern = use->kern, .total = out->windows};
    c.work = workload_start("scoring", use->events, use->stop);
    c.work.all = (f64)out->windows;
    err e = score_all(&c, set, use);
    workload_end(&c.work);
    for (i32 r = 0; r < SCORE_RIDGE; r++) base_free(c.rule[r]); /* the forecaster owns the ridge */
    if (e < 0) forecast_scores_free(out);
    return e;
}

void forecast_scores_free(struct forecast_scores *s) {
    for (i32 r = 0; r < SCORE_ROWS; r++) metrics_free(s->row[r]);
    arena_free(&s->arena);
    *s = (struct forecast_scores){0};
}

bool forecast_squares(const struct forecast_spec *spec) {
    return spec->family ? spec->family->mean : strcmp(spec->loss, "mse") == 0;
}

f64 forecast_error(const struct forecaster *f, const struct metrics *m, i32 step, bool original) {
    struct score score;
    metrics_score(m, step, -1, original, &score);
    return !forecast_squares(&f->spec) ? score.mae : original ? score.rmse : score.mse;
}

i32 forecast_best_naive(const struct forecaster *f, const struct forecast_scores *s, i32 step, bool original) {
    i32 best = -1;
    f64 least = (f64)INFINITY;
    for (i32 r = SCORE_NAIVE; r < SCORE_ROWS; r++) {
        f64 e = s->row[r] ? forecast_error(f, s->row[r], step, original) : (f64)NAN;
        if (e < least) {
            least = e;
            best = r;
        }
    }
    return best;
}
