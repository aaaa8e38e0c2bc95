/* page.c - the forecaster's part of the report: error by step, forecasts, parts, slices of time. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "data/time.h"
#include "learn/slices/slices.h"
#include "learn/forecast/head/head.h"
#include "learn/forecast/ops.h"
#include "learn/series_set.h"
#include "report/report.h"

enum { HISTORY_HORIZONS = 3 };

struct page {
    const struct forecaster *f;
    const struct series *s;
    const struct options *o;
    const struct forecast_scores *scores; /* NULL = it was not scored */
    struct arena *a;
    struct report *r;
};

static const char *textf(struct page *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
static const char *textf(struct page *p, const char *fmt, ...) {
    char buf[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    const char *copy = arena_strdup(p->a, buf);
    return copy ? copy : "";
}

static bool original(const struct page *p) { return strcmp(p->o->score_scale, "z") != 0; }

/* --- error by step, forecasts --- */
static err fill_steps(struct page *p) {
    static const enum role role[SCORE_ROWS] = {ROLE_MODEL, ROLE_BASE, ROLE_NAIVE, ROLE_SNAIVE, ROLE_RIDGE};
    const struct forecast_scores *sc = p->scores;
    struct report_line *line;
    if (!sc) return 0;
    ARENA_NEW(p->a, line, SCORE_ROWS);
    p->r->line = line;
    p->r->horizon = sc->horizon;
    p->r->step_metric = strcmp(p->f->spec.loss, "mse") != 0 ? "MAE" : original(p) ? "RMSE" : "MSE";
    for (i32 r = 0; r < SCORE_ROWS; r++) {
        f64 *v;
        if (!sc->row[r]) continue;
        ARENA_NEW(p->a, v, sc->horizon);
        for (i32 k = 0; k < sc->horizon; k++) v[k] = forecast_error(p->f, sc->row[r], k, original(p));
        line[p->r->nline++] = (struct report_line){.name = sc->name[r], .role = role[r], .value = v};
    }
    return 0;
}

/* --- forecasts --- */
static err fill_forecast(struct page *p, const struct score_sample *w, struct report_forecast *out) {
    const struct forecast_spec *spec = &p->f->spec;
    i32 h = spec->horizon, past = (i32)lmin(w->origin, lmin(spec->context, lmax(HISTORY_HORIZONS * h, 24)));
    f64 *v, *time = NULL;
    char label[32];
    ARENA_NEW(p->a, v, past + 5 * h);
    if (p->s->time) ARENA_NEW(p->a, time, past + h);
    row_label(p->s, w->origin, label);
    *out = (struct report_forecast){
        .title = textf(p, "%s from %s", p->s->name[w->col], label), .nhistory = past, .horizon = h, .time = time};
    out->history = v;
    out->actual = v + past;
    out->model = v + past + h;
    out->base = p->f->base && p->f->nmember > 0 ? v + past + 2 * h : NULL;
    for (i32 i = 0; i < past + h; i++) {
        i64 row = w->origin - past + i;
        bool shown = row < p->s->nrow && !series_filled(p->s, w->col, row);
        v[i] = shown ? series_raw(p->s, w->col, row) : (f64)NAN;
        if (time) time[i] = (f64)series_time(p->s, row);
    }
    for (i32 k = 0; k < h; k++) {
        v[past + h + k] = w->mean[k];
        v[past + 2 * h + k] = w->base[k];
        if (!w->band) continue;
        v[past + 3 * h + k] = w->band[(i64)k * spec->nband];
        v[past + 4 * h + k] = w->band[(i64)k * spec->nband + spec->nband - 1];
    }
    if (w->band && spec->nband > 1) {
        out->low = v + past + 3 * h;
        out->high = v + past + 4 * h;
        out->low_q = spec->band[0];
        out->high_q = spec->band[spec->nband - 1];
    }
    return 0;
}

static err fill_forecasts(struct page *p) {
    struct report_forecast *out;
    const struct forecast_scores *sc = p->scores;
    if (!sc || sc->nsample == 0) return 0;
    ARENA_NEW(p->a, out, sc->nsample);
    for (i32 i = 0; i < sc->nsample; i++) TRY(fill_forecast(p, &sc->sample[i], &out[i]));
    p->r->forecast = out;
    p->r->nforecast = sc->nsample;
    return 0;
}

/* --- parts --- */
/* --- parts --- */
static err fill_choice(struct page *p) {
    const struct choice *c = &p->f->choice;
    struct score_table *t;
    struct score_row *row;
    ARENA_NEW(p->a, t, 1);
    ARENA_NEW(p->a, row, CHOICE_ROWS);
    *t = (struct score_table){.title = "candidates for the base, MSE on forward-chaining folds (deviations)",
                              .row = row,
                              .nrow = c->nrow,
                              .skill_metric = 0,
                              .best_naive = c->naive,
                              .nmetric = c->nfold};
    for (i32 k = 0; k < c->nfold; k++) t->metric[k] = textf(p, "fold %d", k + 1);
    for (i32 r = 0; r < c->nrow; r++) {
        row[r] = (struct score_row){
            .name = base_kind_name(c->row[r]), .role = r == c->chosen ? ROLE_BASE : ROLE_QUIET, .skill = (f64)NAN};
        for (i32 k = 0; k < c->nfold; k++) row[r].value[k] = c->loss[r][k];
    }
    p->r->parts.fold = t;
    return 0;
}

static err fill_mix(struct page *p) {
    const struct mix *m = &p->f->mix;
    struct score_table *t;
    struct score_row *row;
    ARENA_NEW(p->a, t, 1);
    ARENA_NEW(p->a, row, m->nrow);
    *t = (struct score_table){.title = textf(p, "families of the base mix over %d rolling origins (deviations)", m->norigin),
                              .row = row,
                              .nrow = m->nrow,
                              .best_naive = -1,
                              .nmetric = 2,
                              .metric = {"MAE", "weight"}};
    for (i32 r = 0; r < m->nrow; r++) {
        bool season = m->row[r].part.season > 1;
        row[r] = (struct score_row){.role = m->row[r].part.weight > 0 ? ROLE_BASE : ROLE_QUIET, .skill = (f64)NAN,
                                    .value = {m->row[r].mae, m->row[r].part.weight}};
        row[r].name = season ? textf(p, "%s (%d)", base_kind_name(m->row[r].part.kind), m->row[r].part.season)
                             : base_kind_name(m->row[r].part.kind);
    }
    p->r->parts.fold = t;
    return 0;
}

static err fill_parts(struct page *p) {
    const struct forecast_spec *spec = &p->f->spec;
    struct report_parts *parts = &p->r->parts;
    struct str base = {0};
    if (!p->f->base) return 0;
    TRY(base_label(p->f->base, &base));
    parts->base = textf(p, "%s", str_text(&base));
    str_free(&base);
    if (p->f->has_choice) TRY(fill_choice(p));
    if (p->f->has_mix) TRY(fill_mix(p));
    parts->correction =
        p->f->nmember == 0
            ? "none"
            : textf(p, "%s %dx%d%s%s%s, zero-initialised output, %d seed%s", p->o->cell, spec->layers, spec->hidden,
                    spec->projection ? textf(p, " projected to %d", spec->projection) : "",
                    spec->bidirectional ? " both ways" : "", head_of(spec)->report,
                    p->f->nmember, p->f->nmember > 1 ? "s" : "");
    parts->guarded = p->f->has_guard;
    parts->t = p->f->guard.t;
    parts->a = p->f->nmember > 0 ? p->f->weight : 0;
    parts->blocks = p->f->guard.nblock;
    parts->base_error = parts->full_error = (f64)NAN;
    const struct forecast_scores *sc = p->scores;
    if (sc && sc->row[SCORE_BASE]) {
        parts->metric = p->r->step_metric;
        parts->base_error = forecast_error(p->f, sc->row[SCORE_BASE], -1, original(p));
        parts->full_error = forecast_error(p->f, sc->row[SCORE_MODEL], -1, original(p));
    }
    if (p->f->has_choice)
        parts->note = textf(p, "ridge against the best naive one: %+.1f %% mean gain, t = %.2f over %d folds (taken when t > 2)",
                            100 * (exp(p->f->choice.gain) - 1), p->f->choice.t, p->f->choice.nfold);
    return 0;
}

/* How the rounds of slices of time went. */
static err fill_slices(struct page *p) {
    const struct forecaster *f = p->f;
    struct report_slices *out;
    if (!f->slices || !f->slices->picture[0].nslice) return 0;
    ARENA_NEW(p->a, out, WATCH_LAYERS);
    for (i32 k = 0; k < f->slices->watch.nlayer; k++) {
        const struct slice_picture *s = &f->slices->picture[k];
        const struct chain_count *all = f->slices->watch.layer[k].all;
        i64 first = all[0].first + all[1].first, again = all[0].again + all[1].again;
        out[k] = (struct report_slices){.layer = s->name,
                                        .nslice = s->nslice,
                                        .steps = s->steps,
                                        .forgets = f->slices->watch.layer[k].w,
                                        .useful = (f64)first / (f64)lmax(1, first + again),
                                        .serial = lmax(all[0].serial, all[1].serial),
                                        .trained = all[0].steps};
        for (i32 way = 0; way < 2; way++) {
            out[k].rounds[way] = (f64)all[way].rounds / (f64)lmax(1, all[way].steps);
            out[k].again[way] = (f64)all[way].again / (f64)lmax(1, all[way].first);
            out[k].gap[way] = (f64)s->gap[way];
            out[k].nround[way] = s->rounds[way];
            out[k].ran[way] = s->ran[way];
        }
    }
    p->r->slices = out;
    p->r->nslices = f->slices->watch.nlayer;
    p->r->slice_gap = f->slices->gap;
    return 0;
}

err forecast_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a,
                    struct report *r) {
    const struct forecaster *f = forecaster_in(m);
    struct page p = {.f = f, .s = series_of(job->data), .o = job->o, .scores = forecast_detail(s), .a = a, .r = r};
    r->parameters = f->nmember > 0 ? f->net.ntheta : 0;
    r->ncurve = f->nmember;
    r->loss = f->spec.loss;
    TRY(fill_steps(&p));
    TRY(fill_forecasts(&p));
    TRY(fill_parts(&p));
    return fill_slices(&p);
}

err forecast_plot_scored(const struct model *m, const struct dataset *d, const struct scores *s, const char *path) {
    struct arena a = {0};
    struct report r = {0};
    struct page p = {.f = forecaster_in(m), .s = series_of(d), .scores = forecast_detail(s), .a = &a, .r = &r};
    err e = fill_forecasts(&p);
    if (e >= 0 && r.nforecast == 0) e = FAIL_AT(E106, "--plot", "--test ROWS", "there is no test part to draw");
    if (e >= 0) e = report_plot(&r.forecast[r.nforecast - 1], path);
    arena_free(&a);
    return e;
}
