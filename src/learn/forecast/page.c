/* page.c - the forecaster's part of the report: error by step, forecasts, parts, time slices, parameter store. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/time.h"
#include "learn/slices/slices.h"
#include "learn/store/account.h"
#include "learn/forecast/ops.h"
#include "learn/forecast/page.h"
#include "learn/forecast/shares.h"
#include "learn/series_set.h"

#define SHARE 0.02 /* of the time of training, for measurements of the report */
#define LEAST 0.3  /* seconds for them, at least */

/* --- error by step, forecasts --- */
static err fill_steps(struct page *p) {
    static const enum role role[SCORE_ROWS] = {ROLE_MODEL, ROLE_BASE, ROLE_NAIVE, ROLE_SNAIVE, ROLE_RIDGE};
    const struct forecast_scores *sc = p->scores;
    struct report_line *line;
    if (!sc) return 0;
    ARENA_NEW(p->a, line, SCORE_ROWS);
    p->r->line = line;
    p->r->horizon = sc->horizon;
    p->r->step_metric = !forecast_squares(&p->f->spec) ? "MAE" : page_original(p) ? "RMSE" : "MSE";
    for (i32 r = 0; r < SCORE_ROWS; r++) {
        f64 *v;
        if (!sc->row[r]) continue;
        ARENA_NEW(p->a, v, sc->horizon);
        for (i32 k = 0; k < sc->horizon; k++) v[k] = forecast_error(p->f, sc->row[r], k, page_original(p));
        line[p->r->nline++] = (struct report_line){.name = sc->name[r], .role = role[r], .value = v};
    }
    return 0;
}

/* --- forecasts --- */

/* The first and the last of the windows that scoring kept. */
static err fill_forecasts(struct page *p) {
    struct report_forecast *out;
    const struct forecast_scores *sc = p->scores;
    if (!sc || sc->nsample == 0) return 0;
    const i32 n = imin(2, sc->nsample);
    ARENA_NEW(p->a, out, n);
    TRY(page_forecast(p->f, p->s, &sc->sample[sc->nsample - 1], true, p->a, &out[0]));
    if (n > 1) TRY(page_forecast(p->f, p->s, &sc->sample[0], true, p->a, &out[1]));
    p->r->forecast = out;
    p->r->nforecast = n;
    return 0;
}

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
    for (i32 k = 0; k < c->nfold; k++) t->metric[k] = arena_printf(p->a, "fold %d", k + 1);
    for (i32 r = 0; r < c->nrow; r++) {
        const char *kind = base_kind_name(c->row[r]);
        row[r] = (struct score_row){.name = c->season[r] > 1 ? arena_printf(p->a, "%s (%d)", kind, c->season[r]) : kind,
                                    .role = r == c->chosen ? ROLE_BASE : ROLE_QUIET,
                                    .skill = (f64)NAN};
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
    *t = (struct score_table){.title = arena_printf(p->a, "families of the base mix over %d rolling origins (deviations)",
                                                    m->norigin),
                              .row = row,
                              .nrow = m->nrow,
                              .best_naive = -1,
                              .nmetric = 2,
                              .metric = {"MAE", "weight"}};
    for (i32 r = 0; r < m->nrow; r++) {
        bool season = m->row[r].part.season > 1;
        row[r] = (struct score_row){.role = m->row[r].part.weight > 0 ? ROLE_BASE : ROLE_QUIET, .skill = (f64)NAN,
                                    .value = {m->row[r].mae, m->row[r].part.weight}};
        row[r].name = season ? arena_printf(p->a, "%s (%d)", base_kind_name(m->row[r].part.kind), m->row[r].part.season)
                             : base_kind_name(m->row[r].part.kind);
    }
    p->r->parts.fold = t;
    return 0;
}

/* What boosted trees did on validation rows; "" where they were not tried. */
static const char *trees_note(const struct page *p) {
    const struct trees_choice *c = &p->f->trees;
    if (!c->tried) return "";
    if (c->weight <= 0)
        return arena_printf(p->a, "; boosted trees: validation loss %.4g, without them %.4g: not taken", c->trees, c->rival);
    return arena_printf(p->a, "; boosted trees: validation loss %.4g, without them %.4g, both mixed %.4g (weight %.1f, t = %.2f)",
                        c->trees, c->rival, c->both, c->weight, c->t);
}

/* What the outputs of the network are beside the base. */
static const char *output_of(const struct page *p) {
    char list[SHARES_TEXT];
    if (p->f->shares.n == 0) return "zero-initialised output";
    return arena_printf(p->a, "its own forecast, averaged with the base by shares %s", shares_text(&p->f->shares, list));
}

