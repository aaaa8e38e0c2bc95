/* base.c - chooses and fits the base of a fit, and the ridge that scores are compared with. */
#include <string.h>

#include "learn/forecast/fit.h"

i64 forecast_origins(const struct fit *t, const struct window_set *set) {
    const struct forecast_spec *s = &t->f->spec;
    i64 n = window_origins(set);
    return n > 0 && s->decoder->every_step ? n + s->context - 1 : n; /* with decoder.every_step the steps of a tile are
                                                                      * origins, too */
}

/* Hours, weekdays and months in a ridge: with the calendar of the network; else validation chooses, if rows are hours or days. */
static enum inputs dates_of(const struct fit *t) {
    if (t->f->spec.calendar == CALENDAR_YES) return INPUTS_ALWAYS;
    return opt_given(t->job->o, OPT_calendar) || t->series->freq.step <= 0 ? INPUTS_NEVER : INPUTS_TRIED;
}

struct base_spec forecast_base_spec(const struct fit *t, struct workload *work) {
    const struct forecast_spec *s = &t->f->spec;
    const struct series *x = t->series;
    return (struct base_spec){.L = forecast_lags(s),
                              .H = s->horizon,
                              .ncol = x->ntarget,
                              .season = x->freq.season,
                              .season2 = x->freq.season2,
                              .constant = INPUTS_TRIED,
                              .calendar = dates_of(t),
                              .ahead = INPUTS_TRIED,
                              .train = t->job->split.train,
                              .valid = t->job->split.validation,
                              .absolute = !forecast_squares(s),
                              .pool = t->job->use.pool,
                              .work = work};
}

static err choose(struct fit *t, struct workload *work) {
    const char *name = t->f->spec.base;
    const struct series *x = t->series;
    struct base_spec spec = forecast_base_spec(t, work);
    if (strcmp(name, "none") == 0) return 0;
    if (strcmp(name, "last") == 0) return base_naive(0, &t->f->base);
    if (strcmp(name, "season") == 0) return base_naive(imax(1, spec.season), &t->f->base);
    if (strcmp(name, "ridge") == 0) {
        spec.refit = t->f->spec.refit_all;
        return base_ridge(x, &spec, &t->f->base);
    }
    if (strcmp(name, "mix") == 0 && x->panel) return base_panel(x, &spec, &t->f->mix, &t->f->has_mix, &t->f->base);
    if (strcmp(name, "mix") == 0) {
        spec.train = spec.valid;
        t->f->has_mix = true;
        return base_mix(x, &spec, &t->f->mix, &t->f->base);
    }
    if (strcmp(name, "trees") == 0) return base_trees(x, &spec, &t->f->base);
    t->f->has_choice = true;
    return base_choose(x, &spec, &t->f->choice, &t->f->base);
}

enum { PANEL_ROWS = 20000 };

/* Trees may win where other columns lead the targets, or where several short ones teach each other. Long ones without such
 * columns have a ridge and a network, and trees would cost more than they. */
static bool worth_trees(const struct fit *t) {
    const struct series *x = t->series;
    const char *name = t->f->spec.base;
    if (t->f->spec.decoder->every_step) return false; /* a base at every row, of long series */
    const bool led = x->nknown > 0 || x->npast > 0;
    const bool panel = x->panel || (x->ntarget > 1 && t->job->split.train * x->ntarget <= PANEL_ROWS);
    return (strcmp(name, "auto") == 0 || strcmp(name, "mix") == 0) && (led || panel);
}

/* A mix has seen the validation rows, so trees stand beside one that has not. */
static err try_trees(struct fit *t, struct workload *work) {
    struct base_spec spec = forecast_base_spec(t, work);
    struct trees_choice *table = &t->f->trees;
    struct base *rival = t->f->base;
    struct mix unused;
    if (!worth_trees(t)) return 0;
    if (t->f->has_mix) TRY(base_mix(t->series, &spec, &unused, &rival));
    const err e = base_try_trees(t->series, &spec, table, &rival);
    if (t->f->has_mix && e >= 0 && table->weight > 0) base_join(t->f->base, rival);
    if (t->f->has_mix) base_free(rival);
    return e;
}

/* How the trees did, where they were tried. */
static void trees_note(const struct fit *t) {
    const struct trees_choice *c = &t->f->trees;
    const struct events *to = t->job->use.events;
    if (!c->tried) return;
    if (c->weight > 0)
        event_note(to, EVENT_NOTE, "boosted trees: validation loss %.4g, without them %.4g, both mixed %.4g: taken", c->trees,
                   c->rival, c->both);
    else
        event_note(to, EVENT_NOTE, "boosted trees: validation loss %.4g, without them %.4g: not taken", c->trees, c->rival);
}

bool forecast_refits(const struct fit *t) {
    const bool asked = opt_given(t->job->o, OPT_refit_all);
    return t->f->spec.refit_all || (!asked && t->f->base && t->f->base->trees);
}

err forecast_refit_base(struct fit *t) {
    struct forecaster *f = t->f;
    struct base_spec spec = forecast_base_spec(t, NULL);
    struct base *b;
    if (!forecast_refits(t) || !f->base || !f->base->trees || f->trees_refitted || f->model.stopped == STOP_TIME) return 0;
    spec.train = spec.valid;
    TRY(base_again(t->series, &spec, f->base, &b));
    const struct base old = *f->base; /* batches keep the address of the base */
    *f->base = *b;
    *b = old;
    f->trees_refitted = true;
    base_free(b);
    return 0;
}

err forecast_choose_base(struct fit *t) {
    struct workload work = workload_start("choosing the base", t->job->use.events, forecast_stop(t));
    err e = choose(t, &work);
    if (e >= 0) e = try_trees(t, &work);
    workload_end(&work);
    if (e >= 0) trees_note(t);
    return e;
}

/* Fits the ridge that is printed beside every score, also in later evaluations; not needed if the base is a ridge. */
err forecast_ridge_row(struct fit *t) {
    struct workload work = workload_start("fitting the ridge to compare with", t->job->use.events, forecast_stop(t));
    struct base_spec spec = forecast_base_spec(t, &work);
    if (spec.calendar == INPUTS_ALWAYS) spec.calendar = INPUTS_TRIED;
    spec.refit = t->f->has_mix || t->f->spec.refit_all; /* the ridge sees every row that the model sees */
    if (base_is_ridge(t->f->base) || forecast_origins(t, &t->set.train) < MIN_WINDOWS) return 0;
    err e = base_ridge(t->series, &spec, &t->f->ridge);
    workload_end(&work);
    return e == -E601 || e == -E806 ? e : 0; /* no complete window: print no ridge */
}
