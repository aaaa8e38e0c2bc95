/* tune_trial.c - one fit of a trial, by the learner itself, and its errors on the parts of its group. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/tune.h"
#include "base/clock.h"
#include "learn/forecast/forecast.h"
#include "learn/series_set.h"

struct trial_run {
    struct tune *t;
    struct options o;
    struct learn_job job;
    struct model *m;
};

static err set_number(struct options *o, enum opt_id id, i64 v) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)v);
    return opt_set_id(o, id, text, &OPT_API);
}

static err resolve(struct trial_run *r) {
    return r->t->learner->resolve ? r->t->learner->resolve(&r->job) : 0;
}

/* The options as `train -c` will read them, then what belongs to the search alone. */
static err set_options(struct trial_run *r, const struct point *at) {
    const struct tune *t = r->t;
    static const struct opt_from season = {.rank = OPT_RANK_PRESET, .origin = "as in the defaults"};
    TRY(opt_copy(&r->o, &t->o));
    TRY(point_set(&t->search.space, at, "tune", &r->o));
    TRY(opt_set_id(&r->o, OPT_time_limit, "0", &OPT_API));
    if (opt_is_auto(&r->o, OPT_season)) TRY(opt_set_id(&r->o, OPT_season, t->usual.meta[OPT_season].text, &season));
    return learner_check(&r->o);
}

/* A first look: the same schedule in fewer steps, and no second training on all rows. */
static err shorten(struct trial_run *r, f64 share) {
    const struct options *o = &r->o;
    if (share >= 1 || !(o->steps > 0)) return 0;
    const i64 most = o->max_steps;
    TRY(opt_set_id(&r->o, OPT_refit_all, "no", &OPT_API));
    TRY(set_number(&r->o, OPT_steps, lmax(1, (i64)((f64)o->steps * share))));
    TRY(set_number(&r->o, OPT_max_steps, most > 0 ? lmax(1, (i64)((f64)most * share)) : 0));
    return resolve(r);
}

/* E301 where the fit would have no window: without a base it would fail later and less clearly. */
static err check_length(const struct trial_run *r) {
    if (r->t->learner->data != &data_series) return 0;
    return forecast_check_length(&r->job.split, r->job.spec, 1);
}

static err prepare(struct trial_run *r, struct tune_worker *w, const struct point *at, i32 fit) {
    struct tune *t = r->t;
    const struct ladder_fit *f = &t->search.ladder.fit[fit];
    TRY(set_options(r, at));
    r->job.o = &r->o;
    r->job.data = t->data;
    r->job.split = t->split;
    r->job.use = w->ctx.use;
    r->job.use.events = &w->events;
    r->job.use.stop = &w->stop;
    if (t->learner->spec_bytes && !(r->job.spec = mem_alloc(t->learner->spec_bytes))) return -E601;
    TRY(resolve(r));
    TRY(shorten(r, f->share));
    r->job.split = tune_split(t, f->group);
    return check_length(r);
}

/* ------------------------------------------------------------------ scores -------------------------------------------------- */

/* The error of the model in the metric of the search: that of the defaults' skill, whatever loss a trial trains with. */
static f64 error_of(const struct tune *t, const struct scores *s) {
    if (!s->table) return (f64)NAN;
    for (i32 k = 0; k < s->table->nmetric && t->metric[0]; k++)
        if (strcmp(s->table->metric[k], t->metric) == 0) return s->table->row[0].value[k];
    return s->error;
}

static err score_parts(struct trial_run *r, i32 group, f64 error[LADDER_PARTS]) {
    struct tune *t = r->t;
    const i32 n = t->search.ladder.nparts;
    for (i32 p = 0; p < n; p++) {
        const i64 from = t->from[group * n + p], to = t->to[group * n + p];
        const struct scoring q = {.show = &r->o, .what = "validation", .from = from, .to = to, .rows = to};
        struct scores s = {0};
        TRY(t->learner->ops->score(r->m, t->data, &q, &r->job.use, &s));
        error[p] = error_of(t, &s);
        scores_free(&s);
    }
    return 0;
}

static err run(struct trial_run *r, struct tune_worker *w, const struct point *at, i32 fit, struct record_line *out) {
    TRY(prepare(r, w, at, fit));
    const err e = learner_fit(r->t->learner, &r->job, &r->m);
    if (e != 0) return e;
    return score_parts(r, r->t->search.ladder.fit[fit].group, out->error);
}

err tune_fit(struct tune *t, struct tune_worker *w, const struct point *at, i32 fit, struct record_line *out) {
    struct trial_run r = {.t = t};
    const f64 start = clock_now();
    out->at = *at;
    out->fit = fit;
    err e = run(&r, w, at, fit, out);
    model_free(r.m);
    mem_free(r.job.spec);
    opt_free(&r.o);
    out->seconds = clock_now() - start;
    if (e > 0 || e == -E806 || (e < 0 && w->stop)) return STOP_SIGNAL;
    out->failed = e < 0;
    if (e < 0) snprintf(out->why, sizeof out->why, "E%03d: %.140s", err_last()->code, err_last()->text);
    out->why[strcspn(out->why, "\n")] = 0;
    return 0;
}