static err fill_parts(struct page *p) {
    const struct forecast_spec *spec = &p->f->spec;
    struct report_parts *parts = &p->r->parts;
    struct str base = {0};
    if (!p->f->base) return 0;
    TRY(base_label(p->f->base, &base));
    parts->base = arena_printf(p->a, "%s", str_text(&base));
    str_free(&base);
    if (p->f->has_choice) TRY(fill_choice(p));
    if (p->f->has_mix) TRY(fill_mix(p));
    parts->correction =
        p->f->nmember == 0
            ? "none"
            : arena_printf(p->a, "%s %dx%d%s%s%s, %s, %d seed%s", p->o->cell, spec->layers, spec->hidden,
                    spec->projection ? arena_printf(p->a, " projected to %d", spec->projection) : "",
                    spec->bidirectional ? " both ways" : "", spec->decoder->report, output_of(p),
                    p->f->nmember, p->f->nmember > 1 ? "s" : "");
    /* a model from a file knows the weight alone */
    parts->guarded = p->f->has_guard || (p->f->nmember > 0 && p->f->weight < 1);
    parts->t = p->f->guard.t;
    parts->a = p->f->nmember > 0 ? p->f->weight : 0;
    parts->blocks = p->f->guard.nblock;
    parts->base_error = parts->full_error = (f64)NAN;
    const struct forecast_scores *sc = p->scores;
    if (sc && sc->row[SCORE_BASE]) {
        parts->metric = p->r->step_metric;
        parts->base_error = forecast_error(p->f, sc->row[SCORE_BASE], -1, page_original(p));
        parts->full_error = forecast_error(p->f, sc->row[SCORE_MODEL], -1, page_original(p));
    }
    if (p->f->has_choice)
        parts->note = arena_printf(p->a,
                                   "ridge against the best naive one: %+.1f %% mean gain, t = %.2f over %d folds "
                                   "(taken when t > 2)%s",
                                   100 * (exp(p->f->choice.gain) - 1), p->f->choice.t, p->f->choice.nfold, trees_note(p));
    return 0;
}

/* Charts of the rounds of time slices. */
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

static err fill_store(struct page *p) {
    const struct store_record *s = p->f->store;
    struct report_store *out;
    struct report_fact *decision;
    if (!s || s->pushes == 0) return 0;
    ARENA_NEW(p->a, out, 1);
    ARENA_NEW(p->a, decision, STORE_DECISIONS);
    *out = (struct report_store){.policy = s->name,
                                 .shared = s->shared,
                                 .servers = s->servers,
                                 .workers = s->workers,
                                 .pushes = s->pushes,
                                 .refused = s->refused,
                                 .messages = s->messages,
                                 .sent = s->sent,
                                 .whole = s->whole,
                                 .waited = s->waited / dmax(1e-9, s->waited + s->worked),
                                 .nstale = STALE_BINS,
                                 .stale = s->stale,
                                 .ndecision = s->ndecision,
                                 .decision = decision};
    for (i32 k = 0; k < s->ndecision; k++) {
        const struct store_decision *d = &s->decision[k];
        const char *member = p->f->nmember > 1 ? arena_printf(p->a, " of member %d", d->member + 1) : "";
        decision[k] = (struct report_fact){arena_printf(p->a, "step %lld%s", (long long)d->step, member), d->what};
    }
    p->r->store = out;
    return 0;
}

err forecast_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a,
                    struct report *r) {
    const struct forecaster *f = forecaster_in(m);
    struct resources use = job->use;
    use.events = NULL; /* the run is over: its notes are written */
    struct page p = {.f = f, .s = series_of(job->data), .o = job->o, .scores = forecast_detail(s), .a = a, .r = r, .use = &use,
                     .split = job->split.test > 0 ? &job->split : NULL,
                     .seconds = job->measure > 0 ? job->measure : dmax(LEAST, SHARE * m->seconds)};
    r->parameters = f->nmember > 0 ? f->net.ntheta : 0;
    r->ncurve = f->nmember;
    r->loss = f->spec.loss;
    TRY(fill_steps(&p));
    TRY(fill_forecasts(&p));
    TRY(fill_parts(&p));
    TRY(fill_slices(&p));
    TRY(fill_store(&p));
    return page_test(&p);
}

/* The last of the scored windows, or the forecast after the last row. */
static err plot(struct page *p, const struct scores *scores, const struct resources *use, const char *path) {
    const struct forecast_scores *sc = forecast_detail(scores);
    struct report_forecast f;
    struct forecast_sample *w;
    if (scores && (!sc || sc->nsample == 0)) return FAIL_AT(E106, "--plot", "--test ROWS", "there is no test part to draw");
    if (!scores) TRY(forecast_ahead(p->f, p->s, use, p->a, &w));
    TRY(page_forecast(p->f, p->s, scores ? &sc->sample[sc->nsample - 1] : w, scores != NULL, p->a, &f));
    return report_plot(&f, path);
}

err forecast_plot(const struct model *m, const struct dataset *d, const struct resources *use, const struct scores *s,
                  const char *path) {
    struct arena a = {0};
    struct page p = {.f = forecaster_in(m), .s = series_of(d), .a = &a};
    const err e = plot(&p, s, use, path);
    arena_free(&a);
    return e;
}
